/* A handler's view of its activity, and the threads that run handlers. No server is needed. */
#include "clock.h"
#include "handlers.h"
#include "heap.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

static struct mailbox inbox;
static atomic_bool let_go;
static atomic_uint runs, awaited;

static struct thole_activity *make(const char *instance, thole_activity_fn *run)
{
    struct work_message *const message = calloc(1, sizeof *message);
    CU_ASSERT_PTR_NOT_NULL_FATAL(message);
    message->item = (struct work_item){.instance = thole_slice_from(instance),
                                       .activity = THOLE_STR("charge"),
                                       .input = THOLE_STR("42"),
                                       .execution = 3,
                                       .activity_id = 7};
    struct thole_activity *const act = activity_create(message, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(act);
    act->run = run;
    act->attempt = 2;
    return act;
}

static void check_text(const char *what, thole_slice got, const char *want)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(got));
    CHECK_STR(what, text, want);
}

static unsigned threads_left = UINT_MAX; /* number of threads that the system gives */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
    if (threads_left == 0)
        return EAGAIN;
    threads_left--;
    return __real_pthread_create(thread, attr, main, arg);
}

/* ---- include/thole/activity.h ---- */

static thole_status looks(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    check_text("input", input, "42");
    CU_ASSERT_EQUAL(ret_output->len, 0);
    check_text("instance", thole_activity_instance(act), "order 1/\xc3\xa4");
    check_text("name", thole_activity_name(act), "charge");
    check_text("key", thole_activity_key(act), "order%201%2F%C3%A4.3.7");
    CU_ASSERT_EQUAL(thole_activity_execution(act), 3);
    CU_ASSERT_EQUAL(thole_activity_id(act), 7);
    CU_ASSERT_EQUAL(thole_activity_attempt(act), 2);
    CU_ASSERT_FALSE(thole_activity_cancelled(act));
    check_text("no reason yet", thole_activity_cancel_reason(act), "");
    const unsigned char *const zeroed = thole_activity_alloc(act, 100);
    CU_ASSERT_PTR_NOT_NULL_FATAL(zeroed);
    for (size_t i = 0; i < 100; i++)
        CU_ASSERT_EQUAL(zeroed[i], 0);
    CU_ASSERT_PTR_NULL(thole_activity_alloc(act, SIZE_MAX));
    *ret_output = thole_activity_format(act, "%s-%d", "done", 5);
    return THOLE_OK;
}

static void test_looks(void)
{
    struct thole_activity *const act = make("order 1/\xc3\xa4", looks);
    activity_run(act);
    CU_ASSERT_EQUAL(act->status, THOLE_OK);
    check_text("output", act->output, "done-5");
    activity_destroy(act);
    activity_destroy(NULL);
}

static void test_longest_key(void)
{
    char instance[THOLE_ID_BYTES_MAX + 1] = "";
    memset(instance, ' ', THOLE_ID_BYTES_MAX);
    struct thole_activity *const act = make(instance, looks);
    CU_ASSERT_EQUAL(thole_activity_key(act).len, (size_t)THOLE_ID_BYTES_MAX * 3 + 4);
    activity_destroy(act);
}

static thole_status fails(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    CU_ASSERT_EQUAL(thole_activity_fail(act, "%0*d", 100000, 1), THOLE_APP); /* cut */
    CU_ASSERT_EQUAL(act->failure.len, ACTIVITY_FAILURE_BYTES_MAX);
    return thole_activity_fail(act, "card %.*s declined", THOLE_FMT(input));
}

static void fire(struct thole_activity *act, thole_cancel_kind kind, thole_slice reason)
{
    activity_fire(act, &(struct activity_cancel){
                           .kind = kind, .reason = reason, .grace_end_ms = clock_monotonic_ms() + 60000});
}

static void test_fails(void)
{
    struct thole_activity *const act = make("i", fails);
    activity_run(act);
    CU_ASSERT_EQUAL(act->status, THOLE_APP);
    check_text("failure", act->failure, "card 42 declined");
    activity_destroy(act);
}

static void test_token(void)
{
    char longer[TOKEN_REASON_BYTES + 100] = "";
    struct thole_activity *act = make("i", looks);
    uint64_t const from_ms = clock_monotonic_ms();
    CU_ASSERT_EQUAL(thole_activity_wait(act, 0), THOLE_OK);
    CU_ASSERT_EQUAL(thole_activity_wait(act, 20), THOLE_OK);
    CU_ASSERT_TRUE(clock_monotonic_ms() - from_ms >= 20);
    fire(act, THOLE_CANCEL_SELECT_LOSER, (thole_slice){0});
    fire(act, THOLE_CANCEL_TIMEOUT, THOLE_STR("later")); /* only the first one counts */
    CU_ASSERT_TRUE(thole_activity_cancelled(act));
    CU_ASSERT_EQUAL(thole_activity_wait(act, UINT64_MAX), THOLE_CANCELLED);
    check_text("reason", thole_activity_cancel_reason(act), "select_loser");
    activity_destroy(act);
    act = make("i", looks);
    memset(longer, 'x', sizeof longer);
    fire(act, THOLE_CANCEL_REQUESTED, (thole_slice){(const uint8_t *)longer, sizeof longer});
    CU_ASSERT_EQUAL(thole_activity_cancel_reason(act).len, TOKEN_REASON_BYTES);
    activity_destroy(act);
}

/* ---- threads ---- */

static thole_status waits_for_token(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    atomic_fetch_add(&runs, 1);
    return thole_activity_wait(act, UINT64_MAX);
}

static thole_status ignores_token(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    struct timespec const pause = {.tv_nsec = 1000000};
    (void)act, (void)input, (void)ret_output;
    atomic_fetch_add(&runs, 1);
    while (!atomic_load(&let_go))
        nanosleep(&pause, NULL);
    atomic_fetch_add(&runs, 1);
    return THOLE_OK;
}

static void until_runs(unsigned n)
{
    struct timespec const pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 10000 && atomic_load(&runs) < n; i++)
        nanosleep(&pause, NULL);
    CU_ASSERT_TRUE(atomic_load(&runs) >= n);
}

static struct handlers *open_pool(uint32_t slots, uint32_t abandoned_max)
{
    struct handlers *pool = NULL;
    mailbox_init(&inbox);
    atomic_store(&let_go, false);
    atomic_store(&runs, 0);
    CU_ASSERT_EQUAL_FATAL(handlers_create(slots, abandoned_max, &inbox, &pool, NULL), THOLE_OK);
    return pool;
}

/* The next activity that has returned. */
static struct thole_activity *next_finished(void)
{
    static struct mail *rest;
    if (rest == NULL && mailbox_wait(&inbox, clock_monotonic_ms() + 10000))
        rest = mailbox_take_all(&inbox);
    struct worker_mail *const mail = (struct worker_mail *)rest;
    CU_ASSERT_PTR_NOT_NULL_FATAL(mail);
    rest = rest->next;
    CU_ASSERT_EQUAL(mail->kind, WORKER_MAIL_FINISHED);
    return mail->owner;
}

static void test_many_runs(void)
{
    struct handlers *const pool = open_pool(4, 4);
    struct thole_activity *acts[64];
    for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
        acts[i] = make("i", waits_for_token);
        handlers_run(pool, acts[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(acts); i++)
        fire(acts[i], THOLE_CANCEL_REQUESTED, THOLE_STR("enough"));
    for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
        struct thole_activity *const act = next_finished();
        CU_ASSERT_EQUAL(act->status, THOLE_CANCELLED);
        activity_destroy(act);
    }
    handlers_destroy(pool);
    handlers_destroy(NULL);
    mailbox_release(&inbox);
}

/* Each waits for all others: those that are awake do not take the place of those that are to be woken. */
static thole_status meets_all(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    atomic_fetch_add(&runs, 1);
    until_runs(atomic_load(&awaited));
    return THOLE_OK;
}

/* A pool that does not get its threads: those that it has end, and nothing stays. */
static void test_too_few_threads(void)
{
    enum { ROUNDS = 16, JUDGED = 6 }; /* the first ones may fill lists of what is used again */
    size_t before = SIZE_MAX, grown = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct handlers *pool = NULL;
        thole_error error = {.status = THOLE_OK};
        for (unsigned left = 0; left < 3; left++) {
            threads_left = left;
            CU_ASSERT_EQUAL(handlers_create(3, 4, &inbox, &pool, &error), THOLE_NOMEM);
            CU_ASSERT_PTR_NULL(pool);
        }
        CHECK_STR("why", error.text, "only 2 of 3 slots got a thread; lower --slots");
        size_t const used = heap_used();
        grown += i >= ROUNDS - JUDGED && used > before;
        before = used;
    }
    threads_left = UINT_MAX;
    CU_ASSERT_TRUE(grown < JUDGED);
}

static void test_each_slot_runs(void)
{
    enum { SLOTS = 16, ROUNDS = 200 };
    struct handlers *const pool = open_pool(SLOTS, 1);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        atomic_store(&awaited, round * SLOTS);
        for (size_t i = 0; i < SLOTS; i++)
            handlers_run(pool, make("i", meets_all));
        for (size_t i = 0; i < SLOTS; i++)
            activity_destroy(next_finished());
    }
    handlers_destroy(pool);
    mailbox_release(&inbox);
}

static void test_abandoned(void)
{
    struct handlers *const pool = open_pool(1, 1);
    struct thole_activity *const stuck = make("i", ignores_token), *const next = make("i", waits_for_token);
    handlers_run(pool, stuck);
    until_runs(1);
    handlers_run(pool, next); /* waits: the only thread is taken */
    CU_ASSERT_TRUE(handlers_abandon(pool, stuck, true));
    until_runs(2);
    CU_ASSERT_FALSE(handlers_abandon(pool, next, true)); /* one abandoned thread is enough */
    struct thole_activity *const third = make("i", waits_for_token);
    fire(third, THOLE_CANCEL_REQUESTED, THOLE_STR("enough"));
    handlers_run(pool, third);
    CU_ASSERT_EQUAL(handlers_replaced(pool), 0);
    fire(next, THOLE_CANCEL_REQUESTED,
         THOLE_STR("enough")); /* comes back, and its thread fills the owed slot */
    CU_ASSERT_PTR_EQUAL(next_finished(), next);
    CU_ASSERT_EQUAL(handlers_replaced(pool), 1);
    CU_ASSERT_EQUAL(handlers_replaced(pool), 0);
    CU_ASSERT_PTR_EQUAL(next_finished(), third);
    atomic_store(&let_go, true);
    CU_ASSERT_PTR_EQUAL(next_finished(), stuck); /* and its thread ends */
    activity_destroy(stuck);
    activity_destroy(next);
    activity_destroy(third);
    handlers_destroy(pool);
    mailbox_release(&inbox);
}

/* Again and again: a slot that is given up is one less only until its handler comes back. */
static void test_abandoned_often(void)
{
    enum { ROUNDS = 20 };
    struct handlers *const pool = open_pool(1, 1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        atomic_store(&let_go, false);
        atomic_store(&runs, 0);
        struct thole_activity *const stuck = make("i", ignores_token), *const owed = make("i", ignores_token);
        handlers_run(pool, stuck);
        until_runs(1);
        CU_ASSERT_TRUE(handlers_abandon(pool, stuck, true)); /* there is room for one */
        handlers_run(pool, owed);
        until_runs(2);
        CU_ASSERT_FALSE(handlers_abandon(pool, owed, true));
        atomic_store(&let_go, true);
        activity_destroy(next_finished());
        activity_destroy(next_finished());
        CU_ASSERT_EQUAL(handlers_replaced(pool),
                        1); /* the first that came back has filled it, the other ended */
    }
    handlers_destroy(pool);
    mailbox_release(&inbox);
}

static void *let_go_soon(void *arg)
{
    struct timespec const pause = {.tv_nsec = 50000000};
    (void)arg;
    nanosleep(&pause, NULL);
    atomic_store(&let_go, true);
    return NULL;
}

/* One that runs in a process is killed: its thread is not given up, it comes back. */
static void test_killed(void)
{
    struct handlers *const pool = open_pool(1, 4);
    struct thole_activity *const killed = make("i", ignores_token), *const next = make("i", ignores_token);
    pthread_t thread;
    killed->pool = next->pool = (struct process_pool *)pool; /* any: the handlers are of this test */
    handlers_run(pool, killed);
    until_runs(1);
    handlers_run(pool, next);
    CU_ASSERT_FALSE(handlers_abandon(pool, killed, true));
    CU_ASSERT_TRUE(killed->killed);
    CU_ASSERT_EQUAL(handlers_replaced(pool), 0);
    atomic_store(&let_go, true);
    CU_ASSERT_PTR_EQUAL(next_finished(), killed);
    CU_ASSERT_EQUAL(handlers_replaced(pool), 1);
    CU_ASSERT_PTR_EQUAL(next_finished(), next); /* on the same thread */
    activity_destroy(killed);
    atomic_store(&let_go, false);
    atomic_store(&runs, 0);
    next->killed = false;
    handlers_run(pool, next);
    until_runs(1);
    CU_ASSERT_FALSE(handlers_abandon(pool, next, false));
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, let_go_soon, NULL), 0);
    handlers_destroy(pool); /* waits for it, and frees it */
    CU_ASSERT_EQUAL(atomic_load(&runs), 2);
    (void)pthread_join(thread, NULL);
    mailbox_release(&inbox);
}

static void test_outlives_the_pool(void)
{
    struct timespec const pause = {.tv_nsec = 50000000};
    struct handlers *const pool = open_pool(2, 4);
    struct thole_activity *const stuck = make("i", ignores_token);
    handlers_run(pool, stuck);
    until_runs(1);
    (void)handlers_abandon(pool, stuck, false); /* nobody needs the slot */
    handlers_destroy(pool);
    mailbox_release(&inbox);
    atomic_store(&let_go, true);
    until_runs(2);
    nanosleep(&pause, NULL); /* the thread frees the activity and the pool: for the leak checker */
}

static const struct thole_test tests[] = {
    {"what a handler sees", test_looks},
    {"the longest key", test_longest_key},
    {"failure texts", test_fails},
    {"the token", test_token},
    {"more activities than threads", test_many_runs},
    {"too few threads", test_too_few_threads},
    {"each slot runs", test_each_slot_runs},
    {"abandoned, replaced, owed", test_abandoned},
    {"abandoned, again and again", test_abandoned_often},
    {"killed, waited for", test_killed},
    {"a handler that outlives everything", test_outlives_the_pool},
};
THOLE_TEST_MAIN("handlers", tests)
