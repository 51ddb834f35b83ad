/* A turn that takes 8 s, of an engine with one thread: what is in flight meanwhile is answered, the server is
 * not kept waiting, and no partition is opened again. */
#include "stack.h"

enum { BEFORE = 100, BEHIND = 20, WAIT_MS = 60000 };

static struct stack stack;
static thole_client *client;
static struct stack_program *engine;

static void start(const char *id, const char *orchestration, const char *input)
{
    thole_error err = {0};
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(input), NULL, &err),
             &err);
}

static void start_steady(int from, int to)
{
    char id[32];
    for (int i = from; i < to; i++) {
        (void)snprintf(id, sizeof id, "steady-%d", i);
        start(id, "steady", "x");
    }
}

static void completes(const char *id, const char *want)
{
    thole_instance_status status;
    const char *const got = stack_outcome(client, id, WAIT_MS, &status);
    CHECK_STR(id, thole_instance_status_name(status), "Completed");
    CHECK_STR(id, got, want);
}

static void test_long_turn(void)
{
    char id[32];
    uint64_t const began_ms = clock_monotonic_ms();
    start("first", "steady", "x");
    completes("first", "x");
    size_t const opened = stack_count(engine->log, "open, epoch");
    start_steady(0, BEFORE);
    start("long", "at_once", "long");
    start_steady(BEFORE, BEFORE + BEHIND);
    completes("long", "mended");
    CU_ASSERT_TRUE(clock_monotonic_ms() - began_ms >= 7000);
    for (int i = 0; i < BEFORE + BEHIND; i++) {
        (void)snprintf(id, sizeof id, "steady-%d", i);
        completes(id, "x");
    }
    CU_ASSERT_EQUAL(stack_count(stack.effects, "steady-"), 3 * (BEFORE + BEHIND));
    CU_ASSERT_EQUAL(stack_count(engine->log, "open, epoch"), opened);
    CU_ASSERT_EQUAL(stack_count(engine->log, "level=warn"), 1);
    CU_ASSERT_EQUAL(stack_count(engine->log, "the code of at_once has not returned"), 1);
}

static const struct thole_test tests[] = {{"a long turn", test_long_turn}};

int main(void)
{
    stack_start(&stack);
    setenv("ORDERS_EFFECTS", stack.effects, 1);
    engine = stack_program_with(&stack, "program_crashes", "engine", "engine", "--engine-threads=1", NULL);
    (void)stack_program_with(&stack, "program_crashes", "worker", "worker", NULL);
    client = stack_client(&stack);
    int const code = thole_run_suite("long_turn", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return code;
}
