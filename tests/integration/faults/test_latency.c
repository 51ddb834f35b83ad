/*
 * Sequential orders of one activity each, one at a time: from start to result. Printed, and far from a poll.
 * integration.gateway_latency: the same with a worker of a gateway.
 */
#include "stack.h"

enum { RUNS = 300, WARM_UP = 30, POLL_US = 50000 };

static struct stack stack;
static thole_client *client;

static int by_value(const void *a, const void *b)
{
    uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t run_one(int i)
{
    char id[32];
    thole_outcome outcome = {0};
    snprintf(id, sizeof id, "one-%d", i);
    uint64_t const begin = now_us();
    CHECK_OK(thole_client_run(client, thole_slice_from(id), THOLE_STR("one"), THOLE_STR("x"), 20000, &outcome,
                              &stack.err),
             &stack.err);
    uint64_t const us = now_us() - begin;
    CU_ASSERT_EQUAL(outcome.status, THOLE_INSTANCE_COMPLETED);
    thole_outcome_release(&outcome);
    return us;
}

static void test_sequential_orders(void)
{
    static uint64_t us[RUNS];
    for (int i = 0; i < WARM_UP; i++)
        (void)run_one(i);
    for (int i = 0; i < RUNS; i++)
        us[i] = run_one(WARM_UP + i);
    qsort(us, RUNS, sizeof us[0], by_value);
    fprintf(stderr, "  start to result, %d orders one after the other: p50 %llu us, p99 %llu us\n", RUNS,
            (unsigned long long)us[RUNS / 2], (unsigned long long)us[RUNS * 99 / 100]);
    /* The figures are for people; this only finds a sleep, which would be in each run. Most are slow when the
     * machine is busy. */
    CU_ASSERT_TRUE(us[RUNS / 10] < POLL_US);
}

static const struct thole_test tests[] = {{"sequential_orders", test_sequential_orders}};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
#ifdef BY_GATEWAY
    (void)stack_program(&stack, "engine", "engine", NULL);
    (void)stack_program(&stack, "gateway", "gateway", NULL);
    (void)stack_program(&stack, "worker", "remote", NULL);
#else
    (void)stack_program(&stack, "run", "run", NULL);
#endif
    client = stack_client(&stack);
    int const failed = thole_run_suite("latency", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
