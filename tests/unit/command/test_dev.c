/* thole dev: how it ends with its program, with signals and with its servers, and what stays of its folder.
 * It runs in a process of its own; the servers are played. */
#include "command.h"
#include "console.h"
#include "dev_folder.h"
#include "listen_address.h"
#include "thole_cunit.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    char base[64], folder[96], noted[64]; /* noted: what the servers were asked for */
    const char *fails;                    /* "nats", "postgres": it does not start */
    bool nats_ends;                       /* by itself, soon */
    const char *interrupts;               /* while that server starts, a signal comes */
    int signal;
    uint16_t used[2];       /* ports that are in use */
    const char *options[4]; /* more of them */
} play;

bool __wrap_server_port_is_open(uint16_t port)
{
    return port != 0 && (port == play.used[0] || port == play.used[1]);
}

static thole_status start(const char *name, const char *dir, const char *password, uint16_t port,
                          struct server *ret, thole_error *reterr)
{
    if (play.fails != NULL && strcmp(play.fails, name) == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s does not start", name);
    *ret = (struct server){.kind = name[0] == 'n' ? SERVER_NATS : SERVER_POSTGRES,
                           .port = port != 0        ? port
                                   : name[0] == 'n' ? 4001
                                                    : 5001};
    (void)snprintf(ret->dir, sizeof ret->dir, "%s", dir);
    (void)snprintf(ret->url, sizeof ret->url, "%s://%s@127.0.0.1:%u", name, password, ret->port);
    if (play.interrupts != NULL && strcmp(play.interrupts, name) == 0)
        (void)raise(play.signal); /* the signal is blocked */
    if (name[0] == 'n' && play.nats_ends && (ret->pid = fork()) == 0) {
        (void)usleep(100000);
        _exit(0);
    }
    return THOLE_OK;
}

thole_status __wrap_server_nats_start(const struct nats_server_options *options, struct server *ret,
                                      thole_error *reterr)
{
    return start("nats", options->dir, options->password, options->port, ret, reterr);
}

thole_status __wrap_server_postgres_start(const struct postgres_server_options *options, struct server *ret,
                                          thole_error *reterr)
{
    return start("postgres", options->dir, options->password, options->port, ret, reterr);
}

static char console_at[LISTEN_ADDRESS_BYTES];

/* The console's port is in use, or the requested one; a free one is 6001. */
thole_status __wrap_console_start(const struct console_options *options, struct console **ret,
                                  thole_error *reterr)
{
    char text[LISTEN_ADDRESS_BYTES];
    listen_address_format(&options->address, text);
    unsigned const port = (unsigned)strtoul(strrchr(text, ':') + 1, NULL, 10);
    if (__wrap_server_port_is_open((uint16_t)port))
        return thole_fail(reterr, THOLE_UNAVAILABLE, "port %u is in use", port);
    (void)snprintf(console_at, sizeof console_at, "127.0.0.1:%u", port == 0 ? 6001 : port);
    *ret = (struct console *)console_at;
    return options->allow_actions ? THOLE_OK : THOLE_INVALID;
}

const char *__wrap_console_address(const struct console *console)
{
    return (const char *)console;
}

void __wrap_console_stop(struct console *console)
{
    (void)console;
}

/* A file says that it was stopped. */
void __wrap_server_stop(struct server *server)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s_stopped", play.base,
                   server->kind == SERVER_NATS ? "nats" : "postgres");
    if (server->kind != SERVER_NONE)
        (void)close(open(path, O_CREAT | O_WRONLY, 0600));
}

/* ---- a run ---- */

static bool there(const char *in, const char *name)
{
    char path[200];
    (void)snprintf(path, sizeof path, "%s/%s", in, name);
    return access(path, F_OK) == 0;
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    (void)snprintf(play.base, sizeof play.base, "/tmp/thole-test-dev.XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(play.base));
    (void)snprintf(play.folder, sizeof play.folder, "%s/dev", play.base);
}

static void end(void)
{
    char command[100];
    (void)snprintf(command, sizeof command, "rm -rf %s", play.base);
    CU_ASSERT_EQUAL(system(command), 0);
}

struct run {
    pid_t pid;
    int out; /* of the program, and of thole dev */
};

static struct run run_dev(const char *script)
{
    int ends[2];
    struct run run = {.pid = -1};
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    (void)fflush(NULL);
    run.pid = fork();
    if (run.pid == 0) {
        char *argv[16] = {(char *)"thole", (char *)"dev", (char *)"--dir", play.folder};
        int len = 4;
        for (size_t i = 0; i < ARRAY_LEN(play.options) && play.options[i] != NULL; i++)
            argv[len++] = (char *)play.options[i];
        for (const char *const *word = (const char *const[]){"--", "sh", "-c", script, NULL};
             script != NULL && *word != NULL; word++)
            argv[len++] = (char *)*word;
        (void)setpgid(0, 0);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        _exit(cli_main(len, argv));
    }
    (void)close(ends[1]);
    run.out = ends[0];
    return run;
}

/* Reads until the text has come, or its end. */
static bool says(const struct run *run, const char *text)
{
    char all[8192] = "";
    size_t len = 0;
    struct pollfd fd = {.fd = run->out, .events = POLLIN};
    while (strstr(all, text) == NULL && len < sizeof all - 1 && poll(&fd, 1, 20000) > 0) {
        ssize_t const n = read(run->out, all + len, sizeof all - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
        all[len] = '\0';
    }
    if (strstr(all, text) == NULL)
        fprintf(stderr, "\n  no \"%s\" in: %s\n", text, all);
    return strstr(all, text) != NULL;
}

/* The exit code of dev; -1: it did not end in time. */
static int code_of(struct run *run)
{
    int status = 0;
    pid_t ended = 0;
    for (int i = 0; i < 1000 && (ended = waitpid(run->pid, &status, WNOHANG)) == 0; i++)
        (void)usleep(20000);
    if (ended == 0) {
        (void)kill(run->pid, SIGKILL);
        (void)waitpid(run->pid, &status, 0);
    }
    (void)close(run->out);
    if (ended == 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* The exit code, and all output of dev and its program; free() the text. */
static int run_whole(const char *script, char **ret_said)
{
    struct run run = run_dev(script);
    size_t len = 0, cap = 8192;
    char *const said = calloc(1, cap);
    struct pollfd fd = {.fd = run.out, .events = POLLIN};
    while (len < cap - 1 && poll(&fd, 1, 20000) > 0) {
        ssize_t const n = read(run.out, said + len, cap - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    *ret_said = said;
    return code_of(&run);
}

/* ---- tests ---- */

static void test_its_code_is_the_programs(void)
{
    static const struct {
        const char *script;
        int code;
    } rows[] = {
        {"exit 0", 0}, {"exit 7", 7}, {"kill -TERM $$", 128 + SIGTERM}, {"kill -KILL $$", 128 + SIGKILL}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        struct run run = run_dev(rows[i].script);
        CU_ASSERT_TRUE(says(&run, "export THOLE_NATS_URL='nats://"));
        int const code = code_of(&run);
        if (code != rows[i].code)
            fprintf(stderr, "\n  %s: %d\n", rows[i].script, code);
        CU_ASSERT_EQUAL(code, rows[i].code);
        CU_ASSERT_TRUE(there(play.base, "nats_stopped") && there(play.base, "postgres_stopped"));
        CU_ASSERT_TRUE(there(play.folder, "env")); /* has served: its data stays */
        end();
    }
}

/* The first asks the program to end, the second Ctrl-C insists. */
static void test_signals(void)
{
    static const struct {
        const char *script;
        int first, second, code; /* second 0: none */
    } rows[] = {
        {"trap 'exit 5' INT; echo ready; while :; do sleep 0.05; done", SIGINT, 0, 5},
        {"trap 'exit 6' TERM; echo ready; while :; do sleep 0.05; done", SIGTERM, 0, 6},
        {"trap 'exit 4' HUP; echo ready; while :; do sleep 0.05; done", SIGHUP, 0, 4},
        {"trap '' INT; echo ready; while :; do sleep 0.05; done", SIGINT, SIGINT, 128 + SIGKILL},
        {"trap '' INT; trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done", SIGINT, SIGTERM, 3}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        struct run run = run_dev(rows[i].script);
        CU_ASSERT_TRUE(says(&run, "ready"));
        (void)kill(run.pid, rows[i].first);
        if (rows[i].second != 0) {
            (void)usleep(200000);
            (void)kill(run.pid, rows[i].second);
        }
        int const code = code_of(&run);
        if (code != rows[i].code)
            fprintf(stderr, "\n  %s: %d\n", rows[i].script, code);
        CU_ASSERT_EQUAL(code, rows[i].code);
        CU_ASSERT_TRUE(there(play.base, "nats_stopped") && there(play.base, "postgres_stopped"));
        end();
    }
}

static void test_without_a_program(void)
{
    static const int signals[] = {SIGINT, SIGTERM}, codes[] = {130, 0};
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        begin();
        struct run run = run_dev(NULL);
        CU_ASSERT_TRUE(says(&run, "Ctrl-C ends the servers"));
        (void)kill(run.pid, signals[i]);
        CU_ASSERT_EQUAL(code_of(&run), codes[i]);
        CU_ASSERT_TRUE(there(play.base, "nats_stopped") && there(play.base, "postgres_stopped"));
        end();
    }
}

static void test_servers_that_fail(void)
{
    static const char *const names[] = {"nats", "postgres"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        begin();
        play.fails = names[i];
        struct run run = run_dev("echo never");
        CU_ASSERT_TRUE(says(&run, "does not start"));
        CU_ASSERT_EQUAL(code_of(&run), 1);
        CU_ASSERT_EQUAL(there(play.base, "nats_stopped"), i == 1);
        CU_ASSERT_FALSE(there(play.base, "dev")); /* the folder was made for servers that never served */
        end();
    }
    begin();
    play.nats_ends = true;
    struct run run = run_dev("while :; do sleep 0.05; done");
    CU_ASSERT_TRUE(says(&run, "nats-server has ended by itself; its log is in"));
    CU_ASSERT_EQUAL(code_of(&run), 1);
    CU_ASSERT_TRUE(there(play.base, "postgres_stopped"));
    end();
}

/* A signal that comes while a server starts ends it: no other server is started, and nothing is said. */
static void test_interrupted_starts(void)
{
    static const struct {
        const char *name;
        int signal, code;
    } rows[] = {{"nats", SIGINT, 130},
                {"nats", SIGTERM, 128 + SIGTERM},
                {"postgres", SIGINT, 130},
                {"postgres", SIGHUP, 128 + SIGHUP}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *said = NULL;
        bool const second = strcmp(rows[i].name, "postgres") == 0;
        begin();
        play.interrupts = rows[i].name;
        play.signal = rows[i].signal;
        CU_ASSERT_EQUAL(run_whole("echo never", &said), rows[i].code);
        CHECK_STR(rows[i].name, said, second ? "starting Postgres…\n" : "");
        free(said);
        CU_ASSERT_TRUE(there(play.base, "nats_stopped"));
        CU_ASSERT_EQUAL(there(play.base, "postgres_stopped"), second);
        CU_ASSERT_FALSE(there(play.base, "dev"));
        end();
    }
}

/* ---- output ---- */

/* As it is said, with the folder's password and name replaced. */
static void check_said(const char *script, int code, const char *want)
{
    char *said = NULL, plain[2048] = "";
    CU_ASSERT_EQUAL(run_whole(script, &said), code);
    for (const char *at = said; *at != '\0';) {
        size_t const len = strlen(plain), digits = strspn(at, "0123456789abcdef");
        if (strncmp(at, play.folder, strlen(play.folder)) == 0) {
            (void)snprintf(plain + len, sizeof plain - len, "DIR");
            at += strlen(play.folder);
        } else if (digits == DEV_PASSWORD_BYTES - 1) {
            (void)snprintf(plain + len, sizeof plain - len, "PASSWORD");
            at += digits;
        } else {
            (void)snprintf(plain + len, sizeof plain - len, "%c", *at++);
        }
    }
    CHECK_STR(script, plain, want);
    free(said);
}

#define STARTS "starting Postgres…\n"
#define NOTED(text) "{\"schema\":\"thole.note.v1\",\"note\":\"" text "\"}\n"
#define SETTINGS(nats, postgres)                                                                             \
    NOTED("starting Postgres…")                                                                              \
    "{\"schema\":\"thole.dev.v1\",\"nats\":\"nats://PASSWORD@127.0.0.1:" nats "\","                          \
    "\"postgres\":\"postgres://PASSWORD@127.0.0.1:" postgres "\","                                           \
    "\"console\":\"http://127.0.0.1:8233/\",\"dir\":\"DIR\",\"temporary\":false}\n"
#define COMPLAINED(text)                                                                                     \
    "{\"schema\":\"thole.error.v1\",\"error\":{\"status\":\"UNAVAILABLE\",\"exit_code\":1,"                  \
    "\"verb\":\"dev\",\"message\":\"" text "\"}}\n"

static void test_what_it_says(void)
{
    begin();
    check_said("echo \"$THOLE_NATS_URL $THOLE_POSTGRES\"", 0,
               STARTS
               "NATS      nats://PASSWORD@127.0.0.1:4001\nPostgres  postgres://PASSWORD@127.0.0.1:5001\n"
               "Console   http://127.0.0.1:8233/\nData      DIR\n\nIn another terminal type  . DIR/env  or "
               "these two lines:\n"
               "export THOLE_NATS_URL='nats://PASSWORD@127.0.0.1:4001'\n"
               "export THOLE_POSTGRES='postgres://PASSWORD@127.0.0.1:5001'\n\n"
               "nats://PASSWORD@127.0.0.1:4001 postgres://PASSWORD@127.0.0.1:5001\n");
    play.options[0] = "-o";
    play.options[1] = "json";
    check_said("exit 3", 3, SETTINGS("4001", "5001"));
    end();
}

/* The option's port must be free; that of the last time is used again unless it is taken. */
static void test_ports(void)
{
    begin();
    play.options[0] = "-ojson";
    play.options[1] = "--nats-port=4101";
    play.options[2] = "--postgres-port=5101";
    check_said("exit 0", 0, SETTINGS("4101", "5101"));
    play.options[1] = NULL;
    check_said("exit 0", 0, SETTINGS("4101", "5101"));
    play.used[0] = 4101;
    check_said("exit 0", 0,
               NOTED("nats-server had port 4101 the last time, which is in use now: it gets another")
                   SETTINGS("4001", "5101"));
    play.used[1] = 5101;
    check_said("exit 0", 0,
               NOTED("Postgres had port 5101 the last time, which is in use now: it gets another")
                   SETTINGS("4001", "5001"));
    play.options[1] = "--nats-port=4101";
    check_said("exit 0", 1,
               COMPLAINED("port 4101 is in use: give nats-server another one with --nats-port, or leave that "
                          "out for a free one"));
    play.options[1] = "--postgres-port=5101";
    check_said("exit 0", 1,
               COMPLAINED("port 5101 is in use: give Postgres another one with --postgres-port, or leave "
                          "that out for a free one"));
    end();
}

/* The console's: the usual one, else a free one; that of the option or none. */
static void test_console_port(void)
{
    char *said = NULL;
    begin();
    play.used[0] = 8233;
    CU_ASSERT_EQUAL(run_whole("exit 0", &said), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "Console   http://127.0.0.1:6001/\n"));
    free(said);
    play.options[0] = "--console-port=8300";
    CU_ASSERT_EQUAL(run_whole("exit 0", &said), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "Console   http://127.0.0.1:8300/\n"));
    free(said);
    play.used[0] = 8300;
    CU_ASSERT_EQUAL(run_whole("exit 0", &said), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "there is no console: port 8300 is in use\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "Console   none\n"));
    free(said);
    end();
}

/* ---- the folder ---- */

static void test_a_folder_that_is_kept(void)
{
    struct dev_folder first, again, rival;
    struct server const nats = {.port = 4001, .url = "nats://x"},
                        postgres = {.port = 5001, .url = "postgres://x"};
    thole_error err = {0};
    char text[256] = "";
    begin();
    CU_ASSERT_EQUAL(dev_folder_prepare(&first, play.folder, &err), THOLE_OK);
    CU_ASSERT_TRUE(first.made && !first.temporary && first.nats_port == 0 && first.postgres_port == 0);
    CU_ASSERT_TRUE(there(play.folder, "nats") && there(play.folder, "postgres"));
    CU_ASSERT_EQUAL(strspn(first.password, "0123456789abcdef"), DEV_PASSWORD_BYTES - 1);
    CU_ASSERT_EQUAL(dev_folder_prepare(&rival, play.folder, &err), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another thole dev uses"));
    dev_folder_end(&rival, false);
    CU_ASSERT_EQUAL(dev_folder_note(&first, &nats, &postgres, &err), THOLE_OK);
    dev_folder_end(&first, true);
    CU_ASSERT_EQUAL(dev_folder_prepare(&again, play.folder, &err), THOLE_OK); /* the folder is unlocked */
    CU_ASSERT_TRUE(!again.made && again.nats_port == 4001 && again.postgres_port == 5001);
    CHECK_STR("password", again.password, first.password);
    dev_folder_end(&again, false); /* a folder from before stays, whatever happened to the servers */
    CU_ASSERT_TRUE(there(play.folder, "env"));
    (void)snprintf(text, sizeof text, "%s/env", play.folder);
    int const fd = open(text, O_RDONLY);
    ssize_t const n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    CHECK_STR("env", text,
              "export THOLE_NATS_URL='nats://x'\nexport THOLE_POSTGRES='postgres://x'\nexport "
              "THOLE_CONTEXT=none\n");
    end();
}

static void test_folders_that_go(void)
{
    struct dev_folder folder;
    thole_error err = {0};
    char path[4 * SERVER_PATH_BYTES];
    begin();
    CU_ASSERT_EQUAL(dev_folder_prepare(&folder, NULL, &err), THOLE_OK);
    CU_ASSERT_TRUE(folder.temporary && there(folder.path, "lock"));
    (void)snprintf(path, sizeof path, "%s", folder.path);
    dev_folder_end(&folder, true);
    CU_ASSERT_FALSE(there(path, "."));
    CU_ASSERT_EQUAL(dev_folder_prepare(&folder, play.folder, &err), THOLE_OK);
    dev_folder_end(&folder, false);
    CU_ASSERT_FALSE(there(play.folder, "."));
    (void)snprintf(path, sizeof path, "%s/%0*d", play.base, SERVER_PATH_BYTES, 0);
    CU_ASSERT_EQUAL(dev_folder_prepare(&folder, path, &err), THOLE_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "has more than 79 bytes"));
    CU_ASSERT_FALSE(there(path, "."));
    CU_ASSERT_EQUAL(dev_folder_prepare(&folder, "/nonexistent/x", &err), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot write to /nonexistent/x"));
    end();
}

static const struct thole_test tests[] = {
    {"its code is the program's", test_its_code_is_the_programs},
    {"signals", test_signals},
    {"without a program", test_without_a_program},
    {"servers that fail", test_servers_that_fail},
    {"interrupted starts", test_interrupted_starts},
    {"what it says", test_what_it_says},
    {"ports", test_ports},
    {"the port of the console", test_console_port},
    {"a folder that is kept", test_a_folder_that_is_kept},
    {"folders that go", test_folders_that_go},
};
THOLE_TEST_MAIN("dev", tests)
