/* Cancelling: of tasks, and of the whole execution, which cancels all that is outstanding. */
#include "instance_cancel.h"
#include "instance_code.h"
#include "instance_events.h"
#include "instance_memory.h"
#include "instance_retry.h"
#include "instance_tasks.h"
#include "instance_turn.h"
#include <assert.h>

/* ---- tasks ---- */

static enum event_kind cancelled_kind(const struct task *task)
{
    switch ((enum task_kind)task->kind) {
    case TASK_ACTIVITY: return EVENT_ACTIVITY_CANCELLED;
    case TASK_TIMER: return EVENT_TIMER_CANCELLED;
    case TASK_EVENT: return EVENT_EVENT_AWAIT_CANCELLED;
    case TASK_CHILD: break;
    }
    return EVENT_CHILD_CANCELLED;
}

thole_status task_apply_cancelled(struct instance *in, struct task *task, const struct event *event,
                                  thole_slice reason)
{
    if (task->state == TASK_SUCCEEDED)
        THOLE_TRY(event_give_back(in, task));
    task_resolve(
        in, task,
        &(struct task_result){.state = TASK_CANCELLED, .at = event->id, .data = reason, .code = event->code});
    return THOLE_OK;
}

bool task_may_be_cancelled(const struct task *task)
{
    return task->state == TASK_OUTSTANDING ||
           (task->kind == TASK_EVENT && task->state == TASK_SUCCEEDED && !task->reported);
}

bool task_is_cancelled_child(const struct task *task)
{
    return task->kind == TASK_CHILD && task->state == TASK_CANCELLED;
}

static void instance_cancel_cancel(struct instance *in, struct task *task, enum cancel_kind kind,
                                   thole_slice reason, bool terminate)
{
    struct event event = {
        .kind = cancelled_kind(task), .ref = task->id, .code = (uint32_t)kind, .data = reason};
    if (task->kind == TASK_ACTIVITY) {
        event.timed = task_timed(task);
        event.quarantined = retry_is_quarantined(task, 0);
    }
    if (task->kind == TASK_CHILD) {
        event.target = task->child->target;
        event.flag = terminate;
    }
    event.id = instance_emit(in, &event);
    if (event.id != 0 && !task_is_cancelled_child(task))
        (void)task_apply_cancelled(in, task, &event, reason);
}

void task_cancel(struct instance *in, struct task *task, enum cancel_kind kind, thole_slice reason)
{
    if (in->broken == THOLE_OK && task_may_be_cancelled(task))
        instance_cancel_cancel(in, task, kind, reason, false);
}

/* Waits that hold an unreported event are closed, so that the next execution gets the event. */
static bool instance_cancel_closes(const struct instance *in, const struct task *task)
{
    if (task_is_cancelled_child(task))
        return in->facts.semantics >= SEMANTICS_CANCELLED_CLOSED && task->child->close == CLOSE_TERMINATE;
    if (task->state != TASK_OUTSTANDING)
        return in->end.continuing && task_may_be_cancelled(task);
    return task->kind != TASK_CHILD || task->child->close != CLOSE_ABANDON;
}

void tasks_close(struct instance *in, enum cancel_kind kind, thole_slice reason)
{
    for (size_t i = 0; i < in->tasks.len && in->broken == THOLE_OK; i++) {
        struct task *task = task_at(in, i);
        if (instance_cancel_closes(in, task))
            instance_cancel_cancel(in, task, kind, reason,
                                   task->kind == TASK_CHILD && task->child->close == CLOSE_TERMINATE);
    }
}

/* ---- the whole execution ---- */

thole_status cancel_receive(struct instance *in, struct event *event)
{
    assert(!in->cancel.received); /* the first reason wins */
    THOLE_TRY(instance_keep(in, event->data, &in->cancel.reason));
    THOLE_TRY(instance_keep(in, event->request_id, &in->cancel.request_id));
    event->data = in->cancel.reason;
    event->request_id = in->cancel.request_id;
    in->cancel.received = true;
    return THOLE_OK;
}

static void tasks_cancel_outstanding(struct instance *in, enum cancel_kind kind, thole_slice reason)
{
    for (size_t i = 0; i < in->tasks.len && in->broken == THOLE_OK; i++) {
        struct task *task = task_at(in, i);
        if (task->state == TASK_OUTSTANDING)
            instance_cancel_cancel(in, task, kind, reason, false);
    }
}

void cancel_deliver(struct instance *in)
{
    if (!cancel_undelivered(in))
        return;
    assert(!in->cancel.pending && !in->cancel.noticed && !in->end.ended);
    code_interrupt(in);
    in->cancel.delivered = true;
    in->cancel.pending = true;
    tasks_cancel_outstanding(in, CANCEL_REQUESTED, in->cancel.reason);
}

void cancel_apply_delivered(struct instance *in)
{
    assert(in->options.code == NULL);
    in->cancel.delivered = in->cancel.received;
}

void cancel_notice(struct instance *in)
{
    assert(in->cancel.delivered);
    in->cancel.pending = false;
    in->cancel.noticed = true;
}
