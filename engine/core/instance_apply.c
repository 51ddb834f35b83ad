/*
 * Recorded turns without code: their events are taken as facts, so that an instance whose code is missing
 * still knows which messages it accepts, retries activities, and can be terminated.
 */
#include "instance_apply.h"
#include "instance_cancel.h"
#include "instance_end.h"
#include "instance_events.h"
#include "instance_memory.h"
#include "instance_receive.h"
#include "instance_retry.h"
#include "instance_state_map.h"
#include "instance_tasks.h"
#include "instance_turn.h"

static thole_status instance_apply_corrupt(struct instance *in, const struct event *e, const char *what)
{
    return instance_break(in, THOLE_CORRUPT, "event %llu: %s", (unsigned long long)e->id, what);
}

static thole_status apply_scheduled(struct instance *in, const struct event *e, enum task_kind kind)
{
    if (kind == TASK_ACTIVITY && e->name.len == 0)
        return instance_apply_corrupt(in, e, "an activity without a name");
    if (kind == TASK_CHILD && e->target.len == 0)
        return instance_apply_corrupt(in, e, "a child without an id");
    struct task *task = task_add(in, e->id, kind, e->name);
    if (task == NULL)
        return in->broken;
    if (kind == TASK_ACTIVITY)
        return task_describe_call(in, task, e);
    if (kind == TASK_CHILD)
        return task_describe_child(in, task, e);
    if (kind == TASK_EVENT)
        event_await(in, task);
    return THOLE_OK;
}

static thole_status apply_cancelled(struct instance *in, const struct event *e)
{
    struct task *task = task_resolved_by(in, e);
    if (task != NULL && task_is_cancelled_child(task) && e->flag)
        return THOLE_OK; /* terminated as well, at the end */
    bool const taken = task != NULL && task->kind == TASK_EVENT && task->state == TASK_SUCCEEDED;
    if (task == NULL || (task->state != TASK_OUTSTANDING && !taken))
        return instance_break(in, THOLE_CORRUPT, "event %llu: %s of event %llu, which is not outstanding",
                              (unsigned long long)e->id, event_kind_name(e->kind),
                              (unsigned long long)e->ref);
    return task_apply_cancelled(in, task, e, (thole_slice){NULL, 0});
}

static thole_status apply_state(struct instance *in, const struct event *e)
{
    if (e->name.len == 0 || e->name.len > STATE_KEY_BYTES_MAX)
        return instance_apply_corrupt(in, e, "a key of the wrong length");
    if (!e->flag)
        return state_put(in, e->name, e->data);
    state_drop(&in->state, e->name);
    return THOLE_OK;
}

static thole_status instance_apply_apply(struct instance *in, const struct event *e)
{
    (void)instance_take_id(in);
    instance_count_event(in, e);
    switch (e->kind) {
    case EVENT_ACTIVITY_SCHEDULED: return apply_scheduled(in, e, TASK_ACTIVITY);
    case EVENT_TIMER_CREATED: return apply_scheduled(in, e, TASK_TIMER);
    case EVENT_EVENT_AWAITED: return apply_scheduled(in, e, TASK_EVENT);
    case EVENT_CHILD_SCHEDULED: return apply_scheduled(in, e, TASK_CHILD);
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_TIMER_CANCELLED:
    case EVENT_EVENT_AWAIT_CANCELLED:
    case EVENT_CHILD_CANCELLED: return apply_cancelled(in, e);
    case EVENT_CUSTOM_STATUS_SET: return instance_set_custom_status(in, e->data);
    case EVENT_STATE_SET: return apply_state(in, e);
    case EVENT_COMPLETED:
    case EVENT_FAILED:
    case EVENT_CANCELLED:
    case EVENT_TERMINATED:
    case EVENT_CONTINUED_AS_NEW: return instance_apply_end(in, e);
    default: return THOLE_OK; /* changes nothing here, or is of an unknown, newer kind */
    }
}

thole_status instance_apply(struct instance *in)
{
    instance_deliver(in);
    cancel_apply_delivered(in);
    for (size_t i = 0; i < in->turn.expected_len; i++)
        THOLE_TRY(instance_apply_apply(in, &in->turn.expected[i]));
    if (in->facts.terminate_received && !in->end.ended)
        return instance_break(in, THOLE_CORRUPT, "turn %llu: a request to terminate did not end it",
                              (unsigned long long)in->turn.number);
    return THOLE_OK;
}
