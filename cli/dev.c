/*
 * dev: a private nats-server and Postgres, for as long as it or the program after -- runs. At its end no
 * process, port or temporary file remains; only after kill -9 the temporary folder stays.
 */
#include "command.h"
#include "console.h"
#include "dev_folder.h"
#include "listen_address.h"
#include "servers.h"
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PROGRAM_GRACE_S = 30, /* from the first signal to SIGKILL; as --stop-limit of thole programs */
    LEFTOVER_GRACE_MS = 3000,
    LEFTOVER_POLL_MS = 10,
};

struct dev {
    const struct cli *cli;
    struct dev_folder folder;
    struct server nats, postgres;
    thole_client_options client; /* the console's */
    struct console *console;     /* NULL: it could not start */
    char console_url[128];
    bool served;              /* both servers were ready */
    sigset_t signals, before; /* blocked while it runs, and what the mask was */
    bool foreground;          /* the program has the terminal */
    pid_t program;            /* 0: none, or it has ended */
    bool asked;               /* the program has been asked to end */
    int code;
};

/* ---- the servers ---- */

/* A signal that came while a server was starting. */
static bool is_interrupted(struct dev *dev)
{
    struct timespec const now = {.tv_sec = 0};
    sigset_t ends = dev->signals;
    sigdelset(&ends, SIGCHLD);
    int const number = sigtimedwait(&ends, NULL, &now);
    if (number > 0)
        dev->code = number == SIGINT ? EXIT_INTERRUPTED : EXIT_SIGNALLED + number;
    return number > 0;
}

/* A server's port: that of the option; else that of the last time, so that the settings of other terminals
 * stay right; else 0, a free one. */
static thole_status choose_port(const struct cli *cli, const char *name, const char *option, uint32_t wish,
                                uint16_t kept, uint16_t *ret, thole_error *reterr)
{
    if (wish != 0 && server_port_is_open((uint16_t)wish))
        return thole_fail(reterr, THOLE_UNAVAILABLE,
                          "port %u is in use: give %s another one with %s, or leave that out for a free one",
                          wish, name, option);
    *ret = wish != 0 ? (uint16_t)wish : kept;
    if (wish == 0 && kept != 0 && server_port_is_open(kept)) {
        cli_note(cli, "%s had port %u the last time, which is in use now: it gets another", name, kept);
        *ret = 0;
    }
    return THOLE_OK;
}

static thole_status start_servers(struct dev *dev, thole_error *reterr)
{
    const struct cli_options *options = &dev->cli->options;
    char path[DEV_PATH_BYTES];
    struct nats_server_options nats = {.dir = path, .password = dev->folder.password};
    struct postgres_server_options postgres = {.dir = path, .password = dev->folder.password};
    THOLE_TRY(choose_port(dev->cli, "nats-server", "--nats-port", options->nats_port, dev->folder.nats_port,
                          &nats.port, reterr));
    THOLE_TRY(choose_port(dev->cli, "Postgres", "--postgres-port", options->postgres_port,
                          dev->folder.postgres_port, &postgres.port, reterr));
    (void)snprintf(path, sizeof path, "%s/nats", dev->folder.path);
    THOLE_TRY(server_nats_start(&nats, &dev->nats, reterr));
    if (is_interrupted(dev))
        return THOLE_CANCELLED;
    cli_note(dev->cli, "starting Postgres…");
    (void)snprintf(path, sizeof path, "%s/postgres", dev->folder.path);
    THOLE_TRY(server_postgres_start(&postgres, &dev->postgres, reterr));
    if (is_interrupted(dev))
        return THOLE_CANCELLED;
    dev->served = true;
    return dev_folder_note(&dev->folder, &dev->nats, &dev->postgres, reterr);
}

/* Port 8233 unless the option names one or it is in use. Its threads have the signals blocked, too. */
static void start_console(struct dev *dev)
{
    uint32_t const wish = dev->cli->options.console_port;
    struct console_options options = {.client = &dev->client, .allow_actions = true};
    thole_error error = {.status = THOLE_OK};
    cli_client_options(dev->cli, &dev->client);
    dev->client.nats_url = dev->nats.url;
    dev->client.postgres = dev->postgres.url;
    dev->client.nats_creds = NULL;
    listen_address_loopback((uint16_t)(wish != 0 ? wish : CONSOLE_PORT), &options.address);
    error.status = console_start(&options, &dev->console, &error);
    if (error.status == THOLE_UNAVAILABLE && wish == 0) {
        listen_address_loopback(0, &options.address);
        error.status = console_start(&options, &dev->console, &error);
    }
    if (error.status != THOLE_OK)
        cli_note(dev->cli, "there is no console: %s", error.text);
    (void)snprintf(dev->console_url, sizeof dev->console_url, "none");
    if (dev->console != NULL)
        (void)snprintf(dev->console_url, sizeof dev->console_url, "http://%s/",
                       console_address(dev->console));
}

/* On stderr too: stdout is the program's. */
static void settings_json(const struct dev *dev)
{
    struct json json;
    json_document(&json, stderr, "thole.dev.v1");
    json_member_text(&json, "nats", dev->nats.url);
    json_member_text(&json, "postgres", dev->postgres.url);
    if (dev->console != NULL)
        json_member_text(&json, "console", dev->console_url);
    json_member_text(&json, "dir", dev->folder.path);
    json_member_bool(&json, "temporary", dev->folder.temporary);
    json_end(&json);
}

static void print_settings(const struct dev *dev)
{
    if (cli_is_json(dev->cli)) {
        settings_json(dev);
        return;
    }
    (void)fprintf(stderr,
                  "NATS      %s\nPostgres  %s\nConsole   %s\nData      %s%s\n\n"
                  "In another terminal type  . %s/env  or these two lines:\n"
                  "export THOLE_NATS_URL='%s'\nexport THOLE_POSTGRES='%s'\n\n",
                  dev->nats.url, dev->postgres.url, dev->console_url, dev->folder.path,
                  dev->folder.temporary ? " (removed at the end)" : "", dev->folder.path, dev->nats.url,
                  dev->postgres.url);
    if (dev->cli->words_len == 0)
        (void)fprintf(stderr,
                      "There: PROGRAM run, and in a third: thole run NAME.\nCtrl-C ends the servers.\n");
}

static bool server_has_ended(const struct cli *cli, struct server *server, const char *name)
{
    thole_error error = {.status = THOLE_UNAVAILABLE};
    if (server->kind == SERVER_NONE || server->pid == 0 || waitpid(server->pid, NULL, WNOHANG) != server->pid)
        return false;
    server->pid = 0;
    (void)snprintf(error.text, sizeof error.text, "%s has ended by itself; its log is in %s", name,
                   server->dir);
    (void)cli_complain_with(cli, "", &error, EXIT_GENERIC, NULL);
    return true;
}

/* ---- the program ---- */

/* Whether the program exists, before servers are started for it. */
static bool program_is_there(const char *name)
{
    const char *folders = strchr(name, '/') != NULL ? "" : getenv("PATH");
    char path[DEV_PATH_BYTES + 1024];
    if (strchr(name, '/') != NULL)
        return access(name, F_OK) == 0;
    while (folders != NULL && *folders != '\0') {
        size_t const len = strcspn(folders, ":");
        int const n = snprintf(path, sizeof path, "%.*s/%s", (int)len, folders, name);
        if (n > 0 && (size_t)n < sizeof path && access(path, X_OK) == 0)
            return true;
        folders += len + (folders[len] == ':' ? 1 : 0);
    }
    return false;
}

static void dev_become_program(const struct dev *dev, pid_t parent)
{
    (void)setpgid(0, 0);
    if (dev->foreground)
        (void)tcsetpgrp(STDIN_FILENO, getpid()); /* SIGTTOU is still blocked */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_CANNOT_RUN);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGINT,
                 SIG_DFL); /* a shell's background job ignores it; this group only gets it when it is meant */
    (void)sigprocmask(SIG_SETMASK, &dev->before, NULL);
    execvp(dev->cli->words[0], dev->cli->words);
    int const code = errno == ENOENT ? EXIT_NO_PROGRAM : EXIT_CANNOT_RUN;
    thole_error error = {.status = THOLE_NOT_FOUND};
    (void)snprintf(error.text, sizeof error.text, "cannot run %s: %s", dev->cli->words[0], strerror(errno));
    _exit(cli_complain_with(dev->cli, "", &error, code, "the path of a program, behind --"));
}

/* The program gets a process group of its own, so that the processes that it leaves can be found, and the
 * terminal, if there is one, so that it receives Ctrl-C. */
static thole_status spawn_program(struct dev *dev, thole_error *reterr)
{
    pid_t const self = getpid();
    dev->foreground = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
    if (setenv("THOLE_NATS_URL", dev->nats.url, 1) != 0 ||
        setenv("THOLE_POSTGRES", dev->postgres.url, 1) != 0)
        return thole_fail(reterr, THOLE_NOMEM, "setenv: %s", strerror(errno));
    pid_t const pid = fork();
    if (pid == 0)
        dev_become_program(dev, self);
    if (pid < 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "fork: %s", strerror(errno));
    (void)setpgid(pid, pid); /* the child does it too; whichever is first */
    dev->program = pid;
    return THOLE_OK;
}

/* Reaps what has ended of the program's group: the program, and what it left to us. True when it was the
 * program. */
static bool program_has_ended(struct dev *dev)
{
    bool ended = false;
    int status = 0;
    pid_t pid;
    while (dev->program != 0 && (pid = waitpid(-dev->program, &status, WNOHANG)) > 0)
        if (pid == dev->program) {
            dev->code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNALLED + WTERMSIG(status);
            ended = true;
        }
    return ended;
}

/* Ends processes that the program has left; as a subreaper this process is their parent. */
static void end_leftovers(pid_t group)
{
    struct timespec const pause = {.tv_nsec = LEFTOVER_POLL_MS * 1000000L};
    (void)kill(-group, SIGTERM);
    (void)kill(-group, SIGCONT);
    for (int waited = 0; waited < LEFTOVER_GRACE_MS && kill(-group, 0) == 0; waited += LEFTOVER_POLL_MS) {
        while (waitpid(-group, NULL, WNOHANG) > 0)
            ;
        if (kill(-group, 0) == 0)
            (void)nanosleep(&pause, NULL);
    }
    (void)kill(-group, SIGKILL);
    while (waitpid(-group, NULL, 0) > 0)
        ;
}

/* ---- until something ends it ---- */

/* Returns false when it must end. */
static bool handle_signal(struct dev *dev, int number)
{
    if (number == SIGCHLD) {
        if (dev->program != 0 && program_has_ended(dev))
            return false;
        if (server_has_ended(dev->cli, &dev->nats, "nats-server") ||
            server_has_ended(dev->cli, &dev->postgres, "Postgres")) {
            dev->code = EXIT_GENERIC;
            return false;
        }
        return true;
    }
    if (dev->program == 0) {
        dev->code = number == SIGINT ? EXIT_INTERRUPTED : EXIT_DONE;
        return false;
    }
    (void)kill(-dev->program, dev->asked && number == SIGINT ? SIGKILL : number);
    dev->asked = true;
    return true;
}

static void dev_serve(struct dev *dev)
{
    struct timespec const grace = {.tv_sec = PROGRAM_GRACE_S};
    for (;;) {
        int const number =
            dev->asked ? sigtimedwait(&dev->signals, NULL, &grace) : sigwaitinfo(&dev->signals, NULL);
        if (number < 0 && errno == EAGAIN)
            (void)kill(-dev->program, SIGKILL);
        else if (number > 0 && !handle_signal(dev, number))
            return;
    }
}

static void dev_finish(struct dev *dev)
{
    if (dev->program != 0)
        end_leftovers(dev->program);
    if (dev->foreground)
        (void)tcsetpgrp(STDIN_FILENO, getpgrp());
    console_stop(dev->console);
    server_stop(&dev->postgres);
    server_stop(&dev->nats);
    dev_folder_end(&dev->folder, dev->served);
}

static thole_status dev_run_all(struct dev *dev, thole_error *reterr)
{
    if (dev->cli->words_len > 0 && !program_is_there(dev->cli->words[0])) {
        thole_error error = {.status = THOLE_NOT_FOUND};
        (void)snprintf(error.text, sizeof error.text, "cannot run %s: there is no such program",
                       dev->cli->words[0]);
        dev->code =
            cli_complain_with(dev->cli, "", &error, EXIT_NO_PROGRAM, "the path of a program, behind --");
        return THOLE_CANCELLED;
    }
    THOLE_TRY(dev_folder_prepare(&dev->folder, dev->cli->options.dir, reterr));
    THOLE_TRY(start_servers(dev, reterr));
    start_console(dev);
    print_settings(dev);
    if (dev->cli->words_len > 0)
        THOLE_TRY(spawn_program(dev, reterr));
    dev_serve(dev);
    return THOLE_OK;
}

int command_dev(struct cli *cli)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGTTOU};
    struct dev dev = {.cli = cli, .folder = {.lock = -1}};
    thole_error error = {.status = THOLE_OK};
    (void)signal(SIGCHLD, SIG_DFL);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* for end_leftovers() */
    sigemptyset(&dev.signals);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        sigaddset(&dev.signals, ends[i]);
    (void)sigprocmask(SIG_BLOCK, &dev.signals, &dev.before);
    sigdelset(&dev.signals,
              SIGTTOU); /* blocked so that the terminal can be taken back, and never waited for */
    error.status = dev_run_all(&dev, &error);
    dev_finish(&dev);
    (void)sigprocmask(SIG_SETMASK, &dev.before, NULL);
    if (error.status == THOLE_OK || error.status == THOLE_CANCELLED)
        return dev.code;
    return cli_complain_with(cli, "", &error, error.status == THOLE_INVALID ? EXIT_USAGE : EXIT_GENERIC,
                             NULL);
}
