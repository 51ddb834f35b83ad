/* Frequent combinations of an orchestration's calls, as one call each: with the events of the calls they
 * consist of. */
#include "instance_awaits.h"
#include "instance_code.h"
#include "instance_schedule.h"
#include "instance_tasks.h"

thole_status thole_sleep(thole_ctx *ctx, uint64_t delay_ms)
{
    struct instance *in = ctx->instance;
    NOTE_CALL_SITE(in);
    if (code_refuses(in))
        return code_refused_await(in);
    return await_one(in, schedule_timer(in, delay_ms), NULL);
}

thole_status thole_await_call(thole_ctx *ctx, thole_slice name, thole_slice input,
                              const thole_call_options *options, thole_slice *ret_result)
{
    struct instance *in = ctx->instance;
    NOTE_CALL_SITE(in);
    if (code_refuses(in))
        return code_refused_await(in);
    return await_one(in, schedule_call(in, name, input, options), ret_result);
}

thole_status thole_await_for(thole_ctx *ctx, thole_task task, uint64_t limit_ms, thole_slice *ret_result)
{
    struct instance *in = ctx->instance;
    NOTE_CALL_SITE(in);
    if (code_refuses(in))
        return code_refused_await(in);
    const struct task *const found = task_find(in, task.id);
    if (found == NULL || found->state != TASK_OUTSTANDING)
        return await_one(in, task, ret_result);
    return await_within(in, found, schedule_timer(in, limit_ms), limit_ms, ret_result);
}
