/*
 * The coroutine of an orchestration: when it runs, and what its code may do now. What the code calls is in
 * instance_awaits.c, _schedule.c, _values.c, _query.c, _context.c and _saga.c; each of them notes the call
 * site, asks code_refuses(), and does the work.
 */
#ifndef THOLE_INSTANCE_CODE_H
#define THOLE_INSTANCE_CODE_H
#include "instance_state.h"

/* Lets the code run, from its beginning or from its await, if the await can return. */
thole_status code_run(struct instance *in);
/* Registers what code_release() calls, the last one first. THOLE_LIMIT: there is no memory, it is not
 * registered. */
THOLE_NODISCARD thole_status code_on_drop(struct instance *in, thole_drop_fn *release, void *arg);
/* Before the memory of the execution goes. */
void code_release(struct instance *in);
/* Drops the coroutine with its stack; the code does not run again. */
void code_drop(struct instance *in);

/* Called by the code: suspends until @p waits of the tasks that are marked as awaited are resolved. False:
 * interrupted by a cancellation of the whole execution. */
THOLE_NODISCARD bool code_suspend(struct instance *in, size_t waits);
/* A task that is marked as awaited was resolved. */
void code_task_resolved(struct instance *in);
/* The await that the code is suspended in, if any, returns when the code runs next. */
void code_interrupt(struct instance *in);

/* Until code_unguard() the running code is not the orchestration (a query, a side effect) and may change
 * nothing. code_unguard() returns false if it has tried to. */
void code_guard(struct instance *in, enum guard guard);
bool code_unguard(struct instance *in);
/* True: under guard, so the called function must do nothing. Does not return to code that makes too many
 * calls after its turn has failed: that code is parked for good. */
bool code_refuses(struct instance *in);
/* An await that cannot wait, because the turn has failed or under guard. After some of them the code is
 * parked for good. */
thole_status code_broken_await(struct instance *in);
thole_status code_refused_await(struct instance *in);

/* Keeps the fault for the next await, which returns it; the first one counts. */
void code_fault(struct instance *in, enum task_fault fault);
enum task_fault code_take_fault(struct instance *in);
/* Keeps text and type of thole_throw() for the failure; an invalid type is left out. */
void code_throw(struct instance *in, thole_slice type, thole_slice text);

/* Records the call site of the code; after the turn has failed, the one of the failure. Only in functions
 * that an orchestration calls. */
#define NOTE_CALL_SITE(in)                                                                                   \
    ((in)->code.guard == GUARD_NONE && (in)->broken == THOLE_OK                                              \
         ? (void)((in)->code.call_site = __builtin_return_address(0))                                        \
         : (void)0)
#endif
