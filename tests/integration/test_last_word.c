/*
 * What is known of the end of a worker that a handler has killed, each handler in its own way, and where it
 * is said; with real processes. Each has a queue and a worker of its own, so that all of them die at once.
 */
#include "stack.h"
#include <libpq-fe.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { LONG_MS = 120000 };

static struct stack stack;
static thole_client *client;

static const struct death {
    const char *queue, *activity;
    const char *says, * or ; /* what the failure's text has; NULL: it is the whole outcome */
    const char *variable;    /* of the worker's environment */
} deaths[] = {
    {"writes", "writes", "the last: SIGSEGV in its handler, at address 0x10", NULL, NULL},
    {"overflows", "overflows", "the last: SIGSEGV in its handler, at address 0x", NULL, NULL},
    {"aborts", "aborts", "the last: SIGABRT in its handler", NULL, NULL},
    {"exits", "exits", "the last: exit(3) in its handler", NULL, NULL},
    /* what only the kernel could say is known if the witness was in time */
    {"vanishes", "vanishes", "the last: it ended with code 4 without being asked to stop",
     "the last: it ended without a word", NULL},
    {"kills", "kills", "the last: killed by SIGKILL, by the system (out of memory) or by somebody",
     "the last: it ended without a word", NULL},
    {"elsewhere", "elsewhere", "the last: SIGABRT on a thread that is no handler's", NULL, NULL},
    {"forks", "forks", "survived", NULL, NULL},
    {"owned", "writes", "the last: it ended with code 5 without being asked to stop",
     "the last: it ended without a word", "POISON_OWN_HANDLER"},
    {"first", "writes", "the last: SIGSEGV in its handler, at address 0x10", NULL, "POISON_AS_FIRST"},
};
static struct stack_program *workers[ARRAY_LEN(deaths)];
static bool reviving;

static struct stack_program *start_worker(const char *queue)
{
    char option[64];
    snprintf(option, sizeof option, "--queue=%s", queue);
    return stack_program_with(&stack, "program_poison", queue, "worker", option, NULL);
}

static void start(const char *id, const char *queue, const char *activity)
{
    char input[128];
    snprintf(input, sizeof input, "%s %s", queue, activity);
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("tells"), thole_slice_from(input),
                                NULL, &stack.err),
             &stack.err);
}

/* A supervisor's part. */
static void revive(size_t i)
{
    if (workers[i] != NULL && stack_ended(workers[i]) < 0)
        return;
    if (deaths[i].variable != NULL)
        setenv(deaths[i].variable, "1", 1);
    workers[i] = start_worker(deaths[i].queue);
    if (deaths[i].variable != NULL)
        unsetenv(deaths[i].variable);
}

static const char *outcome(const char *id)
{
    static char text[512];
    uint64_t const end_ms = clock_monotonic_ms() + LONG_MS;
    thole_outcome outcome = {0};
    thole_status status = THOLE_TIMEOUT;
    while (status == THOLE_TIMEOUT && clock_monotonic_ms() < end_ms) {
        for (size_t i = 0; i < ARRAY_LEN(deaths) && reviving; i++)
            revive(i);
        status = thole_client_wait(client, thole_slice_from(id), 20, &outcome, &stack.err);
    }
    snprintf(text, sizeof text, "%.*s", THOLE_FMT(outcome.output));
    thole_outcome_release(&outcome);
    return text;
}

static void test_each_death_is_told(void)
{
    reviving = true;
    for (size_t i = 0; i < ARRAY_LEN(deaths); i++)
        start(deaths[i].queue, deaths[i].queue, deaths[i].activity);
    for (size_t i = 0; i < ARRAY_LEN(deaths); i++) {
        char lost[64];
        const char *const got = outcome(deaths[i].queue);
        snprintf(lost, sizeof lost, "poison: 2 workers that ran it were lost, %s-2-", deaths[i].queue);
        bool const dies = strcmp(deaths[i].says, "survived") != 0;
        bool const told = (!dies || strncmp(got, lost, strlen(lost)) == 0) &&
                          (strstr(got, deaths[i].says) != NULL ||
                           (deaths[i].or != NULL && strstr(got, deaths[i].or) != NULL));
        CU_ASSERT(told);
        if (!told)
            fprintf(stderr, "\n  %s: %s\n", deaths[i].queue, got);
    }
    reviving = false;
    for (size_t i = 0; i < ARRAY_LEN(deaths); i++) {
        (void)stack_terminate(workers[i], 20000);
        CU_ASSERT_EQUAL(stack_count(workers[i]->log, "its witness has died"), 0);
    }
}

static const char *sql(const char *statement)
{
    static char value[512];
    PGconn *pg = PQconnectdb(stack.postgres.url);
    PGresult *result = PQexec(pg, statement);
    bool const good = PQresultStatus(result) == PGRES_TUPLES_OK;
    CU_ASSERT_TRUE(good);
    if (!good)
        fprintf(stderr, "  %s\n", PQerrorMessage(pg));
    snprintf(value, sizeof value, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(pg);
    return value;
}

static void await_end(struct stack_program *program)
{
    for (uint64_t const end_ms = clock_monotonic_ms() + LONG_MS;
         program->pid > 0 && stack_ended(program) < 0 && clock_monotonic_ms() < end_ms;)
        pause_ms(5);
    CU_ASSERT_EQUAL(program->pid, 0);
}

/* It is known what the worker died of, so what ran beside it is not lost. When the worker is dead, the rows
 * say so: it has waited for that. */
static void test_who_ran_beside_it_is_not_lost(void)
{
    struct stack_program *worker = start_worker("beside");
    start("innocent", "beside", "longer");
    while (stack_count(getenv("POISON_EFFECTS"), "longer innocent.") == 0)
        pause_ms(5);
    start("guilty", "beside", "writes");
    await_end(worker);
    CHECK_STR("innocent",
              sql("SELECT concat_ws(' ', coalesce(worker, '-'), coalesce(lost::text, '-'), "
                  "coalesce(lost_word, '-'))"
                  " FROM thole_default.worker_queue WHERE instance = 'innocent'"),
              "- - -");
    CHECK_STR("guilty",
              sql("SELECT concat_ws(' ', coalesce(worker, '-'), lost::text, left(lost_worker, 9), lost_word)"
                  " FROM thole_default.worker_queue WHERE instance = 'guilty'"),
              "- {1} beside-1- SIGSEGV in its handler, at address 0x10");
    CU_ASSERT_TRUE(stack_logged(worker, "died, with 2 activities: SIGSEGV in its handler", 1, 0));
    worker = start_worker("beside");
    await_end(worker); /* its second victim */
    worker = start_worker("beside");
    CHECK_STR("innocent", outcome("innocent"), "done");
    CU_ASSERT_TRUE(strstr(outcome("guilty"), "beside-2-") != NULL);
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
}

static bool is_gone(pid_t pid)
{
    for (uint64_t const end_ms = clock_monotonic_ms() + LONG_MS; clock_monotonic_ms() < end_ms; pause_ms(5))
        if (kill(pid, 0) != 0)
            return true;
    return false;
}

static void test_a_worker_that_stops_says_nothing(void)
{
    struct stack_program *const worker = start_worker("quiet");
    pid_t const witness = stack_child(worker, "thole-witness");
    CU_ASSERT_TRUE(witness > 0);
    start("quiet", "quiet", "echo");
    CHECK_STR("quiet", outcome("quiet"), "survived");
    (void)kill(witness, SIGINT);
    (void)kill(witness, SIGTERM); /* from a terminal, a supervisor: not meant for it */
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
    CU_ASSERT_TRUE(is_gone(witness));
    CU_ASSERT_EQUAL(stack_count(worker->log, " died, "), 0);
    CU_ASSERT_EQUAL(stack_count(worker->log, "its witness has died"), 0);
}

/* The worker goes on; of its death only that is known which was known without a witness. */
static void test_a_witness_that_is_killed(void)
{
    struct stack_program *worker = start_worker("alone");
    for (int i = 0; i < 2; i++) {
        pid_t const witness = stack_child(worker, "thole-witness");
        CU_ASSERT_TRUE(witness > 0 && kill(witness, SIGKILL) == 0);
        CU_ASSERT_TRUE(stack_logged(worker, "its witness has died", (size_t)i + 1, LONG_MS));
        if (i == 0) {
            start("goes-on", "alone", "echo");
            CHECK_STR("goes on", outcome("goes-on"), "survived");
            start("alone", "alone", "aborts");
        }
        await_end(worker);
        worker = start_worker("alone");
    }
    CU_ASSERT_TRUE(strstr(outcome("alone"), "the last: no word from it for a lease") != NULL);
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
}

static const struct thole_test tests[] = {
    {"each death is told", test_each_death_is_told},
    {"who ran beside it is not lost", test_who_ran_beside_it_is_not_lost},
    {"a worker that stops says nothing", test_a_worker_that_stops_says_nothing},
    {"a witness that is killed", test_a_witness_that_is_killed},
};

/* What a sanitizer has set stays, and the words would be its own. Leaks are looked for in /proc, which in
 * another namespace of pids shows other processes. */
static void leave_signals(const char *variable)
{
    char options[512];
    const char *const before = getenv(variable);
    snprintf(options, sizeof options,
             "%s:detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0",
             before == NULL ? "" : before);
    setenv(variable, options, 1);
}

int main(void)
{
    static char effects[160];
    struct rlimit const none = {0};
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    snprintf(effects, sizeof effects, "%s/poison", stack.dir);
    setenv("POISON_EFFECTS", effects, 1);
    setenv("THOLE_LEASE", "1s", 1);
    setenv("THOLE_SLOTS", "4", 1);
    setenv("THOLE_POISON_AFTER", "2", 1);
    leave_signals("ASAN_OPTIONS");
    leave_signals("TSAN_OPTIONS");
    (void)setrlimit(RLIMIT_CORE, &none); /* they would be many */
    (void)stack_program_of(&stack, "program_poison", "engine", "engine");
    client = stack_client(&stack);
    int const failed = thole_run_suite("last_word", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
