/* Cancelling: of tasks, and of the whole execution. */
#ifndef THOLE_INSTANCE_CANCEL_H
#define THOLE_INSTANCE_CANCEL_H
#include "instance_state.h"

/* Outstanding, or a wait whose event no await has reported to the code. */
bool task_may_be_cancelled(const struct task *task);
/* Emits the cancellation and resolves the task, unless it is resolved. A wait for an event gives its event
 * back if no await has reported it. @p reason must live as long as the execution. */
void task_cancel(struct instance *in, struct task *task, enum cancel_kind kind, thole_slice reason);
/* Applies a recorded cancellation. @p reason must live as long as the execution, or be empty. */
thole_status task_apply_cancelled(struct instance *in, struct task *task, const struct event *event,
                                  thole_slice reason);
/* A child that was asked to cancel: resolved for its parent, but it may run on, to clean up. */
bool task_is_cancelled_child(const struct task *task);
/* At the end of the execution: closes what is outstanding, in order of ids; children by their close
 * policy. A cancelled child that is to be terminated is terminated as well. */
void tasks_close(struct instance *in, enum cancel_kind kind, thole_slice reason);

/*
 * The cancellation of the whole execution, in three steps: the request is in the history; a turn that runs
 * delivers it; an await reports it to the code.
 */
thole_status cancel_receive(struct instance *in, struct event *event);
/* Cancels what is outstanding, before the code runs. The await that the code is suspended in returns
 * THOLE_CANCELLED, unless what it waits for was resolved before the request. */
void cancel_deliver(struct instance *in);
/* A recorded turn without code has delivered it: the cancellations are in the history. */
void cancel_apply_delivered(struct instance *in);
void cancel_notice(struct instance *in);
#endif
