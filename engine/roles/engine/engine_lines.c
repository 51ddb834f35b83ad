#include "engine_lines.h"

#define REJECTED(code)                                                                                       \
    {                                                                                                        \
        LOG_LEVEL_WARN, "partition", "rejected_" #code,                                                      \
            "inbox messages were rejected (" #code "); thole rejected lists them", 1                         \
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
    [LINE_WORK_FORGED] = {LOG_LEVEL_WARN, "partition", "work_forged",
                          "messages in the queues that no engine has written", 1},
    [LINE_REMOVAL_DELAYED] = {LOG_LEVEL_WARN, "partition", "removals_delayed",
                              "deletions whose records cannot be removed yet", 2},
    [LINE_TRACE_IGNORED] = {LOG_LEVEL_WARN, "partition", "traces_ignored",
                            "messages had no valid traceparent or tracestate", 1},
};
