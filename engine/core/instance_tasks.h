/* The table of what an execution has scheduled. */
#ifndef THOLE_INSTANCE_TASKS_H
#define THOLE_INSTANCE_TASKS_H
#include "instance_state.h"

/* NULL: no such task. */
struct task *task_find(const struct instance *in, uint64_t id);
struct task *task_at(const struct instance *in, size_t i);
/* NULL: out of memory, the turn is broken. */
struct task *task_add(struct instance *in, uint64_t id, enum task_kind kind, thole_slice name);
/* Facts that come with a child's scheduling event, which is in history. */
thole_status task_describe_child(struct instance *in, struct task *task, const struct event *scheduled);
/* "activity", "timer", "event", "child" */
const char *task_kind_text(const struct task *task);
/* What the event is a resolution or a cancellation of; NULL when nothing of that kind was scheduled. */
struct task *task_resolved_by(const struct instance *in, const struct event *event);

struct task_result {
    enum task_state state;
    uint64_t at;      /* the event that it is resolved by */
    thole_slice data; /* this and the type live as long as the execution */
    uint32_t code;
    const thole_slice *error_type;
};
/* An outstanding task gets its only result; wakes the await that counts it. */
void task_resolve(struct instance *in, struct task *task, const struct task_result *result);
/* A wait whose event is given to another is outstanding again. */
void task_unresolve(struct task *task);
#endif
