/* What a test does on purpose and the compiler warns users of: a task that nobody awaits, a failure that the
 * function does not end with. */
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
