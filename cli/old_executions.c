#include "old_executions.h"

void old_executions_begin(struct old_executions *old)
{
    old->first = old->upto = old->ended_ms = 0;
}

bool old_executions_take(struct old_executions *old, const thole_execution_info *info)
{
    if (old->first == 0)
        old->first = info->execution;
    if (info->execution == old->first || info->status != THOLE_INSTANCE_CONTINUED_AS_NEW)
        return false;
    if (old->before > 0 ? info->execution >= old->before : info->ended_ms >= old->ended_before)
        return false;
    old->upto = info->execution;
    old->ended_ms = info->ended_ms;
    return true;
}

bool instance_has_ended(thole_instance_status status)
{
    return status == THOLE_INSTANCE_COMPLETED || status == THOLE_INSTANCE_FAILED ||
           status == THOLE_INSTANCE_CANCELLED || status == THOLE_INSTANCE_TERMINATED;
}

bool old_executions_possible(const thole_instance_info *info)
{
    /* the first and the current one stay */
    return !info->foreign && info->execution > 2 && !instance_has_ended(info->status);
}
