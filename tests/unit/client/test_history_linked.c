/* Reading a history from its newest record back: what is whole, and what is to be read otherwise. The stream
 * is played; it answers within the call. */
#include "history_linked.h"
#include "record_hash.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STORED_MAX = 200, TEXT_MAX = 1024, MANY = 3 };

static struct {
    struct thole_client client;
    struct buf bodies[STORED_MAX + 1]; /* by sequence */
    uint64_t last;
    size_t reads;
    const char *fails; /* "last", "next" */
    thole_status with; /* THOLE_NOT_FOUND: there is no stream */
    request_done_fn *done;
    void *arg;
} play;

/* ---- records ---- */

static struct record_hash hash_of(uint64_t sequence)
{
    return record_hash_make(THOLE_STR("shop"), 0, buf_bytes(&play.bodies[sequence]));
}

static void put(const struct record *record)
{
    struct buf *const body = &play.bodies[++play.last];
    buf_init(body, RECORD_BYTES_MAX);
    CU_ASSERT_EQUAL_FATAL(record_encode(record, body), THOLE_OK);
}

/* "t1 t2": turns with these numbers; "d": a deletion; "x": of another instance, "." no longer stored; after a
 * slash the sequence that it names in place of the one before, with that one's hash; "-": it names none, "?":
 * it does not say, "!": with another hash. */
static void play_begin(const char *text)
{
    uint64_t previous = 0;
    memset(&play, 0, sizeof play);
    play.client.topology.partitions = 1;
    (void)snprintf(play.client.topology.ns, sizeof play.client.topology.ns, "shop");
    for (const char *at = text; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        struct event const event = {.id = 1, .kind = EVENT_ACTIVITY_COMPLETED, .ref = 1, .try_number = 1};
        struct record record = {.kind = RECORD_TURN, .epoch = 1, .n = play.last + 1, .committed = play.last};
        const char *const how = at + strcspn(at, " /!?-");
        if (*how != '?')
            record.previous = (struct record_hash){{1}};
        uint64_t const names = *how == '/' ? strtoul(how + 1, NULL, 10) : *how == '-' ? 0 : previous;
        if (names > 0 && *how != '?')
            record.previous_of_instance = (struct record_link){hash_of(names), names};
        if (*how == '!')
            record.previous_of_instance.hash.bytes[0] ^= 1;
        if (*at == 'd') {
            record.kind = RECORD_DELETED;
            record.deletion = (struct deletion){.instance = THOLE_STR("order"), .execution = 1};
        } else {
            record.turn = (struct turn){.instance = *at == 'x' ? THOLE_STR("other") : THOLE_STR("order"),
                                        .execution = 2,
                                        .number = strtoul(at + 1, NULL, 10),
                                        .ran = true,
                                        .events = &event,
                                        .events_len = 1};
        }
        put(&record);
        if (*at == '.')
            buf_clear(&play.bodies[play.last]);
        if (*at != 'x' && *at != '.')
            previous = play.last;
    }
}

static void play_end(void)
{
    for (uint64_t s = 1; s <= play.last; s++)
        buf_release(&play.bodies[s]);
}

/* ---- the stream ---- */

thole_status __wrap_stream_last_by_subject(struct connection *connection, const char *stream,
                                           const char *subject, uint64_t *ret_sequence, struct buf *ret_body,
                                           thole_error *reterr)
{
    (void)connection;
    CHECK_STR("stream", stream, "THOLE_shop_HIST_0");
    CHECK_STR("subject", subject, "thole.shop.hist.0.order.*");
    play.reads++;
    if (play.fails != NULL && strcmp(play.fails, "last") == 0)
        return thole_fail(reterr, play.with, "no quorum");
    *ret_sequence = play.last;
    if (play.last > 0)
        buf_slice(ret_body, buf_bytes(&play.bodies[play.last]));
    return THOLE_OK;
}

thole_status __wrap_stream_message(struct connection *connection, const char *stream, uint64_t sequence,
                                   bool *ret_there, struct buf *ret_body, thole_error *reterr)
{
    (void)connection, (void)stream;
    play.reads++;
    if (play.fails != NULL && strcmp(play.fails, "next") == 0)
        return thole_fail(reterr, play.with, "no quorum");
    *ret_there = play.bodies[sequence].len > 0;
    buf_clear(ret_body);
    buf_slice(ret_body, buf_bytes(&play.bodies[sequence]));
    return THOLE_OK;
}

static const char *linked_text(const struct linked_history *history)
{
    static char text[TEXT_MAX];
    size_t len = (size_t)snprintf(text, sizeof text, "%s", history->whole ? "" : "not whole");
    for (size_t i = history->len; i > 0 && history->whole; i--)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%llu", len == 0 ? "" : " ",
                                (unsigned long long)history->records[i - 1].sequence);
    return text;
}

static const struct linked_case {
    const char *name, *records, *want;
    uint64_t deleted;
} cases[] = {
    {"one", "t1", "1", 0},
    {"some", "x1 t1 x1 t2 t3 x1 t4", "2 4 5 7", 0},
    {"none", "", "not whole", 0},
    {"behind a deletion", "t1 d t1 t2", "3 4", 2},
    {"a deletion is the last", "t1 t2 d", "not whole", 0},
    {"one is gone", "t1 . t3/2", "not whole", 0},
    {"another hash", "t1 t2 t3!", "not whole", 0},
    {"it does not say", "t1 t2? t3", "not whole", 0},
    {"an older engine's", "t1? t2", "not whole", 0},
    {"its first one says none", "t1 t2-", "2", 0}, /* a missing beginning is seen when the history is given */
    {"long", "t65", "not whole", 0},
    {"long enough", "t64", "1", 0},
};

static void test_what_is_whole(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct linked_history history;
        play_begin(cases[i].records);
        CU_ASSERT_EQUAL(linked_history_read(&play.client, THOLE_STR("order"), &history, NULL), THOLE_OK);
        CHECK_STR(cases[i].name, linked_text(&history), cases[i].want);
        CU_ASSERT_EQUAL(history.life.deleted, cases[i].deleted);
        for (size_t k = 0; k < history.len; k++)
            CU_ASSERT_TRUE(thole_slice_equal(linked_history_nth(&history, k),
                                             buf_bytes(&play.bodies[history.records[k].sequence])));
        linked_history_release(&history);
        play_end();
    }
}

static void test_failures(void)
{
    static const char *const calls[] = {"last", "next"};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        struct linked_history history;
        thole_error err = {.status = THOLE_OK};
        play_begin("t1 t2");
        play.fails = calls[i];
        play.with = THOLE_UNAVAILABLE;
        CU_ASSERT_EQUAL(linked_history_read(&play.client, THOLE_STR("order"), &history, &err),
                        THOLE_UNAVAILABLE);
        CHECK_STR("why", err.text, "no quorum");
        CU_ASSERT_FALSE(history.whole);
        linked_history_release(&history);
        play_end();
    }
}

/* A lost stream is never reported as a missing instance. */
static void test_a_lost_stream(void)
{
    static const char *const calls[] = {"last", "next"};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        struct linked_history history;
        thole_error err = {.status = THOLE_OK};
        play_begin("t1 t2");
        play.fails = calls[i];
        play.with = THOLE_NOT_FOUND;
        CU_ASSERT_EQUAL(linked_history_read(&play.client, THOLE_STR("order"), &history, &err),
                        THOLE_UNAVAILABLE);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "stream THOLE_shop_HIST_0 is not there: it was lost"));
        linked_history_release(&history);
        play_end();
    }
}

/* ---- many ---- */

thole_status __wrap_requests_open(struct connection *connection, size_t window, uint64_t timeout_ms,
                                  request_done_fn *done, void *arg, struct requests **ret,
                                  thole_error *reterr)
{
    (void)connection, (void)timeout_ms, (void)ret, (void)reterr;
    CU_ASSERT_EQUAL(window, MANY);
    play.done = done;
    play.arg = arg;
    return THOLE_OK;
}

void __wrap_requests_close(struct requests *requests)
{
    (void)requests;
}

void __wrap_connection_cork(struct connection *connection)
{
    (void)connection;
}

void __wrap_connection_uncork(struct connection *connection)
{
    (void)connection;
}

/* The answer's bytes are told by its address: no JSON is made. */
static uint64_t answered;

thole_status __wrap_stream_get_answer(thole_slice answer, uint64_t *ret_sequence, struct buf *ret_body,
                                      thole_error *reterr)
{
    (void)answer, (void)reterr;
    *ret_sequence = answered;
    buf_clear(ret_body);
    if (answered > 0)
        buf_slice(ret_body, buf_bytes(&play.bodies[answered]));
    return THOLE_OK;
}

/* The second one is not there; of the third an answer is lost on the way. */
thole_status __wrap_requests_send(struct requests *requests, const char *subject, thole_slice body,
                                  uint64_t token, thole_error *reterr)
{
    char text[TEXT_MAX];
    unsigned long long sequence = 0;
    (void)requests, (void)reterr;
    CHECK_STR("api", subject, "$JS.API.STREAM.MSG.GET.THOLE_shop_HIST_0");
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(body));
    bool const next = sscanf(text, "{\"seq\":%llu}", &sequence) == 1;
    answered = next ? sequence : token == 1 ? 0 : play.last;
    if (answered > 0 && play.bodies[answered].len == 0)
        answered = 0;
    play.reads++;
    play.done(play.arg,
              &(struct request_done){.result = next && token == 2 ? REQUEST_UNKNOWN : REQUEST_ANSWERED,
                                     .token = token});
    return THOLE_OK;
}

static void test_many(void)
{
    static const thole_slice instances[MANY] = {
        {(const uint8_t *)"order", 5}, {(const uint8_t *)"none", 4}, {(const uint8_t *)"order", 5}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct linked_history histories[MANY];
        play_begin(cases[i].records);
        CU_ASSERT_EQUAL(
            linked_histories_read(&play.client, instances, MANY, RECORD_BYTES_MAX, histories, NULL),
            THOLE_OK);
        CHECK_STR(cases[i].name, linked_text(&histories[0]), cases[i].want);
        CHECK_STR(cases[i].name, linked_text(&histories[1]), "not whole");
        CU_ASSERT(!histories[2].whole || histories[2].len == 1); /* all came with the first answer */
        for (size_t k = 0; k < MANY; k++)
            linked_history_release(&histories[k]);
        play_end();
    }
    struct linked_history small[MANY];
    play_begin("t1 t2");
    CU_ASSERT_EQUAL(linked_histories_read(&play.client, instances, MANY, 8, small, NULL), THOLE_OK);
    CHECK_STR("too large", linked_text(&small[0]), "not whole");
    for (size_t k = 0; k < MANY; k++)
        linked_history_release(&small[k]);
    play_end();
}

static const struct thole_test tests[] = {
    {"what is whole", test_what_is_whole},
    {"failures", test_failures},
    {"a lost stream", test_a_lost_stream},
    {"many", test_many},
};
THOLE_TEST_MAIN("history_linked", tests)
