/* How a connection that is lost comes back: nats.c, the servers, the clock and the keeper's waits are played.
 */
#include "clock.h"
#include "link.h"
#include "loop.h"
#include "server_info.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    START_MS = 100000,
    TRIES = 16,
    ASKED_MAX = 128,
    TURNS_MAX = 50,
    RETRY_MS_MIN = 50,
    RETRY_MS_MAX = 2000
};

static struct {
    atomic_bool done;
    /* the keeper's thread */
    bool connected;
    uint64_t now_ms;
    unsigned losses, fail_after; /* so many more times is it lost, and then so many servers do not answer */
    unsigned fail;
    uint64_t lost_ms; /* when it was last */
    uint64_t asked_ms[ASKED_MAX];
    char asked[ASKED_MAX + 1]; /* the servers' names */
    size_t asked_len;
    char log[128];
    natsConnectionHandler disconnected, closed;
    natsErrHandler error;
    char forbidden[64];  /* nats.c's last error */
    unsigned told[2];    /* by enum connection_trouble */
    thole_error trouble; /* the last one */
    void *closure;
    unsigned destroyed;
    bool (*turn)(void);                 /* instead of a wait while it is connected; true: the test is over */
    unsigned turns, flushes, unflushed; /* unflushed: so many times does the server not answer */
    unsigned unused;                    /* subscriptions that were destroyed */
    bool shut, owed_closed;             /* the loop of the newest link; its closed callback has not come */
} play;

static natsConnection *const some_nc = (natsConnection *)&play;
static natsSubscription *const some_subscription = (natsSubscription *)&play;

static void note(const char *text, uint64_t epoch)
{
    (void)snprintf(play.log + strlen(play.log), sizeof play.log - strlen(play.log), "%s%u ", text,
                   (unsigned)epoch);
}

/* ---- clocks and waits ---- */

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

uint64_t __wrap_clock_wall_ms(void)
{
    return play.now_ms + 1600000000000;
}

/* The time passes at once. Connected, the connection is lost instead, or the test is over. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    if (play.connected && play.turn != NULL) {
        (void)pthread_mutex_unlock(mutex);
        play.turn = play.turn() ? NULL : play.turn;
        (void)pthread_mutex_lock(mutex);
        play.now_ms = (uint64_t)until->tv_sec * 1000 + (uint64_t)until->tv_nsec / 1000000;
        return ETIMEDOUT;
    }
    if (play.connected && play.losses > 0) {
        play.losses--;
        play.fail = play.fail_after;
        play.lost_ms = play.now_ms;
        (void)pthread_mutex_unlock(mutex);
        play.disconnected(some_nc, play.closure);
        (void)pthread_mutex_lock(mutex);
        return 0;
    }
    if (play.connected) {
        atomic_store(&play.done, true);
        return pthread_cond_wait(cond, mutex);
    }
    play.now_ms = (uint64_t)until->tv_sec * 1000 + (uint64_t)until->tv_nsec / 1000000;
    return ETIMEDOUT;
}

/* ---- servers and nats.c ---- */

thole_status __wrap_server_info_read(const char *url, uint64_t timeout_ms, struct server_info *ret,
                                     thole_error *reterr)
{
    (void)timeout_ms;
    CU_ASSERT_FATAL(play.asked_len < ASKED_MAX);
    play.asked_ms[play.asked_len] = play.now_ms;
    play.asked[play.asked_len++] = url[strlen("nats://")];
    if (play.fail > 0) {
        play.fail--;
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no server");
    }
    *ret = (struct server_info){.version = "2.10.27", .max_payload = 1048576, .jetstream = true};
    return THOLE_OK;
}

natsStatus __wrap_natsConnection_Connect(natsConnection **nc, natsOptions *options)
{
    (void)options;
    *nc = some_nc;
    return NATS_OK;
}

struct loop *__wrap_loop_create(loop_deliver_fn *deliver, void *arg)
{
    (void)deliver, (void)arg;
    play.shut = false;
    return (struct loop *)&play;
}

natsStatus __wrap_loop_set_options(struct loop *loop, natsOptions *options)
{
    (void)loop, (void)options;
    return NATS_OK;
}

/* nats.c closes the connection on the loop's thread. */
void __wrap_loop_shut(struct loop *loop)
{
    (void)loop;
    if (!play.shut)
        play.owed_closed = true;
    play.shut = true;
}

void __wrap_loop_join(struct loop *loop)
{
    __wrap_loop_shut(loop);
    if (play.owed_closed)
        play.closed(some_nc, play.closure);
    play.owed_closed = false;
}

void __wrap_loop_destroy(struct loop *loop)
{
    (void)loop;
}

bool __wrap_loop_is_stalled(struct loop *loop, unsigned silent_max, unsigned blocked_max)
{
    (void)loop, (void)silent_max, (void)blocked_max;
    return false;
}

bool __wrap_natsConnection_IsClosed(natsConnection *nc)
{
    (void)nc;
    return false;
}

thole_status __wrap_link_check_inbox(struct link *link, const char *inbox, uint64_t timeout_ms,
                                     thole_error *reterr)
{
    (void)link, (void)inbox, (void)timeout_ms, (void)reterr;
    return THOLE_OK;
}

void __wrap_natsConnection_Destroy(natsConnection *nc)
{
    CU_ASSERT_PTR_EQUAL(nc, some_nc);
    play.destroyed++;
}

natsStatus __wrap_natsConnection_FlushTimeout(natsConnection *nc, int64_t timeout)
{
    (void)nc, (void)timeout;
    play.flushes++;
    return play.flushes > play.unflushed ? NATS_OK : NATS_TIMEOUT;
}

natsStatus __wrap_natsSubscription_Unsubscribe(natsSubscription *subscription)
{
    CU_ASSERT_PTR_EQUAL(subscription, some_subscription);
    return NATS_OK;
}

void __wrap_natsSubscription_Destroy(natsSubscription *subscription)
{
    CU_ASSERT_PTR_EQUAL(subscription, some_subscription);
    play.unused++;
}

natsStatus __wrap_natsOptions_SetDisconnectedCB(natsOptions *options, natsConnectionHandler handler,
                                                void *arg)
{
    (void)options;
    play.disconnected = handler;
    play.closure = arg;
    return NATS_OK;
}

natsStatus __wrap_natsOptions_SetClosedCB(natsOptions *options, natsConnectionHandler handler, void *arg)
{
    (void)options, (void)arg;
    play.closed = handler;
    return NATS_OK;
}

natsStatus __wrap_natsOptions_SetErrorHandler(natsOptions *options, natsErrHandler handler, void *arg)
{
    (void)options, (void)arg;
    play.error = handler;
    return NATS_OK;
}

natsStatus __wrap_natsConnection_GetLastError(natsConnection *nc, const char **text)
{
    CU_ASSERT_PTR_EQUAL(nc, some_nc);
    *text = play.forbidden;
    return NATS_NOT_PERMITTED;
}

static void on_trouble(void *arg, enum connection_trouble trouble, const thole_error *error)
{
    (void)arg;
    play.told[trouble]++;
    play.trouble = *error;
}

static void on_state(void *arg, bool connected, uint64_t epoch)
{
    (void)arg;
    play.connected = connected;
    note(connected ? "up" : "down", epoch);
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    play.now_ms = START_MS;
}

/* Connects, and closes it when it was lost so many times and the test is over. */
static void connect_and_close(unsigned losses)
{
    struct connection *connection = NULL;
    struct connection_options const options = {.url = "nats://a:1,nats://b:2",
                                               .connect_timeout_ms = 1000,
                                               .request_timeout_ms = 1000,
                                               .on_state = on_state,
                                               .on_trouble = on_trouble};
    CU_ASSERT_EQUAL_FATAL(connection_open(&options, &connection, NULL), THOLE_OK);
    while (!atomic_load(&play.done))
        (void)sched_yield();
    connection_close(connection);
    CU_ASSERT_EQUAL(play.destroyed, losses + 1);
}

/* Loses the connection so many times; after each `fail` servers do not answer. */
static void run(unsigned losses, unsigned fail)
{
    begin();
    play.losses = losses;
    play.fail_after = fail;
    connect_and_close(losses);
}

/* ---- tests ---- */

/* From the place @p at in what was asked on. */
static void check_pauses(size_t at)
{
    uint64_t pause_ms = RETRY_MS_MIN;
    for (size_t i = at + 2; i < at + (size_t)2 * TRIES; i += 2) {
        uint64_t const ms = play.asked_ms[i] - play.asked_ms[i - 2];
        CU_ASSERT_TRUE(ms >= pause_ms / 2 && ms <= pause_ms);
        CU_ASSERT_EQUAL(play.asked_ms[i], play.asked_ms[i + 1]); /* all servers, one after the other */
        pause_ms = pause_ms * 2 < RETRY_MS_MAX ? pause_ms * 2 : RETRY_MS_MAX;
    }
}

/* However long it is away: when it is back nobody waits for minutes. */
static void test_how_often_it_is_tried(void)
{
    run(2, 2 * TRIES);
    CHECK_STR("states", play.log, "up1 down1 up2 down2 up3 ");
    CU_ASSERT_EQUAL_FATAL(play.asked_len, 1 + 2 * (2 * TRIES + 1));
    CU_ASSERT_EQUAL(play.asked_ms[1], START_MS);
    check_pauses(1);
    check_pauses(1 + 2 * TRIES + 1); /* starts over with short ones */
}

static void test_which_server_is_next(void)
{
    run(3, 0);
    CHECK_STR("not the one that was lost", play.asked, "abab");
    run(1, 3);
    CHECK_STR("in turn", play.asked, "ababa");
}

static void test_one_that_is_lost_at_once_is_not_hammered(void)
{
    run(2, 0);
    CU_ASSERT_EQUAL_FATAL(play.asked_len, 3);
    CU_ASSERT_EQUAL(play.asked_ms[2] - play.lost_ms, RETRY_MS_MIN);
}

/* ---- failures that no call reports ---- */

/* Both servers are one attempt. */
static void test_each_attempt_that_fails_is_told(void)
{
    run(1, 6);
    CU_ASSERT_EQUAL(play.told[CONNECTION_NOT_MADE], 3);
    CU_ASSERT_EQUAL(play.told[CONNECTION_FORBIDS], 0);
    CU_ASSERT_EQUAL(play.trouble.status, THOLE_UNAVAILABLE);
    CHECK_STR("why", play.trouble.text, "no server");
}

static bool something_is_forbidden(void)
{
    (void)snprintf(play.forbidden, sizeof play.forbidden, "Permissions Violation for Publish to \"a.b\"");
    play.error(some_nc, NULL, NATS_SLOW_CONSUMER, play.closure);
    play.error(some_nc, NULL, NATS_NOT_PERMITTED, play.closure);
    return true;
}

static void test_what_the_server_forbids_is_told(void)
{
    begin();
    play.turn = something_is_forbidden;
    connect_and_close(0);
    CU_ASSERT_EQUAL(play.told[CONNECTION_FORBIDS], 1);
    CU_ASSERT_EQUAL(play.told[CONNECTION_NOT_MADE], 0);
    CU_ASSERT_EQUAL(play.trouble.status, THOLE_DENIED);
    CHECK_STR("what", play.trouble.text,
              "the NATS server forbids it: Permissions Violation for Publish to \"a.b\"");
}

/* ---- subscriptions that are not used any more ---- */

static bool until_the_server_has_answered(void)
{
    if (play.turns++ == 0)
        connection_retire(play.closure, some_subscription, 1);
    CU_ASSERT_EQUAL(play.unused, play.flushes == 2);
    return play.flushes == 2 || play.turns == TURNS_MAX;
}

/* nats.c's thread may still read it. */
static void test_kept_until_the_server_has_answered(void)
{
    begin();
    play.turn = until_the_server_has_answered;
    play.unflushed = 1;
    connect_and_close(0);
    CU_ASSERT_EQUAL(play.flushes, 2);
    CU_ASSERT_EQUAL(play.unused, 1);
}

static bool lost_with_its_link(void)
{
    if (play.turns++ == 0) {
        connection_retire(play.closure, some_subscription, 1);
        play.disconnected(some_nc, play.closure);
    }
    CU_ASSERT_EQUAL(play.unused, play.flushes > 0);
    return play.flushes == 1 || play.turns == TURNS_MAX;
}

static void test_lost_with_its_link(void)
{
    begin();
    play.turn = lost_with_its_link;
    play.unflushed = TURNS_MAX;
    connect_and_close(1);
    CU_ASSERT_EQUAL(play.flushes, 1);
    CU_ASSERT_EQUAL(play.unused, 1);
}

static const struct thole_test tests[] = {
    {"each attempt that fails is told", test_each_attempt_that_fails_is_told},
    {"what the server forbids is told", test_what_the_server_forbids_is_told},
    {"kept until the server has answered", test_kept_until_the_server_has_answered},
    {"lost with its link", test_lost_with_its_link},
    {"how often it is tried", test_how_often_it_is_tried},
    {"which server is next", test_which_server_is_next},
    {"one that is lost at once is not hammered", test_one_that_is_lost_at_once_is_not_hammered},
};
THOLE_TEST_MAIN("connection_keeper", tests)
