/* Listeners: what nats.c's subscriptions have gathered is delivered, in which order, and to whom no more. */
#include "connection.h"
#include "link.h"
#include "loop.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <stdlib.h>

enum { SUBSCRIPTIONS_MAX = 4 };

struct subscribed {
    uint64_t waiting; /* messages */
    bool refused;     /* before them */
    unsigned unsubscribed, retired, taken;
};

static struct {
    struct subscribed subscribed[SUBSCRIPTIONS_MAX];
    size_t subscribed_len;
    struct listeners listeners;
    struct link *link;
    loop_deliver_fn *deliver;
    void *deliver_arg;
    int links; /* references */
    uint64_t early;
    bool fails;
    unsigned messages, refusals, wakes;
    char log[64];
} play;

static struct subscribed *of(natsSubscription *native)
{
    return (struct subscribed *)native;
}

/* ---- nats.c, the loop and the connection ---- */

natsStatus __wrap_natsConnection_SubscribeSync(natsSubscription **sub, natsConnection *nc,
                                               const char *subject)
{
    (void)nc, (void)subject;
    if (play.fails)
        return NATS_CONNECTION_CLOSED;
    struct subscribed *const to = &play.subscribed[play.subscribed_len++];
    *to = (struct subscribed){.waiting = play.early};
    *sub = (natsSubscription *)to;
    return NATS_OK;
}

natsStatus __wrap_natsSubscription_SetPendingLimits(natsSubscription *sub, int messages, int bytes)
{
    (void)sub;
    CU_ASSERT_TRUE(messages == -1 && bytes == -1);
    return NATS_OK;
}

natsStatus __wrap_natsSubscription_QueuedMsgs(natsSubscription *sub, uint64_t *ret)
{
    *ret = of(sub)->waiting + of(sub)->refused;
    return NATS_OK;
}

natsStatus __wrap_natsSubscription_NextMsg(natsMsg **ret, natsSubscription *sub, int64_t timeout)
{
    struct subscribed *const from = of(sub);
    CU_ASSERT_EQUAL(timeout, 0);
    CU_ASSERT_EQUAL(from->retired, 0);
    if (from->refused) {
        from->refused = false;
        return NATS_NO_RESPONDERS;
    }
    if (from->waiting == 0)
        return NATS_TIMEOUT;
    from->waiting--;
    from->taken++;
    return natsMsg_Create(ret, "thole.test", NULL, "x", 1);
}

natsStatus __wrap_natsSubscription_Unsubscribe(natsSubscription *sub)
{
    of(sub)->unsubscribed++;
    return NATS_OK;
}

void __wrap_connection_retire(struct connection *connection, natsSubscription *native, uint64_t epoch)
{
    (void)connection;
    CU_ASSERT_EQUAL(epoch, 1);
    of(native)->retired++;
}

void __wrap_link_retain(struct link *link)
{
    CU_ASSERT_PTR_EQUAL(link, play.link);
    play.links++;
}

void __wrap_link_release(struct link *link)
{
    CU_ASSERT_PTR_EQUAL(link, play.link);
    play.links--;
}

struct loop *__wrap_loop_create(loop_deliver_fn *deliver, void *arg)
{
    play.deliver = deliver;
    play.deliver_arg = arg;
    return (struct loop *)(void *)&play;
}

void __wrap_loop_begin(struct loop *loop)
{
    CU_ASSERT_PTR_EQUAL(loop, (struct loop *)(void *)&play);
}

void __wrap_loop_end(struct loop *loop)
{
    CU_ASSERT_PTR_EQUAL(loop, (struct loop *)(void *)&play);
}

void __wrap_loop_join(struct loop *loop)
{
    (void)loop;
}

void __wrap_loop_destroy(struct loop *loop)
{
    (void)loop;
}

void __wrap_loop_wake(struct loop *loop)
{
    (void)loop;
    play.wakes++;
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
    play.link = link_create(NULL);
    play.link->epoch = 1;
}

static void end(void)
{
    listeners_close(&play.listeners);
    CU_ASSERT_EQUAL(play.links, 0);
    for (size_t i = 0; i < play.subscribed_len; i++)
        CU_ASSERT_EQUAL(play.subscribed[i].retired, 1);
    link_destroy(play.link);
}

static struct listener *open_one(listener_fn *fn)
{
    struct listener *listener = NULL;
    CU_ASSERT_EQUAL_FATAL(listener_open(play.link, "thole.test", NULL, fn, NULL, &listener, NULL), THOLE_OK);
    return listener;
}

static void deliver(size_t i, uint64_t messages)
{
    play.subscribed[i].waiting += messages;
    play.deliver(play.deliver_arg);
}

static void count(void *arg, natsMsg **message, uint64_t epoch)
{
    (void)arg;
    CU_ASSERT_EQUAL(epoch, 1);
    if (*message == NULL)
        play.refusals++;
    else
        play.messages++;
}

static void replace_within(void *arg, natsMsg **message, uint64_t epoch)
{
    count(arg, message, epoch);
    if (play.subscribed_len == 1)
        listeners_replace(&play.listeners, open_one(count));
}

static void close_another(void *arg, natsMsg **message, uint64_t epoch)
{
    struct listeners *const others = arg;
    count(NULL, message, epoch);
    __real_listeners_close(others);
}

/* ---- tests ---- */

static void test_all_that_has_come(void)
{
    begin();
    listeners_replace(&play.listeners, open_one(count));
    deliver(0, 3);
    CU_ASSERT_EQUAL(play.messages, 3);
    deliver(0, 0);
    CU_ASSERT_EQUAL(play.messages, 3);
    end();
}

static void test_no_responders(void)
{
    begin();
    listeners_replace(&play.listeners, open_one(count));
    play.subscribed[0].refused = true;
    deliver(0, 2);
    CU_ASSERT_EQUAL(play.refusals, 1);
    CU_ASSERT_EQUAL(play.messages, 2);
    end();
}

static void test_one_that_is_replaced(void)
{
    begin();
    listeners_replace(&play.listeners, open_one(count));
    deliver(0, 1);
    listeners_replace(&play.listeners, open_one(count));
    CU_ASSERT_EQUAL(play.subscribed[0].retired, 1);
    deliver(0, 1); /* a delivery on its way */
    CU_ASSERT_EQUAL(play.messages, 1);
    deliver(1, 1);
    CU_ASSERT_EQUAL(play.messages, 2);
    end();
    CU_ASSERT_EQUAL(play.messages, 2);
}

/* The old one ends when its call has ended, and not later than its owner; until then nothing more is sent to
 * it. */
static void test_one_that_is_replaced_within_its_call(void)
{
    begin();
    listeners_replace(&play.listeners, open_one(replace_within));
    deliver(0, 1);
    CU_ASSERT_EQUAL(play.subscribed[0].unsubscribed, 1);
    CU_ASSERT_EQUAL(play.subscribed[0].retired, 0);
    CU_ASSERT_EQUAL(play.subscribed[1].unsubscribed, 0);
    deliver(1, 1);
    CU_ASSERT_EQUAL(play.messages, 2);
    end();
    CU_ASSERT_PTR_NULL(play.listeners.newest);
}

/* The one that would be the next: the newest comes first. */
static void test_one_that_another_closes(void)
{
    struct listener *first = NULL;
    begin();
    listeners_replace(&play.listeners, open_one(count));
    CU_ASSERT_EQUAL_FATAL(
        listener_open(play.link, "thole.test", NULL, close_another, &play.listeners, &first, NULL), THOLE_OK);
    struct listeners others = {.newest = first};
    play.subscribed[0].waiting = 1;
    deliver(1, 1);
    CU_ASSERT_EQUAL(play.messages, 1);
    CU_ASSERT_EQUAL(play.subscribed[0].taken, 0);
    CU_ASSERT_EQUAL(play.subscribed[0].retired, 1);
    __real_listeners_close(&others);
    end();
}

/* A message may be read before the loop knows the subscription: nobody would look at it until the next is
 * read. */
static void test_what_came_early(void)
{
    begin();
    listeners_replace(&play.listeners, open_one(count));
    CU_ASSERT_EQUAL(play.wakes, 0);
    play.early = 1;
    listeners_replace(&play.listeners, open_one(count));
    CU_ASSERT_EQUAL(play.wakes, 1);
    end();
}

static void test_one_that_cannot_be_opened(void)
{
    struct listener *listener = NULL;
    begin();
    play.fails = true;
    CU_ASSERT_EQUAL(listener_open(play.link, "thole.test", NULL, count, NULL, &listener, NULL),
                    THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NULL(listener);
    end();
}

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

static const struct thole_test tests[] = {
    {"all that has come", test_all_that_has_come},
    {"no responders", test_no_responders},
    {"one that is replaced", test_one_that_is_replaced},
    {"one that is replaced within its call", test_one_that_is_replaced_within_its_call},
    {"one that another closes", test_one_that_another_closes},
    {"what came early", test_what_came_early},
    {"one that cannot be opened", test_one_that_cannot_be_opened},
    {"how a subscription is closed", test_how_a_subscription_is_closed},
};
THOLE_TEST_MAIN("listeners", tests)
