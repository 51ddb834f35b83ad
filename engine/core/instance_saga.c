/* Compensations: plain calls and awaits, kept in a list in the execution's memory. */
#include "instance_awaits.h"
#include "instance_code.h"
#include "instance_memory.h"
#include "instance_schedule.h"
#include "instance_tasks.h"
#include <string.h>

struct thole_saga_step {
    struct thole_saga_step *before;
    thole_slice name, input;
    thole_call_options options;
    bool has_options;
};

static thole_status keep_options(struct instance *in, struct thole_saga_step *step,
                                 const thole_call_options *options)
{
    thole_call_options *own = &step->options;
    step->has_options = true;
    if (options->size < sizeof options->size)
        return THOLE_OK; /* the await of the call returns what is wrong */
    memcpy(own, options, options->size < sizeof *own ? options->size : sizeof *own);
    own->size = sizeof *own;
    THOLE_TRY(instance_keep(in, own->queue, &own->queue));
    size_t const n = own->retry.final_types_len;
    if (own->retry.final_types == NULL || n == 0 || n > FINAL_TYPES_MAX)
        return THOLE_OK;
    thole_slice *types = arena_array(&in->arena, n, sizeof *types);
    if (types == NULL)
        return instance_full(in);
    for (size_t i = 0; i < n; i++)
        THOLE_TRY(instance_keep(in, own->retry.final_types[i], &types[i]));
    own->retry.final_types = types;
    return THOLE_OK;
}

void thole_saga_add(thole_ctx *ctx, thole_saga *saga, thole_slice name, thole_slice input,
                    const thole_call_options *options)
{
    struct instance *in = ctx->instance;
    NOTE_CALL_SITE(in);
    if (code_refuses(in) || in->broken != THOLE_OK)
        return;
    struct thole_saga_step *step = arena_alloc(&in->arena, sizeof *step);
    if (step == NULL) {
        (void)instance_full(in);
        return;
    }
    if (instance_keep(in, name, &step->name) != THOLE_OK ||
        instance_keep(in, input, &step->input) != THOLE_OK ||
        (options != NULL && keep_options(in, step, options) != THOLE_OK))
        return;
    step->before = saga->last;
    saga->last = step;
}

/*
 * A cancellation of the whole execution that is reported here must not prevent the compensation: if it has
 * cancelled the step's activity, the activity is scheduled again, else it is awaited again. A cancellation is
 * reported once.
 */
static thole_status step_run(struct instance *in, const struct thole_saga_step *step)
{
    const thole_call_options *options = step->has_options ? &step->options : NULL;
    bool const noticed_before = in->cancel.noticed;
    thole_task task = schedule_call(in, step->name, step->input, options);
    thole_status const status = await_one(in, task, NULL);
    if (status != THOLE_CANCELLED || noticed_before || !in->cancel.noticed)
        return status;
    const struct task *found = task_find(in, task.id);
    if (found == NULL || found->state != TASK_OUTSTANDING)
        task = schedule_call(in, step->name, step->input, options);
    return await_one(in, task, NULL);
}

thole_status thole_saga_compensate(thole_ctx *ctx, thole_saga *saga)
{
    struct instance *in = ctx->instance;
    thole_status first = THOLE_OK;
    NOTE_CALL_SITE(in);
    if (code_refuses(in))
        return THOLE_INVALID;
    while (saga->last != NULL && in->broken == THOLE_OK) {
        const struct thole_saga_step *step = saga->last;
        saga->last = step->before;
        thole_status const status = step_run(in, step);
        if (first == THOLE_OK)
            first = status;
    }
    return in->broken != THOLE_OK ? await_one(in, (thole_task){0}, NULL) : first;
}
