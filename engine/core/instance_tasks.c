/* The table of what an execution has scheduled: ascending ids in segments that double and never move. */
#include "instance_state.h"
#include <assert.h>

static size_t segment_len(size_t k)
{
    return (size_t)TASK_SEGMENT_FIRST << k;
}

/* Number of tasks in the segments before k. */
static size_t segment_start(size_t k)
{
    return segment_len(k) - TASK_SEGMENT_FIRST;
}

static size_t segment_of(size_t i)
{
    size_t const k = i / TASK_SEGMENT_FIRST + 1;
    return (size_t)(63 - __builtin_clzll((unsigned long long)k));
}

static struct task *task_slot(const struct instance *in, size_t i)
{
    size_t const k = segment_of(i);
    return &in->segments[k][i - segment_start(k)];
}

struct task *task_at(const struct instance *in, size_t i)
{
    assert(i < in->tasks_len);
    return task_slot(in, i);
}

/* Where event ids lead to tasks: in segments, too, of which only those exist that hold one. */
static uint32_t *ordinal_of(const struct instance *in, uint64_t id)
{
    if (id == 0 || id >= TASK_EVENTS_MAX)
        return NULL;
    size_t const k = segment_of((size_t)id);
    return in->ordinals[k] == NULL ? NULL : &in->ordinals[k][(size_t)id - segment_start(k)];
}

struct task *task_find(const struct instance *in, uint64_t id)
{
    const uint32_t *ordinal = ordinal_of(in, id);
    return ordinal == NULL || *ordinal == 0 ? NULL : task_at(in, *ordinal - 1);
}

/* Room for one more task, and for the way to it. */
static bool task_room(struct instance *in, uint64_t id)
{
    size_t const k = segment_of(in->tasks_len);
    if (k >= TASK_SEGMENTS_MAX || id >= TASK_EVENTS_MAX)
        return false;
    size_t const k_id = segment_of((size_t)id);
    if (in->segments[k] == NULL)
        in->segments[k] = arena_array(&in->arena, segment_len(k), sizeof(struct task));
    if (in->ordinals[k_id] == NULL)
        in->ordinals[k_id] = arena_array(&in->arena, segment_len(k_id), sizeof(uint32_t));
    return in->segments[k] != NULL && in->ordinals[k_id] != NULL;
}

struct task *task_add(struct instance *in, uint64_t id, enum task_kind kind, thole_slice name)
{
    assert(in->tasks_len == 0 || task_at(in, in->tasks_len - 1)->id < id);
    if (!task_room(in, id)) {
        (void)instance_full(in);
        return NULL;
    }
    struct name *interned = kind == TASK_TIMER ? NULL : names_intern(in, name);
    if (kind != TASK_TIMER && interned == NULL)
        return NULL;
    struct task *task = task_slot(in, in->tasks_len++);
    *task = (struct task){.id = id, .name = interned, .kind = (uint8_t)kind, .state = TASK_OUTSTANDING};
    *ordinal_of(in, id) = (uint32_t)in->tasks_len;
    return task;
}

const char *task_kind_text(const struct task *task)
{
    static const char *const texts[] = {"activity", "timer", "event", "child"};
    return texts[task->kind];
}

/* ---- what belongs to a kind of task ---- */

static thole_status keep_final_types(struct instance *in, struct retry *retry)
{
    if (retry->final_types_len == 0)
        return THOLE_OK;
    thole_slice *types = arena_array(&in->arena, retry->final_types_len, sizeof *types);
    if (types == NULL)
        return instance_full(in);
    for (size_t i = 0; i < retry->final_types_len; i++)
        THOLE_TRY(instance_keep(in, retry->final_types[i], &types[i]));
    retry->final_types = types;
    return THOLE_OK;
}

thole_status task_describe_call(struct instance *in, struct task *task, const struct event *scheduled)
{
    if (scheduled->retry == NULL || retry_is_none(scheduled->retry))
        return THOLE_OK;
    struct task_call *call = arena_alloc(&in->arena, sizeof *call);
    if (call == NULL)
        return instance_full(in);
    call->retry = *scheduled->retry;
    call->per_try = (struct retry){.try_timeout_ms = call->retry.try_timeout_ms};
    call->try_number = 1;
    uint64_t const total = call->retry.total_timeout_ms;
    if (total != 0)
        call->deadline_ms = total > UINT64_MAX - in->time_ms ? UINT64_MAX : in->time_ms + total;
    task->call = call;
    THOLE_TRY(keep_final_types(in, &call->retry));
    if (call->retry.tries_max <= 1)
        return THOLE_OK;
    THOLE_TRY(instance_keep(in, scheduled->queue, &call->queue));
    return instance_keep(in, scheduled->data, &call->input);
}

thole_status task_describe_child(struct instance *in, struct task *task, const struct event *scheduled)
{
    task->child = arena_alloc(&in->arena, sizeof *task->child);
    if (task->child == NULL)
        return instance_full(in);
    task->child->close = (enum close_policy)scheduled->code;
    return instance_keep(in, scheduled->target, &task->child->target);
}

/* ---- resolution ---- */

static bool kind_fits(enum event_kind kind, enum task_kind *ret)
{
    switch (kind) {
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_ACTIVITY_FAILED:
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_ACTIVITY_TRY_FAILED:
    case EVENT_ACTIVITY_QUARANTINED:
    case EVENT_ACTIVITY_TRY_STARTED: *ret = TASK_ACTIVITY; return true;
    case EVENT_TIMER_FIRED:
    case EVENT_TIMER_CANCELLED: *ret = TASK_TIMER; return true;
    case EVENT_EVENT_AWAIT_CANCELLED: *ret = TASK_EVENT; return true;
    case EVENT_CHILD_COMPLETED:
    case EVENT_CHILD_FAILED:
    case EVENT_CHILD_CANCELLED: *ret = TASK_CHILD; return true;
    default: return false;
    }
}

struct task *task_resolved_by(const struct instance *in, const struct event *event)
{
    enum task_kind kind = TASK_ACTIVITY;
    if (!kind_fits(event->kind, &kind))
        return NULL;
    struct task *task = task_find(in, event->ref);
    return task != NULL && task->kind == kind ? task : NULL;
}

void task_resolve(struct task *task, enum task_state state, uint64_t at, struct instance *in)
{
    assert(task->state == TASK_OUTSTANDING && state != TASK_OUTSTANDING && at != 0);
    task->state = (uint8_t)state;
    task->resolved_at = at;
    if (task->awaited) { /* several may be, where the first is enough */
        task->awaited = false;
        if (in->waits_left > 0)
            in->waits_left--;
    }
}

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

thole_status task_apply_cancelled(struct instance *in, struct task *task, const struct event *event)
{
    if (task->state == TASK_SUCCEEDED)
        THOLE_TRY(event_give_back(in, task));
    task_resolve(task, TASK_CANCELLED, event->id, in);
    task->code = event->code;
    return THOLE_OK;
}

bool task_may_be_cancelled(const struct task *task)
{
    return task->state == TASK_OUTSTANDING ||
           (task->kind == TASK_EVENT && task->state == TASK_SUCCEEDED && !task->told);
}

static void cancel(struct instance *in, struct task *task, enum cancel_kind kind, thole_slice reason,
                   bool terminate)
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
    if (event.id != 0 && task_apply_cancelled(in, task, &event) == THOLE_OK)
        task->data = reason;
}

void task_cancel(struct instance *in, struct task *task, enum cancel_kind kind, thole_slice reason)
{
    if (in->broken == THOLE_OK && task_may_be_cancelled(task))
        cancel(in, task, kind, reason, false);
}

void tasks_cancel_outstanding(struct instance *in, enum cancel_kind kind, thole_slice reason)
{
    for (size_t i = 0; i < in->tasks_len && in->broken == THOLE_OK; i++) {
        struct task *task = task_at(in, i);
        if (task->state == TASK_OUTSTANDING)
            cancel(in, task, kind, reason, false);
    }
}

/* The next execution shall find the events that this one has not looked at. */
static bool closes(const struct instance *in, const struct task *task)
{
    if (task->state != TASK_OUTSTANDING)
        return in->continuing && task_may_be_cancelled(task);
    return task->kind != TASK_CHILD || task->child->close != CLOSE_ABANDON;
}

void tasks_close(struct instance *in, enum cancel_kind kind, thole_slice reason)
{
    for (size_t i = 0; i < in->tasks_len && in->broken == THOLE_OK; i++) {
        struct task *task = task_at(in, i);
        if (closes(in, task))
            cancel(in, task, kind, reason, task->kind == TASK_CHILD && task->child->close == CLOSE_TERMINATE);
    }
}
