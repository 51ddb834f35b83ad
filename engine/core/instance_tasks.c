/* The table of what an execution has scheduled: ascending ids in segments that double and never move. */
#include "instance_tasks.h"
#include "instance_code.h"
#include "instance_memory.h"
#include "instance_names.h"
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
    return &in->tasks.segments[k][i - segment_start(k)];
}

struct task *task_at(const struct instance *in, size_t i)
{
    assert(i < in->tasks.len);
    return task_slot(in, i);
}

/* The index from event ids to tasks, in segments too; segments without a task are not allocated. */
static uint32_t *ordinal_of(const struct instance *in, uint64_t id)
{
    if (id == 0 || id >= TASK_EVENTS_MAX)
        return NULL;
    size_t const k = segment_of((size_t)id);
    return in->tasks.ordinals[k] == NULL ? NULL : &in->tasks.ordinals[k][(size_t)id - segment_start(k)];
}

struct task *task_find(const struct instance *in, uint64_t id)
{
    const uint32_t *ordinal = ordinal_of(in, id);
    struct task *const task = ordinal == NULL || *ordinal == 0 ? NULL : task_at(in, *ordinal - 1);
    assert(task == NULL || task->id == id);
    return task;
}

/* Room for one more task and its index entry. */
static bool task_room(struct instance *in, uint64_t id)
{
    size_t const k = segment_of(in->tasks.len);
    if (k >= TASK_SEGMENTS_MAX || id >= TASK_EVENTS_MAX)
        return false;
    size_t const k_id = segment_of((size_t)id);
    if (in->tasks.segments[k] == NULL)
        in->tasks.segments[k] = arena_array(&in->arena, segment_len(k), sizeof(struct task));
    if (in->tasks.ordinals[k_id] == NULL)
        in->tasks.ordinals[k_id] = arena_array(&in->arena, segment_len(k_id), sizeof(uint32_t));
    return in->tasks.segments[k] != NULL && in->tasks.ordinals[k_id] != NULL;
}

struct task *task_add(struct instance *in, uint64_t id, enum task_kind kind, thole_slice name)
{
    assert(in->tasks.len == 0 || task_at(in, in->tasks.len - 1)->id < id);
    if (!task_room(in, id)) {
        (void)instance_full(in);
        return NULL;
    }
    struct name *interned = kind == TASK_TIMER ? NULL : names_intern(in, name);
    if (kind != TASK_TIMER && interned == NULL)
        return NULL;
    struct task *task = task_slot(in, in->tasks.len++);
    *task = (struct task){.id = id, .name = interned, .kind = (uint8_t)kind, .state = TASK_OUTSTANDING};
    *ordinal_of(in, id) = (uint32_t)in->tasks.len;
    return task;
}

const char *task_kind_text(const struct task *task)
{
    static const char *const texts[] = {"activity", "timer", "event", "child"};
    return texts[task->kind];
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

void task_resolve(struct instance *in, struct task *task, const struct task_result *result)
{
    assert(task->state == TASK_OUTSTANDING && result->state != TASK_OUTSTANDING && result->at != 0);
    task->state = (uint8_t)result->state;
    task->resolved_at = result->at;
    task->data = result->data;
    task->code = result->code;
    task->error_type = result->error_type;
    if (task->awaited) { /* several may be awaited where the first one is enough */
        task->awaited = false;
        code_task_resolved(in);
    }
}

void task_unresolve(struct task *task)
{
    assert(task->kind == TASK_EVENT && task->state == TASK_SUCCEEDED && !task->awaited);
    task->state = TASK_OUTSTANDING;
    task->data = (thole_slice){NULL, 0};
}
