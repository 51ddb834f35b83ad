#include "call_fiber.h"
#include "clock.h"
#include "coro.h"
#include "memory.h"
#include <assert.h>
#include <limits.h>
#include <stdlib.h>

enum { STACK_BYTES = 256 * 1024 /* of addresses; memory is taken for what is used of it */ };

struct call_fiber {
    struct stack_pool *stacks;
    struct coro *coro; /* NULL: no call runs */
    struct pollfd socket;
    uint64_t deadline_ms;
    bool finishes; /* the thread waits */
};

struct call_fiber *call_fiber_create(void)
{
    struct call_fiber *const fiber = memory_new(sizeof *fiber);
    fiber->stacks = stack_pool_create_sized(STACK_BYTES, 1, 1);
    return fiber;
}

void call_fiber_destroy(struct call_fiber *fiber)
{
    if (fiber == NULL)
        return;
    assert(fiber->coro == NULL);
    stack_pool_destroy(fiber->stacks);
    free(fiber);
}

static void call_fiber_run(struct call_fiber *fiber)
{
    if (coro_resume(fiber->coro))
        return;
    coro_destroy(fiber->coro);
    fiber->coro = NULL;
}

void call_fiber_begin(struct call_fiber *fiber, void (*call)(void *arg), void *arg)
{
    assert(fiber->coro == NULL);
    fiber->coro = coro_create(fiber->stacks, call, arg);
    if (fiber->coro != NULL)
        call_fiber_run(fiber);
    else
        call(arg);
}

bool call_fiber_runs(const struct call_fiber *fiber)
{
    return fiber->coro != NULL;
}

static short wait_here(struct pollfd socket, uint64_t deadline_ms)
{
    uint64_t const now_ms = clock_monotonic_ms();
    uint64_t const left_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
    if (poll(&socket, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX) <= 0)
        return 0;
    return socket.revents;
}

short call_fiber_wait(void *arg, int socket, short events, uint64_t deadline_ms)
{
    struct call_fiber *const fiber = arg;
    fiber->socket = (struct pollfd){.fd = socket, .events = events};
    fiber->deadline_ms = deadline_ms;
    if (fiber->coro == NULL || fiber->finishes)
        return wait_here(fiber->socket, deadline_ms);
    coro_yield(fiber->coro);
    return fiber->socket.revents;
}

struct pollfd call_fiber_socket(const struct call_fiber *fiber)
{
    return fiber->coro != NULL ? fiber->socket : (struct pollfd){.fd = -1};
}

uint64_t call_fiber_deadline_ms(const struct call_fiber *fiber)
{
    return fiber->coro != NULL ? fiber->deadline_ms : UINT64_MAX;
}

void call_fiber_continue(struct call_fiber *fiber, short revents)
{
    if (fiber->coro == NULL || (revents == 0 && clock_monotonic_ms() < fiber->deadline_ms))
        return;
    fiber->socket.revents = revents;
    call_fiber_run(fiber);
}

void call_fiber_finish(struct call_fiber *fiber)
{
    if (fiber->coro == NULL)
        return;
    fiber->finishes = true;
    fiber->socket.revents = wait_here(fiber->socket, fiber->deadline_ms);
    call_fiber_run(fiber);
    assert(fiber->coro == NULL);
    fiber->finishes = false;
}
