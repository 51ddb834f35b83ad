/*
 * The coroutine of an orchestration: when it runs, when it does not, and what it may do now.
 * What the code calls is in instance_awaits.c, _schedule.c, _values.c, _query.c, _context.c and _saga.c; each
 * of them notes the call site, asks code_refuses(), and does the work.
 */
#ifndef THOLE_INSTANCE_CODE_H
#define THOLE_INSTANCE_CODE_H
#include "instance_state.h"

/* Lets the code run, from its beginning or from its await, if the await can return. */
thole_status code_run(struct instance *in);
/* The code runs no more; what is on its stack is gone. */
void code_drop(struct instance *in);

/* By the code: waits until so many of the tasks that are marked as awaited are resolved. False: it was
 * interrupted by a cancellation of the whole execution. */
THOLE_NODISCARD bool code_suspend(struct instance *in, size_t waits);
/* A task that is marked as awaited was resolved. */
void code_task_resolved(struct instance *in);
/* The await that the code is suspended in, if any, returns when the code runs next. */
void code_interrupt(struct instance *in);

/* Until code_unguard() the code that runs is no orchestration and may change nothing. That returns false when
 * it has tried to. */
void code_guard(struct instance *in, enum guard guard);
bool code_unguard(struct instance *in);
/* True: under guard, so what was called does nothing. Code that goes on for too long after its turn has
 * failed does not come back from here: it runs no more. */
bool code_refuses(struct instance *in);
/* An await that cannot wait, as the turn has failed, or under guard. After some of them the code is run no
 * more. */
thole_status code_broken_await(struct instance *in);
thole_status code_refused_await(struct instance *in);

/* Remembers the fault for the next await, which takes it; the first one counts. */
void code_fault(struct instance *in, enum task_fault fault);
enum task_fault code_take_fault(struct instance *in);
/* What thole_throw() leaves for the failure's text; a type that is none is left out. */
void code_throw(struct instance *in, thole_slice type, thole_slice text);

/* Notes where the code is; when the turn has failed, where it was then. Only in functions that an
 * orchestration calls. */
#define NOTE_CALL_SITE(in)                                                                                   \
    ((in)->code.guard == GUARD_NONE && (in)->broken == THOLE_OK                                              \
         ? (void)((in)->code.call_site = __builtin_return_address(0))                                        \
         : (void)0)
#endif
