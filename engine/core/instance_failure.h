/* Why an execution failed, in words, and how an await reports a task that failed. */
#ifndef THOLE_INSTANCE_FAILURE_H
#define THOLE_INSTANCE_FAILURE_H
#include "instance_state.h"

/* THOLE_INVALID or THOLE_LIMIT, and a sentence, for a task that was never scheduled. */
thole_status fault_status(enum task_fault fault);
const char *fault_text(enum task_fault fault);
enum task_fault task_fault_of(thole_task task);
/* How an await of a task that did not succeed returns. */
thole_status task_outcome(const struct task *task);
/* The failure text of an execution that returned @p status, in turn memory, and its error type. */
thole_slice instance_failure_text(struct instance *in, thole_status status);
thole_slice instance_failure_type(const struct instance *in);
#endif
