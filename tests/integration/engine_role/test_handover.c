/* Two engines share the partitions; when one dies or leaves, the other owns all of them. */
#include "stack.h"

static struct stack stack;
static thole_client *client;

enum { PARTITIONS = 8, WITHIN_MS = 15000 };

/* Partitions that the program holds open now, by its log. */
static int open_now(const struct stack_program *program)
{
    return (int)stack_count(program->log, " open, epoch ") - (int)stack_count(program->log, " closed: ");
}

static bool becomes(const struct stack_program *program, int low, int high, uint64_t wait_ms,
                    const char *what)
{
    uint64_t const begin = clock_monotonic_ms();
    while (clock_monotonic_ms() < begin + wait_ms) {
        int const n = open_now(program);
        if (n >= low && n <= high) {
            fprintf(stderr, "  %s: %d partitions after %llu ms\n", what, n,
                    (unsigned long long)(clock_monotonic_ms() - begin));
            return true;
        }
        pause_ms(5);
    }
    fprintf(stderr, "  %s: still %d partitions\n", what, open_now(program));
    return false;
}

/* Two own all of them in the end, without orders in each to wait for. */
static bool together(const struct stack_program *one, const struct stack_program *other)
{
    uint64_t const begin = clock_monotonic_ms();
    while (open_now(one) + open_now(other) != PARTITIONS) {
        if (clock_monotonic_ms() >= begin + WITHIN_MS)
            return false;
        pause_ms(5);
    }
    return true;
}

static void start_orders(const char *round, int n)
{
    for (int i = 0; i < n; i++) {
        char id[64];
        snprintf(id, sizeof id, "%s-%03d", round, i);
        CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("x"), NULL,
                                    &stack.err),
                 &stack.err);
    }
}

static void check_orders(const char *round, int n)
{
    int good = 0;
    for (int i = 0; i < n; i++) {
        char id[64];
        thole_instance_status status;
        snprintf(id, sizeof id, "%s-%03d", round, i);
        good += strcmp(stack_outcome(client, id, 30000, &status), "x,reserve,charge,ship") == 0;
    }
    CU_ASSERT_EQUAL(good, n);
}

static void test_share_kill_leave(void)
{
    struct stack_program *a = stack_program(&stack, "a", "engine", "--node-ttl=3s", NULL);
    client = stack_client(&stack);
    CU_ASSERT_TRUE(becomes(a, PARTITIONS, PARTITIONS, WITHIN_MS, "first engine alone"));
    (void)stack_program(&stack, "w", "worker", "--lease=3s", NULL);

    struct stack_program *b = stack_program(&stack, "b", "engine", "--node-ttl=3s", NULL);
    CU_ASSERT_TRUE(becomes(b, 1, PARTITIONS - 1, WITHIN_MS, "second engine has a share"));
    start_orders("shared", 50);
    check_orders("shared", 50);
    CU_ASSERT_TRUE(together(a, b));

    start_orders("killed", 50);
    stack_kill9(b);
    CU_ASSERT_TRUE(becomes(a, PARTITIONS, PARTITIONS, WITHIN_MS, "kill -9: the other owns all"));
    check_orders("killed", 50);

    struct stack_program *c = stack_program(&stack, "c", "engine", "--node-ttl=3s", NULL);
    CU_ASSERT_TRUE(becomes(c, 1, PARTITIONS - 1, WITHIN_MS, "third engine has a share"));
    start_orders("left", 50);
    CU_ASSERT_EQUAL(stack_terminate(a, 5000), 0);
    CU_ASSERT_TRUE(becomes(c, PARTITIONS, PARTITIONS, 1000, "graceful stop: the other owns all"));
    check_orders("left", 50);
    CU_ASSERT_EQUAL(stack_terminate(c, 5000), 0);
}

/* What lies in the bucket when an engine starts is as old as it is: the dead get no second TTL of life. */
static void test_newcomer_and_the_dead(void)
{
    enum { DEAD_MS = 2000, OLD_MS = 1000, NODE_TTL_MS = 3000 };
    struct stack_program *f = stack_program(&stack, "f", "engine", "--node-ttl=3s", NULL);
    CU_ASSERT_TRUE(becomes(f, PARTITIONS, PARTITIONS, WITHIN_MS, "one alone"));
    struct stack_program *d = stack_program(&stack, "d", "engine", "--node-ttl=3s", NULL);
    CU_ASSERT_TRUE(becomes(d, 1, PARTITIONS - 1, WITHIN_MS, "the one to die has a share"));
    stack_kill9(d);
    pause_ms(DEAD_MS);
    struct stack_program *e = stack_program(&stack, "e", "engine", "--node-ttl=3s", NULL);
    CU_ASSERT_TRUE(
        stack_logged(e, "node e-", 3, WITHIN_MS)); /* starts, serves, joined: it has read the bucket */
    if (stack_count(e->log, "node d-") > 0) {      /* its key was still there */
        uint64_t const heard_ms = clock_monotonic_ms();
        CU_ASSERT_TRUE(stack_logged(e, "is gone", 1, WITHIN_MS));
        uint64_t const believed_ms = clock_monotonic_ms() - heard_ms;
        fprintf(stderr, "  the dead lived for %llu ms more\n", (unsigned long long)believed_ms);
        CU_ASSERT_TRUE(believed_ms < NODE_TTL_MS - OLD_MS);
    }
    CU_ASSERT_TRUE(becomes(e, 1, PARTITIONS - 1, WITHIN_MS, "the newcomer has a share"));
    start_orders("new", 50);
    check_orders("new", 50);
    CU_ASSERT_TRUE(together(f, e));
}

static const struct thole_test tests[] = {{"share_kill_leave", test_share_kill_leave},
                                          {"newcomer_and_the_dead", test_newcomer_and_the_dead}};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    int const failed = thole_run_suite("handover", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
