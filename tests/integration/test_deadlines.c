/* Tries with a timeout, and what heartbeats said, across the death of workers and engines. */
#include "stack.h"
#include <libpq-fe.h>

enum { TIMEOUT_MS = 3000, LEASE_MS = 3000, SETTLED_MS = 2500 };

static struct stack stack;
static thole_client *client;
static struct stack_program *engine, *worker;
static char effects[160];

static void start(const char *id, const char *orchestration, const char *activity)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(activity), NULL, &stack.err),
             &stack.err);
}

static void check_outcome(const char *id, const char *want, uint64_t wait_ms)
{
    thole_instance_status status;
    CHECK_STR(id, stack_outcome(client, id, wait_ms, &status), want);
}

/* How often an activity of the instance has been run. */
static size_t runs(const char *id)
{
    char key[64];
    snprintf(key, sizeof key, "%s.", id);
    return stack_count(effects, key);
}

static void wait_runs(const char *id, size_t least)
{
    for (int i = 0; i < 2000 && runs(id) < least; i++)
        pause_ms(5);
    CU_ASSERT_TRUE(runs(id) >= least);
}

static struct stack_program *start_worker(const char *name)
{
    return stack_program_of(&stack, "program_tries", name, "worker");
}

static struct stack_program *start_engine(void)
{
    return stack_program_of(&stack, "program_tries", "engine", "engine");
}

static const char *sql(const char *statement)
{
    static char value[512];
    PGconn *pg = PQconnectdb(stack.postgres.url);
    PGresult *result = PQexec(pg, statement);
    bool const good = PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK;
    CU_ASSERT_TRUE(good);
    if (!good)
        fprintf(stderr, "  %s\n", PQerrorMessage(pg));
    snprintf(value, sizeof value, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(pg);
    return value;
}

/* Two tries take too long, the third does not; each is told how far the one before has come. */
static void test_tries_are_timed_out_by_a_worker_that_lives(void)
{
    uint64_t const from_ms = clock_monotonic_ms();
    start("alive", "brief", "third");
    check_outcome("alive", "try 3, 2", 20000);
    CU_ASSERT_TRUE(clock_monotonic_ms() - from_ms < 5000);
    CU_ASSERT_EQUAL(runs("alive"), 3);
    CU_ASSERT_EQUAL(stack_count(effects, "alive.1.2 try 2 attempt 1: 1"), 1);
    CU_ASSERT_TRUE(stack_logged(worker, "path=timeout instance=alive", 2, 1000));
    CHECK_STR("rows", sql("SELECT count(*) FROM thole_default.worker_queue"), "0");
}

static void test_a_killed_workers_try_is_ended(void)
{
    start("killed", "once", "hang");
    wait_runs("killed", 1);
    uint64_t const from_ms = clock_monotonic_ms();
    stack_kill9(worker);
    check_outcome("killed", "timed out", 20000); /* while no worker is alive */
    uint64_t const took_ms = clock_monotonic_ms() - from_ms;
    fprintf(stderr, "\n  timeout %d ms, no worker: ended after %llu ms\n", TIMEOUT_MS,
            (unsigned long long)took_ms);
    CU_ASSERT_TRUE(took_ms < TIMEOUT_MS + 3000);
    CU_ASSERT_TRUE(stack_logged(engine, "1 tries are past their deadline and ended", 1, 1000));
    worker = start_worker("worker");
    start("after-it", "unlimited", "echo"); /* its message comes again, and finds no row */
    check_outcome("after-it", "try 1, ", 20000);
    pause_ms(LEASE_MS + 1000);
    CU_ASSERT_EQUAL(runs("killed"), 1);
}

static void test_a_try_ends_although_no_engine_was_there(void)
{
    start("alone", "once", "hang");
    wait_runs("alone", 1);
    pause_ms(SETTLED_MS); /* the engine that comes next knows of it from the database alone */
    stack_kill9(engine);
    stack_kill9(worker);
    pause_ms(TIMEOUT_MS - SETTLED_MS + 500);
    engine = start_engine();
    check_outcome("alone", "timed out", 20000);
    worker = start_worker("worker");
    CU_ASSERT_EQUAL(runs("alone"), 1);
}

/* A worker that finds the deadline passed says so, and does not run the handler again. */
static void test_a_claim_after_the_deadline_runs_nothing(void)
{
    start("too-late", "once", "hang");
    wait_runs("too-late", 1);
    pause_ms(SETTLED_MS); /* or the engine that comes next projects the row again, and it runs once more */
    stack_kill9(engine);
    stack_kill9(worker);
    pause_ms(TIMEOUT_MS - SETTLED_MS + 500);
    worker = start_worker("late-worker");
    CU_ASSERT_TRUE(stack_logged(worker, "its deadline has passed: instance=too-late", 1, 15000));
    CHECK_STR("rows", sql("SELECT count(*) FROM thole_default.worker_queue"), "0");
    engine = start_engine();
    check_outcome("too-late", "timed out", 20000);
    CU_ASSERT_EQUAL(runs("too-late"), 1);
}

static void test_details_survive_a_killed_worker(void)
{
    start("pages", "unlimited", "pages");
    wait_runs("pages", 1);
    for (int i = 0; i < 1000 && strcmp(sql("SELECT convert_from(details, 'UTF8') FROM "
                                           "thole_default.worker_queue WHERE instance = 'pages'"),
                                       "page 17") != 0;
         i++)
        pause_ms(10);
    stack_kill9(worker);
    worker = start_worker("worker");
    check_outcome("pages", "try 1, page 17", 20000);
    CU_ASSERT_EQUAL(stack_count(effects, "pages.1.2 try 1 attempt 2: page 17"), 1);
}

/* Nobody completes it, and no worker holds it: its deadline does. */
static void test_what_is_left_to_others_times_out(void)
{
    start("left", "once", "later");
    wait_runs("left", 1);
    for (int i = 0; i < 500 && strcmp(sql("SELECT later FROM thole_default.worker_queue"), "t") != 0; i++)
        pause_ms(10);
    check_outcome("left", "timed out", 20000);
    CU_ASSERT_EQUAL(runs("left"), 1);
}

/* When each connection of thole last began a query; equal before and after = no query in between. */
static void last_queries(char *to, size_t cap)
{
    snprintf(to, cap, "%s",
             sql("SELECT string_agg(pid || ' ' || query_start::text, ' ' ORDER BY pid) FROM pg_stat_activity "
                 "WHERE application_name LIKE 'thole%'"));
}

static void test_no_deadline_no_query(void)
{
    char before[512], after[512];
    start("quiet", "brief", "echo");
    check_outcome("quiet", "try 1, ", 20000);
    pause_ms(5000); /* the deadline that could have been is over; positions are saved */
    last_queries(before, sizeof before);
    pause_ms(5000);
    last_queries(after, sizeof after);
    CU_ASSERT_TRUE(strlen(before) > 0);
    CHECK_STR("queries", after, before);
}

static const struct thole_test tests[] = {
    {"tries are timed out by a worker that lives", test_tries_are_timed_out_by_a_worker_that_lives},
    {"a killed worker's try is ended", test_a_killed_workers_try_is_ended},
    {"a try ends although no engine was there", test_a_try_ends_although_no_engine_was_there},
    {"a claim after the deadline runs nothing", test_a_claim_after_the_deadline_runs_nothing},
    {"details survive a killed worker", test_details_survive_a_killed_worker},
    {"what is left to others times out", test_what_is_left_to_others_times_out},
    {"no deadline, no query", test_no_deadline_no_query},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    snprintf(effects, sizeof effects, "%s/tries", stack.dir);
    setenv("TRIES_EFFECTS", effects, 1);
    setenv("THOLE_LEASE", "3s", 1);
    engine = start_engine();
    client = stack_client(&stack);
    worker = start_worker("worker");
    int const failed = thole_run_suite("deadlines", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
