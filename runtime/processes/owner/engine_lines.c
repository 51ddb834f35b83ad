#include "engine_lines.h"

#define REJECTED(code)                                                                                       \
    {                                                                                                        \
        LOG_LEVEL_WARN, "partition", "rejected_" #code,                                                      \
            "inbox messages were rejected (" #code "); thole rejected lists them", 1                         \
    }

#define STOPPED(reason, more)                                                                                \
    {                                                                                                        \
        LOG_LEVEL_WARN, "instance", "stopped_" #reason, more "; thole doctor counts them", 5                 \
    }

const struct log_kind engine_lines[ENGINE_LINES] = {
    [LINE_REJECTED + REJECT_NONE] = REJECTED(none),
    [LINE_REJECTED + REJECT_SUBJECT] = REJECTED(subject),
    [LINE_REJECTED + REJECT_PARTITION] = REJECTED(partition),
    [LINE_REJECTED + REJECT_MALFORMED] = REJECTED(malformed),
    [LINE_REJECTED + REJECT_UNSUPPORTED] = REJECTED(unsupported),
    [LINE_REJECTED + REJECT_INSTANCE] = REJECTED(instance),
    [LINE_REJECTED + REJECT_REQUEST_ID] = REJECTED(request_id),
    [LINE_REJECTED + REJECT_TOO_LARGE] = REJECTED(too_large),
    [LINE_REJECTED + REJECT_TOO_MANY] = REJECTED(too_many),
    [LINE_REJECTED + REJECT_ROUTE] = REJECTED(route),
    [LINE_REJECTED + REJECT_NONCE] = REJECTED(nonce),
    [LINE_REJECTED + REJECT_UNREADABLE] = REJECTED(unreadable),
    [LINE_REJECTED + REJECT_EVENT] = {LOG_LEVEL_WARN, "partition", "rejected_event",
                                      "CloudEvents were rejected; thole rejected lists them", 1},
    [LINE_REJECTED + REJECT_HELD] = REJECTED(held),
    [LINE_REJECTED + REJECT_HOLD_UNKNOWN] = REJECTED(hold_unknown),
    [LINE_NOT_KEPT] = {LOG_LEVEL_ERROR, "partition", "rejected_not_kept",
                       "rejected messages could not be kept", 1},
    [LINE_HEARTBEAT_IGNORED] = {LOG_LEVEL_WARN, "membership", "heartbeats_ignored", "heartbeats were ignored",
                                1},
    [LINE_NODES_TOO_MANY] = {LOG_LEVEL_WARN, "membership", "nodes_too_many",
                             "heartbeats were ignored, of more nodes than there may be", 1},
    [LINE_NODE_JOINED] = {LOG_LEVEL_INFO, "membership", "nodes_joined", "nodes joined", 20},
    [LINE_NODE_LEFT] = {LOG_LEVEL_INFO, "membership", "nodes_left", "nodes left", 20},
    [LINE_NODE_GONE] = {LOG_LEVEL_WARN, "membership", "nodes_gone", "nodes are gone", 20},
    [LINE_NODE_SILENT] = {LOG_LEVEL_WARN, "membership", "nodes_silent", "nodes do not answer any more", 20},
    [LINE_NODE_ABSENT] = {LOG_LEVEL_WARN, "membership", "nodes_absent",
                          "heartbeats are of nodes that do not answer", 5},
    [LINE_NOT_ANSWERING] = {LOG_LEVEL_WARN, "membership", "not_answering",
                            "times it could not answer the other engines", 1},
    [LINE_NOT_OPENED] = {LOG_LEVEL_WARN, "membership", "not_opened",
                         "times the partition was not opened by who was to open it", 2},
    [LINE_REQUEUED] = {LOG_LEVEL_WARN, "sweeper", "requeued", "activities were lost and are queued again",
                       10},
    [LINE_UNKNOWN_ROW] = {LOG_LEVEL_ERROR, "sweeper", "unknown_rows",
                          "rows of activities that no history knows", 1},
    [LINE_NOT_SENT] = {LOG_LEVEL_ERROR, "partition", "not_sent", "requests that cannot be sent", 2},
    [LINE_MESSAGE_REFUSED] = {LOG_LEVEL_WARN, "partition", "messages_refused",
                              "messages to instances are refused", 2},
    [LINE_WORK_REFUSED] = {LOG_LEVEL_WARN, "partition", "work_refused", "messages of activities are refused",
                           2},
    [LINE_FOREIGN] = {LOG_LEVEL_WARN, "partition", "foreign_records",
                      "times a history had messages that were not published to it", 2},
    [LINE_WORK_FORGED] = {LOG_LEVEL_WARN, "partition", "work_forged",
                          "messages in the queues that no engine has written", 1},
    [LINE_REMOVAL_DELAYED] = {LOG_LEVEL_WARN, "partition", "removals_delayed",
                              "deletions whose records cannot be removed yet", 2},
    [LINE_TRACE_IGNORED] = {LOG_LEVEL_WARN, "partition", "traces_ignored",
                            "messages had no valid traceparent or tracestate", 1},
    [LINE_EVENT_NOT_STORED] = {LOG_LEVEL_ERROR, "partition", "events_not_stored",
                               "CloudEvents are not stored yet", 2},
    [LINE_SET_ASIDE] = {LOG_LEVEL_ERROR, "projector", "batches_set_aside",
                        "batches have rows that Postgres refuses and that are set aside", 2},
    [LINE_SHELVED] = {LOG_LEVEL_WARN, "shelf", "shelved",
                      "times a partition had activities that no worker knows", 1},
    [LINE_STOPPED_NO_CODE] = STOPPED(no_code, "instances wait for code"),
    [LINE_STOPPED_DIVERGENCE] =
        STOPPED(divergence, "instances are Stuck: their code differs from the history"),
    [LINE_STOPPED_DAMAGED] = STOPPED(damaged, "instances are Stuck: their history is damaged"),
    [LINE_STOPPED_TOO_NEW] =
        STOPPED(too_new, "instances are Stuck: a newer version has written their history"),
    [LINE_STOPPED_LIMIT] = STOPPED(limit, "instances are Stuck: they reach a limit"),
    [LINE_STOPPED_PAUSED] = STOPPED(paused, "instances were paused"),
    [LINE_STOPPED_CRASHED] = STOPPED(crashed, "instances are Stuck: their code crashes the engine"),
    [LINE_QUERIES_REFUSED] = {LOG_LEVEL_WARN, "query", "queries_refused",
                              "queries were refused: there were too many at once", 1},
    [LINE_QUERIES_CUT] = {LOG_LEVEL_WARN, "query", "queries_cut",
                          "times the connection for queries was lost alone", 2},
    [LINE_OTHER_CODE] = {LOG_LEVEL_WARN, "membership", "other_code",
                         "times an engine had other orchestrations", 5},
    [LINE_LIMITED + LIMIT_EXECUTIONS] = {LOG_LEVEL_WARN, "limit", "limited_executions",
                                         "executions began later; thole doctor says of which instances", 1},
    [LINE_LIMITED + LIMIT_TURNS] = {LOG_LEVEL_INFO, "limit", "limited_turns",
                                    "times an orchestration rested beside others", 1},
};
