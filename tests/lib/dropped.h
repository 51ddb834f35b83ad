/* Marks for things that a test does on purpose and of which the compiler warns users: a task that is never
 * awaited, a failure that does not end the function. */
#ifndef THOLE_DROPPED_H
#define THOLE_DROPPED_H
#include "thole/orchestration.h"

static inline void drop_task(thole_task task)
{
    (void)task;
}

static inline void drop_status(thole_status status)
{
    (void)status;
}
#endif
