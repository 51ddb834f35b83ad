/* Received events: whether they are accepted, what is recorded for them, and what they change. */
#include "instance_receive.h"
#include "hash.h"
#include "instance_cancel.h"
#include "instance_events.h"
#include "instance_memory.h"
#include "instance_names.h"
#include "instance_requests.h"
#include "instance_retry.h"
#include "instance_state_map.h"
#include "instance_tasks.h"
#include "instance_turn.h"
#include <assert.h>
#include <string.h>

/* ---- acceptance ---- */

static bool accepts_resolution(const struct instance *in, const struct event *e)
{
    const struct task *task = e->kind == EVENT_TIMER_FIRED ? task_find(in, e->ref) : task_resolved_by(in, e);
    if (task == NULL || task->state != TASK_OUTSTANDING || cancel_undelivered(in))
        return false;
    switch (e->kind) {
    case EVENT_ACTIVITY_COMPLETED: return retry_takes_result(task, e->try_number);
    case EVENT_ACTIVITY_FAILED:
        return e->quarantined ? retry_is_quarantined(task, e->try_number)
                              : retry_takes_result(task, e->try_number);
    case EVENT_ACTIVITY_TRY_STARTED: return retry_is_quarantined(task, e->try_number);
    case EVENT_CHILD_COMPLETED:
    case EVENT_CHILD_FAILED: return true;
    case EVENT_TIMER_FIRED:
        if (task->kind == TASK_TIMER)
            return true;
        if (e->due_ms == TIMER_ASKED_MS)
            return task->kind == TASK_ACTIVITY && retry_may_start(task);
        return task->kind == TASK_ACTIVITY && task_timed(task) &&
               retry_wake(task, e->due_ms == 0 ? UINT64_MAX : e->due_ms) != EVENT_UNKNOWN;
    default: return false;
    }
}

bool instance_has_seen(const struct instance *instance, const struct event *received)
{
    return requests_seen(&instance->requests, request_hash(received->kind, received->request_id));
}

bool instance_accepts(const struct instance *instance, const struct event *received)
{
    if (instance->end.ended || instance->facts.terminate_received)
        return false;
    if (received->kind == EVENT_STARTED)
        return !instance->facts.started;
    if (!instance->facts.started || instance_has_seen(instance, received))
        return false;
    switch (received->kind) {
    case EVENT_CANCEL_REQUESTED: return !instance->cancel.received;
    case EVENT_PAUSED: return !instance->facts.paused;
    case EVENT_RESUMED: return instance->facts.paused;
    case EVENT_HISTORY_PRUNED: return received->before > instance->facts.pruned_before;
    case EVENT_TERMINATE_REQUESTED: return true;
    case EVENT_EVENT_RECEIVED: return received->name.len > 0;
    case EVENT_STATE_CARRIED:
    case EVENT_ORIGINS_CARRIED: return instance->facts.receiving && instance->turn.number == 1;
    default: return accepts_resolution(instance, received);
    }
}

static bool instance_receive_convert(struct instance *in, struct event *event)
{
    const struct task *task = task_find(in, event->ref);
    switch (event->kind) {
    case EVENT_STARTED:
        event->code = SEMANTICS_VERSION;
        if (event->version == 0 && in->options.code != NULL)
            event->version = in->options.version;
        return true;
    case EVENT_ACTIVITY_COMPLETED:
        event->try_number = task_try(task);
        event->timed = task_timed(task);
        return true;
    case EVENT_ACTIVITY_FAILED:
        if (event->quarantined)
            retry_convert_release(task, event);
        else
            retry_convert_failure(in, task, event);
        return true;
    case EVENT_ACTIVITY_TRY_STARTED: retry_convert_release(task, event); return true;
    case EVENT_TIMER_FIRED:
        if (task->kind == TASK_ACTIVITY)
            retry_convert_wake(in, task, event);
        return event->kind != EVENT_UNKNOWN;
    case EVENT_CHILD_COMPLETED:
    case EVENT_CHILD_FAILED: return true;
    default: event->ref = 0; return true; /* only these kinds may have a ref in a record */
    }
}

/* ---- effects of a received event ---- */

static thole_status instance_receive_corrupt(struct instance *in, const struct event *e, const char *what)
{
    return instance_break(in, THOLE_CORRUPT, "event %llu: %s %s", (unsigned long long)e->id,
                          event_kind_name(e->kind), what);
}

static thole_status receive_started(struct instance *in, struct event *event)
{
    if (in->facts.started)
        return instance_receive_corrupt(in, event, "a second time");
    THOLE_TRY(instance_keep(in, event->name, &in->facts.orchestration));
    THOLE_TRY(instance_keep(in, event->data, &in->facts.input));
    THOLE_TRY(instance_keep(in, event->request_id, &in->facts.request_id));
    in->facts.parent = event->parent;
    THOLE_TRY(instance_keep(in, event->parent.instance, &in->facts.parent.instance));
    THOLE_TRY(instance_keep(in, event->traceparent, &in->facts.trace.parent));
    THOLE_TRY(instance_keep(in, event->tracestate, &in->facts.trace.list));
    event->traceparent = in->facts.trace.parent;
    event->tracestate = in->facts.trace.list;
    event->name = in->facts.orchestration;
    event->data = in->facts.input;
    event->request_id = in->facts.request_id;
    event->parent = in->facts.parent;
    in->facts.version = event->version;
    in->facts.semantics = event->code;
    in->facts.before = event->before;
    uint64_t const seed = hash_number(hash_bytes(1, in->options.id), in->options.execution);
    in->facts.random_seed = hash_number(seed, in->turn.time_ms);
    in->facts.started = true;
    return THOLE_OK;
}

static thole_status receive_cancel(struct instance *in, struct event *event)
{
    if (in->cancel.received) /* the first reason wins */
        return THOLE_OK;
    THOLE_TRY(cancel_receive(in, event));
    in->facts.paused = false;
    return THOLE_OK;
}

static thole_status receive_terminate(struct instance *in, struct event *event)
{
    if (in->facts.terminate_received)
        return THOLE_OK;
    THOLE_TRY(instance_keep(in, event->data, &in->facts.terminate_reason));
    THOLE_TRY(instance_keep(in, event->request_id, &event->request_id));
    event->data = in->facts.terminate_reason;
    in->facts.terminate_received = true;
    in->facts.paused = false;
    return THOLE_OK;
}

static thole_status receive_pause(struct instance *in, struct event *event)
{
    THOLE_TRY(instance_keep(in, event->data, &event->data));
    THOLE_TRY(instance_keep(in, event->request_id, &event->request_id));
    in->facts.paused = event->kind == EVENT_PAUSED;
    in->facts.pause_reason = in->facts.paused ? event->data : (thole_slice){NULL, 0};
    return THOLE_OK;
}

/* Carried out by the engine; not visible to the code. */
static thole_status receive_pruned(struct instance *in, struct event *event)
{
    THOLE_TRY(instance_keep(in, event->data, &event->data));
    THOLE_TRY(instance_keep(in, event->request_id, &event->request_id));
    if (event->before > in->facts.pruned_before)
        in->facts.pruned_before = event->before;
    return THOLE_OK;
}

static thole_status receive_event(struct instance *in, struct event *event)
{
    THOLE_TRY(instance_keep(in, event->data, &event->data));
    THOLE_TRY(instance_keep(in, event->request_id, &event->request_id));
    THOLE_TRY(event_arrived(in, event->name, event->id, event->data));
    struct name *name = names_find(in, event->name);
    event->name = name->text;
    return THOLE_OK;
}

static thole_status receive_state(struct instance *in, struct event *event)
{
    if (in->turn.number > 1)
        return instance_receive_corrupt(in, event, "after the first turn");
    THOLE_TRY(instance_keep(in, event->name, &event->name));
    THOLE_TRY(instance_keep(in, event->data, &event->data));
    if (event->name.len > STATE_KEY_BYTES_MAX)
        return instance_receive_corrupt(in, event, "with a key that is too long");
    if (event->name.len == 0) /* no key: the custom status */
        return instance_set_custom_status(in, event->data);
    return state_put(in, event->name, event->data);
}

static thole_status receive_origins(struct instance *in, struct event *event)
{
    if (in->turn.number > 1)
        return instance_receive_corrupt(in, event, "after the first turn");
    if (event->data.len % sizeof(uint64_t) != 0)
        return instance_receive_corrupt(in, event, "with half a hash");
    THOLE_TRY(instance_keep(in, event->data, &event->data));
    for (size_t at = 0; at + sizeof(uint64_t) <= event->data.len; at += sizeof(uint64_t)) {
        uint64_t hash = 0;
        for (size_t i = sizeof hash; i-- > 0;)
            hash = hash << 8 | event->data.ptr[at + i];
        THOLE_TRY(requests_add(in, hash));
    }
    return THOLE_OK;
}

static thole_status receive_version(struct instance *in, const struct event *event)
{
    if (in->facts.version != 0 || in->facts.has_run)
        return instance_receive_corrupt(in, event, "when it was chosen");
    in->facts.version = event->version;
    return THOLE_OK;
}

static thole_status keep_type(struct instance *in, struct event *event, const thole_slice **ret)
{
    if (event->error_type.len == 0)
        return THOLE_OK;
    thole_slice *type = arena_alloc(&in->arena, sizeof *type);
    if (type == NULL)
        return instance_full(in);
    THOLE_TRY(instance_keep(in, event->error_type, type));
    event->error_type = *type;
    *ret = type;
    return THOLE_OK;
}

static thole_status instance_receive_resolve(struct instance *in, struct task *task, struct event *event)
{
    bool const failed = event->kind == EVENT_ACTIVITY_FAILED || event->kind == EVENT_CHILD_FAILED;
    const thole_slice *type = NULL;
    THOLE_TRY(instance_keep(in, event->data, &event->data));
    if (failed)
        THOLE_TRY(keep_type(in, event, &type));
    task_resolve(in, task,
                 &(struct task_result){.state = failed ? TASK_FAILED : TASK_SUCCEEDED,
                                       .at = event->id,
                                       .data = event->data,
                                       .code = event->code,
                                       .error_type = type});
    return THOLE_OK;
}

/* A result of another try than the one that runs is possible only in events that were recorded unchecked. */
static thole_status receive_result(struct instance *in, struct task *task, struct event *event)
{
    bool const over =
        event->kind == EVENT_ACTIVITY_FAILED && (event->code == THOLE_TIMEOUT || event->quarantined);
    uint32_t const number = event->try_number == 0 ? 1 : event->try_number;
    bool const takes = retry_takes_result(task, number) || (over && number == task_try(task));
    if (takes)
        return instance_receive_resolve(in, task, event);
    if (in->facts.unchecked)
        return THOLE_OK;
    return instance_break(in, THOLE_CORRUPT, "event %llu: %s of try %u, the activity's try is %u%s",
                          (unsigned long long)event->id, event_kind_name(event->kind), number, task_try(task),
                          task->call != NULL && task->call->waiting ? ", and failed" : "");
}

static thole_status receive_resolution(struct instance *in, struct event *event)
{
    struct task *task = task_resolved_by(in, event);
    if (task == NULL && in->facts.unchecked)
        return THOLE_OK; /* was recorded unchecked */
    if (task == NULL)
        return instance_break(
            in, THOLE_CORRUPT, "event %llu: %s for event %llu, which scheduled no such thing",
            (unsigned long long)event->id, event_kind_name(event->kind), (unsigned long long)event->ref);
    if (task->state != TASK_OUTSTANDING || cancel_undelivered(in))
        return THOLE_OK; /* a duplicate, or too late */
    switch (event->kind) {
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_ACTIVITY_FAILED: return receive_result(in, task, event);
    case EVENT_ACTIVITY_TRY_FAILED: return retry_try_failed(in, task, event);
    case EVENT_ACTIVITY_QUARANTINED: return retry_quarantined(in, task, event);
    case EVENT_ACTIVITY_TRY_STARTED: return retry_try_started(in, task, event);
    default: return instance_receive_resolve(in, task, event);
    }
}

static thole_status instance_receive_dispatch(struct instance *in, struct event *event)
{
    switch (event->kind) {
    case EVENT_STARTED: return receive_started(in, event);
    case EVENT_CANCEL_REQUESTED: return receive_cancel(in, event);
    case EVENT_TERMINATE_REQUESTED: return receive_terminate(in, event);
    case EVENT_PAUSED:
    case EVENT_RESUMED: return receive_pause(in, event);
    case EVENT_HISTORY_PRUNED: return receive_pruned(in, event);
    case EVENT_EVENT_RECEIVED: return receive_event(in, event);
    case EVENT_STATE_CARRIED: return receive_state(in, event);
    case EVENT_ORIGINS_CARRIED: return receive_origins(in, event);
    case EVENT_VERSION_CHOSEN: return receive_version(in, event);
    case EVENT_DISCARDED: return instance_receive_corrupt(in, event, "in an execution that has started");
    default: return receive_resolution(in, event);
    }
}

thole_status instance_receive(struct instance *in, const struct event *event)
{
    struct event own = *event;
    own.id = instance_take_id(in);
    if (own.kind != EVENT_STARTED && !in->facts.started)
        return instance_receive_corrupt(in, &own, "before Started");
    uint64_t const hash = own.kind == EVENT_STARTED ? 0 : request_hash(own.kind, own.request_id);
    bool const seen = requests_seen(&in->requests, hash); /* possible only if it was recorded unchecked */
    if (!seen) {
        THOLE_TRY(instance_receive_dispatch(in, &own));
        THOLE_TRY(requests_add(in, hash));
    }
    in->facts.undelivered = true;
    if (!in->turn.replaying)
        return instance_push(in, &own);
    instance_count_event(in, &own);
    return THOLE_OK;
}

thole_status instance_receive_live(struct instance *in, const struct event *received, size_t len)
{
    in->facts.receiving = true;
    in->facts.unchecked = false;
    for (size_t i = 0; i < len; i++) {
        struct event event = received[i];
        if (instance_accepts(in, &event) && instance_receive_convert(in, &event))
            THOLE_TRY(instance_receive(in, &event));
    }
    in->facts.receiving = false;
    return THOLE_OK;
}

thole_status instance_receive_recorded(struct instance *in, const struct turn *turn, size_t len)
{
    in->facts.unchecked = !turn->ran;
    for (size_t i = 0; i < len; i++) {
        const struct event *e = &turn->events[i];
        if (e->kind != EVENT_UNKNOWN)
            THOLE_TRY(instance_receive(in, e));
        else
            (void)instance_take_id(in);
    }
    return THOLE_OK;
}

void instance_deliver(struct instance *in)
{
    assert(in->facts.started && !in->facts.receiving);
    in->facts.undelivered = false;
    in->facts.has_run = true;
}
