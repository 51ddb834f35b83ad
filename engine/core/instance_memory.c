/* The memory of an execution, and the failure of a turn, for which memory is the usual reason. */
#include "instance_memory.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

thole_status instance_break(struct instance *in, thole_status status, const char *fmt, ...)
{
    assert(status != THOLE_OK);
    if (in->broken != THOLE_OK)
        return in->broken;
    in->broken = status;
    if (in->reterr != NULL) {
        va_list args;
        va_start(args, fmt);
        in->reterr->status = status;
        (void)vsnprintf(in->reterr->text, sizeof in->reterr->text, fmt, args);
        va_end(args);
    }
    return status;
}

thole_status instance_full(struct instance *in)
{
    if (in->arena.nomem || in->turn.arena.nomem)
        return instance_break(in, THOLE_NOMEM, "out of memory");
    return instance_break(
        in, THOLE_LIMIT,
        "the instance's memory limit of %zu bytes is reached (%zu tasks scheduled, %zu events "
        "waiting): schedule less at a time, continue as new, or raise --instance-memory-max",
        in->options.memory_max, in->tasks.len, in->kept.len);
}

thole_status instance_keep(struct instance *in, thole_slice from, thole_slice *ret)
{
    *ret = (thole_slice){NULL, 0};
    if (from.len > 0 && arena_dup(&in->arena, from, ret) != THOLE_OK)
        return instance_full(in);
    return THOLE_OK;
}

thole_status instance_keep_for_turn(struct instance *in, thole_slice from, thole_slice *ret)
{
    *ret = from;
    if (!in->turn.replaying && from.len > 0 && arena_dup(&in->turn.arena, from, ret) != THOLE_OK)
        return instance_full(in);
    return THOLE_OK;
}
