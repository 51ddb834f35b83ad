/* Activity messages: queued once, pulled as wanted, acknowledged under a fence; cancel and event notices. */
#include "link.h"
#include "nonces.h"
#include "notice.h"
#include "push_consumer.h"
#include "range.h"
#include "reader.h"
#include "streams_fixture.h"
#include "subject.h"
#include "work.h"
#include <unistd.h>

static struct connection *connection;

/* ---- a worker that keeps what it gets ---- */

enum { KEPT_MAX = 5000 };
struct worker {
    pthread_mutex_t lock;
    struct work_message *kept[KEPT_MAX];
    atomic_ulong count, bad_count;
    char bad_text[160];
    bool ack, slow;
    struct connection *connection;
};

static void keep(void *arg, struct work_message *message)
{
    struct worker *worker = arg;
    thole_error err = {0};
    if (worker->ack) {
        thole_status const ignored = work_message_signal(worker->connection, message, WORK_ACK, &err);
        (void)ignored;
        work_message_destroy(message);
    } else {
        pthread_mutex_lock(&worker->lock);
        worker->kept[atomic_load(&worker->count) % KEPT_MAX] = message;
        pthread_mutex_unlock(&worker->lock);
    }
    if (worker->slow)
        nap_ms(2);
    atomic_fetch_add(&worker->count, 1);
}

static void keep_bad(void *arg, struct work_message *message, const char *text)
{
    struct worker *worker = arg;
    thole_error err = {0};
    snprintf(worker->bad_text, sizeof worker->bad_text, "%s", text);
    CHECK_OK(work_message_signal(worker->connection, message, WORK_TERM, &err), &err);
    work_message_destroy(message);
    atomic_fetch_add(&worker->bad_count, 1);
}

static void signal_all(struct worker *worker, enum work_signal signal, thole_status want)
{
    unsigned long const n = atomic_load(&worker->count);
    for (unsigned long i = 0; i < n; i++) {
        thole_error err = {0};
        CU_ASSERT_EQUAL(work_message_signal(worker->connection, worker->kept[i], signal, &err), want);
        work_message_destroy(worker->kept[i]);
        worker->kept[i] = NULL;
    }
    atomic_store(&worker->count, 0);
}

struct stage {
    struct topology t;
    char stream[TEXT_BYTES];
    struct sink sink;
    struct requests *requests;
    struct worker worker;
    struct puller *puller;
};

static void stage_open(struct stage *stage, uint64_t lease_ms)
{
    thole_error err = {0};
    memset(stage, 0, sizeof *stage);
    stage->t = fresh_topology(connection, 1);
    stage->worker = (struct worker){.lock = PTHREAD_MUTEX_INITIALIZER, .connection = connection};
    put_text(stage->stream, "THOLE_%s_WORK", stage->t.ns);
    stage->requests = open_window(connection, 256, 10000, &stage->sink);
    CHECK_OK(topology_ensure_queue(connection, stage->t.ns, THOLE_STR("q"), lease_ms, &lease_ms, NULL, &err),
             &err);
    CHECK_OK(puller_open(connection, stage->t.ns, THOLE_STR("q"), keep, keep_bad, NULL, &stage->worker,
                         &stage->puller, &err),
             &err);
}

static void stage_close(struct stage *stage)
{
    puller_close(stage->puller);
    for (unsigned long i = 0; i < KEPT_MAX; i++)
        work_message_destroy(stage->worker.kept[i]);
    requests_close(stage->requests);
}

static void queue_items(struct stage *stage, uint64_t first, uint64_t n)
{
    unsigned long const before = atomic_load(&stage->sink.done);
    for (uint64_t i = first; i < first + n; i++) {
        thole_error err = {0};
        struct work_item const item = {.queue = THOLE_STR("q"),
                                       .nonce = THOLE_STR("0123456789abcdef0123456789abcdef"),
                                       .instance = THOLE_STR("order 42.\xc3\xa4"),
                                       .activity = THOLE_STR("charge"),
                                       .input = THOLE_STR("input"),
                                       .execution = 3,
                                       .activity_id = i,
                                       .try_number = 2};
        thole_status status =
            THOLE_LIMIT; /* window full; or the window has not yet followed the connection */
        while (status == THOLE_LIMIT || status == THOLE_UNAVAILABLE) {
            status = work_publish(stage->requests, stage->t.ns, &item, i, &err);
            if (status != THOLE_OK)
                usleep(50);
        }
        CU_ASSERT_EQUAL(status, THOLE_OK);
    }
    CU_ASSERT(reaches(&stage->sink.done, before + n));
}

static void take_look(void *arg, const struct request_done *done)
{
    uint64_t sequence = UINT64_MAX;
    if (done->result != REQUEST_ANSWERED || stream_get_answer(done->body, &sequence, NULL, NULL) != THOLE_OK)
        sequence = UINT64_MAX;
    atomic_store((atomic_ulong *)arg, sequence + 2);
}

/* Where the item is queued; 0: nowhere. */
static uint64_t look(struct stage *stage, uint64_t activity_id)
{
    atomic_ulong found = 0; /* the sequence and 2 */
    struct requests *requests = NULL;
    thole_error err = {0};
    struct work_item const item = {.queue = THOLE_STR("q"),
                                   .nonce = THOLE_STR("0123456789abcdef0123456789abcdef"),
                                   .instance = THOLE_STR("order 42.\xc3\xa4"),
                                   .execution = 3,
                                   .activity_id = activity_id,
                                   .try_number = 2};
    CHECK_OK(requests_open(connection, 1, 5000, take_look, &found, &requests, &err), &err);
    CHECK_OK(work_look(requests, stage->t.ns, &item, 1, &err), &err);
    CU_ASSERT(reaches(&found, 2));
    requests_close(requests);
    return found - 2;
}

static uint64_t queued(const struct stage *stage)
{
    struct stream_bounds b = {0};
    thole_error err = {0};
    CHECK_OK(stream_bounds(connection, stage->stream, &b, &err), &err);
    return b.messages;
}

/* Signals are not answered: the server gets to them in its own time. */
static bool queued_becomes(const struct stage *stage, uint64_t want)
{
    uint64_t const due = clock_ms() + WAIT_MS;
    while (queued(stage) != want) {
        if (clock_ms() > due)
            return false;
        nap_ms(5);
    }
    return true;
}

/* ---- tests ---- */

static void test_one_activity(void)
{
    struct stage stage;
    thole_error err = {0};
    stage_open(&stage, 0);
    CU_ASSERT_EQUAL(look(&stage, 7), 0);
    queue_items(&stage, 7, 1);
    CU_ASSERT_EQUAL(stage.sink.stored, 1);
    CU_ASSERT_EQUAL(look(&stage, 7), 1);
    CU_ASSERT_EQUAL(look(&stage, 70), 0);
    CU_ASSERT_EQUAL(stage.worker.count, 0); /* nothing is wanted */
    puller_want(stage.puller, 4);
    CU_ASSERT(reaches(&stage.worker.count, 1));
    struct work_message *message = stage.worker.kept[0];
    CU_ASSERT(thole_slice_equal(message->item.instance, THOLE_STR("order 42.\xc3\xa4")));
    CU_ASSERT(thole_slice_equal(message->item.queue, THOLE_STR("q")));
    CU_ASSERT(thole_slice_equal(message->item.activity, THOLE_STR("charge")));
    CU_ASSERT(thole_slice_equal(message->item.input, THOLE_STR("input")));
    CU_ASSERT(message->item.execution == 3 && message->item.activity_id == 7 &&
              message->item.try_number == 2);
    CU_ASSERT(message->deliveries == 1 && message->sequence == 1);
    CHECK_OK(work_message_signal(connection, message, WORK_PROGRESS, &err), &err);
    CHECK_OK(work_message_signal(connection, message, WORK_NAK, &err), &err);
    CU_ASSERT(reaches(&stage.worker.count, 2));
    CU_ASSERT_EQUAL(stage.worker.kept[1]->deliveries, 2);
    CHECK_OK(work_message_signal(connection, stage.worker.kept[1], WORK_ACK, &err), &err);
    CU_ASSERT(queued_becomes(&stage, 0));
    CU_ASSERT_EQUAL(look(&stage, 7), 0);
    queue_items(&stage, 7, 2);
    queue_items(&stage, 7, 1); /* once more, although it exists */
    CU_ASSERT_EQUAL(stage.sink.stored, 4);
    CU_ASSERT_EQUAL(look(&stage, 7), 4);
    stage_close(&stage);
    work_message_destroy(NULL);
    puller_close(NULL);
}

static void test_bad_publishes(void)
{
    static const struct work_item rows[] = {
        {.queue = {0}, .instance = {(const uint8_t *)"i", 1}, .activity = {(const uint8_t *)"a", 1}},
        {.queue = {(const uint8_t *)"q", 1}, .instance = {0}, .activity = {(const uint8_t *)"a", 1}},
        {.queue = {(const uint8_t *)"q", 1}, .instance = {(const uint8_t *)"i", 1}, .activity = {0}},
        {.queue = {(const uint8_t *)"a.b", 3},
         .instance = {(const uint8_t *)"i", 1},
         .activity = {(const uint8_t *)"a", 1}},
        {.queue = {(const uint8_t *)"q", 1},
         .instance = {(const uint8_t *)"i", 1},
         .activity = {(const uint8_t *)"a\r\n", 3}},
    };
    struct stage stage;
    stage_open(&stage, 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_error err = {0};
        CU_ASSERT_EQUAL(work_publish(stage.requests, stage.t.ns, &rows[i], 0, &err), THOLE_INVALID);
    }
    CU_ASSERT_EQUAL(requests_in_flight(stage.requests), 0);
    stage_close(&stage);
}

/* Never more than wanted, whatever is wished in between; all messages are delivered in the end. */
static void test_wishes_are_kept(void)
{
    struct stage stage;
    stage_open(&stage, 0);
    queue_items(&stage, 1, 1000);
    unsigned long total = 0;
    for (uint32_t want = 1; total < 1000; want = want * 2 + 1) {
        uint32_t const left = (uint32_t)(1000 - total);
        puller_want(stage.puller, want);
        unsigned long const expected = want < left ? want : left;
        CU_ASSERT(reaches(&stage.worker.count, expected));
        nap_ms(20);
        CU_ASSERT_EQUAL(stage.worker.count, expected);
        total += stage.worker.count;
        signal_all(&stage.worker, WORK_ACK, THOLE_OK);
    }
    puller_want(stage.puller, 0);
    CU_ASSERT(queued_becomes(&stage, 0));
    stage_close(&stage);
}

/* The puller's requests to the server pass here. */
static atomic_ulong asked;

void __real_link_hint(struct link *link, const char *subject, const char *reply, thole_slice body);
void __wrap_link_hint(struct link *link, const char *subject, const char *reply, thole_slice body)
{
    const char *const at = strstr(subject, "CONSUMER.MSG.NEXT") == NULL ? NULL : strrchr(reply, '.');
    if (at != NULL)
        asked += strtoul(at + 1, NULL, 10);
    __real_link_hint(link, subject, reply, body);
}

/* As a worker does it: a slot becomes free, one more is wanted. It never waits, and never has the server hold
 * more for it than it wants. */
static void test_asks_for_what_is_wanted(void)
{
    enum { WANTED = 8, ITEMS = 200 };
    struct stage stage;
    stage_open(&stage, 0);
    unsigned long const before = asked;
    uint64_t slowest_ms = 0;
    for (uint64_t i = 1; i <= ITEMS; i++) {
        puller_want(stage.puller, WANTED);
        uint64_t const start = clock_ms();
        queue_items(&stage, i, 1);
        CU_ASSERT(reaches(&stage.worker.count, 1));
        if (clock_ms() - start > slowest_ms)
            slowest_ms = clock_ms() - start;
        CU_ASSERT(asked - before <= i - 1 + WANTED);
        signal_all(&stage.worker, WORK_ACK, THOLE_OK);
    }
    CU_ASSERT(slowest_ms < 5000); /* a puller that lost count is rescued after 11 s */
    stage_close(&stage);
}

/* Asked for, then no longer wanted: what comes all the same goes to another worker at once. */
static void test_excess_is_handed_back(void)
{
    struct stage stage;
    struct worker other = {.lock = PTHREAD_MUTEX_INITIALIZER, .connection = connection, .ack = true};
    struct puller *puller = NULL;
    thole_error err = {0};
    stage_open(&stage, 0);
    puller_want(stage.puller, 10);
    CHECK_OK(connection_flush(connection, &err), &err);
    puller_want(stage.puller, 2);
    queue_items(&stage, 1, 10);
    CU_ASSERT(reaches(&stage.worker.count, 2));
    CHECK_OK(puller_open(connection, stage.t.ns, THOLE_STR("q"), keep, keep_bad, NULL, &other, &puller, &err),
             &err);
    puller_want(puller, 100);
    uint64_t const start = clock_ms();
    CU_ASSERT(reaches(&other.count, 8));
    CU_ASSERT(clock_ms() - start < 5000); /* the lease is 30 s */
    CU_ASSERT_EQUAL(stage.worker.count, 2);
    puller_close(puller);
    stage_close(&stage);
}

/* Messages that are on their way when a puller closes are not lost for a lease. */
static void test_close_hands_back(void)
{
    struct stage stage;
    struct worker other = {.lock = PTHREAD_MUTEX_INITIALIZER, .connection = connection, .ack = true};
    struct puller *puller = NULL;
    thole_error err = {0};
    stage_open(&stage, 0);
    queue_items(&stage, 1, 500);
    stage.worker.slow = true;
    puller_want(stage.puller, 500);
    CU_ASSERT(reaches(&stage.worker.count, 1));
    puller_close(stage.puller);
    stage.puller = NULL;
    unsigned long const got = stage.worker.count;
    CHECK_OK(puller_open(connection, stage.t.ns, THOLE_STR("q"), keep, keep_bad, NULL, &other, &puller, &err),
             &err);
    puller_want(puller, 1000);
    uint64_t const start = clock_ms();
    CU_ASSERT(reaches(&other.count, 500 - got));
    CU_ASSERT(clock_ms() - start < 5000);
    CU_ASSERT_EQUAL(stage.worker.count, got);
    puller_close(puller);
    stage_close(&stage);
}

/* Signals are hints, which go by the message and not by the connection: after a restart they go on. */
static void test_signals_after_a_restart(void)
{
    enum { LEASE_MS = 2000, DELAY_MS = 1000, KEPT_MS = 5000, FLUSHED_MS = 400 };
    static const enum work_signal signals[] = {WORK_ACK, WORK_NAK, WORK_PROGRESS, WORK_TERM};
    struct stage stage;
    thole_error err = {0};
    stage_open(&stage, LEASE_MS);
    queue_items(&stage, 1, 3);
    puller_want(stage.puller, 3);
    CU_ASSERT(reaches(&stage.worker.count, 3));
    nap_ms(FLUSHED_MS); /* the server remembers whom it gave them */
    uint64_t const epoch = connection_epoch(connection);
    server_kill9(&fixture_server);
    while (connection_epoch(connection) == epoch)
        nap_ms(1);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        CU_ASSERT_EQUAL(work_message_signal(connection, stage.worker.kept[0], signals[i], &err),
                        THOLE_UNAVAILABLE);
    CU_ASSERT_EQUAL(work_message_put_back(connection, stage.worker.kept[0], 1, &err), THOLE_UNAVAILABLE);
    CHECK_OK(server_restart(&fixture_server, &err), &err);
    CU_ASSERT(wait_epoch_above(connection, epoch));
    CHECK_OK(work_message_signal(connection, stage.worker.kept[0], WORK_ACK, &err), &err);
    CU_ASSERT(queued_becomes(&stage, 2));
    uint64_t const start = clock_ms();
    CHECK_OK(work_message_put_back(connection, stage.worker.kept[1], DELAY_MS, &err), &err);
    puller_want(stage.puller, 10);
    while (clock_ms() < start + KEPT_MS) {
        CHECK_OK(work_message_signal(connection, stage.worker.kept[2], WORK_PROGRESS, &err), &err);
        if (stage.worker.count == 3)
            CU_ASSERT(clock_ms() - start < DELAY_MS + LEASE_MS);
        if (clock_ms() < start + DELAY_MS * 9 / 10)
            CU_ASSERT_EQUAL(stage.worker.count, 3);
        if (stage.worker.count > 3)
            CHECK_OK(work_message_signal(connection, stage.worker.kept[3], WORK_PROGRESS, &err), &err);
        nap_ms(100);
    }
    CU_ASSERT_EQUAL(stage.worker.count, 4); /* 2, put back, and no other */
    CU_ASSERT_EQUAL(stage.worker.kept[3]->item.activity_id, stage.worker.kept[1]->item.activity_id);
    work_message_adopt(stage.worker.kept[1], stage.worker.kept[3]);
    stage.worker.kept[3] = NULL;
    stage.worker.count = 3;
    CHECK_OK(work_message_signal(connection, stage.worker.kept[1], WORK_ACK, &err), &err);
    CU_ASSERT(queued_becomes(&stage, 1));
    CU_ASSERT(reaches(&stage.worker.count, 4)); /* 3 comes when nobody keeps it any more */
    CHECK_OK(work_message_signal(connection, stage.worker.kept[2], WORK_ACK, &err),
             &err); /* late, and good */
    CU_ASSERT(queued_becomes(&stage, 0));
    stage_close(&stage);
}

/* A puller goes on by itself after restarts, under load, and everything is done. */
static void test_pulling_through_kill9(void)
{
    struct stage stage;
    thole_error err = {0};
    stage_open(&stage, 1000);
    stage.worker.ack = true;
    puller_want(stage.puller, UINT32_MAX);
    for (uint64_t round = 0; round < 3; round++) {
        uint64_t const epoch = connection_epoch(connection);
        queue_items(&stage, 1 + round * 2000, 2000);
        server_kill9(&fixture_server);
        CHECK_OK(server_restart(&fixture_server, &err), &err);
        CU_ASSERT(wait_epoch_above(connection, epoch));
    }
    CU_ASSERT(queued_becomes(&stage, 0));
    CU_ASSERT(stage.worker.count >= 6000);
    stage_close(&stage);
}

static uint64_t used_cpu_us(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

static void test_a_queue_that_is_deleted_and_made_again(void)
{
    struct stage stage;
    char subject[TEXT_BYTES];
    uint64_t lease;
    thole_error err = {0};
    stage_open(&stage, 0);
    puller_want(stage.puller, 5);
    CHECK_OK(connection_flush(connection, &err), &err);
    put_text(subject, "$JS.API.CONSUMER.DELETE.%s.q_q", stage.stream);
    CU_ASSERT_PTR_NOT_NULL(strstr(api_answer(connection, subject, ""), "\"success\":true"));
    uint64_t const cpu_us = used_cpu_us();
    nap_ms(500);
    CU_ASSERT(used_cpu_us() - cpu_us < 100000); /* does not ask in a hurry */
    CHECK_OK(topology_ensure_queue(connection, stage.t.ns, THOLE_STR("q"), 0, &lease, NULL, &err), &err);
    queue_items(&stage, 1, 5);
    CU_ASSERT(reaches(&stage.worker.count, 5));
    signal_all(&stage.worker, WORK_ACK, THOLE_OK);
    stage_close(&stage);
}

/* Messages that others may write into the stream. */
static const struct {
    const char *subject, *activity, *text;
} bads[] = {
    {"i.1.2.3", NULL, "Thole-Activity is missing"},
    {"i.1.2.4", "a b", "Thole-Activity is missing or not a name"},
    {"i.x.2.3", "a", "the execution in the subject is missing or not a number"},
    {"i.1.-2.3", "a", "the activity's id in the subject is missing or not a number"},
    {"i.1.2.0", "a", "the try in the subject is missing or not a number"},
    {"i.1.2", "a", "the try in the subject is missing or not a number"},
    {"i.1.2.3.4", "a", "the subject is not one of this queue"},
    {"i.1", "a", "the activity's id in the subject is missing or not a number"},
    {"i%41.1.2.3", "a", "the instance in the subject is not a valid id"},
    {"%ff.1.2.3", "a", "the instance in the subject is not a valid id"},
};

static void test_malformed_messages(void)
{
    struct stage stage;
    stage_open(&stage, 0);
    puller_want(stage.puller, 1);
    for (size_t i = 0; i < ARRAY_LEN(bads); i++) {
        char subject[TEXT_BYTES];
        struct header const headers[] = {
            {"Thole-Nonce", THOLE_STR("0123456789abcdef0123456789abcdef")},
            {"Thole-Activity", thole_slice_from(bads[i].activity != NULL ? bads[i].activity : "")}};
        put_text(subject, "thole.%s.work.q.%s", stage.t.ns, bads[i].subject);
        struct publish const publish = {
            .subject = subject, .headers = headers, .headers_len = bads[i].activity != NULL ? 2 : 1};
        CU_ASSERT_EQUAL(publish_one(stage.requests, &stage.sink, &publish), REQUEST_STORED);
        CU_ASSERT(reaches(&stage.worker.bad_count, i + 1));
        CU_ASSERT_PTR_NOT_NULL(strstr(stage.worker.bad_text, bads[i].text));
    }
    queue_items(&stage, 1, 1); /* none of them has used up the wish */
    CU_ASSERT(reaches(&stage.worker.count, 1));
    CU_ASSERT(queued_becomes(&stage, 1));
    stage_close(&stage);
}

static void test_ack_subjects(void)
{
    static const struct {
        const char *reply;
        bool good;
    } rows[] = {
        {"$JS.ACK.S.C.3.70.12.1700000000000000000.5", true},
        {"$JS.ACK._.hash.S.C.3.70.12.1700000000000000000.5", true},
        {"$JS.ACK.domain.hash.S.C.3.70.12.1700000000000000000.5.rnd", true},
        {"$JS.ACK.S.C.3.70.12.1700000000000000000", false},
        {"$JS.ACK.domain.S.C.3.70.12.1700000000000000000.5", false}, /* 10 tokens */
        {"$JS.ACK.S.C.3.x.12.1700000000000000000.5", false},
        {"$JS.ACK.S.C.3.70.12.-1.5", false},
        {"$JS.FC.S.C.3.70.12.1700000000000000000.5", false},
        {"JS.ACK.S.C.3.70.12.1700000000000000000.5", false},
        {"", false},
        {"........", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ack_meta meta = {0};
        CU_ASSERT_EQUAL(ack_parse(thole_slice_from(rows[i].reply), &meta), rows[i].good);
        if (rows[i].good) {
            CU_ASSERT(thole_slice_equal(meta.stream, THOLE_STR("S")) &&
                      thole_slice_equal(meta.consumer, THOLE_STR("C")));
            CU_ASSERT(meta.deliveries == 3 && meta.stream_sequence == 70 && meta.consumer_sequence == 12 &&
                      meta.stored_ns == UINT64_C(1700000000000000000) && meta.pending == 5);
        }
    }
}

/* ---- notices ---- */

struct notices {
    pthread_mutex_t lock;
    struct arena arena;
    struct cancel_notice cancels[16];
    struct event_notice events[16];
    atomic_ulong cancels_len, events_len, garbage;
};

static void take_cancel(void *arg, const struct delivery *delivery)
{
    struct notices *notices = arg;
    thole_error err = {0};
    pthread_mutex_lock(&notices->lock);
    thole_status const status =
        cancel_notice_parse(delivery, &notices->arena, &notices->cancels[notices->cancels_len % 16], &err);
    pthread_mutex_unlock(&notices->lock);
    CU_ASSERT(status == THOLE_OK || (status == THOLE_CORRUPT && err.text[0] != 0));
    atomic_fetch_add(status == THOLE_OK ? &notices->cancels_len : &notices->garbage, 1);
}

static void take_event(void *arg, const struct delivery *delivery)
{
    struct notices *notices = arg;
    thole_error err = {0};
    pthread_mutex_lock(&notices->lock);
    thole_status const status =
        event_notice_parse(delivery, &notices->arena, &notices->events[notices->events_len % 16], &err);
    pthread_mutex_unlock(&notices->lock);
    CU_ASSERT(status == THOLE_OK || (status == THOLE_CORRUPT && err.text[0] != 0));
    atomic_fetch_add(status == THOLE_OK ? &notices->events_len : &notices->garbage, 1);
}

static const char *const hostile_ids[] = {"a\r\nPUB x 0\r\n\r\n", "a b",      "a.b.c", "*", ">", "%",
                                          "\xf0\x9f\x98\x80",     "$JS.API.>"};

static void test_cancel_notices(void)
{
    enum { IDS = 5000, NOTICES = (IDS + CANCEL_NOTICE_IDS_MAX - 1) / CANCEL_NOTICE_IDS_MAX };
    static struct notices notices = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct subscription *subscription = NULL;
    thole_error err = {0};
    uint64_t ids[IDS];
    size_t seen = 0;
    arena_init(&notices.arena, 1024 * 1024);
    for (size_t i = 0; i < IDS; i++)
        ids[i] = i < CANCEL_NOTICE_IDS_MAX ? RANGE_EXACT - i : i; /* the longest that one can be */
    CHECK_OK(
        connection_subscribe(connection, "thole.n1.cancel.>", take_cancel, &notices, &subscription, &err),
        &err);
    struct cancel_notice notice = {.instance = THOLE_STR("a b.c"),
                                   .execution = 4,
                                   .activity_ids = ids,
                                   .activity_ids_len = IDS,
                                   .kind = THOLE_STR("select_loser"),
                                   .reason = THOLE_STR("too\r\nslow")};
    CHECK_OK(cancel_notice_publish(connection, "n1", test_nonce_key(), &notice, &err), &err);
    CU_ASSERT(reaches(&notices.cancels_len, NOTICES));
    for (size_t k = 0; k < NOTICES; k++) {
        struct cancel_notice const *got = &notices.cancels[k];
        CU_ASSERT(thole_slice_equal(got->instance, notice.instance) && got->execution == 4);
        CU_ASSERT(thole_slice_equal(got->kind, notice.kind) && thole_slice_equal(got->reason, notice.reason));
        for (size_t i = 0; i < got->activity_ids_len; i++)
            CU_ASSERT_EQUAL(got->activity_ids[i], ids[seen++]);
    }
    CU_ASSERT_EQUAL(seen, IDS);
    notice.activity_ids_len = 1;
    for (size_t i = 0; i < ARRAY_LEN(hostile_ids); i++) {
        notice.instance = thole_slice_from(hostile_ids[i]);
        CHECK_OK(cancel_notice_publish(connection, "n1", test_nonce_key(), &notice, &err), &err);
        CU_ASSERT(reaches(&notices.cancels_len, NOTICES + 1 + i));
        CU_ASSERT(thole_slice_equal(notices.cancels[(NOTICES + i) % 16].instance, notice.instance));
    }
    notice.kind = THOLE_STR("a\r\nb");
    CU_ASSERT_EQUAL(cancel_notice_publish(connection, "n1", test_nonce_key(), &notice, &err), THOLE_INVALID);
    notice.kind = THOLE_STR("explicit");
    notice.instance = (thole_slice){NULL, 0};
    CU_ASSERT_EQUAL(cancel_notice_publish(connection, "n1", test_nonce_key(), &notice, &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(notices.garbage, 0);
    subscription_close(subscription);
    arena_release(&notices.arena);
}

static void test_event_notices(void)
{
    static struct notices notices = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static const char *const kinds[] = {"started",          "completed", "failed",  "cancelled", "terminated",
                                        "continued_as_new", "paused",    "resumed", "rejected"};
    struct subscription *subscription = NULL;
    thole_error err = {0};
    arena_init(&notices.arena, 1024 * 1024);
    CHECK_OK(connection_subscribe(connection, "thole.n2.event.checkout.*.*", take_event, &notices,
                                  &subscription, &err),
             &err);
    for (size_t i = 0; i < ARRAY_LEN(hostile_ids); i++) {
        struct event_notice const notice = {.orchestration = THOLE_STR("checkout"),
                                            .instance = thole_slice_from(hostile_ids[i]),
                                            .kind = kinds[i % ARRAY_LEN(kinds)],
                                            .execution = i + 1,
                                            .request_id =
                                                i % 2 ? thole_slice_from(hostile_ids[i]) : (thole_slice){0},
                                            .data = THOLE_STR("out\r\n\0put")};
        CHECK_OK(event_notice_publish(connection, "n2", &notice, &err), &err);
        CU_ASSERT(reaches(&notices.events_len, i + 1));
        struct event_notice const *got = &notices.events[i];
        CU_ASSERT(thole_slice_equal(got->instance, notice.instance) && got->execution == i + 1);
        CU_ASSERT(thole_slice_equal(got->orchestration, notice.orchestration));
        CU_ASSERT(thole_slice_equal(got->request_id, notice.request_id) &&
                  thole_slice_equal(got->data, notice.data));
        CHECK_STR("kind", got->kind, notice.kind);
    }
    struct event_notice own = {.orchestration = THOLE_STR("checkout"),
                               .instance = THOLE_STR("i"),
                               .kind = "started",
                               .execution = 1,
                               .request_id = THOLE_STR("<1.5.parent")};
    CHECK_OK(event_notice_publish(connection, "n2", &own, &err), &err);
    CU_ASSERT(reaches(&notices.events_len, ARRAY_LEN(hostile_ids) + 1));
    CU_ASSERT_EQUAL(notices.events[ARRAY_LEN(hostile_ids) % 16].request_id.len, 0);
    struct event_notice bad = {
        .orchestration = THOLE_STR("checkout"), .instance = THOLE_STR("i"), .kind = "nonsense"};
    CU_ASSERT_EQUAL(event_notice_publish(connection, "n2", &bad, &err), THOLE_INVALID);
    bad.kind = "failed";
    bad.orchestration = (thole_slice){0};
    CU_ASSERT_EQUAL(event_notice_publish(connection, "n2", &bad, &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(notices.garbage, 0);
    subscription_close(subscription);
    arena_release(&notices.arena);
}

static void test_garbage_notices(void)
{
    static struct notices notices = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static const struct {
        const char *subject, *activities, *kind;
    } rows[] = {
        {"thole.n3.cancel.i.1", NULL, "explicit"},
        {"thole.n3.cancel.i.1", "", "explicit"},
        {"thole.n3.cancel.i.1", "1,,2", "explicit"},
        {"thole.n3.cancel.i.1", "1,2,", "explicit"},
        {"thole.n3.cancel.i.1", "0", "explicit"},
        {"thole.n3.cancel.i.1", "-1", "explicit"},
        {"thole.n3.cancel.i.1", "1 2", "explicit"},
        {"thole.n3.cancel.i.1", "99999999999999999999", "explicit"},
        {"thole.n3.cancel.i.1", "1", NULL},
        {"thole.n3.cancel.i.1", "1", "a b"},
        {"thole.n3.cancel.i.0", "1", "explicit"},
        {"thole.n3.cancel.i.x", "1", "explicit"},
        {"thole.n3.cancel.i", "1", "explicit"},
        {"thole.n3.cancel.i.1.2", "1", "explicit"},
        {"thole.n3.cancel.i%41.1", "1", "explicit"},
        {"thole.n3.cancel.%ff.1", "1", "explicit"},
        {"thole.n3.event.o.i", NULL, NULL},
        {"thole.n3.event.o.i.nonsense", NULL, NULL},
        {"thole.n3.event.o.i.completed", NULL, NULL},
        {"thole.n3.event.o.i.completed.x", NULL, NULL},
        {"thole.n3.event.a~b.i.completed", NULL, NULL},
    };
    struct subscription *a = NULL, *b = NULL;
    thole_error err = {0};
    char many[CANCEL_NOTICE_IDS_MAX * 2 + 3];
    arena_init(&notices.arena, 1024 * 1024);
    CHECK_OK(connection_subscribe(connection, "thole.n3.cancel.>", take_cancel, &notices, &a, &err), &err);
    CHECK_OK(connection_subscribe(connection, "thole.n3.event.>", take_event, &notices, &b, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct header headers[2];
        size_t len = 0;
        if (rows[i].activities != NULL)
            headers[len++] = (struct header){"Thole-Activities", thole_slice_from(rows[i].activities)};
        if (rows[i].kind != NULL)
            headers[len++] = (struct header){"Thole-Kind", thole_slice_from(rows[i].kind)};
        CHECK_OK(connection_publish(connection, rows[i].subject, headers, len, THOLE_STR("x"), &err), &err);
        CU_ASSERT(reaches(&notices.garbage, i + 1));
    }
    for (size_t i = 0; i <= CANCEL_NOTICE_IDS_MAX; i++)
        memcpy(many + 2 * i, "1,", 3);
    many[2 * CANCEL_NOTICE_IDS_MAX + 1] = 0; /* one too many */
    struct header const headers[] = {{"Thole-Activities", thole_slice_from(many)},
                                     {"Thole-Kind", THOLE_STR("explicit")}};
    CHECK_OK(connection_publish(connection, "thole.n3.cancel.i.1", headers, 2, THOLE_STR("x"), &err), &err);
    CU_ASSERT(reaches(&notices.garbage, ARRAY_LEN(rows) + 1));
    CU_ASSERT(notices.cancels_len == 0 && notices.events_len == 0);
    subscription_close(a);
    subscription_close(b);
    arena_release(&notices.arena);
}

static void test_open(void)
{
    connection = connect_here();
}

static void test_close(void)
{
    connection_close(connection);
}

/* Each request ends when its messages are sent, and the server says so: that is no reason to pause. */
static void test_many_small_requests(void)
{
    enum { ITEMS = 1200, SLOTS = 12 };
    struct stage stage;
    stage_open(&stage, 30000);
    stage.worker.ack = true;
    queue_items(&stage, 1, ITEMS);
    uint64_t const start = clock_ms();
    for (unsigned long done = 0; done < ITEMS && clock_ms() - start < WAIT_MS;) {
        puller_want(stage.puller, SLOTS);
        CU_ASSERT(reaches(&stage.worker.count, done + SLOTS));
        done += SLOTS;
    }
    CU_ASSERT(clock_ms() - start < 6000); /* 100 pauses of 100 ms and more would be 10 s */
    stage_close(&stage);
}

static const struct thole_test tests[] = {
    {"connect", test_open},
    {"one activity", test_one_activity},
    {"publishes that are refused", test_bad_publishes},
    {"wishes are kept", test_wishes_are_kept},
    {"asks for what is wanted and no more", test_asks_for_what_is_wanted},
    {"excess is handed back", test_excess_is_handed_back},
    {"closing hands back", test_close_hands_back},
    {"signals go on after a restart", test_signals_after_a_restart},
    {"pulling through kill -9", test_pulling_through_kill9},
    {"a queue that is deleted and made again", test_a_queue_that_is_deleted_and_made_again},
    {"malformed messages", test_malformed_messages},
    {"both forms of reply subjects", test_ack_subjects},
    {"cancel notices", test_cancel_notices},
    {"event notices", test_event_notices},
    {"garbage notices", test_garbage_notices},
    {"many small requests", test_many_small_requests},
    {"close", test_close},
};
FIXTURE_MAIN("pull", tests)
