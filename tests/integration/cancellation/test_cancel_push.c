/*
 * From "cancel accepted" to "token fired": by push, and with the push suppressed by renewal. Which path fired
 * is what the worker says of itself, not a guess from the clock.
 */
#include "stack.h"

enum { RUNS = 200, SUPPRESSED_RUNS = 5, LEASE_MS = 3000 };

static struct stack stack;
static thole_client *client;

static int by_value(const void *a, const void *b)
{
    uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool wait_count(const char *path, const char *text, size_t n, uint64_t wait_ms)
{
    uint64_t const end = clock_monotonic_ms() + wait_ms;
    while (stack_count(path, text) < n)
        if (clock_monotonic_ms() >= end)
            return false;
        else
            pause_ms(1);
    return true;
}

/* When the token of that instance fired, in µs of the monotonic clock; 0: never. */
static uint64_t token_us(const char *id)
{
    char line[1024], at[32];
    uint64_t us = 0;
    FILE *f = fopen(stack.tokens, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strstr(line, id) != NULL && sscanf(line, "%*s %31s", at) == 1)
            us = strtoull(at, NULL, 10);
    if (f != NULL)
        fclose(f);
    return us;
}

/* One instance held by an activity is cancelled; returns µs from accepted to token, 0 when none fired. */
static uint64_t cancel_one(const char *id, uint64_t wait_ms)
{
    char key[80];
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("hold"), THOLE_STR("60000"), NULL,
                                &stack.err),
             &stack.err);
    snprintf(key, sizeof key, "%s", id);
    CU_ASSERT_TRUE(wait_count(stack.effects, key, 1, 10000));
    CHECK_OK(thole_client_cancel(client, thole_slice_from(id), THOLE_STR("stop"), &stack.err), &stack.err);
    uint64_t const accepted = now_us();
    if (!wait_count(stack.tokens, key, 1, wait_ms))
        return 0;
    uint64_t const fired = token_us(id);
    return fired > accepted ? fired - accepted : 1; /* before the client had its answer */
}

static void test_push(void)
{
    static uint64_t us[RUNS];
    struct stack_program *w = stack_program(&stack, "pushed", "worker", "--lease=3s", NULL);
    for (int i = 0; i < RUNS; i++) {
        char id[32];
        snprintf(id, sizeof id, "push-%03d-", i);
        us[i] = cancel_one(id, 10000);
        CU_ASSERT_TRUE(us[i] > 0);
    }
    CU_ASSERT_EQUAL(stack_terminate(w, 10000), 0);
    qsort(us, RUNS, sizeof us[0], by_value);
    fprintf(stderr, "  cancel accepted to token fired, %d runs: p50 %llu us, p99 %llu us, max %llu us\n",
            RUNS, (unsigned long long)us[RUNS / 2], (unsigned long long)us[RUNS * 99 / 100],
            (unsigned long long)us[RUNS - 1]);
    /* A renewal that falls into the few ms between the deletion and the push is first now and then. */
    uint64_t const pushed = stack_log_number(w, "cancelled_by_push");
    CU_ASSERT_EQUAL(pushed + stack_log_number(w, "cancelled_by_renewal"), RUNS);
    CU_ASSERT_TRUE(pushed >= RUNS * 9 / 10);
}

static void test_push_suppressed(void)
{
    struct stack_program *w =
        stack_program(&stack, "deaf", "worker", "--lease=3s", "--test-suppress-push", NULL);
    uint64_t worst = 0;
    for (int i = 0; i < SUPPRESSED_RUNS; i++) {
        char id[32];
        snprintf(id, sizeof id, "deaf-%03d-", i);
        uint64_t const us = cancel_one(id, 10000);
        CU_ASSERT_TRUE(us > 0);
        worst = us > worst ? us : worst;
    }
    CU_ASSERT_EQUAL(stack_terminate(w, 10000), 0);
    fprintf(stderr, "  push suppressed, %d runs: worst %llu ms; a renewal interval is %d ms\n",
            SUPPRESSED_RUNS, (unsigned long long)worst / 1000, LEASE_MS / 3);
    CU_ASSERT_EQUAL(stack_log_number(w, "cancelled_by_push"), 0);
    CU_ASSERT_EQUAL(stack_log_number(w, "cancelled_by_renewal"), SUPPRESSED_RUNS);
}

static const struct thole_test tests[] = {{"push", test_push}, {"push_suppressed", test_push_suppressed}};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    (void)stack_program(&stack, "engine", "engine", NULL);
    client = stack_client(&stack);
    int const failed = thole_run_suite("cancel push", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
