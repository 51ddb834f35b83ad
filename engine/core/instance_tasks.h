/* The table of what an execution has scheduled. */
#ifndef THOLE_INSTANCE_TASKS_H
#define THOLE_INSTANCE_TASKS_H
#include "instance_state.h"

/* NULL: no such task. */
struct task *task_find(const struct instance *in, uint64_t id);
struct task *task_at(const struct instance *in, size_t i);
/* NULL: out of memory, the turn is broken. */
struct task *task_add(struct instance *in, uint64_t id, enum task_kind kind, thole_slice name);
/* Takes over the facts of a child's recorded scheduling event. */
thole_status task_describe_child(struct instance *in, struct task *task, const struct event *scheduled);
/* "activity", "timer", "event", "child" */
const char *task_kind_text(const struct task *task);
/* The task that the event resolves or cancels; NULL when no task of that kind was scheduled. */
struct task *task_resolved_by(const struct instance *in, const struct event *event);

struct task_result {
    enum task_state state;
    uint64_t at;      /* id of the resolving event */
    thole_slice data; /* data and type must live as long as the execution */
    uint32_t code;
    const thole_slice *error_type;
};
/* Resolves an outstanding task; wakes the await that counts it. */
void task_resolve(struct instance *in, struct task *task, const struct task_result *result);
/* Makes a wait outstanding again whose event was given back. */
void task_unresolve(struct task *task);
#endif
