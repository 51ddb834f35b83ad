/* The tasks of an execution that are not resolved. */
#include "instance_tasks.h"

bool instance_outstanding(const struct instance *instance, size_t *cursor, struct outstanding *ret)
{
    while (*cursor < instance->tasks.len) {
        const struct task *task = task_at(instance, (*cursor)++);
        if (task->state != TASK_OUTSTANDING)
            continue;
        const struct task_call *call = task->kind == TASK_ACTIVITY ? task->call : NULL;
        *ret = (struct outstanding){.id = task->id};
        if (task->kind == TASK_ACTIVITY)
            ret->try_number = call == NULL ? 1 : call->try_number;
        if (call != NULL && (call->waiting || call->quarantined)) {
            ret->waiting = true;
            ret->quarantined = call->quarantined;
            ret->due_ms = call->next_due_ms;
        }
        return true;
    }
    return false;
}
