/* Why an execution failed, in words, and how an await reports a task that failed. */
#include "instance_failure.h"
#include "instance_memory.h"
#include "instance_tasks.h"
#include "message.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PREFIX_BYTES = 160 };

/* ---- tasks that were never scheduled ---- */

static const struct {
    enum task_fault fault;
    thole_status status;
    const char *text;
} faults[] = {
    {FAULT_ACTIVITY_NAME, THOLE_INVALID, "an activity's name is not [A-Za-z0-9_-]{1,64}"},
    {FAULT_ACTIVITY_INPUT, THOLE_LIMIT, "an activity's input is larger than the payload limit"},
    {FAULT_TIMER_DELAY, THOLE_INVALID, "a timer is longer than 100 years"},
    {FAULT_MEMORY, THOLE_LIMIT, "the instance's memory limit is reached"},
    {FAULT_CALL_OPTIONS, THOLE_INVALID, "an activity's options are out of range"},
    {FAULT_QUEUE_NAME, THOLE_INVALID, "a queue's name is not [A-Za-z0-9_-]{1,64}"},
    {FAULT_EVENT_NAME, THOLE_INVALID, "an event's name is not [A-Za-z0-9_-]{1,64}"},
    {FAULT_CHILD_NAME, THOLE_INVALID, "a child orchestration's name is not [A-Za-z0-9_-]{1,64}"},
    {FAULT_CHILD_INPUT, THOLE_LIMIT, "a child's input is larger than the payload limit"},
    {FAULT_CHILD_ID, THOLE_INVALID, "a child's instance id is not 1 to 200 bytes of UTF-8"},
    {FAULT_CHILD_ID_DERIVED, THOLE_LIMIT, "the instance id made for a child is longer than 200 bytes"},
    {FAULT_CHILD_OPTIONS, THOLE_INVALID, "a child's options are out of range"},
    {FAULT_RAISE_ID, THOLE_INVALID, "the instance id of a raised event is not 1 to 200 bytes of UTF-8"},
    {FAULT_RAISE_NAME, THOLE_INVALID, "a raised event's name is not [A-Za-z0-9_-]{1,64}"},
    {FAULT_RAISE_DATA, THOLE_LIMIT, "a raised event's data is larger than the payload limit"},
    {FAULT_STATE_KEY, THOLE_INVALID, "a key of the state is not 1 to 64 bytes"},
    {FAULT_STATE_SIZE, THOLE_LIMIT, "the state is larger than the payload limit"},
    {FAULT_EMIT_TYPE, THOLE_INVALID,
     "an emitted event's type is not names [A-Za-z0-9_-] with dots between them, 1 to 128 bytes, or begins "
     "with thole."},
    {FAULT_EMIT_DATA, THOLE_LIMIT, "an emitted event's data is larger than the payload limit"},
    {FAULT_FORBIDDEN, THOLE_INVALID, "a query or a side effect may not schedule, wait or set anything"},
};

thole_status fault_status(enum task_fault fault)
{
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (faults[i].fault == fault)
            return faults[i].status;
    return THOLE_INVALID;
}

const char *fault_text(enum task_fault fault)
{
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (faults[i].fault == fault)
            return faults[i].text;
    return "a task that does not exist was awaited";
}

enum task_fault task_fault_of(thole_task task)
{
    return (task.id & TASK_FAULT_BIT) != 0 ? (enum task_fault)(task.id & ~TASK_FAULT_BIT) : 0;
}

/* ---- tasks that did not succeed ---- */

thole_status task_outcome(const struct task *task)
{
    switch ((enum task_state)task->state) {
    case TASK_SUCCEEDED: return THOLE_OK;
    case TASK_CANCELLED: return THOLE_CANCELLED;
    case TASK_FAILED:
        if (task->kind == TASK_ACTIVITY && task->code == THOLE_TIMEOUT)
            return THOLE_TIMEOUT;
        return task->kind == TASK_CHILD && task->code == THOLE_CANCELLED ? THOLE_CANCELLED : THOLE_APP;
    case TASK_OUTSTANDING: break;
    }
    return THOLE_OK;
}

static const char *instance_failure_reason(const struct task *task)
{
    return task_outcome(task) == THOLE_CANCELLED ? "was cancelled" : "failed";
}

/* "activity 'charge' failed", "timer 5 was cancelled". */
static void task_prefix(const struct task *task, const char *what, char to[PREFIX_BYTES])
{
    if (task->name == NULL)
        (void)snprintf(to, PREFIX_BYTES, "%s %llu %s", task_kind_text(task), (unsigned long long)task->id,
                       what);
    else
        (void)snprintf(to, PREFIX_BYTES, "%s '%.*s' %s", task_kind_text(task), THOLE_FMT(task->name->text),
                       what);
}

/* "prefix: text", cut to the payload limit. */
static thole_slice instance_failure_joined(struct instance *in, const char *prefix, thole_slice text)
{
    thole_slice const parts[] = {thole_slice_from(prefix), thole_slice_from(": "), text};
    size_t const n = text.len > 0 ? 3 : 1;
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    uint8_t *to = arena_alloc(&in->turn.arena, len);
    if (to == NULL) {
        (void)instance_full(in);
        return (thole_slice){NULL, 0};
    }
    len = 0;
    for (size_t i = 0; i < n; i++) {
        memcpy(to + len, parts[i].ptr, parts[i].len);
        len += parts[i].len;
    }
    return text_cut((thole_slice){to, len}, in->options.payload_max);
}

static thole_slice task_text(struct instance *in, const struct task *task)
{
    char prefix[PREFIX_BYTES];
    thole_slice text = task->data;
    if (text.len == 0 && task->state == TASK_FAILED && task->code != THOLE_APP)
        text = thole_slice_from(thole_status_text((thole_status)task->code));
    task_prefix(task, instance_failure_reason(task), prefix);
    return instance_failure_joined(in, prefix, text);
}

static thole_slice own_text(struct instance *in, const char *text)
{
    return instance_failure_joined(in, text, (thole_slice){NULL, 0});
}

static thole_slice limit_text(struct instance *in, const struct last_failure *last)
{
    char what[PREFIX_BYTES / 2], prefix[PREFIX_BYTES];
    (void)snprintf(what, sizeof what, "did not end within the %llu ms that it was awaited for",
                   (unsigned long long)last->limit_ms);
    task_prefix(last->awaited, what, prefix);
    return own_text(in, prefix);
}

thole_slice instance_failure_text(struct instance *in, thole_status status)
{
    const struct last_failure *last = &in->last_failure;
    char text[PREFIX_BYTES];
    if (in->code.returned_status == THOLE_OK && in->code.fault != 0)
        return own_text(in, fault_text(in->code.fault));
    if (in->code.returned_status == THOLE_OK) {
        (void)snprintf(text, sizeof text, "the output has %zu bytes, at most %zu are allowed",
                       in->code.output.len, in->options.payload_max);
        return own_text(in, text);
    }
    if (in->code.thrown.len > 0)
        return text_cut(in->code.thrown, in->options.payload_max);
    if (last->status == THOLE_OK)
        return thole_slice_from(thole_status_text(status));
    if (last->task != NULL)
        return task_text(in, last->task);
    if (last->status == THOLE_CANCELLED)
        return thole_slice_from(thole_status_text(THOLE_CANCELLED));
    if (last->awaited != NULL)
        return limit_text(in, last);
    return own_text(in, fault_text(last->fault));
}

thole_slice instance_failure_type(const struct instance *in)
{
    const struct task *task = in->last_failure.task;
    if (in->code.returned_status == THOLE_OK)
        return (thole_slice){NULL, 0};
    if (in->code.threw)
        return in->code.thrown_type;
    return task != NULL && task->error_type != NULL ? *task->error_type : (thole_slice){NULL, 0};
}
