/*
 * dev: a private nats-server and Postgres, for as long as it or the program behind -- runs. Whatever ends it,
 * no process, port or temporary file is left behind; only kill -9 leaves the temporary folder.
 */
#include "command.h"
#include "servers.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    DEV_PATH_BYTES = SERVER_PATH_BYTES + 32,
    PASSWORD_BYTES = 25,  /* 24 hex digits */
    PROGRAM_GRACE_S = 30, /* from the first signal to SIGKILL; as --stop-limit of thole programs */
    LEFTOVER_GRACE_MS = 3000,
    LEFTOVER_POLL_MS = 10,
};

struct dev {
    const struct cli *cli;
    char dir[SERVER_PATH_BYTES];
    bool temporary;
    char password[PASSWORD_BYTES];
    struct server nats, postgres;
    sigset_t signals, before; /* blocked while it runs, and what the mask was */
    bool foreground;          /* the program has the terminal */
    pid_t program;            /* 0: none, or it has ended */
    bool asked;               /* the program has been asked to end */
    int code;
};

/* ---- the folder ---- */

static thole_status make_folder(const char *path, thole_error *reterr)
{
    if (mkdir(path, 0711) == 0 || errno == EEXIST)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "cannot make the folder %s: %s", path, strerror(errno));
}

static thole_status make_password(char ret[PASSWORD_BYTES], thole_error *reterr)
{
    uint8_t bytes[(PASSWORD_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    return THOLE_OK;
}

/* A folder that is kept keeps the password of its Postgres too. */
static thole_status keep_password(struct dev *dev, thole_error *reterr)
{
    char path[DEV_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/password", dev->dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool const kept = fd >= 0 && read(fd, dev->password, PASSWORD_BYTES - 1) == PASSWORD_BYTES - 1;
    if (fd >= 0)
        (void)close(fd);
    if (kept && strspn(dev->password, "0123456789abcdef") == PASSWORD_BYTES - 1)
        return THOLE_OK;
    THOLE_TRY(make_password(dev->password, reterr));
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, dev->password, PASSWORD_BYTES - 1) == PASSWORD_BYTES - 1;
    if (fd >= 0 && close(fd) != 0)
        written = false;
    return written ? THOLE_OK
                   : thole_fail(reterr, THOLE_INVALID, "cannot write %s: %s", path, strerror(errno));
}

static thole_status prepare_folder(struct dev *dev, thole_error *reterr)
{
    const char *wish = dev->cli->options.dir;
    char path[DEV_PATH_BYTES];
    if (wish == NULL) {
        THOLE_TRY(server_dir_create("thole-dev", dev->dir, reterr));
        dev->temporary = true;
        THOLE_TRY(make_password(dev->password, reterr));
    } else {
        int const n = snprintf(dev->dir, sizeof dev->dir, "%s", wish);
        if (n <= 0 || (size_t)n >= sizeof dev->dir)
            return thole_fail(reterr, THOLE_INVALID,
                              "--dir must have 1 to %zu bytes: a socket's path goes in it",
                              sizeof dev->dir - 1);
        THOLE_TRY(make_folder(dev->dir, reterr));
        THOLE_TRY(keep_password(dev, reterr));
    }
    (void)snprintf(path, sizeof path, "%s/nats", dev->dir);
    THOLE_TRY(make_folder(path, reterr));
    (void)snprintf(path, sizeof path, "%s/postgres", dev->dir);
    return make_folder(path, reterr);
}

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

static thole_status start_servers(struct dev *dev, thole_error *reterr)
{
    char path[DEV_PATH_BYTES];
    struct nats_server_options const nats = {.dir = path, .port = (uint16_t)dev->cli->options.nats_port};
    struct postgres_server_options const postgres = {
        .dir = path, .port = (uint16_t)dev->cli->options.postgres_port, .password = dev->password};
    (void)snprintf(path, sizeof path, "%s/nats", dev->dir);
    THOLE_TRY(server_nats_start(&nats, &dev->nats, reterr));
    if (is_interrupted(dev))
        return THOLE_CANCELLED;
    (void)fprintf(stderr, "starting Postgres…\n");
    (void)snprintf(path, sizeof path, "%s/postgres", dev->dir);
    THOLE_TRY(server_postgres_start(&postgres, &dev->postgres, reterr));
    return is_interrupted(dev) ? THOLE_CANCELLED : THOLE_OK;
}

static void print_settings(const struct dev *dev)
{
    (void)fprintf(stderr,
                  "NATS      %s\nPostgres  %s\nData      %s%s\n\n"
                  "export THOLE_NATS_URL='%s'\nexport THOLE_POSTGRES='%s'\n\n",
                  dev->nats.url, dev->postgres.url, dev->dir, dev->temporary ? " (removed at the end)" : "",
                  dev->nats.url, dev->postgres.url);
    if (dev->cli->words_len == 0)
        (void)fprintf(stderr,
                      "In another terminal: paste the two lines, then PROGRAM run, then thole run NAME.\n"
                      "Ctrl-C ends the servers.\n");
}

static bool server_has_ended(struct server *server, const char *name)
{
    if (server->kind == SERVER_NONE || server->pid == 0 || waitpid(server->pid, NULL, WNOHANG) != server->pid)
        return false;
    server->pid = 0;
    (void)fprintf(stderr, "thole dev: %s has ended by itself; its log is in %s\n", name, server->dir);
    return true;
}

/* ---- the program ---- */

static void become_program(const struct dev *dev, pid_t parent)
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
    (void)dprintf(STDERR_FILENO, "thole dev: cannot run %s: %s\n", dev->cli->words[0], strerror(errno));
    _exit(errno == ENOENT ? EXIT_NO_PROGRAM : EXIT_CANNOT_RUN);
}

/* It gets a process group of its own, so that what it leaves behind can be found, and the terminal, if there
 * is one, so that Ctrl-C reaches it as if it had been started by hand. */
static thole_status spawn_program(struct dev *dev, thole_error *reterr)
{
    pid_t const self = getpid();
    dev->foreground = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
    if (setenv("THOLE_NATS_URL", dev->nats.url, 1) != 0 ||
        setenv("THOLE_POSTGRES", dev->postgres.url, 1) != 0)
        return thole_fail(reterr, THOLE_NOMEM, "setenv: %s", strerror(errno));
    pid_t const pid = fork();
    if (pid == 0)
        become_program(dev, self);
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

/* What the program started and did not end; this process adopts it. */
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

/* Returns false when the end has come. */
static bool handle_signal(struct dev *dev, int number)
{
    if (number == SIGCHLD) {
        if (dev->program != 0 && program_has_ended(dev))
            return false;
        if (server_has_ended(&dev->nats, "nats-server") || server_has_ended(&dev->postgres, "Postgres")) {
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

static void serve(struct dev *dev)
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

static void finish(struct dev *dev)
{
    if (dev->program != 0)
        end_leftovers(dev->program);
    if (dev->foreground)
        (void)tcsetpgrp(STDIN_FILENO, getpgrp());
    server_stop(&dev->postgres);
    server_stop(&dev->nats);
    if (dev->temporary)
        server_dir_remove(dev->dir);
}

static thole_status run_all(struct dev *dev, thole_error *reterr)
{
    THOLE_TRY(prepare_folder(dev, reterr));
    THOLE_TRY(start_servers(dev, reterr));
    print_settings(dev);
    if (dev->cli->words_len > 0)
        THOLE_TRY(spawn_program(dev, reterr));
    serve(dev);
    return THOLE_OK;
}

int command_dev(struct cli *cli)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGTTOU};
    struct dev dev = {.cli = cli};
    thole_error error = {.status = THOLE_OK};
    (void)signal(SIGCHLD, SIG_DFL);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* for end_leftovers() */
    sigemptyset(&dev.signals);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        sigaddset(&dev.signals, ends[i]);
    (void)sigprocmask(SIG_BLOCK, &dev.signals, &dev.before);
    sigdelset(&dev.signals,
              SIGTTOU); /* blocked so that the terminal can be taken back, and never waited for */
    error.status = run_all(&dev, &error);
    finish(&dev);
    (void)sigprocmask(SIG_SETMASK, &dev.before, NULL);
    if (error.status == THOLE_OK || error.status == THOLE_CANCELLED)
        return dev.code;
    return cli_complain_with(cli, "", &error, error.status == THOLE_INVALID ? EXIT_USAGE : EXIT_GENERIC,
                             NULL);
}
