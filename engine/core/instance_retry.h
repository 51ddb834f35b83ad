/* The tries of an activity: what its policy decides on a failure, a wake, a quarantine. */
#ifndef THOLE_INSTANCE_RETRY_H
#define THOLE_INSTANCE_RETRY_H
#include "instance_state.h"

/* How far the time of an execution may be ahead of the clock of its engine, whose predecessor had another. */
enum { TIME_AHEAD_MS_MAX = 10 * 60 * 1000 };

/* Checks options and converts them into @p ret; 0 = they are valid. */
/* Which of them is out of range, for people; the first one. */
const char *retry_options_flaw(const thole_call_options *options);
enum task_fault retry_from_options(const thole_call_options *options, struct retry *ret,
                                   thole_slice types[FINAL_TYPES_MAX]);
bool retry_is_none(const struct retry *retry);
/* Takes over the facts of the recorded scheduling event. */
thole_status task_describe_call(struct instance *in, struct task *task, const struct event *scheduled);

/* The try that runs, or ran last; 1 without a policy. */
uint32_t task_try(const struct task *task);
/* Whether the activity has a timer row now. */
bool task_timed(const struct task *task);
/* Whether a result of this try is accepted. */
bool retry_takes_result(const struct task *task, uint32_t try_number);
/* Whether this try (0: any) is in quarantine. */
bool retry_is_quarantined(const struct task *task, uint32_t try_number);
/* The event kind that a wake of this activity becomes at this time; EVENT_UNKNOWN = it is too early. */
enum event_kind retry_wake(const struct task *task, uint64_t now_ms);
/* Whether its next try waits for its time, and may be started before. */
bool retry_may_start(const struct task *task);

/* Converts a wake, or a request to make the next try now, into the event that is recorded. */
void retry_convert_wake(struct instance *in, const struct task *task, struct event *event);
/* Converts a failure into ACTIVITY_TRY_FAILED if another try follows, or into ACTIVITY_QUARANTINED. */
void retry_convert_failure(struct instance *in, const struct task *task, struct event *event);
/* Converts a user's decision on an activity in quarantine into the event that is recorded. */
void retry_convert_release(const struct task *task, struct event *event);

/* Apply the recorded events between tries. */
thole_status retry_try_failed(struct instance *in, struct task *task, const struct event *event);
thole_status retry_quarantined(struct instance *in, struct task *task, struct event *event);
thole_status retry_try_started(struct instance *in, struct task *task, const struct event *event);
#endif
