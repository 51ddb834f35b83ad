/* The lines of an engine's log that others can cause at any rate: limited and counted by log_limit.h. */
#ifndef THOLE_ENGINE_LINES_H
#define THOLE_ENGINE_LINES_H
#include "log_limit.h"
#include "partition_io.h"

enum engine_line {
    LINE_REJECTED, /* followed by one for each enum reject_code */
    LINE_REJECTED_LAST = LINE_REJECTED + REJECT_HOLD_UNKNOWN,
    LINE_NOT_KEPT,
    LINE_HEARTBEAT_IGNORED,
    LINE_NODES_TOO_MANY,
    LINE_NODE_JOINED,
    LINE_NODE_LEFT,
    LINE_NODE_GONE,
    LINE_NODE_SILENT,
    LINE_NODE_ABSENT,
    LINE_NOT_ANSWERING,
    LINE_NOT_OPENED,
    LINE_REQUEUED,
    LINE_UNKNOWN_ROW,
    LINE_NOT_SENT,
    LINE_MESSAGE_REFUSED,
    LINE_WORK_REFUSED,
    LINE_WORK_FORGED,
    LINE_FOREIGN,
    LINE_REMOVAL_DELAYED,
    LINE_TRACE_IGNORED,
    LINE_EVENT_NOT_STORED,
    LINE_SET_ASIDE,
    LINE_SHELVED,
    LINE_STOPPED_NO_CODE,
    LINE_STOPPED_DIVERGENCE,
    LINE_STOPPED_DAMAGED,
    LINE_STOPPED_TOO_NEW,
    LINE_STOPPED_LIMIT,
    LINE_STOPPED_PAUSED,
    LINE_STOPPED_CRASHED,
    LINE_OTHER_CODE,
    LINE_QUERIES_REFUSED,
    LINE_QUERIES_CUT,
    LINE_LIMITED, /* followed by one for each enum partition_limit */
    LINE_LIMITED_LAST = LINE_LIMITED + PARTITION_LIMITS - 1,
    ENGINE_LINES
};
extern const struct log_kind engine_lines[ENGINE_LINES];
#endif
