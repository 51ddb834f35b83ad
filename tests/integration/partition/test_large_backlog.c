/*
 * A backlog that has gathered while no engine ran, larger than nats-server keeps for one connection: an
 * engine that comes back, and is killed meanwhile, takes all of it, a worker with many slots runs it, and
 * clients that wait get the results. None of them is ever closed as a slow consumer.
 */
#include "stack.h"
#include <pthread.h>

enum { MANY = 1000, BYTES = 100 * 1000, WAITERS = 150 };

static struct stack stack;
static thole_client *client;
static uint8_t input[BYTES];

struct starts {
    size_t given, stored;
    char id[32];
};

static thole_status next_start(void *arg, thole_start_item *ret_item, thole_error *reterr)
{
    struct starts *starts = arg;
    (void)reterr;
    if (starts->given == MANY)
        return THOLE_NOT_FOUND;
    (void)snprintf(starts->id, sizeof starts->id, "large-%zu", starts->given++);
    ret_item->instance = thole_slice_from(starts->id);
    ret_item->orchestration = THOLE_STR("one");
    ret_item->input = (thole_slice){input, BYTES};
    ret_item->token = starts->given;
    return THOLE_OK;
}

static thole_status on_answer(void *arg, uint64_t token, thole_slice instance, const thole_error *error)
{
    struct starts *starts = arg;
    (void)token, (void)instance;
    starts->stored += error->status == THOLE_OK;
    return THOLE_OK;
}

static void wait_for(const char *statement, const char *want)
{
    const char *got = "";
    for (unsigned i = 0; i < 1200 && strcmp(got, want) != 0; i++) {
        pause_ms(100);
        got = stack_sql(&stack, statement);
    }
    CHECK_STR(statement, got, want);
}

/* Nobody was closed, as nats-server says. */
static void check_connected(void)
{
    char log[SERVER_PATH_BYTES + 16];
    (void)snprintf(log, sizeof log, "%s/nats.log", stack.nats.dir);
    CU_ASSERT_EQUAL(stack_count(log, "Server is ready"), 1);
    CU_ASSERT_EQUAL(stack_count(log, "Slow Consumer"), 0);
    CU_ASSERT_EQUAL(stack_count(stack.programs[0].log, "closed:"), 0);
}

static void test_the_engine_comes_back(void)
{
    struct starts starts = {.given = 0};
    struct stack_program *engine = &stack.programs[0];
    stack_kill9(engine);
    CHECK_OK(thole_client_start_many(client, next_start, on_answer, &starts, &stack.err), &stack.err);
    CU_ASSERT_EQUAL(starts.stored, MANY);
    for (int life = 0; life < 3; life++) {
        engine = stack_program(&stack, "engine", "engine", "--node-ttl=3s", NULL);
        if (life < 2) {
            (void)stack_logged(engine, "open, epoch", 8 * (size_t)(life + 1), 20000);
            pause_ms(700);
            stack_kill9(engine);
        }
    }
    wait_for("SELECT count(*) FROM thole_default.worker_queue", "1000");
    check_connected();
}

static void *wait_for_one(void *arg)
{
    thole_outcome outcome;
    thole_error err = {0};
    char id[32];
    (void)snprintf(id, sizeof id, "large-%zu", (size_t)(uintptr_t)arg);
    CHECK_OK(thole_client_wait(client, thole_slice_from(id), 120000, &outcome, &err), &err);
    CU_ASSERT_EQUAL(outcome.status, THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(outcome.output.len, BYTES);
    thole_outcome_release(&outcome);
    return NULL;
}

static void test_all_of_it_is_done(void)
{
    pthread_t threads[WAITERS];
    for (size_t i = 0; i < WAITERS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, wait_for_one, (void *)(uintptr_t)i), 0);
    (void)stack_program(&stack, "worker", "worker", "--slots=1000", NULL);
    for (size_t i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    wait_for("SELECT count(*) FROM thole_default.instances WHERE status = 4", "1000");
    CHECK_STR("rows of activities", stack_sql(&stack, "SELECT count(*) FROM thole_default.worker_queue"),
              "0");
    check_connected();
}

static void test_open(void)
{
    memset(input, 'x', sizeof input);
    stack_start_configured(&stack, "max_pending: 64MB");
    (void)stack_program(&stack, "engine", "engine", "--node-ttl=3s", NULL);
    client = stack_client(&stack);
}

static void test_close(void)
{
    thole_client_close(client);
    stack_stop(&stack);
}

static const struct thole_test tests[] = {
    {"the servers, an engine", test_open},
    {"the engine comes back", test_the_engine_comes_back},
    {"all of it is done", test_all_of_it_is_done},
    {"close", test_close},
};
THOLE_TEST_MAIN("large_backlog", tests)
