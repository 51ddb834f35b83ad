/*
 * Activities that are declared quick, with real servers and processes: they run inside the batch that
 * completes them, and there their workers are killed, frozen and cut off. Each story has a worker of its own.
 */
#include "stack.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAIT_MS = 30000, SETTLE_MS = 300, SLOW_MS = 150 /* above the 100 ms of a quick one */ };

static struct stack stack;
static thole_client *client;
static char runs[160];

static struct stack_program *worker_of(const char *name)
{
    struct stack_program *const worker =
        stack_program_with(&stack, "program_quick", name, "worker", "--lease=2s", "--log-level=debug", NULL);
    CU_ASSERT_TRUE(stack_logged(worker, "serves queue", worker->lives, WAIT_MS));
    return worker;
}

static void start(const char *id, const char *activity)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("one"), thole_slice_from(activity),
                                NULL, &stack.err),
             &stack.err);
}

static void check_outcome(const char *id, const char *want)
{
    thole_instance_status status;
    CHECK_STR(id, stack_outcome(client, id, WAIT_MS, &status), want);
}

/* The result of the instance; that of its activity begins with @p thread, on which it ran. */
static void check_thread(const char *id, const char *thread, const char *rest)
{
    char want[160];
    (void)snprintf(want, sizeof want, "%s: %s", thread, rest);
    check_outcome(id, want);
}

static size_t count_of(const char *id, const char *what)
{
    char line[80];
    (void)snprintf(line, sizeof line, "%s %s", id, what);
    return stack_count(runs, line);
}

static bool happens(const char *id, const char *what, size_t times)
{
    for (int i = 0; i < WAIT_MS / 5 && count_of(id, what) < times; i++)
        pause_ms(5);
    return count_of(id, what) >= times;
}

/* Lets the handler of this instance return. */
static void let_go(const char *id)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s.go", stack.dir, id);
    int const fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    CU_ASSERT_TRUE(fd >= 0);
    close(fd);
}

/* The activity has one result, and no row or message is left. */
static void check_done(const char *id)
{
    char statement[160];
    const char *const history = stack_history(client, id), *const first =
                                                               strstr(history, "ActivityCompleted");
    CU_ASSERT_PTR_NOT_NULL(first);
    CU_ASSERT_PTR_NULL(first == NULL ? NULL : strstr(first + 1, "ActivityCompleted"));
    (void)snprintf(statement, sizeof statement,
                   "SELECT count(*) FROM thole_default.worker_queue WHERE instance = '%s'", id);
    for (int i = 0; i < WAIT_MS / 5 && strcmp(stack_sql(&stack, statement), "0") != 0; i++)
        pause_ms(5);
    CHECK_STR(id, stack_sql(&stack, statement), "0");
}

static bool has_rows(const char *n)
{
    static const char statement[] = "SELECT count(*) FROM thole_default.worker_queue";
    for (int i = 0; i < WAIT_MS / 5 && strcmp(stack_sql(&stack, statement), n) != 0; i++)
        pause_ms(5);
    return strcmp(stack_sql(&stack, statement), n) == 0;
}

/* ---- stories ---- */

static void test_it_runs_on_the_loop(void)
{
    struct stack_program *const worker = worker_of("runs");
    start("told", "tell");
    check_thread("told", "thole-worker", "attempt 1 of try 1 for one@1: tell");
    check_done("told");
    start("plain", "plain");
    check_thread("plain", "thole-handler", "attempt 1 of try 1 for one@1: plain");
    start("second", "second");
    check_outcome("second", "after second");
    CU_ASSERT_EQUAL(stack_terminate(worker, WAIT_MS), 0);
    CU_ASSERT_TRUE(stack_logged(worker, "claimed=4 completed=4 ", 1, WAIT_MS));
    CU_ASSERT_TRUE(stack_logged(worker, " quick=3", 1, WAIT_MS));
}

static void test_it_cannot_be_completed_later(void)
{
    struct stack_program *const worker = worker_of("later");
    start("later", "later");
    check_outcome("later",
                  "activity 'later' failed: an activity that is declared quick cannot be completed later");
    stack_kill9(worker);
}

static void test_one_that_is_slow(void)
{
    struct stack_program *const worker = worker_of("slow");
    start("slow", "held");
    CU_ASSERT_TRUE(happens("slow", "begins", 1));
    pause_ms(1200); /* the return may not be published in this transaction any more */
    let_go("slow");
    check_thread("slow", "thole-worker", "attempt 1 of try 1 for one@1: held");
    check_done("slow");
    CU_ASSERT_EQUAL(count_of("slow", "begins"), 1);
    CU_ASSERT_TRUE(stack_logged(worker, "activity held is declared quick and took", 1, WAIT_MS));
    let_go("slow-2");
    start("slow-2", "held");
    check_thread("slow-2", "thole-handler", "attempt 1 of try 1 for one@1: held");
    CU_ASSERT_EQUAL(stack_count(worker->log, "is declared quick and took"), 1);
    stack_kill9(worker);
}

/* Two in one batch: the one that is not run, since the other was slow, is claimed and runs on a thread. */
static void test_two_that_are_slow(void)
{
    static const char *const ids[] = {"pair-1", "pair-2"};
    size_t on_loop = 0;
    start(ids[0], "held");
    start(ids[1], "held");
    CU_ASSERT_TRUE(has_rows("2")); /* both wait for a worker */
    struct stack_program *const worker = worker_of("pair");
    for (int i = 0; i < WAIT_MS / 5 && count_of(ids[0], "begins") + count_of(ids[1], "begins") == 0; i++)
        pause_ms(5);
    pause_ms(SLOW_MS);
    CU_ASSERT_EQUAL(count_of(ids[0], "begins") + count_of(ids[1], "begins"), 1);
    let_go(ids[0]);
    let_go(ids[1]);
    for (size_t i = 0; i < 2; i++) {
        thole_instance_status status;
        const char *const outcome = stack_outcome(client, ids[i], WAIT_MS, &status);
        bool const loop = strncmp(outcome, "thole-worker", strlen("thole-worker")) == 0;
        on_loop += loop;
        check_thread(ids[i], loop ? "thole-worker" : "thole-handler", "attempt 1 of try 1 for one@1: held");
        check_done(ids[i]);
        CU_ASSERT_EQUAL(count_of(ids[i], "begins"), 1);
    }
    CU_ASSERT_EQUAL(on_loop, 1);
    stack_kill9(worker);
}

static void test_its_worker_is_killed(void)
{
    struct stack_program *worker = worker_of("killed");
    start("killed", "held");
    CU_ASSERT_TRUE(happens("killed", "begins", 1));
    stack_kill9(worker);
    CHECK_STR("unclaimed",
              stack_sql(&stack, "SELECT attempt FROM thole_default.worker_queue WHERE instance = 'killed'"),
              "0");
    worker = worker_of("killed");
    let_go("killed");
    check_thread("killed", "thole-handler", "attempt 1 of try 1 for one@1: held");
    check_done("killed");
    CU_ASSERT_EQUAL(count_of("killed", "begins"), 2);
    stack_kill9(worker);
}

/* The first time is not counted, the second time is: from then on it is claimed. */
static void test_it_kills_its_worker(void)
{
    struct stack_program *worker = NULL;
    start("crash", "crash");
    for (size_t life = 1; life <= 3; life++) {
        worker = worker_of("crash");
        CU_ASSERT_TRUE(happens("crash", "begins", life));
        for (int i = 0; life < 3 && i < WAIT_MS / 5 && stack_ended(worker) < 0; i++)
            pause_ms(5);
    }
    check_thread("crash", "thole-handler", "attempt 2 of try 1 for one@1: crash");
    check_done("crash");
    stack_kill9(worker);
}

/* The batch has the result of another activity, too: that row is locked until the transaction ends, and the
 * crash report goes into it. */
static void test_it_crashes_beside_others(void)
{
    struct stack_program *worker = worker_of("beside");
    start("beside", "waits");
    CU_ASSERT_TRUE(happens("beside", "begins", 1));
    start("blocker", "held");
    CU_ASSERT_TRUE(happens("blocker", "begins", 1)); /* the loop is busy */
    let_go("beside");
    CU_ASSERT_TRUE(happens("beside", "ends", 1));
    start("crash-next", "crash");
    CU_ASSERT_TRUE(has_rows("3"));
    pause_ms(SETTLE_MS);
    let_go("blocker");
    CU_ASSERT_TRUE(happens("crash-next", "begins", 1));
    uint64_t const since_us = now_us();
    for (int i = 0; i < WAIT_MS / 5 && stack_ended(worker) < 0; i++)
        pause_ms(5);
    CU_ASSERT_TRUE(now_us() - since_us < 1000000);
    CU_ASSERT_TRUE(stack_logged(worker, "died, with 1 activities", 1, WAIT_MS));
    CHECK_OK(thole_client_terminate(client, THOLE_STR("crash-next"), THOLE_STR("enough"), &stack.err),
             &stack.err);
    worker = worker_of("beside");
    check_thread("beside", "thole-handler", "attempt 2 of try 1 for one@1: waits");
    check_done("beside");
    CU_ASSERT_EQUAL(count_of("beside", "begins"), 2);
    stack_kill9(worker);
}

/* Postgres ends its transaction, and another worker runs it. What the first one returns then is not stored.
 */
static void test_its_worker_is_frozen(void)
{
    struct stack_program *const worker = worker_of("frozen"), *rival;
    start("frozen", "held");
    CU_ASSERT_TRUE(happens("frozen", "begins", 1));
    CU_ASSERT_TRUE(stack_freeze(worker));
    rival = worker_of("rival");
    CU_ASSERT_TRUE(happens("frozen", "begins", 2));
    let_go("frozen");
    check_thread("frozen", "thole-handler", "attempt 1 of try 1 for one@1: held");
    stack_thaw(worker);
    CU_ASSERT_TRUE(happens("frozen", "ends", 2));
    /* gone, or still the rival's, whose commit follows its result */
    CU_ASSERT_TRUE(stack_logged(worker, "instance=frozen *result refused, ", 1, WAIT_MS));
    pause_ms(SETTLE_MS); /* time to do wrong */
    check_done("frozen");
    stack_kill9(worker);
    stack_kill9(rival);
}

/* The transaction is lost with it: what the handler has returned is kept, and stored. */
static void test_postgres_is_killed(void)
{
    struct stack_program *const worker = worker_of("postgres");
    start("kept", "held");
    CU_ASSERT_TRUE(happens("kept", "begins", 1));
    server_kill9(&stack.postgres);
    CHECK_OK(server_restart(&stack.postgres, &stack.err), &stack.err);
    let_go("kept");
    check_thread("kept", "thole-worker", "attempt 1 of try 1 for one@1: held");
    check_done("kept");
    CU_ASSERT_EQUAL(count_of("kept", "begins"), 1);
    stack_kill9(worker);
}

/* The engine's deletion of the row waits for the transaction; what it decided counts. */
static void test_it_is_cancelled(void)
{
    struct stack_program *const worker = worker_of("cancelled");
    thole_instance_status status;
    start("cancelled", "held");
    CU_ASSERT_TRUE(happens("cancelled", "begins", 1));
    CHECK_OK(thole_client_cancel(client, THOLE_STR("cancelled"), THOLE_STR("no longer"), &stack.err),
             &stack.err);
    (void)stack_outcome(client, "cancelled", WAIT_MS, &status);
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_CANCELLED);
    let_go("cancelled");
    CU_ASSERT_TRUE(happens("cancelled", "ends", 1));
    start("after", "tell"); /* the worker goes on */
    check_thread("after", "thole-worker", "attempt 1 of try 1 for one@1: tell");
    CU_ASSERT_PTR_NULL(strstr(stack_history(client, "cancelled"), "ActivityCompleted"));
    CHECK_STR("rows", stack_sql(&stack, "SELECT count(*) FROM thole_default.worker_queue"), "0");
    stack_kill9(worker);
}

static const struct thole_test tests[] = {
    {"it runs on the loop", test_it_runs_on_the_loop},
    {"it cannot be completed later", test_it_cannot_be_completed_later},
    {"one that is slow", test_one_that_is_slow},
    {"two that are slow", test_two_that_are_slow},
    {"its worker is killed", test_its_worker_is_killed},
    {"it kills its worker", test_it_kills_its_worker},
    {"it crashes beside others", test_it_crashes_beside_others},
    {"its worker is frozen", test_its_worker_is_frozen},
    {"Postgres is killed", test_postgres_is_killed},
    {"it is cancelled", test_it_is_cancelled},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    setenv("QUICK_DIR", stack.dir, 1);
    (void)snprintf(runs, sizeof runs, "%s/runs", stack.dir);
    (void)stack_program_of(&stack, "program_quick", "engine", "engine");
    client = stack_client(&stack);
    int const failed = thole_run_suite("quick", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
