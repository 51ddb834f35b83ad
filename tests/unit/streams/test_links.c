/* Listeners, status messages, what is sent: nats.c's connection and subscriptions are played. */
#include "connection.h"
#include "link.h"
#include "sanitizers.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <stdlib.h>

enum { SUBSCRIPTIONS_MAX = 4 };

struct subscribed {
    natsMsgHandler handler;
    natsOnCompleteCB complete;
    void *closure;
    unsigned unsubscribed, retired;
};

static struct {
    struct subscribed subscribed[SUBSCRIPTIONS_MAX];
    size_t subscribed_len;
    natsStatus complete_status; /* of setting the callback for a subscription's end */
    struct orphan *orphan;
    struct listeners listeners;
    struct link link;
    unsigned messages, published;
    size_t destroyed;
    char log[64];
} play;

static struct subscribed *of(natsSubscription *native)
{
    return (struct subscribed *)native;
}

/* ---- nats.c and the connection ---- */

void __real_natsMsg_Destroy(natsMsg *message);
void __wrap_natsMsg_Destroy(natsMsg *message);
void __wrap_natsMsg_Destroy(natsMsg *message)
{
    play.destroyed++;
    __real_natsMsg_Destroy(message);
}

natsStatus __wrap_natsConnection_Subscribe(natsSubscription **sub, natsConnection *nc, const char *subject,
                                           natsMsgHandler handler, void *closure)
{
    (void)nc, (void)subject;
    struct subscribed *const to = &play.subscribed[play.subscribed_len++];
    *to = (struct subscribed){.handler = handler, .closure = closure};
    *sub = (natsSubscription *)to;
    return NATS_OK;
}

natsStatus __wrap_natsSubscription_SetPendingLimits(natsSubscription *sub, int messages, int bytes)
{
    (void)sub, (void)messages, (void)bytes;
    return NATS_OK;
}

natsStatus __wrap_natsSubscription_SetOnCompleteCB(natsSubscription *sub, natsOnCompleteCB complete,
                                                   void *closure)
{
    CU_ASSERT_PTR_EQUAL(closure, of(sub)->closure);
    if (play.complete_status == NATS_OK)
        of(sub)->complete = complete;
    return play.complete_status;
}

natsStatus __wrap_natsSubscription_Unsubscribe(natsSubscription *sub)
{
    of(sub)->unsubscribed++;
    return NATS_OK;
}

natsStatus __wrap_natsConnection_PublishRequest(natsConnection *nc, const char *subject, const char *reply,
                                                const void *data, int len)
{
    (void)nc, (void)subject, (void)reply, (void)data, (void)len;
    play.published++;
    return NATS_OK;
}

void __wrap_connection_retire(struct connection *connection, natsSubscription *native, uint64_t epoch)
{
    (void)connection;
    CU_ASSERT_EQUAL(epoch, 1);
    of(native)->retired++;
}

void __wrap_connection_orphan(struct connection *connection, struct orphan *orphan)
{
    (void)connection;
    CU_ASSERT_PTR_NULL(play.orphan);
    play.orphan = orphan;
}

static void note(const char *text)
{
    (void)snprintf(play.log + strlen(play.log), sizeof play.log - strlen(play.log), "%s ", text);
}

void __wrap_connection_attach(struct connection *connection, struct attachment *attachment)
{
    (void)connection, (void)attachment;
    note("attach");
}

void __wrap_connection_detach(struct connection *connection, struct attachment *attachment)
{
    (void)connection, (void)attachment;
    note("detach");
}

void __real_listeners_close(struct listeners *listeners);
void __wrap_listeners_close(struct listeners *listeners)
{
    note("close");
    __real_listeners_close(listeners);
}

static void begin(void)
{
    CU_ASSERT_EQUAL_FATAL(nats_Open(-1), NATS_OK); /* once; its messages need it */
    memset(&play, 0, sizeof play);
    play.link.epoch = 1;
}

/* nats.c's threads have ended. */
static void end(void)
{
    for (size_t i = 0; i < play.subscribed_len; i++)
        if (play.subscribed[i].complete != NULL)
            play.subscribed[i].complete(play.subscribed[i].closure);
    free(play.orphan);
}

static struct listener *open_one(listener_fn *fn)
{
    struct listener *listener = NULL;
    CU_ASSERT_EQUAL_FATAL(listener_open(&play.link, "thole.test", NULL, fn, NULL, &listener, NULL), THOLE_OK);
    return listener;
}

static void deliver(size_t i)
{
    natsMsg *message = NULL;
    CU_ASSERT_EQUAL_FATAL(natsMsg_Create(&message, "thole.test", NULL, "x", 1), NATS_OK);
    play.subscribed[i].handler(NULL, NULL, message, play.subscribed[i].closure);
}

static void count(void *arg, natsMsg **message, uint64_t epoch)
{
    (void)arg, (void)message;
    CU_ASSERT_EQUAL(epoch, 1);
    play.messages++;
}

static void replace_within(void *arg, natsMsg **message, uint64_t epoch)
{
    count(arg, message, epoch);
    if (play.subscribed_len == 1)
        listeners_replace(&play.listeners, open_one(count));
}

/* ---- listeners ---- */

static void test_one_that_is_replaced(void)
{
    begin();
    listeners_replace(&play.listeners, open_one(count));
    deliver(0);
    listeners_replace(&play.listeners, open_one(count));
    CU_ASSERT_EQUAL(play.subscribed[0].retired, 1);
    deliver(0); /* it was on its way */
    CU_ASSERT_EQUAL(play.messages, 1);
    deliver(1);
    CU_ASSERT_EQUAL(play.messages, 2);
    listeners_close(&play.listeners);
    CU_ASSERT_EQUAL(play.subscribed[0].retired, 1);
    CU_ASSERT_EQUAL(play.subscribed[1].retired, 1);
    deliver(1);
    CU_ASSERT_EQUAL(play.messages, 2);
    end();
}

/* It ends when its call has ended, and not later than its owner; until then nothing more is sent to it. */
static void test_one_that_is_replaced_within_its_call(void)
{
    begin();
    listeners_replace(&play.listeners, open_one(replace_within));
    deliver(0);
    CU_ASSERT_EQUAL(play.subscribed[0].unsubscribed, 1);
    CU_ASSERT_EQUAL(play.subscribed[0].retired, 0);
    CU_ASSERT_EQUAL(play.subscribed[1].unsubscribed, 0);
    listeners_close(&play.listeners);
    CU_ASSERT_EQUAL(play.subscribed[0].retired, 1);
    CU_ASSERT_EQUAL(play.subscribed[1].retired, 1);
    CU_ASSERT_PTR_NULL(play.listeners.newest);
    end();
}

/* nats.c's thread may still call it, and nobody will say when it has gone: its memory stays. */
static void test_one_whose_end_nobody_tells(void)
{
    struct listener *listener = NULL;
    begin();
    play.complete_status = NATS_INVALID_SUBSCRIPTION;
    CU_ASSERT_NOT_EQUAL(listener_open(&play.link, "thole.test", NULL, count, NULL, &listener, NULL),
                        THOLE_OK);
    CU_ASSERT_PTR_NULL(listener);
    CU_ASSERT_EQUAL(play.subscribed[0].retired, 1);
    CU_ASSERT_PTR_NOT_NULL(play.orphan);
    deliver(0);
    CU_ASSERT_EQUAL(play.messages, 0);
    end();
}

/* ---- a subscription ---- */

static void ignore(void *arg, const struct delivery *delivery)
{
    (void)arg, (void)delivery;
}

/* First it follows the connection no more: else it could get a new listener while it is freed. */
static void test_how_a_subscription_is_closed(void)
{
    struct subscription *subscription = NULL;
    begin();
    CU_ASSERT_EQUAL_FATAL(connection_subscribe(NULL, "thole.test", ignore, NULL, &subscription, NULL),
                          THOLE_OK);
    subscription_close(subscription);
    CHECK_STR("order", play.log, "attach detach close ");
    end();
}

/* ---- messages ---- */

static void test_which_message_is_a_status(void)
{
    static const struct {
        const char *status, *body;
        uint32_t want;
    } rows[] = {{"408", "", 408}, {"100", "", 100}, {"503", "", 503}, {"408", "x", 0},
                {NULL, "", 0},    {"4x8", "", 0},   {"", "", 0},      {"4081", "", 408}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        natsMsg *message = NULL;
        thole_slice text;
        begin();
        CU_ASSERT_EQUAL_FATAL(
            natsMsg_Create(&message, "thole.test", NULL, rows[i].body, (int)strlen(rows[i].body)), NATS_OK);
        if (rows[i].status != NULL) {
            CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Status", rows[i].status), NATS_OK);
            CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Description", "Request Timeout"), NATS_OK);
        }
        struct delivery const delivery = link_delivery(message);
        CU_ASSERT_EQUAL(link_status(&delivery, &text), rows[i].want);
        if (rows[i].want != 0)
            CU_ASSERT_TRUE(thole_slice_equal(text, THOLE_STR("Request Timeout")));
        natsMsg_Destroy(message);
    }
}

/* nats.c would send a line break in a subject as the begin of a command. */
static void test_which_subjects_are_sent(void)
{
    static const struct {
        const char *subject, *reply;
        bool sent;
    } rows[] = {{"a.b", "r.1", true},   {"a b", "r", false}, {"", "r", false},     {"a", "", false},
                {"a", "r\r\nX", false}, {"a", "r s", false}, {"a\x7f", "r", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool sent = true;
        begin();
        thole_status const status =
            link_send_bytes(&play.link, rows[i].subject, rows[i].reply, THOLE_STR("x"), &sent, NULL);
        CU_ASSERT_EQUAL(status, rows[i].sent ? THOLE_OK : THOLE_INVALID);
        CU_ASSERT_EQUAL(sent, rows[i].sent);
        CU_ASSERT_EQUAL(play.published, rows[i].sent);
    }
}

static void free_messages(size_t n, size_t body_len)
{
    static const char body[256 * 1024];
    for (size_t i = 0; i < n; i++) {
        natsMsg *message = NULL;
        CU_ASSERT_EQUAL_FATAL(natsMsg_Create(&message, "thole.test", NULL, body, (int)body_len), NATS_OK);
        link_message_free(message);
    }
}

/* nats.c wakes a thread up for each that is destroyed: they go to it many at a time, and none is kept for
 * ever.
 */
static void test_when_messages_are_destroyed(void)
{
    static const struct {
        size_t n, body_len, want;
    } rows[] = {{511, 8, 0},       {512, 8, 512},     {600, 8, 512},     {0, 8, 0},
                {3, 64 * 1024, 0}, {4, 64 * 1024, 4}, {5, 64 * 1024, 4}, {1, 256 * 1024, 1}};
    link_message_free(NULL);
    for (size_t i = 0; !SANITIZED_ADDRESS && i < ARRAY_LEN(rows); i++) {
        begin();
        link_messages_free_rest();
        play.destroyed = 0;
        free_messages(rows[i].n, rows[i].body_len);
        CU_ASSERT_EQUAL(play.destroyed, rows[i].want);
        link_messages_free_rest();
        CU_ASSERT_EQUAL(play.destroyed, rows[i].n);
    }
}

static const struct thole_test tests[] = {
    {"one that is replaced", test_one_that_is_replaced},
    {"one that is replaced within its call", test_one_that_is_replaced_within_its_call},
    {"one whose end nobody tells", test_one_whose_end_nobody_tells},
    {"how a subscription is closed", test_how_a_subscription_is_closed},
    {"which message is a status", test_which_message_is_a_status},
    {"which subjects are sent", test_which_subjects_are_sent},
    {"when messages are destroyed", test_when_messages_are_destroyed},
};
THOLE_TEST_MAIN("links", tests)
