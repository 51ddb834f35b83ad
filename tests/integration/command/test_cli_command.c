/* The `thole` command as people and scripts meet it: words, exit codes, and `thole dev`, which removes all it
 * made. */
#include "integration.h"
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OUTPUT_BYTES = 64 * 1024, START_MS = 60000, POLL_PAUSE_MS = 20 };

/* Runs the command in a shell, both outputs together; "EXIT: OUTPUT". Static. */
static const char *outcome_of(const char *arguments)
{
    static char text[OUTPUT_BYTES];
    char command[1024], output[OUTPUT_BYTES - 32];
    (void)snprintf(command, sizeof command, "%s %s 2>&1", THOLE_COMMAND, arguments);
    FILE *from = popen(command, "r");
    size_t const len = from == NULL ? 0 : fread(output, 1, sizeof output - 1, from);
    int const status = from == NULL ? -1 : pclose(from);
    output[len] = '\0';
    (void)snprintf(text, sizeof text, "%d: %s", WIFEXITED(status) ? WEXITSTATUS(status) : -1, output);
    return text;
}

/* The row passes when the outcome begins with the code and holds the words. */
static void check(const char *arguments, int code, const char *words)
{
    char want[64];
    const char *got = outcome_of(arguments);
    (void)snprintf(want, sizeof want, "%d: ", code);
    bool const good = strncmp(got, want, strlen(want)) == 0 && strstr(got, words) != NULL;
    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "\n  [thole %s]\n    got  %s\n    want %s…%s\n", arguments, got, want, words);
}

static const struct {
    const char *arguments;
    int code;
    const char *words;
} word_cases[] = {
    {"", 2, "usage: thole"},
    {"--help", 0, "Verbs:"},
    {"help", 0, "Exit codes:"},
    {"help run", 0, "thole run checkout"},
    {"run --help", 0, "--timeout DURATION"},
    {"--version", 0, "thole 0."},
    {"version", 0, "thole 0."},
    {"version -o json", 0, "{\"schema\":\"thole.version.v1\",\"version\":\"0."},
    {"-o json version", 0, "{\"schema\":"},
    {"help -o json", 0, "{\"schema\":\"thole.help.v1\",\"verbs\":[{\"verb\":\"start\""},
    {"help wait -o json", 0, "\"verbs\":[{\"verb\":\"wait\",\"usage\":\"ID\""},
    {"-o json", 2, "{\"schema\":\"thole.error.v1\",\"error\":{\"status\":\"INVALID\",\"exit_code\":2,"},
    {"-o json strat", 2,
     "\"message\":\"there is no verb \\\"strat\\\"; did you mean start?\",\"hint\":\"thole help\"}}"},
    {"wait --output=json", 2,
     "\"verb\":\"wait\",\"message\":\"ID is missing\",\"hint\":\"thole wait --help\"}}"},
    {"list --stauts failed -ojsonl", 2,
     "\"message\":\"there is no option --stauts; did you mean --status?\""},
    {"--nats nats://127.0.0.1:1 --timeout 300ms history x -o json", 6,
     "\"status\":\"UNAVAILABLE\",\"exit_code\":6,"},
    {"strat x", 2, "did you mean start?"},
    {"frobnicate", 2, "Try: thole help"},
    {"help strat", 2, "did you mean start?"},
    {"list --stauts failed", 2, "did you mean --status?"},
    {"list --status exploded", 2, "none of: any, running"},
    {"list --limit 0", 2, "--limit: 0"},
    {"list more", 2, "one word too many"},
    {"start", 2, "ORCHESTRATION is missing"},
    {"wait", 2, "ID is missing"},
    {"wait x --timeout 5", 2, "not a duration"},
    {"signal", 2, "ID is missing"},
    {"signal x", 2, "NAME is missing"},
    {"signal x paid 1 2", 2, "one word too many"},
    {"signal --help", 0, "thole signal order-17 paid 'amount=99'"},
    {"terminate", 2, "ID is missing"},
    {"terminate --help", 0, "thole terminate order-17"},
    {"pause --help", 0, "thole pause order-17"},
    {"resume --help", 0, "thole resume order-17"},
    {"query x", 2, "NAME is missing"},
    {"query --help", 0, "thole query order-17 progress"},
    {"complete", 2, "TOKEN is missing"},
    {"complete --help", 0, "thole complete 3.1.5.1.order-17 approved"},
    {"fail --help", 0, "--type TYPE"},
    {"resmue x", 2, "did you mean resume?"},
    {"run checkout@two", 2, "behind the @ stands a version"},
    {"start checkout@0", 2, "behind the @ stands a version"},
    {"start checkout@99999999999", 2, "behind the @ stands a version"},
    {"start checkout --event-data x", 2, "see --event"},
    {"start checkout --event a.b", 2, "--event"},
    {"start checkout --event e --event-data - --input -", 2, "stdin can be read once"},
    {"list --after yesterday", 2, "--after: yesterday is no time"},
    {"list --before 2026-02-30", 2, "--before: 2026-02-30 is no time"},
    {"replay x", 2, "PROGRAM is missing"},
    {"replay -- true", 2, "what is to be replayed?"},
    {"replay --all x -- true", 2, "what is to be replayed?"},
    {"replay --all -- /nowhere/at/all", 127, "cannot run /nowhere/at/all"},
    {"replay a b -- echo run", 126, "run replay -- a b"},
    {"replay --file f -- echo", 126, "replay --file f --"},
    {"replay a -- true", 126, "true has not said what it has replayed"},
    {"replay a -o json -- echo '{\"schema\":\"thole.replay.v1\"}'", 0, "thole.replay.v1"},
    {"replay a -- sh -c 'printf \"4 events  events replayed in 1 s\\n\"'", 0, "replayed in 1 s"},
    {"replay a -- sh -c 'kill -9 $$'", 137, ""},
    {"replay a -- false", 1, ""},
    {"run order --input @/nowhere/at/all", 3, "cannot read /nowhere/at/all"},
    {"--nats", 2, "--nats needs a value"},
    {"list -n a.b", 2, "--namespace"},
    {"--nats nats://127.0.0.1:1 --timeout 300ms history x", 6, "thole dev"},
    {"--nats nats://user:secret@127.0.0.1:1 history x", 2, "put it into a file for --nats-creds"},
    {"history x --nats nats://token@127.0.0.1:1", 2, "--nats: there is a password in it"},
    {"migrate --postgres postgres://u:secret@127.0.0.1:1/x", 2, "put it into a password file (passfile=FILE"},
    {"migrate --postgres 'host=127.0.0.1 port=1 password=secret'", 2,
     "--postgres: there is a password in it"},
    {"gateway --postgres postgres://127.0.0.1:1/x?password=secret", 2,
     "--postgres: there is a password in it"},
    {"binder --nats nats://127.0.0.1:1,nats://u:secret@127.0.0.1:2", 2, "--nats: there is a password in it"},
    {"dev --nats-port 70000", 2, "--nats-port: 70000"},
};

static void test_words(void)
{
    for (size_t i = 0; i < ARRAY_LEN(word_cases); i++)
        check(word_cases[i].arguments, word_cases[i].code, word_cases[i].words);
    CU_ASSERT_PTR_NULL(strstr(outcome_of("run --help"), "is missing"));
    CU_ASSERT_PTR_NULL(strstr(outcome_of("--nats nats://user:secret@127.0.0.1:1 history x"), "secret"));
    setenv("THOLE_NATS_URL", "nats://user:secret@127.0.0.1:1", 1);
    check("--timeout 300ms history x", 6, "127.0.0.1:1");
    CU_ASSERT_PTR_NULL(strstr(outcome_of("--timeout 300ms history x"), "secret"));
    unsetenv("THOLE_NATS_URL");
}

/* The exit codes of --help are those of the documentation. */
static void test_exit_codes(void)
{
    static char page[OUTPUT_BYTES], help[OUTPUT_BYTES];
    FILE *from = fopen(THOLE_SOURCE_DIR "/docs/cli.md", "r");
    CU_ASSERT_FATAL(from != NULL);
    page[fread(page, 1, sizeof page - 1, from)] = '\0';
    (void)fclose(from);
    (void)snprintf(help, sizeof help, "%s", outcome_of("help"));
    char *line = strstr(help, "Exit codes:\n"), *rest = NULL, row[512];
    CU_ASSERT_FATAL(line != NULL);
    int codes = 0, rows = 0, code, at;
    for (line = strtok_r(line, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        if (sscanf(line, " %d %n", &code, &at) == 1) {
            (void)snprintf(row, sizeof row, "| %d | %s |\n", code, line + at);
            CHECK_STR(row, strstr(page, row) == NULL ? "" : row, row);
            codes++;
        }
    for (const char *at_row = page; (at_row = strstr(at_row, "\n| ")) != NULL; at_row++)
        rows += at_row[3] >= '0' && at_row[3] <= '9';
    CU_ASSERT_EQUAL(codes, rows);
    CU_ASSERT(codes >= 15);
    const char *json = strstr(outcome_of("help -o json"), "\"exit_codes\":");
    int members = 0;
    while (json != NULL && (json = strstr(json, "{\"code\":")) != NULL) {
        members++;
        json++;
    }
    CU_ASSERT_EQUAL(members, codes);
}

/* Nobody reads what it prints: the exit code says so as a signal would, unless it says something else. */
static void test_nobody_reads(void)
{
    static const struct {
        const char *words[4];
        int code;
    } cases[] = {{{THOLE_COMMAND, "help"}, 141},
                 {{THOLE_COMMAND, "help", "-ojson"}, 141},
                 {{THOLE_COMMAND, "--version"}, 141},
                 {{THOLE_COMMAND, "help", "strat"}, 2}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int ends[2], status = 0;
        CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
        pid_t const pid = fork();
        if (pid == 0) {
            (void)signal(SIGPIPE, SIG_DFL);
            (void)close(ends[0]);
            (void)dup2(ends[1], STDOUT_FILENO);
            (void)dup2(ends[1], STDERR_FILENO);
            (void)execv(THOLE_COMMAND, (char *const *)(uintptr_t)cases[i].words);
            _exit(127);
        }
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)waitpid(pid, &status, 0);
        int const code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (code != cases[i].code)
            fprintf(stderr, "\n  thole %s to nobody: %d\n", cases[i].words[1], code);
        CU_ASSERT_EQUAL(code, cases[i].code);
    }
}

static void test_environment(void)
{
    setenv("THOLE_NAMESPACE", "a b", 1);
    check("list", 2, "THOLE_NAMESPACE");
    check("help", 0, "Verbs:");
    check("version", 0, "thole 0.");
    unsetenv("THOLE_NAMESPACE");
}

/* ---- dev ---- */

/* How many thole-dev folders are below the test's own TMPDIR. */
static int folders_left(const char *below)
{
    int n = 0;
    DIR *dir = opendir(below);
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        n += strncmp(entry->d_name, "thole-", 6) == 0;
    if (dir != NULL)
        closedir(dir);
    return n;
}

static void test_dev_program(const char *below)
{
    check("dev -- sh -c 'echo \"url=$THOLE_NATS_URL pg=$THOLE_POSTGRES\"; exit 7'", 7, "url=nats://thole:");
    check("dev sh -c 'test -n \"$THOLE_POSTGRES\"'", 0, "export THOLE_POSTGRES='postgres://");
    check("dev -- /nowhere/at/all", 127, "cannot run /nowhere/at/all");
    check("dev -o json -- /nowhere/at/all", 127,
          "\"exit_code\":127,\"verb\":\"dev\",\"message\":\"cannot run");
    check("dev -o json -- true", 0, "{\"schema\":\"thole.dev.v1\",\"nats\":\"nats://thole:");
    check("dev -- sh -c '" THOLE_COMMAND " --nats nats://${THOLE_NATS_URL#*@} list'", 7,
          "refuses the credentials");
    check("dev -- sh -c 'kill -9 $$'", 137, "");
    check("dev -- sh -c 'sleep 1000 & sleep 1000 & exit 3'", 3, ""); /* leftovers are ended: it returns */
    check("dev -- sh -c 'trap \"exit 42\" INT; kill -INT $PPID; while :; do sleep 0.1; done'", 42, "");
    check("dev -- sh -c 'trap \"exit 43\" TERM; kill -TERM $PPID; while :; do sleep 0.1; done'", 43, "");
    CU_ASSERT_EQUAL(folders_left(below), 0);
}

/* A folder that was asked for is kept, and its servers come back with their data, password and ports, so that
 * the settings of other terminals stay right. */
static void test_dev_folder(const char *below)
{
    char arguments[512], first[512] = "", path[256];
    for (int round = 0; round < 2; round++) {
        (void)snprintf(arguments, sizeof arguments,
                       "dev --dir %s/kept -- sh -c 'echo \"set $THOLE_NATS_URL $THOLE_POSTGRES\"; "
                       ". %s/kept/env; echo \"env $THOLE_NATS_URL $THOLE_POSTGRES\"'",
                       below, below);
        const char *got = outcome_of(arguments), *settings = strstr(got, "set nats://");
        CU_ASSERT_FATAL(settings != NULL);
        if (round == 0)
            (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(settings + 3, "\n"), settings + 3);
        CU_ASSERT_EQUAL(strncmp(settings + 3, first, strlen(first)), 0);
        const char *env = strstr(settings, "env nats://");
        CU_ASSERT(env != NULL && strncmp(env + 3, first, strlen(first)) == 0);
    }
    (void)snprintf(arguments, sizeof arguments, "dev --dir %s/kept -- %s dev --dir %s/kept", below,
                   THOLE_COMMAND, below);
    check(arguments, 1, "another thole dev uses ");
    check("dev --dir /proc/nowhere -- true", 1, "cannot write to /proc/nowhere");
    (void)snprintf(path, sizeof path, "%s/kept", below);
    CU_ASSERT_EQUAL(access(path, F_OK), 0);
    (void)snprintf(arguments, sizeof arguments,
                   "dev --dir %s/kept -- sh -c '" THOLE_COMMAND
                   " dev --nats-port ${THOLE_NATS_URL##*:} -- true'",
                   below);
    check(arguments, 1, "is in use: give nats-server another one with --nats-port, or leave that out");
    (void)snprintf(arguments, sizeof arguments,
                   "dev --dir %s/kept -- sh -c 'port=${THOLE_POSTGRES##*127.0.0.1:}; " THOLE_COMMAND
                   " dev --postgres-port ${port%%%%/*} -- true'",
                   below);
    check(arguments, 1, "is in use: give Postgres another one with --postgres-port, or leave that out");
    /* A folder made for servers that never served goes away again. */
    (void)snprintf(arguments, sizeof arguments, "dev --nats-port 1 --dir %s/none -- true", below);
    (void)snprintf(path, sizeof path, "%s/none", below);
    setenv("POSTGRES_BIN", "/nowhere", 1);
    check(arguments, 1, "POSTGRES_BIN=/nowhere does not hold initdb and postgres");
    unsetenv("POSTGRES_BIN");
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
}

/* A nats-server that is too old is named with its version; that of an installation is found beside it. */
static void test_dev_nats(const char *below)
{
    static const char script[] =
        "{ cd %s && mkdir -p bin libexec/thole old && cp " THOLE_COMMAND " bin && "
        "printf '#!/bin/sh\\necho nats-server: v2.9.10\\n' >old/nats-server && chmod +x old/nats-server; "
        "NATS_SERVER=$PWD/old/nats-server bin/thole dev -- true; "
        "test -x /usr/sbin/nats-server -o -x /usr/local/bin/nats-server -o -x /usr/local/sbin/nats-server && "
        "echo is version 2.9.10, and 2.10.23 or newer is needed || env -u NATS_SERVER PATH=$PWD/old "
        "bin/thole dev "
        "-- /bin/true; "
        "ln -s %s libexec/thole/nats-server; "
        "env -u NATS_SERVER PATH=$PWD/old bin/thole dev -- /bin/sh -c 'echo served'; } 2>&1";
    static const char *const words[] = {"is not a nats-server of 2.10.23 or newer, but 2.9.10",
                                        "is version 2.9.10, and 2.10.23 or newer is needed", "served\n"};
    char command[2048], program[1024], output[OUTPUT_BYTES] = "";
    CU_ASSERT_EQUAL_FATAL(server_find_nats(program, sizeof program, NULL), THOLE_OK);
    (void)snprintf(command, sizeof command, script, below, program);
    FILE *from = popen(command, "r");
    CU_ASSERT_FATAL(from != NULL);
    output[fread(output, 1, sizeof output - 1, from)] = '\0';
    CU_ASSERT_EQUAL(pclose(from), 0);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        CHECK_STR(words[i], strstr(output, words[i]) == NULL ? output : words[i], words[i]);
}

/* `thole dev` as a child, its stderr in a file. */
static pid_t dev_start(const char *below, char log[SERVER_PATH_BYTES + 16])
{
    (void)snprintf(log, SERVER_PATH_BYTES + 16, "%s/log", below);
    (void)unlink(log); /* of the last one */
    pid_t const pid = fork();
    if (pid == 0) {
        FILE *to = freopen(log, "w", stderr);
        if (to != NULL)
            execl(THOLE_COMMAND, "thole", "dev", (char *)NULL);
        _exit(127);
    }
    return pid;
}

static bool has_line(const char *path, const char *words, char *ret, size_t cap)
{
    FILE *from = fopen(path, "r");
    bool found = false;
    while (from != NULL && !found && fgets(ret, (int)cap, from) != NULL)
        found = strstr(ret, words) != NULL;
    if (from != NULL)
        (void)fclose(from);
    return found;
}

static void pause_a_little(void)
{
    struct timespec const pause = {.tv_nsec = POLL_PAUSE_MS * 1000000L};
    nanosleep(&pause, NULL);
}

static int dev_end(pid_t pid, int number, uint16_t *ret_port, const char *log)
{
    char line[512] = "";
    int status = 0;
    for (int waited = 0; waited < START_MS && !has_line(log, "Ctrl-C ends", line, sizeof line);
         waited += POLL_PAUSE_MS)
        pause_a_little();
    if (has_line(log, "NATS ", line, sizeof line))
        *ret_port = (uint16_t)strtoul(strrchr(line, ':') + 1, NULL, 10);
    CU_ASSERT(*ret_port != 0 && server_port_is_open(*ret_port));
    kill(pid, number);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void test_dev_signals(const char *below)
{
    static const struct {
        int number, code;
    } cases[] = {{SIGINT, 130}, {SIGTERM, 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char log[SERVER_PATH_BYTES + 16];
        uint16_t port = 0;
        pid_t const pid = dev_start(below, log);
        CU_ASSERT_EQUAL(dev_end(pid, cases[i].number, &port, log), cases[i].code);
        CU_ASSERT_FALSE(server_port_is_open(port));
        CU_ASSERT_EQUAL(folders_left(below), 0);
    }
}

/* ---- with an engine ---- */

static void test_live(void)
{
    check("dev -- " THOLE_SOURCE_DIR "/tests/integration/command/cli_live.sh " THOLE_COMMAND
          " " THOLE_BUILD_DIR "/examples/checkout " THOLE_TEST_PROGRAMS "/program_verbs",
          0, "");
}

static void test_operator(void)
{
    check("dev -- " THOLE_SOURCE_DIR "/tests/integration/command/cli_operator.sh " THOLE_COMMAND
          " " THOLE_BUILD_DIR "/examples/checkout",
          0, "");
}

static void test_terminal(void)
{
    check("dev -- " THOLE_SOURCE_DIR "/tests/integration/command/cli_terminal.sh " THOLE_COMMAND
          " " THOLE_BUILD_DIR "/examples/checkout",
          0, "");
}

static void test_metrics(void)
{
    check("dev -- " THOLE_SOURCE_DIR "/tests/integration/command/cli_metrics.sh " THOLE_COMMAND
          " " THOLE_BUILD_DIR "/examples/checkout",
          0, "");
}

/* A wait that begins while no server answers goes on when there is one; without a limit it says so at once.
 */
static void test_wait_for_a_server(const char *below)
{
    char arguments[1536];
    (void)snprintf(arguments, sizeof arguments,
                   "dev --dir %s/later -- sh -c '" THOLE_BUILD_DIR "/examples/checkout run >/dev/null 2>&1 & "
                   "until " THOLE_COMMAND " run checkout --id c-1 -i order=1\\;pay_ms=1 --timeout 60s; "
                   "do sleep 0.2; done; kill $!; wait $!'",
                   below);
    check(arguments, 0, "order 1 shipped");
    (void)snprintf(arguments, sizeof arguments,
                   "version; exec 2>&1; . %s/later/env; T=" THOLE_COMMAND
                   "; { sleep 2; $T dev --dir %s/later -- sleep 8; } "
                   ">/dev/null 2>&1 & $T wait c-1 --timeout 30s; echo code $?; wait; "
                   "$T wait c-1; echo code $?; $T wait c-1 --timeout 700ms; echo code $?; true",
                   below, below);
    const char *got = outcome_of(arguments);
    static const char *const words[] = {"; trying again until --timeout is over",
                                        "order 1 shipped",
                                        "code 0\n",
                                        "127.0.0.1",
                                        "code 6\n",
                                        "trying again",
                                        "code 6\n"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const char *at = strstr(got, words[i]);
        CHECK_STR(words[i], at == NULL ? got : words[i], words[i]);
        got = at == NULL ? got : at + strlen(words[i]);
    }
}

/* The program that is the first thing people run. */
static void test_quickstart(void)
{
    static const char *const words[] = {"order 1 shipped: parcel with goods-1",
                                        "instance order-2 failed (too_slow): the payment took too long",
                                        "instance order-3 was cancelled: customer changed their mind",
                                        "ms after the timer was due", "ms after the request"};
    const char *got = outcome_of("dev -- " THOLE_SOURCE_DIR "/examples/quickstart.sh " THOLE_BUILD_DIR);
    CU_ASSERT_EQUAL(strncmp(got, "0: ", 3), 0);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        CHECK_STR(words[i], strstr(got, words[i]) == NULL ? got : words[i], words[i]);
}

static bool can_run_all(void)
{
    char path[1024];
    return server_find_postgres(path, sizeof path, NULL) == THOLE_OK &&
           access(THOLE_BUILD_DIR "/examples/checkout", X_OK) == 0;
}

static void test_dev(void)
{
    char below[SERVER_PATH_BYTES];
    CU_ASSERT_EQUAL(server_dir_create("t", below, NULL), THOLE_OK);
    setenv("TMPDIR", below, 1);
    test_dev_program(below);
    test_dev_signals(below);
    test_dev_folder(below);
    test_dev_nats(below);
    test_live();
    test_operator();
    test_terminal();
    test_metrics();
    test_wait_for_a_server(below);
    test_quickstart();
    CU_ASSERT_EQUAL(folders_left(below), 0);
    unsetenv("TMPDIR");
    server_dir_remove(below);
}

static const struct thole_test tests[] = {
    {"words", test_words},
    {"exit_codes", test_exit_codes},
    {"nobody reads", test_nobody_reads},
    {"environment", test_environment},
    {"dev", test_dev}, /* last: needs Postgres and the examples too */
};

int main(void)
{
    static const char *const settings[] = {"THOLE_NATS_URL",   "THOLE_NATS_CREDS", "THOLE_NATS_CA",
                                           "THOLE_NATS_CERT",  "THOLE_NATS_KEY",   "THOLE_NATS_SERVER_NAME",
                                           "THOLE_NATS_INBOX", "THOLE_POSTGRES",   "THOLE_NAMESPACE",
                                           "THOLE_PAYLOAD_MAX"};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        unsetenv(settings[i]);
    setenv("THOLE_CONTEXT", "none", 1);
    skip_without_nats();
    return thole_run_suite("cli_command", tests, can_run_all() ? ARRAY_LEN(tests) : ARRAY_LEN(tests) - 1);
}
