/* The code runs until it waits, or until the execution ends, which is here, too. */
#include "instance_state.h"
#include <assert.h>

static void code_entry(void *arg)
{
    struct instance *in = arg;
    in->returned_status = in->options.code(&in->ctx, in->input, &in->output);
    in->returned = true;
}

/* Cancels what is outstanding, before the code can ask for anything. The await that the code is suspended in
 * returns THOLE_CANCELLED, unless what it waits for was resolved before the request. */
static void deliver_cancel(struct instance *in)
{
    if (!instance_cancel_undelivered(in))
        return;
    in->interrupted = in->waits_left > 0;
    in->cancel_delivered = true;
    in->cancel_pending = true;
    tasks_cancel_outstanding(in, CANCEL_REQUESTED, in->cancel_reason);
}

/* ---- the end ---- */

static void finish_completed(struct instance *in)
{
    tasks_close(in, CANCEL_ENDED, THOLE_STR("ended"));
    struct event event = {.kind = EVENT_COMPLETED};
    if (in->broken == THOLE_OK && instance_keep_for_turn(in, in->output, &event.data) == THOLE_OK)
        (void)instance_emit(in, &event);
}

static void finish_continued(struct instance *in)
{
    tasks_close(in, CANCEL_ENDED, THOLE_STR("ended"));
    struct event event = {
        .kind = EVENT_CONTINUED_AS_NEW, .version = in->next_version, .data = in->next_input};
    (void)instance_emit(in, &event);
    in->continued = in->broken == THOLE_OK;
}

static void finish_cancelled(struct instance *in)
{
    tasks_close(in, CANCEL_REQUESTED, in->cancel_reason);
    struct event event = {.kind = EVENT_CANCELLED, .data = in->cancel_reason};
    (void)instance_emit(in, &event);
}

static void finish_failed(struct instance *in, thole_status status)
{
    tasks_close(in, CANCEL_ENDED, THOLE_STR("ended"));
    struct event event = {
        .kind = EVENT_FAILED, .code = (uint32_t)status, .error_type = instance_failure_type(in)};
    event.data = instance_failure_text(in, status);
    (void)instance_emit(in, &event);
}

static void end(struct instance *in)
{
    in->ended = in->broken == THOLE_OK;
    coro_destroy(in->coro);
    in->coro = NULL;
}

static void finish(struct instance *in)
{
    thole_status status = in->returned_status;
    bool const unnoticed = status == THOLE_OK && !in->cancel_noticed;
    bool const cancelled = in->cancel_delivered && !unnoticed;
    if (status == THOLE_OK && in->fault != 0)
        status = fault_status(in->fault);
    in->continuing &= !cancelled && status == THOLE_OK;
    if (cancelled)
        finish_cancelled(in);
    else if (in->continuing)
        finish_continued(in);
    else if (status == THOLE_OK && in->output.len <= in->options.payload_max)
        finish_completed(in);
    else
        finish_failed(in, status == THOLE_OK ? THOLE_LIMIT : status);
    end(in);
}

/* Needs no code. */
static void terminate(struct instance *in)
{
    in->continuing = false;
    tasks_close(in, CANCEL_TERMINATED, in->terminate_reason);
    struct event event = {.kind = EVENT_TERMINATED, .data = in->terminate_reason};
    (void)instance_emit(in, &event);
    end(in);
}

/* ---- a turn ---- */

static thole_status code_begin(struct instance *in)
{
    uint32_t const of_code = in->options.version;
    if (in->options.code == NULL)
        return instance_break(in, THOLE_INVALID, "this instance has no code to run");
    if (of_code != 0 && in->version != 0 && of_code != in->version)
        return instance_break(in, THOLE_INVALID, "the execution runs version %u, the code has version %u",
                              in->version, of_code);
    in->coro = coro_create(in->options.stacks, code_entry, in);
    if (in->coro == NULL)
        return instance_break(in, THOLE_NOMEM, "no stack for an orchestration (%zu are in use)",
                              stack_pool_in_use(in->options.stacks));
    return THOLE_OK;
}

thole_status instance_run(struct instance *in)
{
    assert(in->started && !in->ended);
    in->undelivered = false;
    in->has_run = true;
    if (in->terminate_received) {
        terminate(in);
        return in->broken;
    }
    deliver_cancel(in);
    bool const waits = in->waits_left > 0 && !in->interrupted;
    if (in->broken == THOLE_OK && in->coro == NULL)
        (void)code_begin(in);
    if (in->broken != THOLE_OK || waits)
        return in->broken;
    (void)coro_resume(in->coro);
    if (in->returned && in->broken == THOLE_OK)
        finish(in);
    return in->broken;
}
