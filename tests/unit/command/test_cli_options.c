/* The option tables: flags over environment over defaults, and a sentence for every mistake. */
#include "host_options.h"
#include "option_table.h"
#include "thole_cunit.h"
#include <inttypes.h>
#include <stdlib.h>

enum { WORDS_MAX = 16, TEXT_BYTES = 1024 };

/* Splits at spaces; the words live in @p room. */
static int split(const char *line, char room[TEXT_BYTES], char *words[WORDS_MAX + 1])
{
    int n = 0;
    char *save = NULL;
    (void)snprintf(room, TEXT_BYTES, "%s", line);
    for (char *word = strtok_r(room, " ", &save); word != NULL && n < WORDS_MAX;
         word = strtok_r(NULL, " ", &save))
        words[n++] = word;
    words[n] = NULL;
    return n;
}

/* The result of a command line, as text. Static. */
static const char *outcome_of(const char *line)
{
    static char out[TEXT_BYTES];
    static struct host_command command;
    char room[TEXT_BYTES], *words[WORDS_MAX + 1];
    thole_error error = {.status = THOLE_OK};
    const struct host_options *options = &command.options;
    int const n = split(line, room, words);
    if (host_command_parse(n, words, &command, &error) != THOLE_OK)
        (void)snprintf(out, sizeof out, "%s", error.text);
    else if (command.help || command.version)
        (void)snprintf(out, sizeof out, "%s", command.help ? "help" : "version");
    else if (command.role == HOST_REPLAY)
        (void)snprintf(out, sizeof out, "replay ids=%d all=%d file=%s memory=%" PRIu64, command.words_len,
                       command.all, command.file == NULL ? "-" : command.file, command.memory_max);
    else
        (void)snprintf(out, sizeof out,
                       "%s ns=%s lease=%" PRIu64 " ttl=%" PRIu64 "/%" PRIu64 " slots=%u log=%d",
                       host_role_name(command.role), options->ns, options->lease_ms, options->node_ttl_ms,
                       options->heartbeat_ms, options->slots, options->log_format);
    return out;
}

struct row {
    const char *line, *want;
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        CHECK_STR(rows[i].line, outcome_of(rows[i].line), rows[i].want);
}

static void clear_environment(void)
{
    unsetenv("THOLE_POSTGRES");
    unsetenv("THOLE_NAMESPACE");
    unsetenv("THOLE_SLOTS");
    unsetenv("THOLE_NATS_URL");
}

static void test_good_lines(void)
{
    static const struct row rows[] = {
        {"p run --postgres x", "run ns=default lease=0 ttl=0/0 slots=16 log=0"},
        {"p --postgres x worker --slots 3", "worker ns=default lease=0 ttl=0/0 slots=3 log=0"},
        {"p engine --postgres=x -n shop --node-ttl 4s", "engine ns=shop lease=0 ttl=4000/0 slots=16 log=0"},
        {"p run --postgres x --lease 1.5s --log-format json --heartbeat 500ms",
         "run ns=default lease=1500 ttl=0/500 slots=16 log=2"},
        {"p --help", "help"},
        {"p run -h", "help"},
        {"p --version", "version"},
        {"p replay a b", "replay ids=2 all=0 file=- memory=1073741824"},
        {"p replay --all --memory-max 2MiB", "replay ids=0 all=1 file=- memory=2097152"},
        {"p gateway --postgres x --lease 2s", "gateway ns=default lease=2000 ttl=0/0 slots=16 log=0"},
        {"p replay a --instance-memory-max 1MiB", "replay ids=1 all=0 file=- memory=1073741824"},
        {"p replay --file f -n shop", "replay ids=0 all=0 file=f memory=1073741824"},
    };
    clear_environment();
    check_rows(rows, ARRAY_LEN(rows));
}

static void test_mistakes(void)
{
    static const struct row rows[] = {
        {"p", "a role is missing: run, engine, worker, gateway, binder or replay"},
        {"p wroker --postgres x", "there is no role \"wroker\"; did you mean worker?"},
        {"p serve --postgres x",
         "there is no role \"serve\"; the roles are run, engine, worker, gateway, binder and replay"},
        {"p replay", "what is to be replayed? IDs, --all or --file"},
        {"p replay a --all", "what is to be replayed? IDs, --all or --file"},
        {"p run --postgres x --all", "--all is an option of replay: run does not read it"},
        {"p --slots 3 engine --postgres x", "--slots is an option of run, worker: engine does not read it"},
        {"p worker --postgres x --partitions 3",
         "--partitions is an option of run, engine: worker does not read it"},
        {"p gateway --postgres x --queue q", "--queue is an option of run, worker: gateway does not read it"},
        {"p binder --postgres x",
         "--postgres is an option of run, engine, worker, gateway: binder does not read it"},
        {"p worker --postgres x --postgres-connections 3",
         "--postgres-connections is an option of gateway: worker does not read it"},
        {"p run more --postgres x", "\"more\" is one word too many"},
        {"p run", "--postgres is missing: give it a libpq connection string such as "
                  "postgres://thole@localhost/thole, or set THOLE_POSTGRES"},
        {"p run --postgress x", "there is no option --postgress; did you mean --postgres?"},
        {"p run --zzzzzz", "there is no option --zzzzzz"},
        {"p run -z", "there is no option -z"},
        {"p run --postgres", "--postgres needs a value"},
        {"p run -n", "-n needs a value"},
        {"p run --help=yes", "--help takes no value"},
        {"p run --postgres x --lease 10",
         "--lease: \"10\" is not a duration; write a number and a unit: 500ms, 10s, "
         "1.5s, 2m, 1h, 7d"},
        {"p run --postgres x --lease 10ms", "--lease: 10ms is not between 500ms and 1d"},
        {"p run --postgres x --slots 0", "--slots: 0 is not between 1 and 10000"},
        {"p run --postgres x --slots many", "--slots: \"many\" is not a whole number"},
        {"p run --postgres x --replicas 2", "--replicas: 2 is not 1, 3 or 5"},
        {"p run --postgres x --log-level loud", "--log-level: \"loud\" is none of: error, warn, info, debug"},
        {"p replay --all --threads 0", "--threads: 0 is not between 1 and 64"},
        {"p replay --all --threads 65", "--threads: 65 is not between 1 and 64"},
        {"p replay --all --memory-max 1k", "--memory-max: 1k is less than 1048576"},
        {"p run --postgres x --turn-limit 2d", "--turn-limit: 2d is not between 0 and 1d"},
        {"p run --postgres x --instance-memory-max 1k", "--instance-memory-max: 1k is less than 1048576"},
        {"p run --postgres x --node-ttl 2s --heartbeat 1500ms",
         "--heartbeat: must be at most half of --node-ttl, or one lost heartbeat is a death"},
    };
    clear_environment();
    check_rows(rows, ARRAY_LEN(rows));
    char room[TEXT_BYTES], *words[WORDS_MAX + 1];
    struct host_command command;
    thole_error error = {.status = THOLE_OK};
    int const n = split("p run --postgres x --namespace a.b", room, words);
    CU_ASSERT_EQUAL(host_command_parse(n, words, &command, &error), THOLE_INVALID);
    CU_ASSERT_EQUAL(strncmp(error.text, "--namespace: ", 13), 0);
}

/* The refusal of a password in a flag: everybody on the machine can see a command line. */
static void test_secrets(void)
{
#define TO_FILE ": there is a password in it, which everybody on this machine can see (ps): put it into a "
#define NATS "--nats" TO_FILE "file for --nats-creds, $THOLE_NATS_URL or a --config file"
#define POSTGRES                                                                                             \
    "--postgres" TO_FILE "password file (passfile=FILE, ~/.pgpass), $THOLE_POSTGRES or a --config file"
    static const struct row rows[] = {
        {"p run --postgres postgres://u:p@h/db", POSTGRES},
        {"p --postgres=postgresql://h/db?password=p run", POSTGRES},
        {"p run --postgres sslpassword=p", POSTGRES},
        {"p run --postgres x --postgres password=p", POSTGRES},
        {"p run --postgres postgres://u@h/db?passfile=/f", ""},
        {"p run --postgres host=h", ""},
        {"p run --postgres x --nats nats://u:p@h", NATS},
        {"p run --postgres x --nats nats://h,tls://token@i", NATS},
        {"p run --postgres x --nats nats://h,tls://i:4222", ""},
    };
    clear_environment();
    setenv("THOLE_NATS_URL", "nats://u:p@h", 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static struct host_command command;
        char room[TEXT_BYTES], *words[WORDS_MAX + 1];
        thole_error error = {.status = THOLE_OK};
        int const n = split(rows[i].line, room, words);
        CU_ASSERT_EQUAL(host_command_parse(n, words, &command, &error), THOLE_OK);
        CHECK_STR(rows[i].line, command.exposed.text, rows[i].want);
        CU_ASSERT_EQUAL(command.exposed.status, rows[i].want[0] == '\0' ? THOLE_OK : THOLE_INVALID);
    }
    clear_environment();
}

static void test_environment(void)
{
    static const struct row good[] = {
        {"p run", "run ns=shop lease=0 ttl=0/0 slots=7 log=0"},
        {"p run --slots 9", "run ns=shop lease=0 ttl=0/0 slots=9 log=0"},
    };
    clear_environment();
    setenv("THOLE_POSTGRES", "x", 1);
    setenv("THOLE_NAMESPACE", "shop", 1);
    setenv("THOLE_SLOTS", "7", 1);
    check_rows(good, ARRAY_LEN(good));
    setenv("THOLE_SLOTS", "lots", 1);
    CHECK_STR("bad", outcome_of("p run"), "THOLE_SLOTS: \"lots\" is not a whole number");
    setenv("THOLE_SLOTS", "", 1);
    CHECK_STR("empty is unset", outcome_of("p run"), "run ns=shop lease=0 ttl=0/0 slots=16 log=0");
    clear_environment();
}

/* Every option of the header is in --help, with its environment variable, and none that is hidden. */
static void test_help(void)
{
    static const char *const words[] = {
        "--nats",           "--nats-creds", "--nats-ca",
        "--nats-cert",      "--nats-key",   "--nats-server-name",
        "--nats-inbox",     "--postgres",   "--namespace",
        "--node",           "--log-level",  "--log-format",
        "--payload-max",    "--stop-limit", "--partitions",
        "--replicas",       "--node-ttl",   "--heartbeat",
        "--engine-threads", "--parked-max", "--instance-memory-max",
        "--queue",          "--slots",      "--lease",
        "--grace",          "$THOLE_LEASE", "[default 30s; $THOLE_STOP_LIMIT]",
        "checkout"};
    static const thole_orchestration_entry orchestrations[] = {{"checkout", NULL}};
    static const thole_program program = {
        .size = sizeof program, .name = "shop", .orchestrations = orchestrations, .orchestrations_len = 1};
    struct buf text;
    buf_init(&text, 64 * 1024);
    host_command_help(&program, &text);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        CHECK_STR(words[i], strstr(buf_cstr(&text), words[i]) == NULL ? "missing" : "there", "there");
    CU_ASSERT_PTR_NULL(strstr(buf_cstr(&text), "suppress"));
    buf_release(&text);
}

/* $THOLE_ and the flag in capitals: of all that people set for a program that serves. */
static void test_each_has_a_variable(void)
{
    static const char *const others[] = {"help",  "version", "nats",    "all",        "file",
                                         "until", "break",   "threads", "memory-max", "output"};
    static const thole_program program = {.size = sizeof program, .name = "shop"};
    struct buf text;
    size_t options = 0;
    char *rest = NULL;
    buf_init(&text, 64 * 1024);
    host_command_help(&program, &text);
    buf_append(&text, "", 1);
    char *const all = (char *)(uintptr_t)buf_cstr(&text);
    CHECK_STR("nats", strstr(all, "$THOLE_NATS_URL") == NULL ? "missing" : "there", "there");
    char *lines[128];
    size_t n = 0;
    for (char *line = strtok_r(all, "\n", &rest); line != NULL && n < ARRAY_LEN(lines);
         line = strtok_r(NULL, "\n", &rest))
        lines[n++] = line;
    for (size_t i = 0; i < n; i++) {
        char flag[64], variable[80] = "$THOLE_";
        const char *const at = strstr(lines[i], "--");
        bool other = at == NULL || at > lines[i] + 6 || sscanf(at, "--%63[a-z-]", flag) != 1;
        for (size_t k = 0; k < ARRAY_LEN(others) && !other; k++)
            other = strcmp(flag, others[k]) == 0;
        if (other)
            continue;
        options++;
        for (size_t k = 0; flag[k] != '\0'; k++)
            variable[7 + k] = flag[k] == '-' ? '_' : (char)(flag[k] - 'a' + 'A');
        const char *const where = strchr(lines[i], '[') == NULL && i + 1 < n ? lines[i + 1] : lines[i];
        CHECK_STR(flag, strstr(where, variable) == NULL ? where : variable, variable);
    }
    CU_ASSERT(options >= 25);
    buf_release(&text);
}

/* Text that reaches the column of the sentences has a line of its own: there is always something between
 * them. */
static void test_help_columns(void)
{
    static const struct option_row rows[] = {
        {.flag = "of-twenty-one-letters", .help = "one space"},
        {.flag = "of-twenty-two-letters-", .help = "its own line"},
        {.flag = "of-twenty-three-letters", .help = "its own line"},
        {.flag = "a", .env = "A", .help = "variable"},
        {.flag = "b", .fallback = "1", .help = "default"},
        {.flag = "c", .fallback = "1", .shown = "one", .env = "C", .help = "both"},
    };
    struct buf text;
    buf_init(&text, 4096);
    options_help(&(struct option_set){.rows = rows, .len = ARRAY_LEN(rows)}, 0, &text);
    CHECK_STR("help", buf_cstr(&text),
              "      --of-twenty-one-letters one space\n"
              "      --of-twenty-two-letters-\n                              its own line\n"
              "      --of-twenty-three-letters\n                              its own line\n"
              "      --a                     variable [$A]\n"
              "      --b                     default [default 1]\n"
              "      --c                     both [default one; $C]\n");
    buf_release(&text);
}

static const struct thole_test tests[] = {
    {"good_lines", test_good_lines},
    {"mistakes", test_mistakes},
    {"secrets", test_secrets},
    {"environment", test_environment},
    {"help", test_help},
    {"each_has_a_variable", test_each_has_a_variable},
    {"columns of the help", test_help_columns},
};
THOLE_TEST_MAIN("cli_options", tests)
