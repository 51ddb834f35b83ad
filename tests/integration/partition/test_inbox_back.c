/*
 * Streams that go back while the history does not. Inboxes: deleted and made again with the engine down and
 * with it running, restored from a backup. No message takes effect twice, and every new start ends: their
 * sequences are those of messages that the partitions have incorporated long ago. The queue: its consumer
 * stays ahead, as it does when nats-server 2.10.27 is killed while the queue is empty (two of 55 runs of this
 * program hung on a busy machine; in the one that was examined the stream began at 1 again).
 */
#include "connection.h"
#include "message.h"
#include "stack.h"
#include "subject.h"
#include "topology.h"
#include <string.h>

enum { PARTITIONS = 8, WITHIN_MS = 30000 };

static struct stack stack;
static thole_client *client;
static struct stack_program *engine, *worker;
static struct connection *connection;

static void start_orders(const char *round, int n)
{
    for (int i = 0; i < n; i++) {
        char id[64];
        snprintf(id, sizeof id, "%s-%03d", round, i);
        CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("one"), thole_slice_from(id),
                                    NULL, &stack.err),
                 &stack.err);
    }
}

/* Until it is stored: the server may just have come back. */
static void post(const char *subject, thole_slice body)
{
    struct buf answer;
    thole_status status;
    uint64_t const end = clock_monotonic_ms() + WITHIN_MS;
    buf_init(&answer, 4096);
    do
        status = connection_request(connection, subject, body, &answer, &stack.err);
    while (status == THOLE_UNAVAILABLE && clock_monotonic_ms() < end);
    CHECK_OK(status, &stack.err);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&answer), "\"seq\":"));
    buf_release(&answer);
}

/* Starts as a client sends them, but nobody has to be there who takes them. */
static void post_orders(const char *round, int n)
{
    for (int i = 0; i < n; i++) {
        char id[64];
        struct buf subject, body;
        snprintf(id, sizeof id, "%s-%03d", round, i);
        thole_slice const instance = thole_slice_from(id);
        struct message const start = {.kind = MESSAGE_START,
                                      .instance = instance,
                                      .orchestration = THOLE_STR("one"),
                                      .data = instance,
                                      .request_id = instance};
        buf_init(&subject, SUBJECT_BYTES_MAX);
        buf_init(&body, MESSAGE_BYTES_MAX);
        CHECK_OK(subject_inbox(&subject, "default", subject_partition(instance, PARTITIONS),
                               THOLE_STR("start.one"), instance, &stack.err),
                 &stack.err);
        CHECK_OK(message_encode(&start, &body), &stack.err);
        post(buf_cstr(&subject), buf_bytes(&body));
        buf_release(&subject);
        buf_release(&body);
    }
}

/* All end, and each has done its work once. One that does not is enough to know. */
static void check_orders(const char *round, int n)
{
    int good = 0;
    for (int i = 0; i < n && good == i; i++) {
        char id[64];
        thole_instance_status status;
        snprintf(id, sizeof id, "%s-%03d", round, i);
        good += strcmp(stack_outcome(client, id, WITHIN_MS, &status), id) == 0 &&
                stack_count(stack.effects, id) == 1;
    }
    CU_ASSERT_EQUAL(good, n);
}

/* Sequences 1 to about ten in each inbox, and all of it is incorporated. */
static void fill(const char *round)
{
    start_orders(round, 5 * PARTITIONS);
    check_orders(round, 5 * PARTITIONS);
}

static void delete_inbox(int p)
{
    char subject[64];
    struct buf answer;
    snprintf(subject, sizeof subject, "$JS.API.STREAM.DELETE.THOLE_default_IN_%d", p);
    buf_init(&answer, 4096);
    CHECK_OK(connection_request(connection, subject, THOLE_STR(""), &answer, &stack.err), &stack.err);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&answer), "\"success\":true"));
    buf_release(&answer);
}

/* As who has decided to give up what is lost: an engine does not make them. */
static void make_streams(void)
{
    struct topology_options const options = {.ns = "default", .accept_loss = true};
    struct topology topology;
    CHECK_OK(topology_ensure(connection, &options, &topology, &stack.err), &stack.err);
}

static void make_inboxes_anew(void)
{
    for (int p = 0; p < PARTITIONS; p++)
        delete_inbox(p);
    make_streams();
}

static bool inbox_went_back(size_t before)
{
    return stack_logged(engine, "went back: message", before + 1, 5000);
}

static void test_made_anew_while_no_engine_runs(void)
{
    fill("early");
    stack_kill9(engine);
    make_inboxes_anew();
    post_orders("anew", PARTITIONS);
    size_t const before = stack_count(engine->log, "went back: message");
    engine = stack_program(&stack, "engine", "engine", NULL);
    check_orders("anew", PARTITIONS);
    check_orders("early", 5 * PARTITIONS);
    CU_ASSERT_TRUE(inbox_went_back(before));
}

/* More messages than ever before it: the last sequence alone does not tell. */
static void test_made_anew_and_overtaken_while_no_engine_runs(void)
{
    fill("slow");
    stack_kill9(engine);
    make_inboxes_anew();
    post_orders("fast", 25 * PARTITIONS);
    size_t const before = stack_count(engine->log, "went back: message");
    engine = stack_program(&stack, "engine", "engine", NULL);
    check_orders("fast", 25 * PARTITIONS);
    CU_ASSERT_TRUE(inbox_went_back(before));
}

static void test_made_anew_while_the_engine_runs(void)
{
    fill("running");
    pause_ms(2500); /* has saved its positions and purged: only the reader can notice */
    size_t const before = stack_count(engine->log, "went back: message");
    make_inboxes_anew();
    post_orders("under-it", PARTITIONS);
    check_orders("under-it", PARTITIONS);
    check_orders("running", 5 * PARTITIONS);
    CU_ASSERT_TRUE(inbox_went_back(before));
}

static void test_made_anew_and_overtaken_while_the_engine_runs(void)
{
    fill("walking");
    size_t const before = stack_count(engine->log, "went back: message");
    make_inboxes_anew();
    post_orders("past-it", 25 * PARTITIONS);
    check_orders("past-it", 25 * PARTITIONS);
    CU_ASSERT_TRUE(inbox_went_back(before));
}

/* Nobody makes it again for a while: the partition says what is lost, is not opened without it, and tries
 * less and less often. */
static void test_an_inbox_that_is_missing(void)
{
    static const char gone[] = "partition=0 msg=\"closed: stream THOLE_default_IN_0 is gone";
    fill("whole");
    size_t const before = stack_count(engine->log, gone);
    delete_inbox(0);
    CU_ASSERT_TRUE(stack_logged(engine, gone, before + 1, 15000));
    size_t const opened = stack_count(engine->log, "partition=0 msg=\"open, epoch ");
    pause_ms(5000);
    CU_ASSERT(stack_count(engine->log, gone) - before <= 12);
    CU_ASSERT_TRUE(stack_logged(engine, gone, before + 3, 60000));
    CU_ASSERT_EQUAL(stack_count(engine->log, "partition=0 msg=\"open, epoch "), opened);
    make_streams();
    post_orders("mended", PARTITIONS);
    check_orders("mended", PARTITIONS);
}

static void shell(const char *command)
{
    struct process process = {0};
    process_arg(&process, "/bin/sh");
    process_arg(&process, "-ec");
    process_arg(&process, "cd '%s/nats/jetstream' && streams=\"$(find . -type d -name streams)\" && %s",
                stack.dir, command);
    snprintf(process.log, sizeof process.log, "%s/shell.log", stack.dir);
    CHECK_OK(process_run(&process, &stack.err), &stack.err);
}

/* As after a loss of power, or a backup that is put back: the inboxes end earlier than the history says. */
static void test_inboxes_that_lost_their_tail(void)
{
    fill("kept");
    server_kill9(&stack.nats);
    shell("mkdir kept && cp -a \"$streams\"/THOLE_default_IN_* kept/");
    CHECK_OK(server_restart(&stack.nats, &stack.err), &stack.err);
    fill("lost");
    size_t const before = stack_count(engine->log, "went back: message");
    server_kill9(&stack.nats);
    shell("rm -r \"$streams\"/THOLE_default_IN_* && mv kept/* \"$streams\"/");
    CHECK_OK(server_restart(&stack.nats, &stack.err), &stack.err);
    post_orders("again", PARTITIONS);
    check_orders("again", PARTITIONS);
    check_orders("kept", 5 * PARTITIONS);
    check_orders("lost", 5 * PARTITIONS);
    CU_ASSERT_TRUE(inbox_went_back(before));
}

/* The queue's stream goes back, and its consumer does not: nats-server 2.10.27 would skip what is new. */
static void test_a_queue_that_lost_its_tail(void)
{
    fill("queued");
    server_kill9(&stack.nats);
    shell("mkdir -p kept && cp -a \"$streams\"/THOLE_default_WORK/msgs kept/");
    CHECK_OK(server_restart(&stack.nats, &stack.err), &stack.err);
    fill("forgotten");
    pause_ms(1000); /* the server writes what a consumer has delivered a little later */
    server_kill9(&stack.nats);
    shell("rm -r \"$streams\"/THOLE_default_WORK/msgs && mv kept/msgs \"$streams\"/THOLE_default_WORK/");
    CHECK_OK(server_restart(&stack.nats, &stack.err), &stack.err);
    start_orders("unskipped", PARTITIONS);
    check_orders("unskipped", PARTITIONS);
    CU_ASSERT_TRUE(stack_logged(worker, "is created again", 1, 1000));
}

/* As `nats consumer rm` does it. The server may stumble over what it still writes, but then it is gone as
 * well. */
static void test_a_queue_without_consumer(void)
{
    size_t const before = stack_count(worker->log, "is created again");
    struct buf answer;
    buf_init(&answer, 4096);
    CHECK_OK(connection_request(connection, "$JS.API.CONSUMER.DELETE.THOLE_default_WORK.q_default",
                                (thole_slice){0}, &answer, &stack.err),
             &stack.err);
    buf_release(&answer);
    start_orders("unserved", PARTITIONS);
    check_orders("unserved", PARTITIONS);
    CU_ASSERT_TRUE(stack_logged(worker, "is created again", before + 1, 1000));
}

static const struct thole_test tests[] = {
    {"made_anew_while_no_engine_runs", test_made_anew_while_no_engine_runs},
    {"made_anew_and_overtaken_while_no_engine_runs", test_made_anew_and_overtaken_while_no_engine_runs},
    {"made_anew_while_the_engine_runs", test_made_anew_while_the_engine_runs},
    {"made_anew_and_overtaken_while_the_engine_runs", test_made_anew_and_overtaken_while_the_engine_runs},
    {"an_inbox_that_is_missing", test_an_inbox_that_is_missing},
    {"inboxes_that_lost_their_tail", test_inboxes_that_lost_their_tail},
    {"a_queue_that_lost_its_tail", test_a_queue_that_lost_its_tail},
    {"a_queue_without_consumer", test_a_queue_without_consumer},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    struct connection_options const options = {
        .url = stack.nats.url, .name = "inbox-back", .connect_timeout_ms = 2000, .request_timeout_ms = 2000};
    if (connection_open(&options, &connection, &stack.err) != THOLE_OK)
        return 1;
    engine = stack_program(&stack, "engine", "engine", NULL);
    client = stack_client(&stack);
    worker = stack_program(&stack, "worker", "worker", NULL);
    int const failed = thole_run_suite("inbox_back", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    connection_close(connection);
    stack_stop(&stack);
    return failed;
}
