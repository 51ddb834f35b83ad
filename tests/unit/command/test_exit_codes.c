/* The exit codes of thole_main(), as program.h says them: one row for each status, and one for each other way
 * in which a program ends. No server: what would speak to one answers as the row says. */
#include "engine_host.h"
#include "replay_host.h"
#include "thole_cunit.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static thole_status started; /* result of the engine's start */
static thole_status replayed;
static int replay_code;

thole_status __wrap_engine_host_start(const struct host_options *options, const thole_program *program,
                                      const struct stop_check *stop, struct engine_host **ret,
                                      thole_error *reterr)
{
    (void)options, (void)program, (void)stop;
    *ret = NULL;
    if (started == THOLE_OK) /* serves until a stop is requested */
        (void)kill(getpid(), SIGTERM);
    return started == THOLE_OK ? THOLE_OK : thole_fail(reterr, started, "as the test says");
}

thole_status __wrap_replay_host_run(const struct host_command *command, const thole_program *program,
                                    int *ret_code, thole_error *reterr)
{
    (void)command, (void)program;
    *ret_code = replay_code;
    return replayed == THOLE_OK ? THOLE_OK : thole_fail(reterr, replayed, "as the test says");
}

static thole_status nothing(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx;
    *ret_output = input;
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {{"nothing", nothing, 0}};
static const thole_program program = {
    .size = sizeof program, .name = "codes", .orchestrations = orchestrations, .orchestrations_len = 1};
static const thole_program empty = {.size = sizeof empty, .name = "codes"};

static char said[4096]; /* by the last one, on both outputs */

/* The code that a process which calls thole_main() so ends with; 128 + a signal's number. */
static int code_of(const thole_program *of, const char *first, const char *second)
{
    char *argv[] = {(char *)"codes", (char *)first, (char *)second, NULL};
    int const argc = first == NULL ? 1 : second == NULL ? 2 : 3;
    int status = 0, ends[2];
    size_t len = 0;
    if (pipe(ends) != 0)
        return -1;
    fflush(NULL);
    pid_t const pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        _exit(thole_main(argc, argv, of));
    }
    (void)close(ends[1]);
    char dropped[4096]; /* beyond what is kept */
    for (ssize_t n = 1; n > 0;) {
        bool const room = len < sizeof said - 1;
        n = read(ends[0], room ? said + len : dropped, room ? sizeof said - 1 - len : sizeof dropped);
        len += room && n > 0 ? (size_t)n : 0;
    }
    said[len] = '\0';
    (void)close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Of a role that serves, and of replay, which has the codes of the command. */
static const struct {
    thole_status status;
    int code, replay;
} table[] = {
    {THOLE_OK, 0, 0},          {THOLE_CANCELLED, 0, 1}, {THOLE_INVALID, 6, 2},  {THOLE_DENIED, 6, 7},
    {THOLE_UNSUPPORTED, 6, 6}, {THOLE_NOT_FOUND, 6, 3}, {THOLE_CONFLICT, 6, 1}, {THOLE_UNAVAILABLE, 6, 6},
    {THOLE_NOMEM, 1, 1},       {THOLE_LIMIT, 1, 1},     {THOLE_CORRUPT, 1, 1},  {THOLE_NONDETERMINISM, 1, 1},
    {THOLE_APP, 1, 1},         {THOLE_TIMEOUT, 1, 8},   {THOLE_FENCED, 1, 1},   {THOLE_LATER, 1, 1},
};

static int wanted(thole_status status, bool replay)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].status == status)
            return replay ? table[i].replay : table[i].code;
    return -2; /* a status without a row here */
}

static void check(const char *what, int got, int want)
{
    if (got != want)
        fprintf(stderr, "\n  %s: exit code %d, expected %d", what, got, want);
    CU_ASSERT_EQUAL(got, want);
}

static void test_each_status(void)
{
#define X(name, value, text) THOLE_##name,
    static const thole_status all[] = {THOLE_STATUS_MAP(X)};
#undef X
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        started = replayed = all[i];
        replay_code = 0;
        check(thole_status_name(all[i]), code_of(&program, "engine", NULL), wanted(all[i], false));
        check(thole_status_name(all[i]), code_of(&program, "replay", "--all"), wanted(all[i], true));
    }
}

static void test_replay(void)
{
    static const int codes[] = {EXIT_REPLAY_SAME, EXIT_REPLAY_FAILED, EXIT_REPLAY_NOT_FOUND,
                                EXIT_REPLAY_DIVERGED, EXIT_REPLAY_NO_CODE};
    static const int documented[] = {0, 1, 3, 5, 11};
    replayed = THOLE_OK;
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        replay_code = codes[i];
        check("replay", code_of(&program, "replay", "--all"), documented[i]);
    }
}

static void test_usage(void)
{
    started = THOLE_OK;
    check("--help", code_of(&program, "--help", NULL), 0);
    check("--version", code_of(&program, "--version", NULL), 0);
    check("no role", code_of(&program, NULL, NULL), 2);
    check("a role that is none", code_of(&program, "serve", NULL), 2);
    check("an option that is none", code_of(&program, "engine", "--nowhere"), 2);
    check("a value out of range", code_of(&program, "engine", "--partitions=0"), 2);
    check("replay of nothing", code_of(&program, "replay", NULL), 2);
    check("no orchestration", code_of(&empty, "engine", NULL), 2);
    check("no activity", code_of(&empty, "worker", NULL), 2);
}

/* ---- programs that are none ---- */

static thole_status does(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_OK;
}

static const thole_activity_options no_size = {.isolation = THOLE_ISOLATION_PROCESS},
                                    unknown = {.size = sizeof unknown, .isolation = (thole_isolation)7},
                                    thread = {.size = sizeof thread},
                                    apart = {.size = sizeof apart, .isolation = THOLE_ISOLATION_PROCESS},
                                    keeps = {.size = sizeof keeps, .keep_env = true},
                                    asks = {.size = sizeof asks, .terminate = true},
                                    runs = {.size = sizeof runs, .runs_max = 1},
                                    cpu = {.size = sizeof cpu, .cpu_max_s = 1},
                                    memory = {.size = sizeof memory, .memory_max = 1},
                                    wall = {.size = sizeof wall, .wall_max_ms = 1},
                                    quick = {.size = sizeof quick, .quick = true},
                                    both = {.size = sizeof both,
                                            .isolation = THOLE_ISOLATION_PROCESS,
                                            .quick = true},
                                    older = {.size = offsetof(thole_activity_options, quick)},
                                    too_old = {.size = offsetof(thole_activity_options, quick) - 1};

/* Each with the sentence that it is refused with; NULL: it is a program. */
static const struct {
    const char *sentence;
    thole_orchestration_entry orchestrations[3];
    thole_activity_entry activities[3];
} programs[] = {
    {NULL,
     {{"a", nothing, 0}, {"a", nothing, 2}, {"b", nothing, 0}},
     {{"a", does, NULL}, {"b", does, &thread}, {"c", does, &apart}}},
    {NULL, {{"a", nothing, 0}}, {{"a", does, &quick}, {"b", does, &older}}},
    {"activity a: thole_activity_options.size is not set", {{"a", nothing, 0}}, {{"a", does, &too_old}}},
    {"activity a is declared quick and isolated in a process, it cannot be both",
     {{"a", nothing, 0}},
     {{"a", does, &both}}},
    {"orchestration a: stack_bytes is 65535, which is not in 65536 to 8388608 (0: 65536)",
     {{"a", nothing, .stack_bytes = 65535}},
     {{NULL}}},
    {"orchestration a: stack_bytes is 8388609, which is not in 65536 to 8388608 (0: 65536)",
     {{"a", nothing, .stack_bytes = 8388609}},
     {{NULL}}},
    {"orchestration a is registered twice as version 1", {{"a", nothing, 0}, {"a", nothing, 1}}, {{NULL}}},
    {"orchestration a is registered twice as version 3",
     {{"a", nothing, 3}, {"b", nothing, 3}, {"a", nothing, 3}},
     {{NULL}}},
    {"orchestration a has no function", {{"b", nothing, 0}, {"a", NULL, 0}}, {{NULL}}},
    {"orchestration", {{"a b", nothing, 0}}, {{NULL}}},
    {"activity a is registered twice", {{"a", nothing, 0}}, {{"a", does, NULL}, {"a", does, NULL}}},
    {"activity b is registered twice",
     {{"a", nothing, 0}},
     {{"a", does, NULL}, {"b", does, NULL}, {"b", does, NULL}}},
    {"activity a is registered twice",
     {{"a", nothing, 0}},
     {{"a", does, NULL}, {"b", does, NULL}, {"a", does, NULL}}},
    {"activity b has no function", {{"a", nothing, 0}}, {{"a", does, NULL}, {"b", NULL, NULL}}},
    {"activity", {{"a", nothing, 0}}, {{"a.b", does, NULL}}},
    {"activity a: thole_activity_options.size is not set", {{"a", nothing, 0}}, {{"a", does, &no_size}}},
    {"activity a: isolation 7 is not known", {{"a", nothing, 0}}, {{"a", does, &unknown}}},
    {"activity b: its options are for a process of its own",
     {{"a", nothing, 0}},
     {{"a", does, NULL}, {"b", does, &keeps}}},
    {"activity a: its options are for a process of its own", {{"a", nothing, 0}}, {{"a", does, &asks}}},
    {"activity a: its options are for a process of its own", {{"a", nothing, 0}}, {{"a", does, &runs}}},
    {"activity a: its options are for a process of its own", {{"a", nothing, 0}}, {{"a", does, &cpu}}},
    {"activity a: its options are for a process of its own", {{"a", nothing, 0}}, {{"a", does, &memory}}},
    {"activity a: its options are for a process of its own", {{"a", nothing, 0}}, {{"a", does, &wall}}},
};

static void test_programs(void)
{
    static const char *const flaws[] = {"thole_program.size is not set", "thole_program.size is not set",
                                        "thole_program.name is not set", "THOLE_ACTIVITIES() sets both",
                                        "THOLE_ORCHESTRATIONS() sets both"};
    static const thole_activity_entry some[] = {{"a", does, NULL}};
    thole_program wrong[] = {program, program, program, program,
                             program}; /* each serves, but for one field */
    wrong[0].size = 0;
    wrong[1].size--;
    wrong[2].name = NULL;
    wrong[3].activities = some;
    wrong[3].activities_len = 0;
    wrong[4].orchestrations_len = 0;
    started = THOLE_OK;
    check("no program", code_of(NULL, "engine", NULL), 2);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        check("a program that is none", code_of(&wrong[i], "engine", NULL), 2);
        CHECK_STR("what it says", strstr(said, flaws[i]) != NULL ? flaws[i] : said, flaws[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        thole_program of = {.size = sizeof of,
                            .name = "codes",
                            .orchestrations = programs[i].orchestrations,
                            .activities = programs[i].activities};
        while (of.orchestrations_len < 3 && programs[i].orchestrations[of.orchestrations_len].name != NULL)
            of.orchestrations_len++;
        while (of.activities_len < 3 && programs[i].activities[of.activities_len].name != NULL)
            of.activities_len++;
        const char *const sentence = programs[i].sentence;
        check(sentence == NULL ? "a program" : sentence, code_of(&of, "engine", NULL),
              sentence == NULL ? 0 : 2);
        CHECK_STR("what it says", sentence == NULL || strstr(said, sentence) != NULL ? "it" : said, "it");
    }
}

static const struct thole_test tests[] = {
    {"each_status", test_each_status},
    {"replay", test_replay},
    {"usage", test_usage},
    {"programs", test_programs},
};

int main(void)
{
    setenv("THOLE_POSTGRES", "postgres://nobody@127.0.0.1:1/none", 1);
    return thole_run_suite("exit_codes", tests, ARRAY_LEN(tests));
}
