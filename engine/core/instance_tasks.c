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

struct task *task_at(const struct instance *in, size_t i)
{
    assert(i < in->tasks_len);
    size_t const k = segment_of(i);
    return &in->segments[k][i - segment_start(k)];
}

static struct task *segment_search(struct task *tasks, size_t len, uint64_t id)
{
    size_t low = 0;
    while (len > 0) {
        size_t const half = len / 2;
        struct task *task = &tasks[low + half];
        if (task->id == id)
            return task;
        if (task->id < id) {
            low += half + 1;
            len -= half + 1;
        } else {
            len = half;
        }
    }
    return NULL;
}

struct task *task_find(const struct instance *in, uint64_t id)
{
    if (in->tasks_len == 0)
        return NULL;
    size_t k = segment_of(in->tasks_len - 1);
    size_t len = in->tasks_len - segment_start(k);
    while (in->segments[k][0].id > id) {
        if (k == 0)
            return NULL;
        len = segment_len(--k);
    }
    return segment_search(in->segments[k], len, id);
}

/* Many tasks in a row have the same name: one copy serves them all. */
static thole_status name_keep(struct instance *in, thole_slice name, thole_slice *ret)
{
    if (in->tasks_len > 0 && thole_slice_equal(task_at(in, in->tasks_len - 1)->name, name)) {
        *ret = task_at(in, in->tasks_len - 1)->name;
        return THOLE_OK;
    }
    if (name.len == 0) {
        *ret = (thole_slice){NULL, 0};
        return THOLE_OK;
    }
    return arena_dup(&in->arena, name, ret);
}

struct task *task_add(struct instance *in, uint64_t id, thole_slice name)
{
    size_t const k = segment_of(in->tasks_len);
    assert(in->tasks_len == 0 || task_at(in, in->tasks_len - 1)->id < id);
    if (k >= TASK_SEGMENTS_MAX) {
        (void)instance_full(in);
        return NULL;
    }
    if (in->segments[k] == NULL)
        in->segments[k] = arena_array(&in->arena, segment_len(k), sizeof(struct task));
    thole_slice kept;
    if (in->segments[k] == NULL || name_keep(in, name, &kept) != THOLE_OK) {
        (void)instance_full(in);
        return NULL;
    }
    struct task *task = &in->segments[k][in->tasks_len++ - segment_start(k)];
    *task = (struct task){.id = id, .name = kept, .state = TASK_OUTSTANDING};
    return task;
}

bool task_is_timer(const struct task *task)
{
    return task->name.len == 0;
}

struct task *task_resolved_by(const struct instance *in, const struct event *event)
{
    struct task *task = task_find(in, event->ref);
    bool const by_timer = event->kind == EVENT_TIMER_FIRED || event->kind == EVENT_TIMER_CANCELLED;
    return task != NULL && task_is_timer(task) == by_timer ? task : NULL;
}

static enum task_state state_after(enum event_kind kind)
{
    switch (kind) {
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_TIMER_FIRED: return TASK_SUCCEEDED;
    case EVENT_ACTIVITY_FAILED: return TASK_FAILED;
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_TIMER_CANCELLED: return TASK_CANCELLED;
    default: break;
    }
    assert(kind == EVENT_TIMER_FIRED); /* what is not a resolution never comes here */
    return TASK_OUTSTANDING;
}

void task_resolve(struct instance *in, struct task *task, const struct event *by)
{
    assert(task->state == TASK_OUTSTANDING && by->id > task->id);
    task->state = (uint8_t)state_after(by->kind);
    task->resolved_at = by->id;
    task->data = by->data;
    task->code = by->code;
    if (task->awaited) { /* several may be, where the first is enough */
        task->awaited = false;
        if (in->waits_left > 0)
            in->waits_left--;
    }
}

void task_cancel(struct instance *in, struct task *task, enum cancel_kind kind, thole_slice reason)
{
    if (task->state != TASK_OUTSTANDING)
        return;
    struct event event = {.kind = task_is_timer(task) ? EVENT_TIMER_CANCELLED : EVENT_ACTIVITY_CANCELLED,
                          .ref = task->id,
                          .code = (uint32_t)kind,
                          .data = reason};
    event.id = instance_emit(in, &event);
    if (event.id != 0)
        task_resolve(in, task, &event);
}

void tasks_cancel_outstanding(struct instance *in, enum cancel_kind kind, thole_slice reason)
{
    for (size_t i = 0; i < in->tasks_len && in->broken == THOLE_OK; i++)
        task_cancel(in, task_at(in, i), kind, reason);
}

thole_status fault_status(enum task_fault fault)
{
    switch (fault) {
    case FAULT_ACTIVITY_NAME:
    case FAULT_TIMER_DELAY: return THOLE_INVALID;
    case FAULT_ACTIVITY_INPUT:
    case FAULT_MEMORY: return THOLE_LIMIT;
    }
    return THOLE_INVALID;
}

const char *fault_text(enum task_fault fault)
{
    switch (fault) {
    case FAULT_ACTIVITY_NAME: return "an activity's name is not [A-Za-z0-9_-]{1,64}";
    case FAULT_ACTIVITY_INPUT: return "an activity's input is larger than the payload limit";
    case FAULT_TIMER_DELAY: return "a timer is longer than 100 years";
    case FAULT_MEMORY: return "the instance's memory limit is reached";
    }
    return "a task that does not exist was awaited";
}
