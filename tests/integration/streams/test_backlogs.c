/*
 * More than a server keeps for one connection: long backlogs of several streams, large answers, large work
 * messages. The connection's reader is slower than the server, as on a busy machine or over a network, and
 * must not be closed as a slow consumer.
 */
#include "inflow.h"
#include "reader.h"
#include "sanitizers.h"
#include "streams_fixture.h"
#include "work.h"
#include <stdlib.h>

enum {
    BODY = 128 * 1024,
    STREAMS = 8,
    MESSAGES = 240, /* of each: 30 MiB */
    STOPS_EVERY = 160,
    LARGE = 500 * 1000,
    READS = SANITIZED_THREAD ? 60 : 150, /* 40 or 100 MB, as they are in JSON and base64 */
    THREADS = READS,
};

static struct server server; /* keeps 40 MiB for a connection: a bit more than inflow.h goes by */
static struct connection *connection;
static uint8_t body[LARGE];

static void fill(const char *subject, size_t bytes, unsigned n)
{
    struct sink sink = {0};
    thole_error err = {0};
    struct requests *requests = open_window(connection, 64, 20000, &sink);
    struct publish const publish = {.subject = subject, .body = {body, bytes}};
    for (unsigned i = 0; i < n; i++)
        while (requests_publish(requests, &publish, i + 1, &err) == THOLE_LIMIT)
            nap_ms(1);
    CU_ASSERT(reaches(&sink.stored, n));
    requests_close(requests);
}

static void put_history(char ret[TEXT_BYTES], const struct topology *t, unsigned p)
{
    put_text(ret, "thole.%s.hist.%u.a.1", t->ns, p);
}

static void put_stream(char ret[TEXT_BYTES], const struct topology *t, unsigned p)
{
    put_text(ret, "THOLE_%s_HIST_%u", t->ns, p);
}

/* ---- ordered readers ---- */

struct following {
    atomic_ulong last, count;
    atomic_bool disorder;
};
static atomic_ulong followed; /* by all */

/* On the thread that reads the connection: all of the readers together stop for a while, now and then. */
static void follow_slowly(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct following *f = arg;
    (void)delivery;
    if (sequence != atomic_load(&f->last) + 1)
        atomic_store(&f->disorder, true);
    if (atomic_fetch_add(&followed, 1) % STOPS_EVERY == STOPS_EVERY - 1)
        nap_ms(600);
    atomic_store(&f->last, sequence);
    atomic_fetch_add(&f->count, 1);
}

static void open_readers(const struct topology *t, struct inflow *inflow, struct following *f,
                         struct ordered_reader **ret)
{
    char stream[TEXT_BYTES];
    thole_error err = {0};
    for (unsigned p = 0; p < STREAMS; p++) {
        put_stream(stream, t, p);
        struct ordered_reader_options const options = {
            .stream = stream, .each = follow_slowly, .arg = &f[p], .inflow = inflow};
        CHECK_OK(ordered_reader_open(connection, &options, &ret[p], &err), &err);
    }
}

/* Without the inflow the server closes the connection, four times of five. */
static void test_long_backlogs(void)
{
    struct topology const t = fresh_topology(connection, STREAMS);
    struct following f[STREAMS] = {0};
    struct ordered_reader *readers[STREAMS] = {NULL};
    struct inflow *const inflow = inflow_create();
    char subject[TEXT_BYTES];
    for (unsigned p = 0; p < STREAMS; p++) {
        put_history(subject, &t, p);
        fill(subject, BODY, MESSAGES);
    }
    uint64_t const epoch = connection_epoch(connection);
    open_readers(&t, inflow, f, readers);
    for (unsigned p = 0; p < STREAMS; p++) {
        CU_ASSERT(reaches(&f[p].count, MESSAGES));
        CU_ASSERT(!f[p].disorder && f[p].count == MESSAGES);
    }
    CU_ASSERT_EQUAL(connection_epoch(connection), epoch);
    put_history(subject, &t, 0);
    fill(subject, 10, 5); /* and what comes later */
    CU_ASSERT(reaches(&f[0].count, MESSAGES + 5));
    for (unsigned p = 0; p < STREAMS; p++)
        ordered_reader_close(readers[p]);
    inflow_destroy(inflow);
}

/* ---- one long read ---- */

static thole_status count_each(void *arg, uint64_t sequence, thole_slice subject, thole_slice bytes)
{
    uint64_t *const last = arg;
    (void)subject;
    CU_ASSERT_EQUAL(sequence, *last + 1);
    CU_ASSERT_EQUAL(bytes.len, BODY);
    *last = sequence;
    return THOLE_OK;
}

/* Longer than what one consumer is let send: the next one goes on. */
static void test_a_long_read(void)
{
    struct topology const t = fresh_topology(connection, 1);
    char subject[TEXT_BYTES], stream[TEXT_BYTES];
    uint64_t last = 0;
    thole_error err = {0};
    put_history(subject, &t, 0);
    put_stream(stream, &t, 0);
    fill(subject, BODY, 3 * MESSAGES);
    uint64_t const epoch = connection_epoch(connection);
    CHECK_OK(stream_read(connection, stream, NULL, 1, UINT64_MAX, count_each, &last, &err), &err);
    CU_ASSERT_EQUAL(last, 3 * MESSAGES);
    CU_ASSERT_EQUAL(connection_epoch(connection), epoch);
}

/* ---- answers ---- */

static struct {
    atomic_ulong answered, other;
} reads;

static void read_slowly(void *arg, const struct request_done *done)
{
    (void)arg;
    nap_ms(20);
    atomic_fetch_add(
        done->result == REQUEST_ANSWERED && done->body.len > LARGE ? &reads.answered : &reads.other, 1);
}

static void *read_last(void *arg)
{
    struct buf got;
    uint64_t sequence = 0;
    thole_error err = {0};
    const struct topology *const t = arg;
    char stream[TEXT_BYTES], subject[TEXT_BYTES];
    put_stream(stream, t, 0);
    put_history(subject, t, 0);
    buf_init(&got, 2 * LARGE);
    CHECK_OK(stream_last_by_subject(connection, stream, subject, &sequence, &got, &err), &err);
    CU_ASSERT(sequence == 1 && got.len == LARGE);
    buf_release(&got);
    return NULL;
}

/* Of a window, which takes its time, and of threads, all of one connection. */
static void test_many_large_answers(void)
{
    struct topology t = fresh_topology(connection, 1);
    char subject[TEXT_BYTES], api[TEXT_BYTES];
    struct requests *requests = NULL;
    thole_error err = {0};
    struct buf request;
    pthread_t threads[THREADS];
    put_history(subject, &t, 0);
    put_text(api, "$JS.API.STREAM.MSG.GET.THOLE_%s_HIST_0", t.ns);
    fill(subject, LARGE, 1);
    uint64_t const epoch = connection_epoch(connection);
    buf_init(&request, 1024);
    CHECK_OK(stream_get_request(&request, subject), &err);
    CHECK_OK(requests_open(connection, READS, WAIT_MS, read_slowly, NULL, &requests, &err), &err);
    for (unsigned i = 0; i < READS; i++)
        CHECK_OK(requests_send(requests, api, buf_bytes(&request), i + 1, &err), &err);
    for (unsigned i = 0; i < THREADS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, read_last, &t), 0);
    CU_ASSERT(reaches(&reads.answered, READS));
    CU_ASSERT_EQUAL(reads.other, 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    requests_close(requests);
    CU_ASSERT_EQUAL(connection_epoch(connection), epoch);
    buf_release(&request);
}

/* ---- work ---- */

static atomic_ulong worked;

static void work_slowly(void *arg, struct work_message *message)
{
    (void)arg;
    nap_ms(5);
    CU_ASSERT_EQUAL(message->deliveries, 1);
    thole_status const ignored = work_message_signal(connection, message, WORK_ACK, NULL);
    (void)ignored;
    work_message_destroy(message);
    atomic_fetch_add(&worked, 1);
}

static void work_bad(void *arg, struct work_message *message, const char *text)
{
    (void)arg;
    CU_FAIL("a bad message");
    fprintf(stderr, "%s\n", text);
    work_message_destroy(message);
}

/* Each request of the puller ends when its bytes are sent, and the next one is made at once. */
static void test_large_work(void)
{
    enum { WORK = 160 }; /* 80 MB */
    struct topology const t = fresh_topology(connection, 1);
    struct sink sink = {0};
    uint64_t lease_ms;
    struct puller *puller = NULL;
    thole_error err = {0};
    struct requests *requests = open_window(connection, 64, 20000, &sink);
    CHECK_OK(topology_ensure_queue(connection, t.ns, THOLE_STR("q"), 30000, &lease_ms, NULL, &err), &err);
    for (unsigned i = 1; i <= WORK; i++) {
        struct work_item const item = {.queue = THOLE_STR("q"),
                                       .instance = THOLE_STR("a"),
                                       .activity = THOLE_STR("charge"),
                                       .input = {body, LARGE},
                                       .nonce = THOLE_STR("00112233445566778899aabbccddeeff"),
                                       .execution = 1,
                                       .activity_id = i,
                                       .try_number = 1};
        while (work_publish(requests, t.ns, &item, i, &err) == THOLE_LIMIT)
            nap_ms(1);
    }
    CU_ASSERT(reaches(&sink.stored, WORK));
    uint64_t const epoch = connection_epoch(connection), start = clock_ms();
    CHECK_OK(puller_open(connection, t.ns, THOLE_STR("q"), work_slowly, work_bad, NULL, NULL, &puller, &err),
             &err);
    puller_want(puller, 10 * WORK);
    CU_ASSERT(reaches(&worked, WORK));
    CU_ASSERT(clock_ms() - start < 10000);
    CU_ASSERT_EQUAL(connection_epoch(connection), epoch);
    puller_close(puller);
    requests_close(requests);
}

static void test_open(void)
{
    char program[SERVER_PATH_BYTES];
    thole_error err = {0};
    memset(body, 'x', sizeof body);
    CHECK_OK(server_find_nats(program, sizeof program, &err), &err);
    CU_ASSERT_FATAL(start_configured(&server, program, "jetstream {}\nmax_pending: 40MB"));
    /* The check is that all is answered, not how fast: a sanitizer reads an answer slowly. */
    struct connection_options const options = {
        .url = server.url, .name = "test", .connect_timeout_ms = 5000, .request_timeout_ms = WAIT_MS};
    CHECK_OK(connection_open(&options, &connection, &err), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(connection);
}

static void test_close(void)
{
    connection_close(connection);
    server_stop(&server);
}

static const struct thole_test tests[] = {
    {"connect", test_open},
    {"a long read", test_a_long_read},
    {"many large answers", test_many_large_answers},
    {"large work", test_large_work},
    {"long backlogs", test_long_backlogs},
    {"close", test_close},
};
FIXTURE_MAIN("backlogs", tests)
