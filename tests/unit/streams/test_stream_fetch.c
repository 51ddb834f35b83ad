/* Streams, read without a consumer: each stored message comes once and in order, however the answers come. */
#include "api.h"
#include "inflow.h"
#include "reader.h"
#include "thole_cunit.h"
#include "wrap_link.h"
#include "wrap_mutexes.h"
#include <stdlib.h>

enum { STORED_MAX = 5000, WAITING_MAX = 64 };

enum order { OLDEST_FIRST, NEWEST_FIRST };

static struct {
    bool stored[STORED_MAX];
    uint64_t last;
    enum order order;
    unsigned lose_every; /* 0: none */
    bool forbidden, silent, refused, other;
    uint64_t waiting[WAITING_MAX]; /* asked for, and not answered */
    size_t waiting_len, most;
    unsigned asked, leaps, attempts;
    uint64_t read[STORED_MAX];
    size_t read_len;
    uint64_t stop_at;
} play;

static void begin(void)
{
    memset(&play, 0, sizeof play);
    played_nats_begin();
}

static void store(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i <= to; i++)
        play.stored[i] = true;
    if (to > play.last)
        play.last = to;
}

/* ---- the connection and the stream ---- */

void __wrap_connection_inbox(struct connection *connection, char ret[LINK_INBOX_BYTES])
{
    (void)connection;
    (void)snprintf(ret, LINK_INBOX_BYTES, "_INBOX.x.%u", ++play.attempts);
    play.waiting_len = 0;
}

uint64_t __wrap_connection_request_timeout_ms(const struct connection *connection)
{
    (void)connection;
    return 1000;
}

uint64_t __wrap_connection_violations(struct connection *connection, char *ret_text, size_t cap)
{
    (void)connection;
    ret_text[cap - 1] = '\0';
    return 7;
}

thole_status __wrap_connection_explain_silence(struct connection *connection, uint64_t violations_before,
                                               const char *subject, thole_status status, thole_error *reterr)
{
    (void)connection;
    CU_ASSERT_EQUAL(violations_before, 7);
    CHECK_STR("subject", subject, "$JS.API.STREAM.MSG.GET.S");
    return play.forbidden ? thole_fail(reterr, THOLE_DENIED, "it is forbidden") : status;
}

thole_status __wrap_link_send_bytes(struct link *link, const char *subject, const char *reply,
                                    thole_slice body, bool *ret_sent, thole_error *reterr)
{
    char want[64];
    uint64_t const sequence = strtoull(strrchr(reply, '.') + 1, NULL, 10);
    (void)link, (void)reterr;
    (void)snprintf(want, sizeof want, "{\"seq\":%llu}", (unsigned long long)sequence);
    CHECK_STR("subject", subject, "$JS.API.STREAM.MSG.GET.S");
    CU_ASSERT_TRUE(thole_slice_equal(body, thole_slice_from(want)));
    *ret_sent = true;
    play.asked++;
    if (play.silent || (play.lose_every != 0 && play.asked % play.lose_every == 0))
        return THOLE_OK;
    CU_ASSERT_FATAL(play.waiting_len < WAITING_MAX);
    play.waiting[play.waiting_len++] = sequence;
    if (play.waiting_len > play.most)
        play.most = play.waiting_len;
    return THOLE_OK;
}

void __wrap_connection_retire(struct connection *connection, natsSubscription *native, uint64_t epoch)
{
    (void)connection, (void)epoch;
    CU_ASSERT_PTR_EQUAL(native, (natsSubscription *)&play);
}

natsStatus __wrap_natsConnection_SubscribeSync(natsSubscription **ret, natsConnection *nc,
                                               const char *subject)
{
    char want[32];
    (void)nc;
    (void)snprintf(want, sizeof want, "_INBOX.x.%u.*", play.attempts);
    CHECK_STR("subscription", subject, want);
    *ret = (natsSubscription *)&play;
    return NATS_OK;
}

natsStatus __wrap_natsSubscription_SetPendingLimits(natsSubscription *native, int messages, int bytes)
{
    (void)native;
    CU_ASSERT_TRUE(messages == -1 && bytes == -1);
    return NATS_OK;
}

static void answer_about(uint64_t sequence, char *to, size_t cap)
{
    if (play.refused)
        (void)snprintf(to, cap,
                       "{\"type\":\"t\",\"error\":{\"code\":503,\"err_code\":10008,"
                       "\"description\":\"temporarily unavailable\"}}");
    else if (sequence > play.last || !play.stored[sequence])
        (void)snprintf(to, cap,
                       "{\"type\":\"t\",\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"no "
                       "message found\"}}");
    else /* NATS/1.0, A: x, B: y */
        (void)snprintf(to, cap,
                       "{\"type\":\"t\",\"message\":{\"subject\":\"thole.%llu\",\"seq\":%llu,\"hdrs\":"
                       "\"TkFUUy8xLjANCkE6IHgNCkI6IHkNCg0K\",\"data\":\"Ym9keQ==\"}}",
                       (unsigned long long)sequence, (unsigned long long)sequence + play.other);
}

natsStatus __wrap_natsSubscription_NextMsg(natsMsg **ret, natsSubscription *native, int64_t timeout_ms)
{
    char subject[64], body[300];
    size_t const at = play.order == OLDEST_FIRST ? 0 : play.waiting_len - 1;
    (void)native;
    CU_ASSERT_EQUAL(timeout_ms, 1000);
    if (play.waiting_len == 0)
        return NATS_TIMEOUT;
    uint64_t const sequence = play.waiting[at];
    memmove(&play.waiting[at], &play.waiting[at + 1], (play.waiting_len - at - 1) * sizeof play.waiting[0]);
    play.waiting_len--;
    answer_about(sequence, body, sizeof body);
    (void)snprintf(subject, sizeof subject, "_INBOX.x.%u.%llu", play.attempts, (unsigned long long)sequence);
    return natsMsg_Create(ret, subject, NULL, body, (int)strlen(body));
}

thole_status __wrap_stream_bounds(struct connection *connection, const char *stream,
                                  struct stream_bounds *ret, thole_error *reterr)
{
    (void)connection, (void)stream, (void)reterr;
    *ret = (struct stream_bounds){.first = play.last + 1, .last = play.last};
    for (uint64_t i = play.last; i > 0; i--)
        if (play.stored[i]) {
            ret->first = i;
            ret->messages++;
        }
    return THOLE_OK;
}

thole_status __wrap_stream_next(struct connection *connection, const char *stream, uint64_t from,
                                uint64_t *ret_sequence, thole_error *reterr)
{
    (void)connection, (void)stream, (void)reterr;
    play.leaps++;
    for (*ret_sequence = from; *ret_sequence <= play.last; ++*ret_sequence)
        if (play.stored[*ret_sequence])
            return THOLE_OK;
    *ret_sequence = 0;
    return THOLE_OK;
}

/* ---- the reader ---- */

static thole_status take(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    char subject[32];
    CU_ASSERT_PTR_EQUAL(arg, &play);
    (void)snprintf(subject, sizeof subject, "thole.%llu", (unsigned long long)sequence);
    CU_ASSERT_TRUE(thole_slice_equal(delivery->subject, thole_slice_from(subject)));
    CU_ASSERT_TRUE(thole_slice_equal(delivery->body, THOLE_STR("body")));
    CU_ASSERT_TRUE(thole_slice_equal(delivery_header(delivery, "A"), THOLE_STR("x")));
    CU_ASSERT_TRUE(thole_slice_equal(delivery_header(delivery, "B"), THOLE_STR("y")));
    CU_ASSERT_EQUAL(delivery_header(delivery, "C").len, 0);
    play.read[play.read_len++] = sequence;
    return sequence == play.stop_at ? THOLE_CANCELLED : THOLE_OK;
}

static thole_error err;

static void fetched(thole_status status)
{
    CU_ASSERT_EQUAL(status, THOLE_OK);
    if (status != THOLE_OK)
        fprintf(stderr, "%s\n", err.text);
}

static thole_status read_all(uint64_t from, uint64_t to)
{
    err = (thole_error){.status = THOLE_OK};
    return stream_fetch(NULL, "S", from, to, take, &play, &err);
}

/* Checks that exactly the messages between the two were read, in order. */
static void check_read(uint64_t from, uint64_t to)
{
    size_t n = 0;
    for (uint64_t i = from; i <= to && i <= play.last; i++)
        if (play.stored[i]) {
            CU_ASSERT_EQUAL(play.read[n], i);
            n++;
        }
    CU_ASSERT_EQUAL(play.read_len, n);
    CU_ASSERT(play.most <= (size_t)2 * INFLOW_READS); /* after a leap answers without a message still come */
    CU_ASSERT_EQUAL(nats.acquired, 0);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Random holes, each order of the answers, and answers that are lost. */
static void test_holes(void)
{
    for (unsigned seed = 0; seed < 60; seed++) {
        uint64_t const from = seed % 3 == 0 ? 0 : seed * 7 % 50, to = seed % 5 == 0 ? 333 : UINT64_MAX;
        begin();
        uint64_t random = seed;
        for (uint64_t i = 1; i < 800;) {
            uint64_t const run = next_random(&random) % (seed % 2 == 0 ? 4 : 90) + 1;
            store(i, i + run - 1);
            i += run + next_random(&random) % (seed % 4 == 0 ? 120 : 3);
        }
        play.order = seed % 2 == 0 ? OLDEST_FIRST : NEWEST_FIRST;
        play.lose_every = seed % 7 == 0 ? 50 : 0;
        fetched(read_all(from, to));
        check_read(from, to);
        CU_ASSERT(play.lose_every != 0 || play.attempts == 1);
    }
}

static void test_ends(void)
{
    begin();
    fetched(read_all(1, UINT64_MAX)); /* nothing was ever stored */
    check_read(1, UINT64_MAX);
    begin();
    store(5, 9);
    fetched(read_all(1, 4));
    fetched(read_all(10, UINT64_MAX));
    CU_ASSERT_EQUAL(play.asked, 0);
    begin();
    store(1, 2);
    store(4000, 4001);
    fetched(read_all(1, UINT64_MAX));
    check_read(1, UINT64_MAX);
    CU_ASSERT(play.leaps == 1 && play.asked < 4 * INFLOW_READS);
    begin();
    store(1, 100);
    play.stop_at = 40; /* the caller stops it */
    CU_ASSERT_EQUAL(read_all(1, UINT64_MAX), THOLE_CANCELLED);
    CU_ASSERT_EQUAL(play.read_len, 40);
    CU_ASSERT_EQUAL(nats.acquired, 0);
}

static void test_failures(void)
{
    begin();
    store(1, 3);
    play.silent = true;
    CU_ASSERT_EQUAL(read_all(1, 3), THOLE_UNAVAILABLE);
    CHECK_STR("text", err.text, "read of stream S stopped before sequence 1: try again");
    CU_ASSERT_EQUAL(play.attempts, 3);
    begin();
    store(1, 3);
    play.silent = play.forbidden = true;
    CU_ASSERT_EQUAL(read_all(1, 3), THOLE_DENIED);
    CU_ASSERT_EQUAL(play.attempts, 1);
    begin();
    store(1, 3);
    play.refused = true;
    CU_ASSERT_EQUAL(read_all(1, 3), THOLE_UNAVAILABLE);
    begin();
    store(1, 3);
    play.other = true;
    CU_ASSERT_EQUAL(read_all(1, 3), THOLE_CORRUPT);
    CHECK_STR("text", err.text, "stream S: message 1 was asked for, and 2 came");
    begin();
    store(1, 3);
    nats.down = true;
    CU_ASSERT_EQUAL(read_all(1, 3), THOLE_UNAVAILABLE);
}

static const struct thole_test tests[] = {
    {"holes", test_holes},
    {"ends", test_ends},
    {"failures", test_failures},
};

THOLE_TEST_MAIN("stream_fetch", tests)
