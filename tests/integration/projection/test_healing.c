/*
 * Rows that a user removes, from single ones to the whole schema, while the engine runs and while it does
 * not: they are made again, and every instance ends, without any restart for it.
 */
#include "stack.h"
#include <string.h>

enum { MANY = 20, HEAL_MS = 20000 };

static struct stack stack;
static thole_client *client;
static struct stack_program *engine, *worker;

static void start(const char *id, const char *orchestration)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration), THOLE_STR("x"),
                                NULL, &stack.err),
             &stack.err);
}

static void check_outcome(const char *id, const char *want)
{
    thole_instance_status status;
    CHECK_STR(id, stack_outcome(client, id, HEAL_MS, &status), want);
}

/* Without a worker: each of them has an activity that waits, or a timer. */
static void start_many(const char *round)
{
    (void)stack_terminate(worker, 10000);
    for (int i = 0; i < MANY; i++) {
        char id[64];
        snprintf(id, sizeof id, "%s-%02d", round, i);
        start(id, i % 2 == 0 ? "one" : "long_nap");
    }
    for (int i = 0; i < 500 && strcmp(stack_sql(&stack, "SELECT (SELECT count(*) FROM "
                                                        "thole_default.worker_queue) || ' ' || (SELECT "
                                                        "count(*) FROM thole_default.timers)"),
                                      "10 10") != 0;
         i++)
        pause_ms(10);
    pause_ms(1500); /* quiet: nothing is on its way to the database */
}

static void check_many(const char *round)
{
    for (int i = 0; i < MANY; i++) {
        char id[64];
        snprintf(id, sizeof id, "%s-%02d", round, i);
        check_outcome(id, i % 2 == 0 ? "x" : "");
    }
}

static void start_worker(void)
{
    worker = stack_program(&stack, "worker", "worker", NULL);
}

static void test_truncated_while_it_runs(void)
{
    start_many("truncated");
    (void)stack_sql(&stack, "TRUNCATE thole_default.worker_queue, thole_default.timers");
    start_worker();
    check_many("truncated");
    CU_ASSERT_TRUE(stack_logged(engine, "somebody has removed rows", 1, 1000));
}

static void test_truncated_while_it_does_not(void)
{
    start_many("stopped");
    (void)stack_terminate(engine, 10000);
    (void)stack_sql(&stack, "TRUNCATE thole_default.worker_queue, thole_default.timers");
    engine = stack_program(&stack, "engine", "engine", "--sweep=3s", NULL);
    start_worker();
    check_many("stopped");
}

static void test_single_rows(void)
{
    static const char status[] = "SELECT status FROM thole_default.instances WHERE instance = 'single-05'";
    start_many("single");
    (void)stack_sql(&stack, "DELETE FROM thole_default.worker_queue WHERE instance = 'single-04'");
    pause_ms(500);
    (void)stack_sql(&stack, "DELETE FROM thole_default.timers WHERE instance = 'single-07'");
    (void)stack_sql(&stack, "DELETE FROM thole_default.instances WHERE instance = 'single-05'");
    start_worker();
    check_many("single");
    for (int i = 0; i < 500 && strcmp(stack_sql(&stack, status), "4") != 0; i++)
        pause_ms(10); /* the news of its end come before its row */
    CHECK_STR("row", stack_sql(&stack, status), "4");
}

/* "p:epoch" of the partitions that the instances are in, or of all others. */
static void epochs(char *to, size_t cap, const char *in, const char *instances)
{
    char statement[512];
    snprintf(statement, sizeof statement,
             "SELECT string_agg(p || ':' || epoch, ' ' ORDER BY p) FROM thole_default.partitions WHERE p %s "
             "(SELECT p FROM thole_default.instances WHERE instance IN (%s))",
             in, instances);
    snprintf(to, cap, "%s", stack_sql(&stack, statement));
}

/* Only the partitions of what is removed open again: of one row, of rows in two partitions. */
static void test_one_partition(void)
{
    static const char *const sets[] = {"'partition-04'", "'partition-02', 'partition-07', 'partition-16'"};
    char theirs[256], others[256], now[256];
    start_many("partition");
    size_t const all = stack_count(engine->log, "rows from the tables of namespace");
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        char statement[512];
        epochs(theirs, sizeof theirs, "IN", sets[i]);
        epochs(others, sizeof others, "NOT IN", sets[i]);
        CU_ASSERT_TRUE(strlen(theirs) > 0 && strlen(others) > 0);
        snprintf(statement, sizeof statement, "DELETE FROM thole_default.instances WHERE instance IN (%s)",
                 sets[i]);
        (void)stack_sql(&stack, statement);
        snprintf(statement, sizeof statement,
                 "SELECT count(*) FROM thole_default.instances WHERE instance IN (%s)", sets[i]);
        size_t const want = i == 0 ? 1 : 3;
        for (int k = 0; k < 1000 && strtoul(stack_sql(&stack, statement), NULL, 10) != want; k++)
            pause_ms(10);
        CU_ASSERT_EQUAL(strtoul(stack_sql(&stack, statement), NULL, 10), want);
        pause_ms(500);
        epochs(now, sizeof now, "IN", sets[i]);
        CU_ASSERT_STRING_NOT_EQUAL(now, theirs);
        epochs(now, sizeof now, "NOT IN", sets[i]);
        CHECK_STR("the others", now, others);
    }
    CU_ASSERT_EQUAL(stack_count(engine->log, "rows from the tables of namespace"), all);
    start_worker();
    check_many("partition");
}

/* The worker stays: what it asks meanwhile finds no table. */
static void test_schema_is_dropped(void)
{
    start_many("dropped");
    start_worker();
    (void)stack_sql(&stack, "DROP SCHEMA thole_default CASCADE");
    start("dropped-after", "one");
    check_outcome("dropped-after", "x");
    check_many("dropped");
    CHECK_STR(
        "rows",
        stack_sql(&stack, "SELECT count(*) FROM thole_default.instances WHERE instance LIKE 'dropped%'"),
        "21");
}

static void test_own_removals_are_no_removals(void)
{
    size_t const before = stack_count(engine->log, "somebody has removed rows");
    for (int i = 0; i < MANY; i++) {
        char id[64];
        snprintf(id, sizeof id, "own-%02d", i);
        start(id, "order");
    }
    for (int i = 0; i < MANY; i++) {
        char id[64];
        snprintf(id, sizeof id, "own-%02d", i);
        check_outcome(id, "x,reserve,charge,ship");
    }
    CU_ASSERT_EQUAL(stack_count(engine->log, "somebody has removed rows"), before);
}

static const struct thole_test tests[] = {
    {"truncated_while_it_runs", test_truncated_while_it_runs},
    {"truncated_while_it_does_not", test_truncated_while_it_does_not},
    {"single_rows", test_single_rows},
    {"one_partition", test_one_partition},
    {"schema_is_dropped", test_schema_is_dropped},
    {"own_removals_are_no_removals", test_own_removals_are_no_removals},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    engine = stack_program(&stack, "engine", "engine", "--sweep=3s", NULL);
    client = stack_client(&stack);
    start_worker();
    int const failed = thole_run_suite("healing", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
