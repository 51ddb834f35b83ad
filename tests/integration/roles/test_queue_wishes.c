/*
 * Engines make the consumers of queues, workers ask for them: with the rights of their roles, as a worker
 * that starts before any engine, after a loss, and with what a worker might ask for to stop its queue.
 */
#include "connection.h"
#include "jscan.h"
#include "link.h"
#include "rights_stage.h"

#define VERBS "program_verbs"
#define QUEUE "THOLE_default_WORK.q_default"
enum { WAIT_MS = 60000, SOON_MS = 10000 };

static struct connection *hand; /* of an engine's user */
static struct stack_program *engine, *worker;

static void run_steps(const char *id)
{
    rights_expect(USER_SERVICE, 0, "hello", "run steps --id %s --input hello --timeout 60s", id);
}

static thole_status ask_server(const char *verb, const char *path, struct buf *ret)
{
    char subject[128];
    thole_slice value;
    struct buf answer;
    buf_init(&answer, 64 * 1024);
    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.%s." QUEUE, verb);
    thole_status const status = connection_request(hand, subject, THOLE_STR(""), &answer, &rights_stack.err);
    buf_clear(ret);
    if (status == THOLE_OK && json_path(buf_bytes(&answer), path, &value))
        buf_slice(ret, value);
    buf_release(&answer);
    return status;
}

static void check_consumer(const char *path, const char *want)
{
    struct buf found;
    buf_init(&found, 256);
    CHECK_OK(ask_server("INFO", path, &found), &rights_stack.err);
    CHECK_STR(path, buf_cstr(&found), want);
    buf_release(&found);
}

/* Also the marks of those that have left. */
static void until_no_heartbeats(void)
{
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    struct buf answer;
    buf_init(&answer, 64 * 1024);
    do {
        pause_ms(200);
        CHECK_OK(connection_request(hand, "$JS.API.STREAM.INFO.KV_THOLE_default_NODES", THOLE_STR(""),
                                    &answer, &rights_stack.err),
                 &rights_stack.err);
    } while (strstr(buf_cstr(&answer), "\"messages\":0,") == NULL && clock_monotonic_ms() < end);
    buf_release(&answer);
}

static void test_no_engine_yet(void)
{
    rights_start(RIGHTS_ONE_SERVER);
    hand = rights_connect(USER_ENGINE, "hand");
    worker = rights_program(VERBS, USER_WORKER, "worker", NULL);
    CU_ASSERT_TRUE(stack_logged(worker, "waiting: ", 1, WAIT_MS)); /* for the namespace */
    engine = rights_program(VERBS, USER_ENGINE, "engine", NULL);
    CU_ASSERT_TRUE(stack_logged(worker, "serves queue default", 1, WAIT_MS));
    run_steps("first");
    check_consumer("config.ack_wait", "2000000000"); /* the worker's --lease, as nothing was kept */
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
    CU_ASSERT_EQUAL(stack_terminate(engine, 20000), 0);
}

/* The namespace exists, the consumer does not, and no engine runs. */
static void test_a_worker_waits_for_an_engine(void)
{
    struct buf ignored;
    buf_init(&ignored, 256);
    CHECK_OK(ask_server("DELETE", "success", &ignored), &rights_stack.err);
    CHECK_STR("removed", buf_cstr(&ignored), "true");
    until_no_heartbeats();
    worker = rights_program(VERBS, USER_WORKER, "worker-early", NULL);
    CU_ASSERT_TRUE(stack_logged(worker, "engines make it, of which none has answered", 1, WAIT_MS));
    CU_ASSERT_EQUAL(stack_count(worker->log, "serves queue default"), 0);
    engine = rights_program(VERBS, USER_ENGINE, "engine-late", NULL);
    CU_ASSERT_TRUE(stack_logged(engine, "serves namespace default", 1, WAIT_MS));
    uint64_t const begin = now_us();
    CU_ASSERT_TRUE(stack_logged(worker, "serves queue default", 1, SOON_MS));
    fprintf(stderr, "  %.1f s after the engine the worker serves its queue\n",
            (double)(now_us() - begin) / 1e6);
    CU_ASSERT_TRUE(
        stack_logged(engine, "queue default: its consumer is made, with a lease of 2000 ms", 1, SOON_MS));
    CU_ASSERT_EQUAL(stack_count(worker->log, "forbids"), 0);
    run_steps("late");
    buf_release(&ignored);
}

/* The lease that it had stays. */
static void test_it_is_lost(void)
{
    struct buf ignored;
    buf_init(&ignored, 256);
    CHECK_OK(ask_server("DELETE", "success", &ignored), &rights_stack.err);
    uint64_t const begin = now_us();
    CU_ASSERT_TRUE(stack_logged(worker, "is created again", 1, SOON_MS));
    fprintf(stderr, "  %.1f s after its loss the consumer is there again\n",
            (double)(now_us() - begin) / 1e6);
    check_consumer("config.ack_wait", "2000000000");
    run_steps("lost");
    buf_release(&ignored);
}

/* Each would have stopped its queue, or sent what is in it elsewhere. */
static void test_a_hostile_worker(void)
{
    static const struct {
        const char *subject, *body;
    } tries[] = {
        {"$JS.API.CONSUMER.DELETE." QUEUE, ""},
        {"$JS.API.CONSUMER.CREATE." QUEUE ".thole.default.work.default.>",
         "{\"stream_name\":\"THOLE_default_WORK\",\"action\":\"update\",\"config\":{\"durable_name\":\"q_"
         "default\","
         "\"name\":\"q_default\",\"filter_subject\":\"thole.default.work.default.>\",\"ack_policy\":"
         "\"explicit\","
         "\"ack_wait\":2000000000,\"max_deliver\":-1,\"max_ack_pending\":1,\"max_waiting\":4096}}"},
        {"$JS.API.CONSUMER.CREATE." QUEUE ".thole.default.work.default.none",
         "{\"stream_name\":\"THOLE_default_WORK\",\"config\":{\"durable_name\":\"q_default\",\"name\":\"q_"
         "default\","
         "\"filter_subject\":\"thole.default.work.default.none\",\"ack_policy\":\"explicit\"}}"},
        {"$JS.API.CONSUMER.DURABLE.CREATE." QUEUE, "{\"stream_name\":\"THOLE_default_WORK\",\"config\":{"
                                                   "\"durable_name\":\"q_default\",\"ack_policy\":\"none\","
                                                   "\"deliver_subject\":\"thole.default.in.0.x\"}}"},
        {"thole.default.queues.gpu", "{\"lease_ms\":1000}"},
        {"$KV.THOLE_default_CONFIG.lease_default", "1000"},
    };
    struct connection *const hostile = rights_connect(USER_WORKER, "hostile");
    struct buf answer;
    buf_init(&answer, 64 * 1024);
    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        thole_status const status =
            connection_request(hostile, tries[i].subject, thole_slice_from(tries[i].body), &answer, NULL);
        CHECK_STR(tries[i].subject, thole_status_name(status), thole_status_name(THOLE_DENIED));
    }
    /* permitted requests change nothing */
    CHECK_OK(connection_request(hostile, "thole.default.queues.default", THOLE_STR("{\"lease_ms\":86400000}"),
                                &answer, &rights_stack.err),
             &rights_stack.err);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&answer), "has ack_wait 2s"));
    CHECK_OK(connection_request(hostile, "thole.default.queues.default", THOLE_STR("garbage"), &answer,
                                &rights_stack.err),
             &rights_stack.err);
    check_consumer("config.ack_wait", "2000000000");
    check_consumer("config.max_ack_pending", "100000");
    check_consumer("config.filter_subject", "\"thole.default.work.default.\\u003e\"");
    run_steps("beside");
    buf_release(&answer);
    connection_close(hostile);
    connection_close(hand);
    rights_stop();
}

static const struct thole_test tests[] = {
    {"no_engine_yet", test_no_engine_yet},
    {"a_worker_waits_for_an_engine", test_a_worker_waits_for_an_engine},
    {"it_is_lost", test_it_is_lost},
    {"a_hostile_worker", test_a_hostile_worker},
};

THOLE_INTEGRATION_MAIN("queue_wishes", tests)
