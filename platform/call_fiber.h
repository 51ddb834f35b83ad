/*
 * One blocking call at a time whose thread does not wait: it runs on a coroutine, which is left where the
 * call would wait for a socket, and continued when that is ready. The code of the call is the same as on a
 * thread that waits; what it waits with is call_fiber_wait(). For one thread at a time.
 */
#ifndef THOLE_CALL_FIBER_H
#define THOLE_CALL_FIBER_H
#include "thole/types.h"
#include <poll.h>

struct call_fiber;
struct call_fiber *call_fiber_create(void);
/* No call runs. NULL-safe. */
void call_fiber_destroy(struct call_fiber *fiber);

/* Runs @p call until it waits, or returns; to its end when the system has no memory for its stack: then the
 * thread waits. No other call runs. */
void call_fiber_begin(struct call_fiber *fiber, void (*call)(void *arg), void *arg);
bool call_fiber_runs(const struct call_fiber *fiber);
/* For the call: returns when the socket is ready, or @p deadline_ms of clock_monotonic_ms() has come. What it
 * is ready for, of poll(2). */
short call_fiber_wait(void *fiber, int socket, short events, uint64_t deadline_ms);

/* The descriptor and events that the running call waits for, for poll(2); descriptor -1: no call runs. */
struct pollfd call_fiber_socket(const struct call_fiber *fiber);
uint64_t call_fiber_deadline_ms(const struct call_fiber *fiber); /* UINT64_MAX: no call runs */
/* Continues the call that runs, if @p revents are not 0 or its time has come, until it waits again or
 * returns. */
void call_fiber_continue(struct call_fiber *fiber, short revents);
/* The call that runs, if any, to its end; the thread waits. */
void call_fiber_finish(struct call_fiber *fiber);
#endif
