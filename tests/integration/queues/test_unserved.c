/*
 * Activities that no worker of their queue knows, with real servers and processes: they must not stop those
 * that one knows, and run when a worker joins that knows them, whatever is killed meanwhile.
 * $UNSERVED_CALLS: how many there are (20,000; fewer with ThreadSanitizer, which has four mappings for the
 * stack of a parked instance: the system allows 65,530).
 */
#include "sanitized.h"
#include "stack.h"
#include "topology.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WAIT_MS = 60000,
    LONG_MS = 300000,
    LIMIT = 500,
    CALLS = SANITIZED_THREAD ? 5000 : 20000,
    FEW = SANITIZED_THREAD ? 1000 : 2000,
    SOON_MS = SANITIZED ? 5000 : 1000,
};

static struct stack stack;
static thole_client *client;
static struct stack_program *engine;
static char runs[160];

static struct stack_program *worker_of(const char *name, const char *knows)
{
    setenv("UNSERVED_KNOWS", knows, 1);
    struct stack_program *const worker =
        stack_program_with(&stack, "program_unserved", name, "worker", "--lease=4s", NULL);
    CU_ASSERT_TRUE(stack_logged(worker, "serves queue", worker->lives, WAIT_MS));
    return worker;
}

static struct stack_program *engine_of(void)
{
    return stack_program_with(&stack, "program_unserved", "engine", "engine", "--sweep=10s", NULL);
}

/* ---- many starts ---- */

struct starting {
    const char *prefix, *activity;
    int next, n;
    char id[64];
};

static thole_status next_start(void *arg, thole_start_item *ret_item, thole_error *reterr)
{
    struct starting *const of = arg;
    if (of->next == of->n)
        return thole_fail(reterr, THOLE_NOT_FOUND, "no more");
    (void)snprintf(of->id, sizeof of->id, "%s-%d", of->prefix, of->next++);
    ret_item->instance = thole_slice_from(of->id);
    ret_item->orchestration = THOLE_STR("one");
    ret_item->input = thole_slice_from(of->activity);
    return THOLE_OK;
}

static thole_status started(void *arg, uint64_t token, thole_slice instance, const thole_error *error)
{
    (void)arg, (void)token, (void)instance;
    CU_ASSERT_EQUAL(error->status, THOLE_OK);
    return THOLE_OK;
}

static void start_all(const char *prefix, const char *activity, int n)
{
    struct starting of = {.prefix = prefix, .activity = activity, .n = n};
    CHECK_OK(thole_client_start_many(client, next_start, started, &of, &stack.err), &stack.err);
}

static uint64_t number(const char *statement)
{
    return strtoull(stack_sql(&stack, statement), NULL, 10);
}

static bool becomes(const char *statement, uint64_t want, uint64_t wait_ms)
{
    for (uint64_t i = 0; i < wait_ms / 20 && number(statement) != want; i++)
        pause_ms(20);
    return number(statement) == want;
}

static const char all_rows[] = "SELECT count(*) FROM thole_default.worker_queue";
static const char on_shelf[] = "SELECT count(*) FROM thole_default.worker_queue WHERE shelved_at IS NOT NULL";

/* Runs one that is known; how long it took. */
static uint64_t known_ms(const char *id)
{
    thole_instance_status status;
    uint64_t const since_us = now_us();
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("one"), THOLE_STR("known"), NULL,
                                &stack.err),
             &stack.err);
    CHECK_STR(id, stack_outcome(client, id, WAIT_MS, &status), "done: known");
    return (now_us() - since_us) / 1000;
}

static size_t shell_number(const char *line)
{
    const char *const said = strchr(stack_shell(line), ':');
    return said == NULL ? 0 : strtoull(said + 1, NULL, 10);
}

/* Each of them ran, and no more than so many times in all. */
static void check_runs(const char *prefix, size_t n, size_t most)
{
    char line[256];
    (void)snprintf(line, sizeof line, "grep '^%s-' %s | sort -u | wc -l", prefix, runs);
    CU_ASSERT_EQUAL(shell_number(line), n);
    (void)snprintf(line, sizeof line, "grep -c '^%s-' %s", prefix, runs);
    size_t const all = shell_number(line);
    CU_ASSERT_TRUE(all <= most);
    if (all > most)
        (void)printf("    %zu runs of %zu\n", all, n);
}

static void limit(uint64_t n)
{
    struct connection *const connection = stack_connect(&stack);
    CHECK_OK(topology_limit_queue(connection, "default", THOLE_STR("default"), n, &stack.err), &stack.err);
    connection_close(connection);
}

/* ---- stories ---- */

static void test_the_others_do_not_wait(void)
{
    char id[32];
    uint64_t most_ms = 0;
    const char *const given = getenv("UNSERVED_CALLS");
    int const n = given != NULL ? (int)strtol(given, NULL, 10) : CALLS;
    limit(given != NULL ? 0 : LIMIT); /* so few may be delivered at a time: 100,000 without one */
    start_all("many", "future", n);   /* an engine that is deployed before its workers */
    CU_ASSERT_TRUE(becomes(all_rows, (uint64_t)n, LONG_MS));
    struct stack_program *const worker = worker_of("knows-known", "known");
    uint64_t const first_ms = known_ms("known-first");
    CU_ASSERT_TRUE(becomes(on_shelf, (uint64_t)n, LONG_MS)); /* none of them is in flight */
    for (int i = 0; i < 20; i++) {
        (void)snprintf(id, sizeof id, "known-%d", i);
        uint64_t const took_ms = known_ms(id);
        most_ms = took_ms > most_ms ? took_ms : most_ms;
    }
    CU_ASSERT_TRUE(most_ms < SOON_MS);
    CU_ASSERT_TRUE(stack_logged(engine, "no worker of queue default knows activity future", 1, WAIT_MS));
    uint64_t const since_us = now_us();
    struct stack_program *const other = worker_of("knows-both", "known,future"); /* a rolling deployment */
    CU_ASSERT_EQUAL(stack_terminate(worker, WAIT_MS), 0);
    CU_ASSERT_TRUE(becomes(all_rows, 0, LONG_MS));
    (void)printf("    %d unknown: known first %llu ms, then at most %llu ms; all run %llu ms after the "
                 "worker joined\n",
                 n, (unsigned long long)first_ms, (unsigned long long)most_ms,
                 (unsigned long long)((now_us() - since_us) / 1000));
    check_runs("many", (size_t)n, (size_t)n);
    stack_kill9(other);
    limit(0);
}

/* Also while one stays that does not know them. */
static void test_both_workers_stay(void)
{
    struct stack_program *const worker = worker_of("knows-known", "known");
    start_all("both", "future", 200);
    CU_ASSERT_TRUE(becomes(on_shelf, 200, WAIT_MS));
    struct stack_program *const other = worker_of("knows-future", "future");
    CU_ASSERT_TRUE(known_ms("known-both") < SOON_MS);
    CU_ASSERT_TRUE(becomes(all_rows, 0, LONG_MS));
    check_runs("both", 200, 200);
    stack_kill9(worker);
    stack_kill9(other);
}

/* Killed while they are put on the shelf, and while they are taken off it; and the database with a mark that
 * it had not synced. */
static void test_everything_is_killed(void)
{
    struct stack_program *worker = worker_of("knows-known", "known");
    start_all("killed", "future", FEW);
    for (int i = 0; i < WAIT_MS / 5 && number(on_shelf) == 0; i++)
        pause_ms(5);
    stack_kill9(worker);
    worker = worker_of("knows-known", "known");
    server_kill9(&stack.postgres);
    CHECK_OK(server_restart(&stack.postgres, &stack.err), &stack.err);
    stack_kill9(engine);
    engine = engine_of();
    CU_ASSERT_TRUE(becomes(on_shelf, FEW, LONG_MS));
    CU_ASSERT_TRUE(known_ms("known-killed") < 5 * SOON_MS);
    struct stack_program *other = worker_of("knows-both", "known,future");
    stack_kill9(worker);
    for (int i = 0; i < WAIT_MS / 5 && number(on_shelf) == FEW; i++)
        pause_ms(5);
    stack_kill9(engine); /* with rows that have neither a mark nor a message */
    engine = engine_of();
    pause_ms(300);
    server_kill9(&stack.postgres);
    CHECK_OK(server_restart(&stack.postgres, &stack.err), &stack.err);
    stack_kill9(other);
    other = worker_of("knows-both", "known,future");
    CU_ASSERT_TRUE(becomes(all_rows, 0, LONG_MS));
    check_runs("killed", FEW, FEW + 200); /* activities running at a kill may run again */
    stack_kill9(other);
}

static const char *status_of(const char *id)
{
    char line[160];
    thole_instance_status status;
    (void)snprintf(line, sizeof line, "SELECT count(*) FROM thole_default.worker_queue WHERE instance = '%s'",
                   id);
    (void)stack_outcome(client, id, WAIT_MS, &status);
    CU_ASSERT_TRUE(becomes(line, 0, WAIT_MS));
    return thole_instance_status_name(status);
}

static void test_what_is_on_the_shelf_can_end(void)
{
    struct stack_program *const worker = worker_of("knows-known", "known");
    start_all("ends", "future", 3);
    CU_ASSERT_TRUE(becomes(on_shelf, 3, WAIT_MS));
    CHECK_OK(thole_client_cancel(client, THOLE_STR("ends-0"), THOLE_STR("no longer"), &stack.err),
             &stack.err);
    CHECK_STR("cancelled", status_of("ends-0"), "Cancelled");
    CHECK_OK(thole_client_terminate(client, THOLE_STR("ends-1"), THOLE_STR("enough"), &stack.err),
             &stack.err);
    CHECK_STR("terminated", status_of("ends-1"), "Terminated");
    /* a mark that the database has forgotten: it is an orphan, is queued again, and comes back to the shelf
     */
    (void)stack_sql(&stack, "UPDATE thole_default.worker_queue SET shelved_at = NULL RETURNING 1");
    CU_ASSERT_TRUE(becomes(on_shelf, 1, LONG_MS));
    struct stack_program *const other = worker_of("knows-future", "future");
    thole_instance_status status;
    CHECK_STR("runs", stack_outcome(client, "ends-2", WAIT_MS, &status), "done: future");
    stack_kill9(worker);
    stack_kill9(other);
}

static const struct thole_test tests[] = {
    {"the others do not wait", test_the_others_do_not_wait},
    {"both workers stay", test_both_workers_stay},
    {"everything is killed", test_everything_is_killed},
    {"what is on the shelf can end", test_what_is_on_the_shelf_can_end},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    setenv("UNSERVED_DIR", stack.dir, 1);
    setenv("UNSERVED_KNOWS", "", 1);
    (void)snprintf(runs, sizeof runs, "%s/runs", stack.dir);
    engine = engine_of();
    client = stack_client(&stack);
    int const failed = thole_run_suite("unserved", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
