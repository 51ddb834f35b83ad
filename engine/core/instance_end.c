/* The end of an execution: closes what is outstanding and emits the last event. */
#include "instance_end.h"
#include "instance_cancel.h"
#include "instance_code.h"
#include "instance_failure.h"
#include "instance_memory.h"
#include "instance_turn.h"
#include <assert.h>

thole_status instance_continues(struct instance *in, thole_slice input, uint32_t version)
{
    assert(in->code.guard == GUARD_NONE && !in->end.ended);
    THOLE_TRY(instance_keep(in, input, &in->end.next_input));
    in->end.next_version = version;
    in->end.continuing = true;
    return THOLE_OK;
}

static void finish_completed(struct instance *in)
{
    tasks_close(in, CANCEL_ENDED, THOLE_STR("ended"));
    struct event event = {.kind = EVENT_COMPLETED};
    if (in->broken == THOLE_OK && instance_keep_for_turn(in, in->code.output, &event.data) == THOLE_OK)
        (void)instance_emit(in, &event);
}

static void finish_continued(struct instance *in)
{
    tasks_close(in, CANCEL_ENDED, THOLE_STR("ended"));
    struct event event = {
        .kind = EVENT_CONTINUED_AS_NEW, .version = in->end.next_version, .data = in->end.next_input};
    (void)instance_emit(in, &event);
    in->end.continued = in->broken == THOLE_OK;
}

static void finish_cancelled(struct instance *in)
{
    tasks_close(in, CANCEL_REQUESTED, in->cancel.reason);
    struct event event = {.kind = EVENT_CANCELLED, .data = in->cancel.reason};
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

static void instance_end_end(struct instance *in)
{
    assert(!in->end.ended);
    in->end.ended = in->broken == THOLE_OK;
    code_drop(in);
}

void instance_finish(struct instance *in)
{
    assert(in->code.returned && in->cancel.received >= in->cancel.delivered);
    thole_status status = in->code.returned_status;
    bool const unnoticed = status == THOLE_OK && !in->cancel.noticed;
    bool const cancelled = in->cancel.delivered && !unnoticed;
    if (status == THOLE_OK && in->code.fault != 0)
        status = fault_status(in->code.fault);
    in->end.continuing &= !cancelled && status == THOLE_OK;
    if (cancelled)
        finish_cancelled(in);
    else if (in->end.continuing)
        finish_continued(in);
    else if (status == THOLE_OK && in->code.output.len <= in->options.payload_max)
        finish_completed(in);
    else
        finish_failed(in, status == THOLE_OK ? THOLE_LIMIT : status);
    instance_end_end(in);
}

void instance_terminate(struct instance *in)
{
    assert(in->facts.terminate_received);
    in->end.continuing = false;
    tasks_close(in, CANCEL_TERMINATED, in->facts.terminate_reason);
    struct event event = {.kind = EVENT_TERMINATED, .data = in->facts.terminate_reason};
    (void)instance_emit(in, &event);
    instance_end_end(in);
}

static thole_status instance_end_corrupt(struct instance *in, const struct event *e, const char *what)
{
    return instance_break(in, THOLE_CORRUPT, "event %llu: %s", (unsigned long long)e->id, what);
}

thole_status instance_apply_end(struct instance *in, const struct event *e)
{
    if (e->kind == EVENT_CANCELLED && !in->cancel.received)
        return instance_end_corrupt(in, e, "Cancelled without a request");
    if ((e->kind == EVENT_TERMINATED) != in->facts.terminate_received)
        return instance_end_corrupt(in, e,
                                    e->kind == EVENT_TERMINATED ? "Terminated without a request"
                                                                : "an end after a request to terminate");
    if (e->kind == EVENT_CONTINUED_AS_NEW) {
        in->end.continued = true;
        in->end.next_version = e->version;
        THOLE_TRY(instance_keep(in, e->data, &in->end.next_input));
    }
    in->end.ended = true;
    return THOLE_OK;
}
