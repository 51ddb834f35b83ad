/* A call that its thread does not wait for: where it is left, and when it goes on. */
#include "call_fiber.h"
#include "clock.h"
#include "coro.h"
#include "thole_cunit.h"
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { NOW_MS = 5000 };

static struct {
    struct call_fiber *fiber;
    int socket;
    uint64_t now_ms;
    unsigned waits, waited; /* how often the call is to wait, and has waited */
    short ready[4];         /* events that it was given */
    bool returned;
    bool no_stack;
} play;

struct coro *__real_coro_create(struct stack_pool *pool, void (*entry)(void *arg), void *arg);
struct coro *__wrap_coro_create(struct stack_pool *pool, void (*entry)(void *arg), void *arg)
{
    return play.no_stack ? NULL : __real_coro_create(pool, entry, arg);
}

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

static void call(void *arg)
{
    volatile char much[100 * 1024]; /* more than an orchestration's stack has */
    CU_ASSERT_PTR_EQUAL(arg, &play);
    much[0] = 1;
    for (; play.waited < play.waits; play.waited++)
        play.ready[play.waited] = call_fiber_wait(play.fiber, play.socket, POLLIN, play.now_ms + 100);
    play.returned = much[0] == 1;
}

static void begin(unsigned waits)
{
    memset(&play, 0, sizeof play);
    play.now_ms = NOW_MS;
    play.waits = waits;
    play.socket = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    play.fiber = call_fiber_create();
    CU_ASSERT_FALSE(call_fiber_runs(play.fiber));
    CU_ASSERT_EQUAL(call_fiber_socket(play.fiber).fd, -1);
    CU_ASSERT_EQUAL(call_fiber_deadline_ms(play.fiber), UINT64_MAX);
    call_fiber_begin(play.fiber, call, &play);
}

static void end(void)
{
    CU_ASSERT_TRUE(play.returned);
    CU_ASSERT_FALSE(call_fiber_runs(play.fiber));
    CU_ASSERT_EQUAL(call_fiber_socket(play.fiber).fd, -1);
    CU_ASSERT_EQUAL(call_fiber_deadline_ms(play.fiber), UINT64_MAX);
    call_fiber_destroy(play.fiber);
    (void)close(play.socket);
}

static void test_it_returns_at_once(void)
{
    begin(0);
    end();
    call_fiber_destroy(NULL);
}

static void test_it_waits(void)
{
    begin(2);
    CU_ASSERT_TRUE(call_fiber_runs(play.fiber));
    CU_ASSERT_EQUAL(call_fiber_socket(play.fiber).fd, play.socket);
    CU_ASSERT_EQUAL(call_fiber_socket(play.fiber).events, POLLIN);
    CU_ASSERT_EQUAL(call_fiber_deadline_ms(play.fiber), NOW_MS + 100);
    play.now_ms += 99;
    call_fiber_continue(play.fiber, 0); /* for another reason */
    CU_ASSERT_EQUAL(play.waited, 0);
    call_fiber_continue(play.fiber, POLLIN | POLLHUP);
    CU_ASSERT_EQUAL(play.waited, 1);
    CU_ASSERT_EQUAL(call_fiber_deadline_ms(play.fiber), NOW_MS + 199);
    play.now_ms += 100;
    call_fiber_continue(play.fiber, 0); /* the time has come */
    CU_ASSERT_EQUAL(play.ready[0], POLLIN | POLLHUP);
    CU_ASSERT_EQUAL(play.ready[1], 0);
    call_fiber_continue(play.fiber, POLLIN); /* nothing runs */
    end();
}

/* Data available before the wait are still reported, as a level. */
static void test_it_is_finished(void)
{
    uint64_t const one = 1;
    begin(3);
    CU_ASSERT_EQUAL(write(play.socket, &one, sizeof one), sizeof one);
    call_fiber_finish(play.fiber);
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(play.ready[i], POLLIN);
    call_fiber_finish(play.fiber);
    end();
}

/* Until its deadline, and no longer. */
static void test_it_is_finished_in_time(void)
{
    begin(1);
    play.now_ms += 80;
    call_fiber_finish(play.fiber);
    CU_ASSERT_EQUAL(play.ready[0], 0);
    end();
}

static void *finish(void *arg)
{
    (void)arg;
    call_fiber_finish(play.fiber);
    return NULL;
}

/* After its own thread has ended. */
static void test_another_thread_finishes_it(void)
{
    uint64_t const one = 1;
    pthread_t thread;
    begin(2);
    CU_ASSERT_EQUAL(write(play.socket, &one, sizeof one), sizeof one);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, finish, NULL), 0);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    end();
}

/* One after the other, on one stack. */
static void test_the_next_one(void)
{
    begin(1);
    call_fiber_continue(play.fiber, POLLIN);
    CU_ASSERT_TRUE(play.returned);
    for (unsigned i = 0; i < 3; i++) {
        play.waited = 0;
        play.returned = false;
        call_fiber_begin(play.fiber, call, &play);
        CU_ASSERT_FALSE(play.returned);
        call_fiber_continue(play.fiber, POLLIN);
    }
    end();
}

/* The thread waits, as without a fiber. */
static void test_without_a_stack(void)
{
    uint64_t const one = 1;
    begin(0);
    CU_ASSERT_EQUAL(write(play.socket, &one, sizeof one), sizeof one);
    play.no_stack = true;
    play.waits = 2;
    play.returned = false;
    call_fiber_begin(play.fiber, call, &play);
    CU_ASSERT_EQUAL(play.ready[0], POLLIN);
    CU_ASSERT_EQUAL(play.ready[1], POLLIN);
    end();
}

static const struct thole_test tests[] = {
    {"it returns at once", test_it_returns_at_once},
    {"it waits", test_it_waits},
    {"it is finished", test_it_is_finished},
    {"it is finished in time", test_it_is_finished_in_time},
    {"another thread finishes it", test_another_thread_finishes_it},
    {"the next one", test_the_next_one},
    {"without a stack", test_without_a_stack},
};
THOLE_TEST_MAIN("call_fiber", tests)
