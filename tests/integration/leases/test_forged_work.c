/*
 * A user who may publish to the queues, but is no engine: forged work messages, before the engine's own and
 * after it, for the right queue and for another one, and where the engine's own is lost. Each activity runs
 * once, as the orchestration has scheduled it; forged messages are removed, and are in the log.
 */
#include "reader.h"
#include "stack.h"
#include "subject.h"
#include <stdlib.h>

enum { LEASE_MS = 3000, SWEEP_MS = 6000, ORDERS = 30, FLOOD = 20 };

static struct stack stack;
static thole_client *client;
static struct connection *attacker;

static const char nonce[] = "0123456789abcdef0123456789abcdef"; /* of the right form */

static void forge(const char *queue, const char *id, uint64_t activity_id, const char *activity,
                  const char *input)
{
    struct buf subject;
    struct header const headers[] = {{"Thole-Activity", thole_slice_from(activity)},
                                     {"Thole-Nonce", thole_slice_from(nonce)}};
    buf_init(&subject, 1024);
    CHECK_OK(subject_work(&subject, "default", thole_slice_from(queue), thole_slice_from(id), 1, activity_id,
                          1, &stack.err),
             &stack.err);
    CHECK_OK(
        connection_publish(attacker, buf_cstr(&subject), headers, 2, thole_slice_from(input), &stack.err),
        &stack.err);
    CHECK_OK(connection_flush(attacker, &stack.err), &stack.err);
    buf_release(&subject);
}

static void start(const char *id, const char *orchestration, const char *input)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(input), NULL, &stack.err),
             &stack.err);
}

static uint64_t queued(void)
{
    struct stream_bounds bounds = {0};
    CHECK_OK(stream_bounds(attacker, "THOLE_default_WORK", &bounds, &stack.err), &stack.err);
    return bounds.messages;
}

static bool wait_queued(uint64_t want, uint64_t wait_ms)
{
    for (uint64_t waited = 0; waited < wait_ms && queued() != want; waited += 10)
        pause_ms(10);
    return queued() == want;
}

static struct stack_program *start_worker(const char *name, const char *queue)
{
    return stack_program(&stack, name, "worker", "--queue", queue, "--lease=3s", NULL);
}

/* The activity ran once, as scheduled, and no other did. */
static void check_ran(const char *id, const char *activity, const char *want)
{
    char line[128];
    thole_instance_status status;
    const char *const got = stack_outcome(client, id, 20000, &status);
    CHECK_STR(id, thole_instance_status_name(status), thole_instance_status_name(THOLE_INSTANCE_COMPLETED));
    CHECK_STR(id, got, want);
    (void)snprintf(line, sizeof line, "%s.", id);
    CU_ASSERT_EQUAL(stack_count(stack.effects, line), 1);
    (void)snprintf(line, sizeof line, "%s.1.2 %s", id, activity);
    CU_ASSERT_EQUAL(stack_count(stack.effects, line), 1);
}

/* Without a worker the forged message is the first of its subject. */
static void test_before_the_engine(void)
{
    forge("default", "before", 2, "ship", "stolen");
    start("before", "one", "mine");
    CU_ASSERT_TRUE(wait_queued(2, 10000));
    struct stack_program *const worker = start_worker("before", "default");
    check_ran("before", "echo", "mine");
    CU_ASSERT_TRUE(wait_queued(0, 10000));
    CU_ASSERT_TRUE(stack_logged(worker, "is not what an engine has scheduled", 1, 5000));
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
    CU_ASSERT_TRUE(stack_logged(worker, "forged=1", 1, 1000));
}

/* Forgeries that differ only in the input, and only in the nonce, of which a result would be refused. */
static void test_each_part_is_compared(void)
{
    forge("default", "input", 2, "echo", "stolen");
    start("input", "one", "mine");
    CU_ASSERT_TRUE(wait_queued(2, 10000));
    forge("default", "nonce", 2, "echo", "mine");
    start("nonce", "one", "mine");
    CU_ASSERT_TRUE(wait_queued(4, 10000));
    struct stack_program *const worker = start_worker("parts", "default");
    check_ran("input", "echo", "mine");
    check_ran("nonce", "echo", "mine");
    CU_ASSERT_TRUE(wait_queued(0, 10000));
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
    CU_ASSERT_TRUE(stack_logged(worker, "forged=2", 1, 1000));
}

/* The row says nothing of the queue of the message but by its digest. */
static void test_on_another_queue(void)
{
    forge("other", "queue", 2, "ship", "stolen");
    start("queue", "one", "mine");
    CU_ASSERT_TRUE(wait_queued(2, 10000));
    struct stack_program *const other = start_worker("other", "other");
    CU_ASSERT_TRUE(wait_queued(1, 10000));
    struct stack_program *const worker = start_worker("own", "default");
    check_ran("queue", "echo", "mine");
    CU_ASSERT_EQUAL(stack_terminate(other, 20000), 0);
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
    CU_ASSERT_TRUE(stack_logged(other, "forged=1", 1, 1000));
    CU_ASSERT_TRUE(stack_logged(worker, "forged=0", 1, 1000));
}

/* The forged message is removed while the activity runs, whose own message stays. */
static void test_while_it_runs(void)
{
    struct stack_program *const worker = start_worker("running", "default");
    start("runs", "hold", "3000");
    for (int i = 0; i < 1000 && stack_count(stack.effects, "runs.1.2 slow") == 0; i++)
        pause_ms(10);
    forge("default", "runs", 2, "ship", "stolen");
    forge("default", "runs", 2, "slow", "1");
    CU_ASSERT_TRUE(stack_logged(worker, "is not what an engine has scheduled", 1, 5000));
    CU_ASSERT_TRUE(wait_queued(1, 2000));
    check_ran("runs", "slow", "done");
    CU_ASSERT_TRUE(wait_queued(0, 10000));
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
    CU_ASSERT_TRUE(stack_logged(worker, "forged=2", 1, 1000));
}

/* The sweeper looks for the message, finds the forged one, and does not take it for the engine's. */
static void test_the_engines_own_is_lost(void)
{
    struct stream_bounds bounds = {0};
    start("lost", "one", "mine");
    CU_ASSERT_TRUE(wait_queued(1, 10000));
    CHECK_OK(stream_bounds(attacker, "THOLE_default_WORK", &bounds, &stack.err), &stack.err);
    CHECK_OK(stream_delete(attacker, "THOLE_default_WORK", bounds.last, &stack.err), &stack.err);
    forge("default", "lost", 2, "ship", "stolen");
    CU_ASSERT_TRUE(stack_logged(
        &stack.programs[0], "instance=lost *activity_id=2 *was lost and is queued again", 1, 3 * SWEEP_MS));
    CU_ASSERT_TRUE(stack_logged(&stack.programs[0], "no engine has written", 1, 1000));
    struct stack_program *const worker = start_worker("after-loss", "default");
    check_ran("lost", "echo", "mine");
    CU_ASSERT_TRUE(wait_queued(0, 10000));
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
}

static int compare(const void *a, const void *b)
{
    uint64_t const left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Median in microseconds from start to end of orders, one after the other, each after so many forged messages
 * of its activity. */
static uint64_t median_us(const char *name, int forged)
{
    static uint64_t took_us[ORDERS];
    char id[32];
    for (int i = 0; i < ORDERS; i++) {
        (void)snprintf(id, sizeof id, "%s-%d", name, i);
        for (int n = 0; n < forged; n++)
            forge("default", id, 2, n % 2 == 0 ? "ship" : "echo", "stolen");
        uint64_t const began_us = now_us();
        start(id, "one", id);
        check_ran(id, "echo", id);
        took_us[i] = now_us() - began_us;
    }
    qsort(took_us, ORDERS, sizeof took_us[0], compare);
    fprintf(stderr, "  an order behind %d forged messages: median %.1f ms, longest %.1f ms\n", forged,
            (double)took_us[ORDERS / 2] / 1000, (double)took_us[ORDERS - 1] / 1000);
    return took_us[ORDERS / 2];
}

/* They cost a claim each, and no ack-wait and no sweep. */
static void test_how_much_later(void)
{
    struct stack_program *const worker = start_worker("later", "default");
    (void)median_us("without", 0);
    CU_ASSERT_TRUE(median_us("behind-a", 1) < LEASE_MS * 1000 / 3);
    CU_ASSERT_TRUE(median_us("behind-b", FLOOD) < LEASE_MS * 1000 / 3);
    CU_ASSERT_TRUE(wait_queued(0, 10000));
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
}

/* Between and beside the engine's own. */
static void test_a_flood(void)
{
    char id[32];
    struct stack_program *const worker = start_worker("flood", "default");
    uint64_t const began_us = now_us();
    for (int i = 0; i < ORDERS; i++) {
        (void)snprintf(id, sizeof id, "flood-%d", i);
        for (int n = 0; n < FLOOD; n++)
            forge("default", id, 2, n % 2 == 0 ? "ship" : "echo", "stolen");
        start(id, "one", id);
        for (int n = 0; n < FLOOD; n++)
            forge("default", id, 2, n % 2 == 0 ? "ship" : "echo", "stolen");
    }
    for (int i = 0; i < ORDERS; i++) {
        (void)snprintf(id, sizeof id, "flood-%d", i);
        check_ran(id, "echo", id);
    }
    fprintf(stderr, "  %d orders beside %d forged messages in %.0f ms\n", ORDERS, 2 * ORDERS * FLOOD,
            (double)(now_us() - began_us) / 1000);
    CU_ASSERT_TRUE(wait_queued(0, 20000));
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
}

static const struct thole_test tests[] = {
    {"before_the_engine", test_before_the_engine},
    {"each_part_is_compared", test_each_part_is_compared},
    {"on_another_queue", test_on_another_queue},
    {"while_it_runs", test_while_it_runs},
    {"the_engines_own_is_lost", test_the_engines_own_is_lost},
    {"how_much_later", test_how_much_later},
    {"a_flood", test_a_flood},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    (void)stack_program(&stack, "engine", "engine", "--node-ttl=3s", "--sweep=6s", NULL);
    client = stack_client(&stack);
    attacker = stack_connect(&stack);
    int const failed = thole_run_suite("forged_work", tests, ARRAY_LEN(tests));
    connection_close(attacker);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
