/* How often a worker looks after its queue's consumer: the server, the clock and the waits are the test's. */
#include "clock.h"
#include "logged.h"
#include "queue_keeper.h"
#include "queue_wish.h"
#include "said.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { LOOKS_MAX = 64 };

static struct {
    atomic_size_t looks, idle; /* idle: times that it sleeps until it is asked */
    atomic_size_t fail;        /* so many looks fail first */
    atomic_uint_fast64_t now_ms;
    uint64_t pauses[LOOKS_MAX]; /* before each look that was tried again */
    size_t pauses_len;
    bool anew; /* each look that is well creates the consumer again */
    struct said said;
} play;

/* Whatever it is, it may be over by the next look. */
static thole_status const failures[] = {THOLE_UNAVAILABLE, THOLE_CONFLICT, THOLE_DENIED, THOLE_NOT_FOUND};

uint64_t __wrap_clock_monotonic_ms(void)
{
    return atomic_load(&play.now_ms);
}

thole_status __wrap_queue_wish(struct connection *connection, const char *ns, thole_slice queue,
                               uint64_t lease_ms, uint64_t *ret_lease_ms, bool *ret_anew, thole_error *reterr)
{
    (void)connection, (void)ns, (void)queue;
    *ret_lease_ms = lease_ms;
    size_t const look = atomic_fetch_add(&play.looks, 1);
    bool const well = look >= atomic_load(&play.fail);
    *ret_anew = well && play.anew;
    return well ? THOLE_OK : thole_fail(reterr, failures[look % ARRAY_LEN(failures)], "look %zu fails", look);
}

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...) THOLE_PRINTF(4, 5);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    logged_text(text, sizeof text, fields, fmt, args);
    va_end(args);
    CU_ASSERT_EQUAL(level, LOG_LEVEL_WARN);
    said_add(&play.said, "%s: %s\n", area, text);
}

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    atomic_fetch_add(&play.idle, 1);
    return __real_pthread_cond_wait(cond, mutex);
}

/* Nobody asks meanwhile: the time is over. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    uint64_t const until_ms = (uint64_t)until->tv_sec * 1000 + (uint64_t)until->tv_nsec / 1000000;
    (void)cond, (void)mutex;
    if (play.pauses_len < LOOKS_MAX)
        play.pauses[play.pauses_len++] = until_ms - atomic_load(&play.now_ms);
    atomic_store(&play.now_ms, until_ms);
    return ETIMEDOUT;
}

/* ---- names that the workers know ---- */

static struct {
    atomic_bool asks; /* time to ask */
    atomic_uint asked;
    thole_status status;
} served;

bool __wrap_served_names_asks(struct served_names *names, uint64_t now_ms)
{
    (void)names, (void)now_ms;
    return atomic_load(&served.asks);
}

thole_status __wrap_served_names_ask(struct served_names *names, struct connection *connection,
                                     const char *ns, thole_slice queue, thole_slice self, thole_error *reterr)
{
    (void)names, (void)connection;
    CHECK_STR("namespace", ns, "test");
    CU_ASSERT_TRUE(thole_slice_equal(queue, THOLE_STR("q")));
    CU_ASSERT_TRUE(thole_slice_equal(self, THOLE_STR("w-1")));
    atomic_fetch_add(&served.asked, 1);
    return served.status == THOLE_OK ? THOLE_OK : thole_fail(reterr, served.status, "may not ask");
}

static void wait_idle(size_t times)
{
    while (atomic_load(&play.idle) < times && atomic_load(&play.looks) < LOOKS_MAX)
        (void)sched_yield();
    CU_ASSERT_EQUAL(atomic_load(&play.idle), times);
}

static struct queue_keeper *begin(size_t fail)
{
    struct queue_keeper *const keeper = queue_keeper_create();
    atomic_store(&play.looks, 0);
    atomic_store(&play.idle, 0);
    atomic_store(&play.fail, fail);
    atomic_store(&play.now_ms, 1000);
    play.pauses_len = 0;
    play.anew = false;
    said_clear(&play.said);
    CU_ASSERT_PTR_NOT_NULL_FATAL(keeper);
    queue_keeper_listen(keeper, (struct served_names *)&served, THOLE_STR("w-1"));
    CU_ASSERT_EQUAL_FATAL(queue_keeper_start(keeper, NULL, "test", "q", 30000, NULL), THOLE_OK);
    wait_idle(1);
    return keeper;
}

static void end(struct queue_keeper *keeper)
{
    queue_keeper_stop(keeper);
    queue_keeper_destroy(keeper);
}

/* Not again and again: each look is a question to the server. */
static void test_one_wish_is_one_look(void)
{
    struct queue_keeper *const keeper = begin(0);
    CU_ASSERT_EQUAL(atomic_load(&play.looks), 0);
    queue_keeper_look(keeper);
    wait_idle(2);
    CU_ASSERT_EQUAL(atomic_load(&play.looks), 1);
    queue_keeper_look(keeper);
    wait_idle(3);
    CU_ASSERT_EQUAL(atomic_load(&play.looks), 2);
    end(keeper);
}

static void test_what_fails_is_tried_again(void)
{
    static const uint64_t pauses[] = {500, 1000, 2000, 4000, 8000, 15000, 15000, 15000};
    struct queue_keeper *const keeper = begin(ARRAY_LEN(pauses));
    queue_keeper_look(keeper);
    wait_idle(2);
    CU_ASSERT_EQUAL(atomic_load(&play.looks), ARRAY_LEN(pauses) + 1);
    CU_ASSERT_EQUAL_FATAL(play.pauses_len, ARRAY_LEN(pauses));
    for (size_t i = 0; i < ARRAY_LEN(pauses); i++)
        CU_ASSERT_EQUAL(play.pauses[i], pauses[i]);
    end(keeper);
}

/* An absent server is no news of the queue. */
static void test_what_is_said(void)
{
    struct queue_keeper *keeper = begin(4);
    play.anew = true;
    queue_keeper_look(keeper);
    wait_idle(2);
    said_check(&play.said, "each look",
               "worker: queue q gives no work: look 1 fails\n"
               "worker: queue q gives no work: look 2 fails\n"
               "worker: queue q gives no work: look 3 fails\n"
               "worker: queue q: its consumer was gone, or ahead of its stream (the server lost what it had "
               "acknowledged: power, backup), and is created again\n");
    end(keeper);
    keeper = begin(0);
    queue_keeper_look(keeper);
    wait_idle(2);
    said_check(&play.said, "well", "");
    end(keeper);
}

/* Not again and again: each question goes to all workers. */
static void test_the_workers_are_asked(void)
{
    struct queue_keeper *const keeper = begin(0);
    atomic_store(&served.asks, true);
    atomic_store(&served.asked, 0);
    served.status = THOLE_OK;
    queue_keeper_ask(keeper);
    wait_idle(2);
    CU_ASSERT_EQUAL(atomic_load(&served.asked), 1);
    atomic_store(&served.asks, false);
    queue_keeper_ask(keeper);
    wait_idle(3);
    CU_ASSERT_EQUAL(atomic_load(&served.asked), 1);
    atomic_store(&served.asks, true);
    served.status = THOLE_DENIED;
    queue_keeper_ask(keeper);
    wait_idle(4);
    queue_keeper_ask(keeper);
    wait_idle(5);
    CU_ASSERT_EQUAL(atomic_load(&served.asked), 3);
    CU_ASSERT_EQUAL(atomic_load(&play.looks), 0); /* asking is separate from looking */
    said_check(&play.said, "once",
               "worker: queue q: this user may not ask which activities other workers know, so those that no "
               "worker knows stay in the queue before the others; give it what thole doctor "
               "--nats-permissions worker prints: may not ask\n");
    end(keeper);
}

static const struct thole_test tests[] = {
    {"the workers are asked", test_the_workers_are_asked},
    {"what is said", test_what_is_said},
    {"one wish is one look", test_one_wish_is_one_look},
    {"what fails is tried again", test_what_fails_is_tried_again},
};
THOLE_TEST_MAIN("queue_keeper", tests)
