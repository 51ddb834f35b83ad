/* Reads of a stream: gaps, standstills and ends, with a consumer whose messages the test writes down. */
#include "push_consumer.h"
#include "reader.h"
#include "thole_cunit.h"
#include "wrap_link.h"
#include "wrap_mutexes.h"
#include <stdlib.h>

enum { PATIENCE_MS = 1000, STEPS_MAX = 16 };

/* The steps of the server, in turn. */
enum step_kind {
    END, /* nothing more: the time is over */
    BOUNDS,
    CREATED,
    MESSAGE,   /* stream sequence, consumer sequence */
    HEARTBEAT, /* how far it has looked, what it has sent */
    STALLED,   /* likewise, while a flow control message is not answered */
    FLOW,      /* such a message */
    STATUS,
    LATER, /* nothing comes for so many milliseconds, then the next */
};
struct step {
    enum step_kind kind;
    uint64_t a, b;
};

static struct {
    const struct step *steps;
    uint64_t slow_ms;  /* each call takes so long */
    uint64_t stop_at;  /* which call stops the reading; 0: none */
    unsigned attempts; /* consumers that were made */
    unsigned removed;
    unsigned answered; /* flow control */
    char read[128];
} play;

/* ---- the connection ---- */

void __wrap_connection_inbox(struct connection *connection, char ret[LINK_INBOX_BYTES])
{
    (void)connection;
    (void)snprintf(ret, LINK_INBOX_BYTES, "_INBOX.x.%u", ++play.attempts);
}

uint64_t __wrap_connection_request_timeout_ms(const struct connection *connection)
{
    (void)connection;
    return PATIENCE_MS;
}

thole_status __wrap_link_send_bytes(struct link *link, const char *subject, const char *reply,
                                    thole_slice body, bool *ret_sent, thole_error *reterr)
{
    (void)link, (void)subject, (void)reply, (void)body, (void)reterr;
    *ret_sent = true;
    return THOLE_OK;
}

void __wrap_connection_retire(struct connection *connection, natsSubscription *native, uint64_t epoch)
{
    (void)connection, (void)epoch;
    CU_ASSERT_PTR_EQUAL(native, (natsSubscription *)&play);
}

void __wrap_push_remove(struct link *link, const char *stream, const char *name)
{
    char want[32];
    (void)link;
    (void)snprintf(want, sizeof want, "read_x_%u", play.attempts);
    CHECK_STR("removed", name, want);
    CHECK_STR("stream", stream, "S");
    play.removed++;
}

bool __wrap_push_flow_reply(struct link *link, thole_slice reply)
{
    (void)link;
    play.answered += reply.len > 0;
    return reply.len > 0;
}

natsStatus __wrap_natsConnection_SubscribeSync(natsSubscription **ret, natsConnection *nc,
                                               const char *subject)
{
    (void)nc, (void)subject;
    *ret = (natsSubscription *)&play;
    return NATS_OK;
}

natsStatus __wrap_natsSubscription_SetPendingLimits(natsSubscription *native, int messages, int bytes)
{
    (void)native, (void)messages, (void)bytes;
    return NATS_OK;
}

static natsMsg *to_inbox_with(const char *body, const char *reply)
{
    natsMsg *message = NULL;
    char inbox[32];
    (void)snprintf(inbox, sizeof inbox, "_INBOX.x.%u", play.attempts);
    CU_ASSERT_EQUAL_FATAL(natsMsg_Create(&message, inbox, reply, body, (int)strlen(body)), NATS_OK);
    return message;
}

static natsMsg *to_inbox(const char *body)
{
    return to_inbox_with(body, NULL);
}

static natsMsg *status_of(const char *status, const struct step *step)
{
    char number[32];
    natsMsg *const message = to_inbox_with("", step->kind == FLOW ? "$JS.FC.S.1" : NULL);
    CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Status", status), NATS_OK);
    if (step->kind == STALLED)
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Nats-Consumer-Stalled", "$JS.FC.S.1"), NATS_OK);
    if (step->kind != HEARTBEAT && step->kind != STALLED)
        return message;
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)step->a);
    CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Nats-Last-Stream", number), NATS_OK);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)step->b);
    CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Nats-Last-Consumer", number), NATS_OK);
    return message;
}

static natsMsg *message_of(const struct step *step)
{
    natsMsg *message = NULL;
    char reply[128];
    (void)snprintf(reply, sizeof reply, "$JS.ACK.S.read_x_%u.1.%llu.%llu.1000.0", play.attempts,
                   (unsigned long long)step->a, (unsigned long long)step->b);
    CU_ASSERT_EQUAL_FATAL(natsMsg_Create(&message, "thole.x", reply, "body", 4), NATS_OK);
    return message;
}

natsStatus __wrap_natsSubscription_NextMsg(natsMsg **ret, natsSubscription *native, int64_t timeout_ms)
{
    char body[256];
    (void)native, (void)timeout_ms;
    const struct step *step = play.steps;
    play.steps += step->kind != END;
    switch (step->kind) {
    case END: return NATS_TIMEOUT;
    case LATER: nats.now_ms += step->a; return __wrap_natsSubscription_NextMsg(ret, native, timeout_ms);
    case MESSAGE: *ret = message_of(step); return NATS_OK;
    case STALLED:
    case FLOW:
    case HEARTBEAT: *ret = status_of("100", step); return NATS_OK;
    case STATUS: *ret = status_of("409", step); return NATS_OK;
    case BOUNDS:
        (void)snprintf(
            body, sizeof body,
            "{\"type\":\"io.nats.jetstream.api.v1.stream_info_response\",\"state\":{\"messages\":%llu,"
            "\"first_seq\":1,\"last_seq\":%llu}}",
            (unsigned long long)step->a, (unsigned long long)step->a);
        *ret = to_inbox(body);
        return NATS_OK;
    case CREATED:
        *ret = to_inbox("{\"type\":\"io.nats.jetstream.api.v1.consumer_create_response\",\"name\":\"r\"}");
        return NATS_OK;
    }
    return NATS_TIMEOUT;
}

static thole_status each(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    size_t const at = strlen(play.read);
    (void)arg;
    CU_ASSERT_TRUE(thole_slice_equal(subject, THOLE_STR("thole.x")) &&
                   thole_slice_equal(body, THOLE_STR("body")));
    (void)snprintf(play.read + at, sizeof play.read - at, "%llu ", (unsigned long long)sequence);
    nats.now_ms += play.slow_ms;
    return sequence == play.stop_at ? THOLE_CANCELLED : THOLE_OK;
}

/* ---- tests ---- */

static const struct {
    const char *name;
    uint64_t to, slow_ms, stop_at;
    thole_status status;
    const char *read;
    unsigned attempts;
    struct step steps[STEPS_MAX];
} rows[] = {
    {"all",
     9,
     0,
     0,
     THOLE_OK,
     "1 2 3 ",
     1,
     {{BOUNDS, 3, 0}, {CREATED, 0, 0}, {MESSAGE, 1, 1}, {MESSAGE, 2, 2}, {MESSAGE, 3, 3}}},
    {"the bounds come last",
     9,
     0,
     0,
     THOLE_OK,
     "1 2 ",
     1,
     {{CREATED, 0, 0}, {MESSAGE, 1, 1}, {MESSAGE, 2, 2}, {BOUNDS, 2, 0}, {HEARTBEAT, 2, 2}}},
    {"no more than is asked for",
     2,
     0,
     0,
     THOLE_OK,
     "1 2 ",
     1,
     {{BOUNDS, 9, 0}, {CREATED, 0, 0}, {MESSAGE, 1, 1}, {MESSAGE, 2, 2}, {MESSAGE, 3, 3}}},
    {"the last ones are gone",
     9,
     0,
     0,
     THOLE_OK,
     "1 ",
     1,
     {{BOUNDS, 5, 0}, {CREATED, 0, 0}, {MESSAGE, 1, 1}, {HEARTBEAT, 4, 1}, {HEARTBEAT, 5, 1}}},
    {"nothing there", 9, 0, 0, THOLE_OK, "", 1, {{BOUNDS, 0, 0}}},
    {"a message is lost",
     9,
     0,
     0,
     THOLE_OK,
     "1 2 3 ",
     2,
     {{BOUNDS, 3, 0}, {MESSAGE, 1, 1}, {MESSAGE, 3, 3}, {BOUNDS, 3, 0}, {MESSAGE, 2, 1}, {MESSAGE, 3, 2}}},
    {"the last one is lost",
     9,
     0,
     0,
     THOLE_OK,
     "1 2 3 ",
     2,
     {{BOUNDS, 3, 0}, {MESSAGE, 1, 1}, {MESSAGE, 2, 2}, {HEARTBEAT, 3, 3}, {BOUNDS, 3, 0}, {MESSAGE, 3, 1}}},
    {"the consumer is gone",
     9,
     0,
     0,
     THOLE_OK,
     "1 2 ",
     2,
     {{BOUNDS, 2, 0}, {MESSAGE, 1, 1}, {STATUS, 0, 0}, {BOUNDS, 2, 0}, {MESSAGE, 2, 1}}},
    {"who reads is slow, not the server",
     9,
     5 * PATIENCE_MS,
     0,
     THOLE_OK,
     "1 2 3 ",
     1,
     {{BOUNDS, 3, 0}, {MESSAGE, 1, 1}, {MESSAGE, 2, 2}, {MESSAGE, 3, 3}}},
    {"it stands still",
     9,
     0,
     0,
     THOLE_OK,
     "1 2 ",
     2,
     {{BOUNDS, 2, 0},
      {MESSAGE, 1, 1},
      {LATER, PATIENCE_MS, 0},
      {HEARTBEAT, 1, 1},
      {LATER, PATIENCE_MS + 1, 0},
      {HEARTBEAT, 1, 1},
      {BOUNDS, 2, 0},
      {MESSAGE, 2, 1}}},
    {"it moves on, over what is no message of ours",
     9,
     0,
     0,
     THOLE_OK,
     "1 4 ",
     1,
     {{BOUNDS, 4, 0},
      {MESSAGE, 1, 1},
      {LATER, PATIENCE_MS, 0},
      {HEARTBEAT, 2, 1},
      {LATER, PATIENCE_MS, 0},
      {HEARTBEAT, 3, 1},
      {LATER, PATIENCE_MS, 0},
      {MESSAGE, 4, 2}}},
    {"as much as one consumer is let send",
     9,
     0,
     0,
     THOLE_OK,
     "1 2 3 4 ",
     2,
     {{BOUNDS, 4, 0},
      {MESSAGE, 1, 1},
      {FLOW, 0, 0},
      {STALLED, 1, 1}, /* from before the answer: it is repeated */
      {FLOW, 0, 0},
      {MESSAGE, 2, 2},
      {FLOW, 0, 0}, /* not answered, and what is under way comes */
      {MESSAGE, 3, 3},
      {STALLED, 3, 3},
      {BOUNDS, 4, 0},
      {FLOW, 0, 0}, /* of the next one */
      {MESSAGE, 4, 1}}},
    {"stopped",
     9,
     0,
     2,
     THOLE_CANCELLED,
     "1 2 ",
     1,
     {{BOUNDS, 3, 0}, {MESSAGE, 1, 1}, {MESSAGE, 2, 2}, {MESSAGE, 3, 3}}},
    {"nothing comes any more", 9, 0, 0, THOLE_UNAVAILABLE, "", 0, {{BOUNDS, 3, 0}}},
};

static void test_reads(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_error err = {0};
        memset(&play, 0, sizeof play);
        played_nats_begin();
        nats.now_ms = 1000;
        play.steps = rows[i].steps;
        play.slow_ms = rows[i].slow_ms;
        play.stop_at = rows[i].stop_at;
        thole_status const status = stream_read(NULL, "S", NULL, 1, rows[i].to, each, NULL, &err);
        CHECK_STR(rows[i].name, thole_status_name(status), thole_status_name(rows[i].status));
        CHECK_STR(rows[i].name, play.read, rows[i].read);
        if (rows[i].attempts != 0 && play.attempts != rows[i].attempts)
            fprintf(stderr, "\n  [%s] %u consumers\n", rows[i].name, play.attempts);
        CU_ASSERT_TRUE(rows[i].attempts == 0 ? play.attempts > 1 : play.attempts == rows[i].attempts);
        CU_ASSERT_EQUAL(play.removed, play.attempts);
        CU_ASSERT_EQUAL(play.answered, strncmp(rows[i].name, "as much", 7) == 0 ? 4 : 0);
    }
}

static void test_a_filter_that_is_too_long(void)
{
    char filter[2000];
    thole_error err = {0};
    memset(filter, 'a', sizeof filter - 1);
    filter[sizeof filter - 1] = '\0';
    CU_ASSERT_EQUAL(stream_walk(NULL, "S", filter, 1, 2, each, NULL, &err), THOLE_LIMIT);
    CHECK_STR("text", err.text, "filter is too long");
}

static const struct thole_test tests[] = {
    {"reads", test_reads},
    {"a filter that is too long", test_a_filter_that_is_too_long},
};
THOLE_TEST_MAIN("reader", tests)
