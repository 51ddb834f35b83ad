/* Cancelling: of tasks, and of the whole execution. */
#ifndef THOLE_INSTANCE_CANCEL_H
#define THOLE_INSTANCE_CANCEL_H
#include "instance_state.h"

/* Outstanding, or a wait whose event no await has reported to the code. */
bool task_may_be_cancelled(const struct task *task);
/* Emits the event and resolves. Nothing when resolved already, but what a wait for an event has taken is
 * given back if no await has reported it. @p reason must live as long as the execution. */
void task_cancel(struct instance *in, struct task *task, enum cancel_kind kind, thole_slice reason);
/* What a recorded cancellation does. @p reason lives as long as the execution, or is empty. */
thole_status task_apply_cancelled(struct instance *in, struct task *task, const struct event *event,
                                  thole_slice reason);
/* At the end of the execution, ascending by id: what is outstanding; children as their close policy says. */
void tasks_close(struct instance *in, enum cancel_kind kind, thole_slice reason);

/*
 * The cancellation of the whole execution, step by step: the request is in the history; a turn that runs
 * delivers it; an await tells the code.
 */
thole_status cancel_receive(struct instance *in, struct event *event);
/* Cancels what is outstanding, before the code can ask for anything. The await that the code is suspended in
 * returns THOLE_CANCELLED, unless what it waits for was resolved before the request. */
void cancel_deliver(struct instance *in);
/* A recorded turn without code has delivered it: what it cancelled is recorded. */
void cancel_apply_delivered(struct instance *in);
void cancel_notice(struct instance *in);
#endif
