/* The tries of an activity: what its policy says of a failure, of a wake, of a quarantine. */
#ifndef THOLE_INSTANCE_RETRY_H
#define THOLE_INSTANCE_RETRY_H
#include "instance_state.h"

/* Checks options and turns them into @p ret; 0 = they are right. */
enum task_fault retry_from_options(const thole_call_options *options, struct retry *ret,
                                   thole_slice types[FINAL_TYPES_MAX]);
bool retry_is_none(const struct retry *retry);
/* Facts that come with the scheduling event, which is in history. */
thole_status task_describe_call(struct instance *in, struct task *task, const struct event *scheduled);

/* The try that runs, or ran last; 1 for what has no policy. */
uint32_t task_try(const struct task *task);
/* Does a timer row belong to the activity now? */
bool task_timed(const struct task *task);
/* Does a result of this try count? */
bool retry_takes_result(const struct task *task, uint32_t try_number);
/* Is this try (0: any) in quarantine? */
bool retry_is_quarantined(const struct task *task, uint32_t try_number);
/* What a wake of this activity means at this time: an event kind, or EVENT_UNKNOWN = nothing yet. */
enum event_kind retry_wake(const struct task *task, uint64_t now_ms);

/* Makes a wake into what is recorded for it. */
void retry_convert_wake(const struct instance *in, const struct task *task, struct event *event);
/* Makes a failure that another try may follow into ACTIVITY_TRY_FAILED, or ACTIVITY_QUARANTINED. */
void retry_convert_failure(const struct instance *in, const struct task *task, struct event *event);
/* Makes what somebody decided on an activity in quarantine into what is recorded for it. */
void retry_convert_release(const struct task *task, struct event *event);

/* The recorded steps between tries. */
thole_status retry_try_failed(struct instance *in, struct task *task, const struct event *event);
thole_status retry_quarantined(struct instance *in, struct task *task, struct event *event);
thole_status retry_try_started(struct instance *in, struct task *task, const struct event *event);
#endif
