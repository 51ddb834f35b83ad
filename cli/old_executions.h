/* Old executions of an instance that continues as new: those that prune and archive run --executions take. */
#ifndef THOLE_OLD_EXECUTIONS_H
#define THOLE_OLD_EXECUTIONS_H
#include "thole/client.h"

struct old_executions {
    uint64_t before;       /* those with a lower number; 0: by time */
    uint64_t ended_before; /* milliseconds since 1970 */
    /* Found, of the instance in hand: */
    uint64_t first;    /* stays whatever it is: it has the request of the start; 0: none seen yet */
    uint64_t upto;     /* the last one that goes; 0: none */
    uint64_t ended_ms; /* when that one ended */
};
void old_executions_begin(struct old_executions *old); /* of the next instance */
/* Whether it goes. Rows are given in ascending order. */
bool old_executions_take(struct old_executions *old, const thole_execution_info *info);
bool instance_has_ended(thole_instance_status status);
/* Whether an instance may have any, by its row. */
bool old_executions_possible(const thole_instance_info *info);
#endif
