/*
 * The range of each number of each message of proto/, with its reason. Readers refuse a number outside its
 * range when they decode it (docs/wire.md, "Numbers"). The decoder, the check of messages to send, the golden
 * vectors, the fuzzers and the test against the columns of Postgres read this table. Pure.
 */
#ifndef THOLE_RANGE_H
#define THOLE_RANGE_H
#include "thole/types.h"
#include <stdbool.h>
#include <stdint.h>

#define RANGE_INT4 INT32_MAX                  /* of a column, and of Java and of an int */
#define RANGE_EXACT ((UINT64_C(1) << 53) - 1) /* of a bigint, and without loss in a double */
enum { PARTITIONS_MOST = 4096 };

/* Name, least, most, and which reader takes no others. The width of a field is a limit of its own. */
#define RANGES(X)                                                                                            \
    X(VERSION, 0, RANGE_INT4, "the column `version`, an integer of Postgres")                                \
    X(TRY, 0, RANGE_INT4, "the column `try_number`, an integer of Postgres")                                 \
    X(LOST, 0, RANGE_INT4, "the column `lost`, an integer of Postgres")                                      \
    X(EXECUTION, 0, RANGE_EXACT,                                                                             \
      "the columns `execution`, a bigint, and readers of JSON whose numbers are doubles")                    \
    X(EVENT_ID, 0, RANGE_EXACT, "the columns `activity_id`, `timer_id` and `turns`, and readers of JSON")    \
    X(ATTEMPT, 0, RANGE_EXACT, "the column `attempt`, and readers of JSON")                                  \
    X(SEQUENCE, 0, RANGE_EXACT, "the columns `history_seq`, `projected_seq` and `epoch`")                    \
    X(TIME_MS, 0, RANGE_EXACT, "columns as `created_ms`, and readers of JSON; a delay can be added")         \
    X(PARTITION, 0, PARTITIONS_MOST - 1, "a namespace has at most 4,096 partitions: it is an index")         \
    X(SLOTS, 0, UINT64_MAX, "a session is opened with 1 to 10,000, and is refused with its own text")        \
    X(MATCHED, 0, UINT64_MAX, "compared with those that there are: another number is of none of them")       \
    X(PID, 0, RANGE_INT4, "a pid_t")                                                                         \
    X(STATUS, 0, UINT64_MAX, "a status that a reader does not know is a failure")                            \
    X(KIND, 0, UINT64_MAX, "what a reader does not know was written by a newer version: it says so")         \
    X(CAPPED, 0, UINT64_MAX, "the gateway takes less where it is too much")                                  \
    X(ANSWER, 0, UINT64_MAX, "said by a gateway, for a client that takes what it can")                       \
    X(DEADLINE_MS, 0, UINT64_MAX, "the largest is never: it is compared, and nothing is added to it")        \
    X(RECORDED, 0, UINT64_MAX, "a record that is not read is a hole: rows, sums and messages have the ends")

/* Message, field, range. */
#define FIELD_RANGES(X)                                                                                      \
    /* messages.proto */                                                                                     \
    X(InboxMessage, format, KIND)                                                                            \
    X(Start, version, VERSION)                                                                               \
    X(Parent, execution, MATCHED)                                                                            \
    X(Parent, event, MATCHED)                                                                                \
    X(ActivityResult, execution, MATCHED)                                                                    \
    X(ActivityResult, activity_id, MATCHED)                                                                  \
    X(ActivityResult, status, STATUS)                                                                        \
    X(ActivityResult, attempt, ATTEMPT)                                                                      \
    X(ActivityResult, try_number, TRY)                                                                       \
    X(ActivityResult, lost, LOST)                                                                            \
    X(ActivityResult, started_ms, TIME_MS)                                                                   \
    X(ActivityResult, ended_ms, TIME_MS)                                                                     \
    X(ReleaseActivity, execution, MATCHED)                                                                   \
    X(ReleaseActivity, activity_id, MATCHED)                                                                 \
    X(ReleaseActivity, try_number, TRY)                                                                      \
    X(ChildResult, execution, MATCHED)                                                                       \
    X(ChildResult, event, MATCHED)                                                                           \
    X(ChildResult, status, STATUS)                                                                           \
    X(PruneInstance, before, MATCHED)                                                                        \
    X(DeleteInstance, execution, MATCHED)                                                                    \
    X(Query, format, KIND)                                                                                   \
    X(QueryAnswer, format, KIND)                                                                             \
    X(QueryAnswer, status, STATUS)                                                                           \
    X(NodeHeartbeat, format, KIND)                                                                           \
    X(NodeHeartbeat, started_ms, TIME_MS)                                                                    \
    X(PartitionNeeds, partition, PARTITION)                                                                  \
    /* gateway.proto */                                                                                      \
    X(OpenSession, slots, SLOTS)                                                                             \
    X(SessionOpened, status, STATUS)                                                                         \
    X(SessionOpened, lease_ms, ANSWER)                                                                       \
    X(SessionOpened, renew_ms, ANSWER)                                                                       \
    X(SessionOpened, grace_ms, ANSWER)                                                                       \
    X(SessionOpened, payload_max, ANSWER)                                                                    \
    X(SessionOpened, details_max, ANSWER)                                                                    \
    X(NextTasks, max, CAPPED)                                                                                \
    X(NextTasks, wait_ms, CAPPED)                                                                            \
    X(Tasks, status, STATUS)                                                                                 \
    X(Task, execution, EXECUTION)                                                                            \
    X(Task, activity_id, EVENT_ID)                                                                           \
    X(Task, try_number, TRY)                                                                                 \
    X(Task, attempt, ATTEMPT)                                                                                \
    X(Task, version, VERSION)                                                                                \
    X(Task, timeout_ms, DEADLINE_MS)                                                                         \
    X(TasksRenewed, status, STATUS)                                                                          \
    X(Notice, grace_ms, ANSWER)                                                                              \
    X(TasksCompleted, status, STATUS)                                                                        \
    X(OutcomeResult, status, STATUS)                                                                         \
    X(CloseSession, limit_ms, CAPPED)                                                                        \
    X(SessionClosed, status, STATUS)                                                                         \
    X(StartInstance, version, VERSION)                                                                       \
    X(InstanceStarted, status, STATUS)                                                                       \
    X(Accepted, status, STATUS)                                                                              \
    X(QueryResult, status, STATUS)                                                                           \
    X(WaitInstance, wait_ms, CAPPED)                                                                         \
    X(InstanceOutcome, status, STATUS)                                                                       \
    X(InstanceDescription, status, STATUS)                                                                   \
    X(InstanceInfo, version, ANSWER)                                                                         \
    X(InstanceInfo, execution, ANSWER)                                                                       \
    X(InstanceInfo, created_ms, ANSWER)                                                                      \
    X(InstanceInfo, updated_ms, ANSWER)                                                                      \
    X(InstanceInfo, turns, ANSWER)                                                                           \
    X(InstanceInfo, open_activities, ANSWER)                                                                 \
    X(InstanceInfo, open_timers, ANSWER)                                                                     \
    X(ListInstances, created_after_ms, MATCHED)                                                              \
    X(ListInstances, created_before_ms, MATCHED)                                                             \
    X(ListInstances, limit, CAPPED)                                                                          \
    X(ListInstances, behind_created_ms, MATCHED)                                                             \
    X(InstanceList, status, STATUS)                                                                          \
    /* process.proto */                                                                                      \
    X(ProcessRun, execution, MATCHED)                                                                        \
    X(ProcessRun, activity_id, MATCHED)                                                                      \
    X(ProcessRun, try_number, TRY)                                                                           \
    X(ProcessRun, attempt, ATTEMPT)                                                                          \
    X(ProcessRun, deadline_ms, DEADLINE_MS)                                                                  \
    X(ProcessRun, partition, PARTITION)                                                                      \
    X(ProcessRun, version, VERSION)                                                                          \
    X(ProcessReturn, status, STATUS)                                                                         \
    X(ProcessReturn, pid, PID)                                                                               \
    /* history.proto */                                                                                      \
    X(Record, format, KIND)                                                                                  \
    X(Record, epoch, RECORDED)                                                                               \
    X(Record, n, RECORDED)                                                                                   \
    X(Record, committed, RECORDED)                                                                           \
    X(Record, published, RECORDED)                                                                           \
    X(Record, previous_of_instance_at, RECORDED)                                                             \
    X(Record, hashed, KIND)                                                                                  \
    X(Position, floor, RECORDED)                                                                             \
    X(Position, above, RECORDED)                                                                             \
    X(Position, ranges, RECORDED)                                                                            \
    X(Position, seen, RECORDED)                                                                              \
    X(Position, seen_ns, RECORDED)                                                                           \
    X(EpochOpened, time_ms, RECORDED)                                                                        \
    X(EpochOpened, previous_epoch, RECORDED)                                                                 \
    X(EpochOpened, previous_n, RECORDED)                                                                     \
    X(EpochOpened, counted, RECORDED)                                                                        \
    X(Folded, sequences, RECORDED)                                                                           \
    X(Folded, deleted, RECORDED)                                                                             \
    X(Folded, looked, RECORDED)                                                                              \
    X(Folded, time_ms, RECORDED)                                                                             \
    X(Deleted, execution, RECORDED)                                                                          \
    X(Deleted, time_ms, RECORDED)                                                                            \
    X(Turn, execution, RECORDED)                                                                             \
    X(Turn, turn, RECORDED)                                                                                  \
    X(Turn, time_ms, RECORDED)                                                                               \
    X(Blocked, kind, KIND)                                                                                   \
    X(Event, id, RECORDED)                                                                                   \
    X(Event, ref, RECORDED)                                                                                  \
    X(Event, payload_of, RECORDED)                                                                           \
    X(Payload, field, KIND)                                                                                  \
    X(Run, attempt, RECORDED)                                                                                \
    X(Run, started_ms, RECORDED)                                                                             \
    X(Run, ended_ms, RECORDED)                                                                               \
    X(Started, semantics, KIND)                                                                              \
    X(Started, version, RECORDED)                                                                            \
    X(Started, before, RECORDED)                                                                             \
    X(Origin, execution, RECORDED)                                                                           \
    X(Origin, event, RECORDED)                                                                               \
    X(ActivityScheduled, try_timeout_ms, RECORDED)                                                           \
    X(ActivityScheduled, total_timeout_ms, RECORDED)                                                         \
    X(Retry, tries_max, RECORDED)                                                                            \
    X(Retry, first_delay_ms, RECORDED)                                                                       \
    X(Retry, factor_milli, RECORDED)                                                                         \
    X(Retry, max_delay_ms, RECORDED)                                                                         \
    X(Retry, jitter_milli, RECORDED)                                                                         \
    X(Retry, poison, RECORDED)                                                                               \
    X(ActivityCompleted, try_number, RECORDED)                                                               \
    X(ActivityFailed, status, STATUS)                                                                        \
    X(ActivityFailed, try_number, RECORDED)                                                                  \
    X(ActivityCancelled, kind, KIND)                                                                         \
    X(ActivityTryFailed, status, STATUS)                                                                     \
    X(ActivityTryFailed, try_number, RECORDED)                                                               \
    X(ActivityTryFailed, due_ms, RECORDED)                                                                   \
    X(ActivityTryStarted, try_number, RECORDED)                                                              \
    X(ActivityTryStarted, try_timeout_ms, RECORDED)                                                          \
    X(ActivityTryStarted, due_ms, RECORDED)                                                                  \
    X(ActivityQuarantined, try_number, RECORDED)                                                             \
    X(ActivityQuarantined, due_ms, RECORDED)                                                                 \
    X(ActivityQuarantined, lost, RECORDED)                                                                   \
    X(TimerCreated, due_ms, RECORDED)                                                                        \
    X(TimerCancelled, kind, KIND)                                                                            \
    X(Failed, status, STATUS)                                                                                \
    X(EventAwaitCancelled, kind, KIND)                                                                       \
    X(ChildScheduled, version, RECORDED)                                                                     \
    X(ChildScheduled, close, KIND)                                                                           \
    X(ChildFailed, status, STATUS)                                                                           \
    X(ChildCancelled, kind, KIND)                                                                            \
    X(DetachedStarted, version, RECORDED)                                                                    \
    X(SideEffectRecorded, status, STATUS)                                                                    \
    X(ContinuedAsNew, version, RECORDED)                                                                     \
    X(VersionChosen, version, RECORDED)                                                                      \
    X(HistoryPruned, kept, RECORDED)                                                                         \
    X(HistoryPruned, before, RECORDED)

enum range {
#define X(name, from, to, reason) RANGE_##name,
    RANGES(X)
#undef X
};
/* RANGE_OF_Start_version and its like: a number without a row in the table does not compile in a codec's. */
enum range_field {
#define X(message, field, range) RANGE_OF_##message##_##field,
    FIELD_RANGES(X)
#undef X
        RANGE_FIELDS
};

struct range_row {
    const char *name;
    uint64_t least, most;
    const char *reason;
};
struct range_field_row {
    const char *message, *field;
    enum range range;
};
const struct range_row *range_row(enum range range);
const struct range_field_row *range_field_row(enum range_field field);
/* RANGE_FIELDS: there is no such field. */
enum range_field range_find(const char *message, const char *field);

/* THOLE_INVALID, and a text with the field, the number and the end of the range. */
THOLE_NODISCARD thole_status range_check(enum range_field field, uint64_t number, thole_error *reterr);
/* Like range_check(), for a number that is in no message of proto/; @p what names it in the error. */
THOLE_NODISCARD thole_status range_check_as(enum range range, const char *what, uint64_t number,
                                            thole_error *reterr);
/* The nearest number of the range. */
uint64_t range_nearest(enum range range, uint64_t number);
/* The sum; UINT64_MAX where there is none. */
uint64_t range_sum(uint64_t a, uint64_t b);
#endif
