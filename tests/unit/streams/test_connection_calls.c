/* Requests, publishes and subscriptions over a connection that is up, down, or forbidden to; nats.c and the
 * connection are played. */
#include "clock.h"
#include "inflow.h"
#include "loop.h"
#include "thole_cunit.h"
#include "wrap_link.h"
#include "wrap_mutexes.h"
#include <stdlib.h>
#include <unistd.h>

static struct {
    natsStatus status; /* of a request or a flush */
    const char *answer, *violation;
    bool flushed;                /* corked messages are written before the wait */
    uint64_t violations;         /* counted so far */
    bool violates;               /* the request counts one more */
    thole_status listens, sends; /* the result of listening, of sending */
    unsigned attached, closed;
    int messages; /* made and not freed */
    bool over;    /* the loop is over */
    unsigned runs, waits, awake, left;
    char asked[128];
    unsigned reads; /* under way, with this one */
    int64_t timeout_ms;
} play;

static thole_error err;

thole_status __real_link_message(const char *subject, const char *reply, const struct header *headers,
                                 size_t headers_len, thole_slice body, natsMsg **ret, thole_error *reterr);
thole_status __wrap_link_message(const char *subject, const char *reply, const struct header *headers,
                                 size_t headers_len, thole_slice body, natsMsg **ret, thole_error *reterr)
{
    thole_status const status = __real_link_message(subject, reply, headers, headers_len, body, ret, reterr);
    play.messages += status == THOLE_OK;
    return status;
}

static const char *prefix = "$JS.API";
const char *__wrap_connection_api_prefix(const struct connection *connection)
{
    (void)connection;
    return prefix;
}

void __real_link_message_free(natsMsg *message);
void __wrap_link_message_free(natsMsg *message)
{
    play.messages -= message != NULL;
    __real_link_message_free(message);
}

thole_status __wrap_link_send(struct link *link, natsMsg *message, bool *ret_sent, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(link, &nats.link);
    (void)snprintf(play.asked, sizeof play.asked, "%s: %.*s", natsMsg_GetSubject(message),
                   natsMsg_GetDataLength(message), natsMsg_GetData(message));
    *ret_sent = play.sends == THOLE_OK;
    return play.sends == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.sends, "not sent");
}

void __wrap_loop_flush(struct loop *loop)
{
    (void)loop;
    play.flushed = true;
}

bool __wrap_loop_run(struct loop *loop, struct pollfd *also, size_t n, uint64_t deadline_ms,
                     loop_awake_fn *awake, void *arg)
{
    CU_ASSERT_TRUE(loop == nats.link.loop && also->fd == 7 && n == 1 && deadline_ms == 99);
    CU_ASSERT_EQUAL(nats.acquired, 1); /* not destroyed meanwhile */
    play.runs++;
    if (!play.over)
        awake(arg);
    return !play.over;
}

void __wrap_loop_wait(struct pollfd *also, size_t n, uint64_t deadline_ms)
{
    CU_ASSERT_TRUE(also->fd == 7 && n == 1 && deadline_ms == 99);
    CU_ASSERT_EQUAL(nats.acquired, 0); /* so that the keeper can connect again */
    play.waits++;
}

void __wrap_loop_leave(struct loop *loop)
{
    CU_ASSERT_PTR_EQUAL(loop, nats.link.loop);
    play.left++;
}

natsStatus __wrap_natsConnection_RequestMsg(natsMsg **ret, natsConnection *nc, natsMsg *message,
                                            int64_t timeout)
{
    CU_ASSERT_TRUE(play.flushed);
    play.flushed = false;
    (void)nc;
    CU_ASSERT_EQUAL(timeout, play.timeout_ms);
    (void)snprintf(play.asked, sizeof play.asked, "%s: %.*s", natsMsg_GetSubject(message),
                   natsMsg_GetDataLength(message), natsMsg_GetData(message));
    play.reads = nats.link.reads.here;
    play.violations += play.violates;
    if (play.status == NATS_OK) {
        CU_ASSERT_EQUAL(natsMsg_Create(ret, "inbox", NULL, play.answer, (int)strlen(play.answer)), NATS_OK);
        play.messages++;
    }
    return play.status;
}

natsStatus __wrap_natsConnection_FlushTimeout(natsConnection *nc, int64_t timeout)
{
    CU_ASSERT_TRUE(play.flushed);
    play.flushed = false;
    (void)nc;
    CU_ASSERT_EQUAL(timeout, play.timeout_ms);
    return play.status;
}

const struct connection_waiting *__wrap_connection_waiting(const struct connection *connection)
{
    (void)connection;
    return NULL;
}

uint64_t __wrap_connection_request_timeout_ms(const struct connection *connection)
{
    (void)connection;
    return (uint64_t)play.timeout_ms;
}

uint64_t __wrap_connection_violations(struct connection *connection, char *ret_text, size_t cap)
{
    (void)connection;
    (void)snprintf(ret_text, cap, "%s", play.violation == NULL ? "" : play.violation);
    return play.violations;
}

void __wrap_connection_attach(struct connection *connection, struct attachment *attachment)
{
    (void)connection;
    play.attached++;
    attachment->up(attachment->arg, &nats.link);
}

void __wrap_connection_detach(struct connection *connection, struct attachment *attachment)
{
    (void)connection, (void)attachment;
    play.attached--;
}

thole_status __wrap_listener_open(struct link *link, const char *subject, const char *group, listener_fn *fn,
                                  void *arg, struct listener **ret, thole_error *reterr)
{
    (void)group;
    (void)link, (void)subject, (void)fn, (void)arg, (void)ret;
    return play.listens == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.listens, "as the test says");
}

void __wrap_listeners_close(struct listeners *listeners)
{
    (void)listeners;
    play.closed++;
}

/* ---- tests ---- */

static void begin(void)
{
    memset(&play, 0, sizeof play);
    memset(&err, 0, sizeof err);
    play.answer = "pong";
    play.timeout_ms = 3000;
    played_nats_begin();
}

/* Nothing is held or left. */
static void end(void)
{
    CU_ASSERT_EQUAL(nats.acquired, 0);
    CU_ASSERT_EQUAL(play.messages, 0);
}

static void test_requests(void)
{
    static const struct {
        const char *name;
        bool down;
        natsStatus sent;
        bool violates;
        const char *violation, *answer;
        thole_status status;
        const char *text;
    } rows[] = {
        {"answered", false, NATS_OK, false, NULL, "pong", THOLE_OK, ""},
        {"empty", false, NATS_OK, false, NULL, "", THOLE_OK, ""},
        {"not connected", true, NATS_OK, false, NULL, "", THOLE_UNAVAILABLE,
         "request to a.b: not connected to NATS"},
        {"no answer", false, NATS_TIMEOUT, false, NULL, "", THOLE_UNAVAILABLE, "request to a.b"},
        {"forbidden", false, NATS_TIMEOUT, true, "Permissions Violation for Publish to \"a.b\"", "",
         THOLE_DENIED, "the NATS server forbids it: Permissions Violation for Publish to \"a.b\""},
        {"something else was", false, NATS_TIMEOUT, true, "Permissions Violation for Publish to \"x\"", "",
         THOLE_UNAVAILABLE, "request to a.b"},
        {"it was, earlier", false, NATS_TIMEOUT, false, "Permissions Violation for Publish to \"a.b\"", "",
         THOLE_UNAVAILABLE, "request to a.b"},
        {"too large", false, NATS_OK, false, NULL, "more than nine", THOLE_LIMIT,
         "answer from a.b is larger than 9 bytes"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf answer;
        begin();
        buf_init(&answer, 9);
        buf_text(&answer, "old");
        nats.down = rows[i].down;
        play.status = rows[i].sent;
        play.violates = rows[i].violates;
        play.violation = rows[i].violation;
        play.answer = rows[i].answer;
        thole_status const status = connection_request(NULL, "a.b", THOLE_STR("ping"), &answer, &err);
        CHECK_STR(rows[i].name, thole_status_name(status), thole_status_name(rows[i].status));
        CHECK_STR(rows[i].name, strstr(err.text, rows[i].text) != NULL ? "told" : err.text, "told");
        if (status == THOLE_OK)
            CHECK_STR("in the place of what was there", buf_cstr(&answer), rows[i].answer);
        CHECK_STR(rows[i].name, play.asked, rows[i].down ? "" : "a.b: ping");
        buf_release(&answer);
        end();
    }
    struct buf answer;
    begin();
    buf_init(&answer, 9);
    CU_ASSERT_EQUAL(connection_request(NULL, "a b", THOLE_STR(""), &answer, &err), THOLE_INVALID);
    buf_release(&answer);
    end();
}

static void *leave_slowly(void *arg)
{
    struct link_reads *const reads = &nats.link.reads;
    (void)arg;
    for (unsigned i = 0; i < 14; i++) { /* the place of the first ones is taken by others */
        usleep(100 * 1000);
        pthread_mutex_lock(&reads->lock);
        reads->departed++;
        reads->here -= i == 13;
        pthread_cond_signal(&reads->left);
        pthread_mutex_unlock(&reads->lock);
    }
    return NULL;
}

/* A thread waits for its turn longer than for an answer, but only while others get theirs. */
static void test_turns(void)
{
    pthread_t thread;
    for (unsigned i = 0; i < 2; i++) {
        struct buf answer;
        bool const leave = i == 0;
        begin();
        buf_init(&answer, 9);
        play.status = NATS_OK;
        play.timeout_ms = leave ? 1000 : 50;
        nats.link.reads.here = INFLOW_READS;
        clock_condition_init(&nats.link.reads.left);
        if (leave)
            CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, leave_slowly, NULL), 0);
        CU_ASSERT_EQUAL(connection_request(NULL, "$JS.API.DIRECT.GET.S", THOLE_STR("g"), &answer, &err),
                        leave ? THOLE_OK : THOLE_UNAVAILABLE);
        if (leave)
            pthread_join(thread, NULL);
        CU_ASSERT_EQUAL(nats.link.reads.here, leave ? INFLOW_READS - 1 : INFLOW_READS);
        nats.link.reads.here = 0;
        play.flushed = false;
        buf_release(&answer);
        end();
    }
}

/* Threads that wait for a stream's message are counted while they do. */
static void test_reads(void)
{
    static const struct {
        const char *subject;
        unsigned reads;
    } rows[] = {{"$JS.API.STREAM.MSG.GET.S", 1}, {"$JS.API.DIRECT.GET.S", 1}, {"$JS.API.STREAM.INFO.S", 0}};
    for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        struct buf answer;
        begin();
        buf_init(&answer, 9);
        play.status = i < ARRAY_LEN(rows) ? NATS_OK : NATS_TIMEOUT;
        thole_status const status =
            connection_request(NULL, rows[i % ARRAY_LEN(rows)].subject, THOLE_STR("g"), &answer, &err);
        CU_ASSERT_EQUAL(status, i < ARRAY_LEN(rows) ? THOLE_OK : THOLE_UNAVAILABLE);
        CU_ASSERT_EQUAL(play.reads, rows[i % ARRAY_LEN(rows)].reads);
        CU_ASSERT_EQUAL(nats.link.reads.here, 0);
        CU_ASSERT_EQUAL(nats.link.reads.departed, i < ARRAY_LEN(rows) ? rows[i].reads : 0);
        buf_release(&answer);
        end();
    }
}

static void test_publishes_and_flushes(void)
{
    begin();
    CU_ASSERT_EQUAL(connection_publish(NULL, "a.b", NULL, 0, THOLE_STR("x"), &err), THOLE_OK);
    CHECK_STR("sent", play.asked, "a.b: x");
    play.sends = THOLE_UNAVAILABLE;
    CU_ASSERT_EQUAL(connection_publish(NULL, "a.b", NULL, 0, THOLE_STR("x"), &err), THOLE_UNAVAILABLE);
    CU_ASSERT_EQUAL(connection_publish(NULL, "", NULL, 0, THOLE_STR("x"), &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(connection_flush(NULL, &err), THOLE_OK);
    play.status = NATS_TIMEOUT;
    CU_ASSERT_EQUAL(connection_flush(NULL, &err), THOLE_UNAVAILABLE);
    nats.down = true;
    CU_ASSERT_EQUAL(connection_publish(NULL, "a.b", NULL, 0, THOLE_STR("x"), &err), THOLE_UNAVAILABLE);
    CHECK_STR("why", err.text, "publish to a.b: not connected to NATS");
    CU_ASSERT_EQUAL(connection_flush(NULL, &err), THOLE_UNAVAILABLE);
    CHECK_STR("why", err.text, "flush to the server: not connected to NATS");
    end();
}

static void ignore(void *arg, const struct delivery *delivery)
{
    (void)arg, (void)delivery;
}

/* Refused for good, or for want of something: then the next connection tries again. */
static void test_subscriptions(void)
{
    static const struct {
        thole_status listens, status;
        unsigned broken;
    } rows[] = {{THOLE_OK, THOLE_OK, 0}, {THOLE_NOMEM, THOLE_OK, 1}, {THOLE_INVALID, THOLE_INVALID, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct subscription *subscription = NULL;
        begin();
        play.listens = rows[i].listens;
        CU_ASSERT_EQUAL(connection_subscribe(NULL, "a.>", ignore, NULL, &subscription, &err), rows[i].status);
        CU_ASSERT_EQUAL(nats.broken, rows[i].broken);
        CU_ASSERT_EQUAL(subscription != NULL, rows[i].status == THOLE_OK);
        CHECK_STR("why", err.text, rows[i].status == THOLE_OK ? "" : "as the test says");
        subscription_close(subscription);
        CU_ASSERT_EQUAL(play.attached, 0);
        CU_ASSERT_EQUAL(play.closed, 1);
        end();
    }
    struct subscription *subscription = NULL;
    CU_ASSERT_EQUAL(connection_subscribe(NULL, "a b", ignore, NULL, &subscription, &err), THOLE_INVALID);
    subscription_close(NULL);
}

static void on_awake(void *arg)
{
    CU_ASSERT_PTR_EQUAL(arg, &play);
    play.awake++;
}

/* A waiting thread is woken once, whatever happens to the connection. */
static void test_reading(void)
{
    static const struct {
        bool down, over;
        unsigned runs, waits;
    } rows[] = {{false, false, 1, 0}, {true, false, 0, 1}, {false, true, 1, 1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        nats.down = rows[i].down;
        play.over = rows[i].over;
        connection_read(NULL, &(struct pollfd){.fd = 7}, 1, 99, on_awake, &play);
        CU_ASSERT_EQUAL(play.runs, rows[i].runs);
        CU_ASSERT_EQUAL(play.waits, rows[i].waits);
        CU_ASSERT_EQUAL(play.awake, 1);
        connection_leave(NULL);
        CU_ASSERT_EQUAL(play.left, !rows[i].down);
        end();
    }
}

/* JetStream is asked under the connection's own prefix, and what the server forbids is known by it. */
static void test_api_prefix(void)
{
    struct buf answer;
    prefix = "JS.thole.API";
    begin();
    buf_init(&answer, 9);
    CU_ASSERT_EQUAL(connection_request(NULL, "$JS.API.INFO", THOLE_STR(""), &answer, &err), THOLE_OK);
    CHECK_STR("asked", play.asked, "JS.thole.API.INFO: ");
    end();
    begin();
    play.status = NATS_TIMEOUT;
    play.violates = true;
    play.violation = "Permissions Violation for Publish to \"JS.thole.API.INFO\"";
    CU_ASSERT_EQUAL(connection_request(NULL, "$JS.API.INFO", THOLE_STR(""), &answer, &err), THOLE_DENIED);
    buf_release(&answer);
    end();
    prefix = "$JS.API";
}

static const struct thole_test tests[] = {{"requests", test_requests},
                                          {"JetStream's prefix", test_api_prefix},
                                          {"reads", test_reads},
                                          {"turns", test_turns},
                                          {"reading", test_reading},
                                          {"publishes and flushes", test_publishes_and_flushes},
                                          {"subscriptions", test_subscriptions}};
THOLE_TEST_MAIN("connection_calls", tests)
