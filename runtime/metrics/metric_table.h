/*
 * The metrics of a process: one rule for each, with its name, its unit, its labels and its meaning. The
 * exposition and docs/metrics.md are made of these rules.
 */
#ifndef THOLE_METRIC_TABLE_H
#define THOLE_METRIC_TABLE_H
#include <stddef.h>
#include <stdint.h>

enum metric {
    /* of each process */
    METRIC_SERVING,
    METRIC_LOOP_BUSY,
    METRIC_NATS_CONNECTIONS,
    METRIC_NATS_DISCONNECTS,
    METRIC_NATS_ERRORS,
    METRIC_POSTGRES_CONNECTIONS,
    METRIC_POSTGRES_ERRORS,
    /* of an engine */
    METRIC_CLOCK_OFFSET,
    METRIC_ENGINE_JOINED,
    METRIC_ENGINE_PARTITIONS,
    METRIC_ENGINE_PARTITIONS_WANTED,
    METRIC_ENGINE_OPENED,
    METRIC_ENGINE_CLOSED,
    METRIC_ENGINE_LOST_RECORDS,
    METRIC_ENGINE_TURNS,
    METRIC_ENGINE_APPENDS_IN_FLIGHT,
    METRIC_ENGINE_APPENDS_IN_FLIGHT_BYTES,
    METRIC_ENGINE_INBOX_MESSAGES,
    METRIC_ENGINE_INBOX_DELAY,
    METRIC_ENGINE_INBOX_WAITING,
    METRIC_ENGINE_INBOX_WAITING_BYTES,
    METRIC_ENGINE_UNPROJECTED,
    METRIC_ENGINE_EVENTS_WAITING,
    METRIC_ENGINE_INSTANCES,
    METRIC_ENGINE_PARKED,
    METRIC_ENGINE_EARLY,
    METRIC_ENGINE_EARLY_BYTES,
    METRIC_ENGINE_OPEN_ACTIVITIES,
    METRIC_ENGINE_OLDEST_WAITING,
    METRIC_ENGINE_SHELVED,
    METRIC_ENGINE_CANCEL_PUSHES,
    METRIC_ENGINE_CANCEL_PUSH_DELAY,
    METRIC_ENGINE_CRASHES,
    METRIC_ENGINE_STANDING,
    METRIC_ENGINE_LIMITED,
    METRIC_ENGINE_SET_ASIDE,
    METRIC_ENGINE_REFUSED,
    METRIC_ENGINE_DRIFT_ROWS,
    METRIC_ENGINE_DRIFT_CHECKED,
    METRIC_ENGINE_AUDIT_CHECKPOINTS,
    METRIC_ENGINE_AUDIT_RECORDS,
    METRIC_ENGINE_AUDIT_AGE,
    METRIC_ENGINE_AUDIT_REFUSED,
    METRIC_ENGINE_DEFECTS,
    METRIC_ENGINE_MENDED,
    METRIC_ENGINE_BLOCKERS_ENDED,
    METRIC_ENGINE_FOREIGN,
    METRIC_ENGINE_INTRUDERS,
    METRIC_ENGINE_STORED,
    METRIC_ENGINE_MESSAGES,
    METRIC_ENGINE_ROOM,
    METRIC_ENGINE_REQUESTS,
    METRIC_ENGINE_REQUEST_FAILURES,
    METRIC_ENGINE_REQUEST_DURATION,
    METRIC_ENGINE_EVENTS,
    /* of a worker */
    METRIC_WORKER_SLOTS,
    METRIC_WORKER_HELD,
    METRIC_WORKER_RUNNING,
    METRIC_WORKER_QUEUE_OK,
    METRIC_WORKER_QUEUE_MESSAGES,
    METRIC_WORKER_DELIVERED,
    METRIC_WORKER_CLAIMS,
    METRIC_WORKER_RENEWALS,
    METRIC_WORKER_COMPLETIONS,
    METRIC_WORKER_ENDED,
    METRIC_WORKER_RESULTS,
    METRIC_WORKER_CANCELLATIONS,
    METRIC_WORKER_CANCELLATION_DELAY,
    METRIC_WORKER_CANCELLATION_GRACE,
    METRIC_WORKER_TOKENS,
    METRIC_WORKER_PUSHES_IGNORED,
    METRIC_WORKER_PUSHES_CONTRADICTED,
    METRIC_WORKER_ACTIVITY_DURATION,
    METRIC_WORKER_HANDLERS,
    METRIC_WORKER_ABANDONED,
    METRIC_WORKER_POISONED,
    METRIC_WORKER_STATEMENT_DURATION,
    /* of a binder */
    METRIC_BINDER_MESSAGES,
    METRIC_BINDER_IN_FLIGHT,
    METRIC_BINDER_RULES,
    METRIC_BINDER_LAG,
    /* of a gateway */
    METRIC_GATEWAY_SESSIONS,
    METRIC_GATEWAY_SESSIONS_ENDED,
    METRIC_GATEWAY_SESSIONS_REFUSED,
    METRIC_GATEWAY_TASKS,
    METRIC_GATEWAY_OUTCOMES,
    METRIC_GATEWAY_RENEWALS,
    METRIC_GATEWAY_CANCELLATIONS,
    METRIC_GATEWAY_REQUESTS,
    METRIC_GATEWAY_REQUEST_FAILURES,
    METRICS
};

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };
/* The unit of a value. Times are shown as seconds. */
enum metric_unit { METRIC_ONES, METRIC_BYTES, METRIC_MILLISECONDS, METRIC_MICROSECONDS };
/* How the values of several threads become one. */
enum metric_join { METRIC_SUM, METRIC_MAX };
enum {
    METRIC_ENGINE = 1,
    METRIC_WORKER = 2,
    METRIC_BINDER = 4,
    METRIC_GATEWAY = 8,
    METRIC_EACH = METRIC_ENGINE | METRIC_WORKER | METRIC_BINDER | METRIC_GATEWAY,
    METRIC_RUNS = METRIC_WORKER | METRIC_GATEWAY, /* the sessions of a gateway are workers */
};

struct metric_rule {
    const char *name, *help;
    enum metric_kind kind;
    enum metric_unit unit;
    enum metric_join join;
    unsigned roles;    /* of which processes */
    const char *label; /* NULL: it has none */
    const char *const
        *values; /* of the label, NULL-terminated; NULL: the activities that the program registers */
    /* Of a second label, in front of the first; its values are names that metrics_name() has noted. NULL: it
     * has none */
    const char *named;
    const uint64_t *bounds; /* of a histogram's buckets, ascending, ended by 0; in its unit */
};
extern const struct metric_rule metric_rules[METRICS];

/* Values of labels, in the order of the rules. */
enum { SERVING_ENGINE, SERVING_WORKER, SERVING_BINDER, SERVING_GATEWAY };
enum { CONNECTIONS_UP, CONNECTIONS_DOWN };
/* Of a call to a server that has failed: unavailable, timeout, denied, invalid, corrupt, other. */
enum {
    ERRORS_UNAVAILABLE,
    ERRORS_TIMEOUT,
    ERRORS_DENIED,
    ERRORS_INVALID,
    ERRORS_CORRUPT,
    ERRORS_OTHER,
};
/* Of a request to NATS: those, and what a server or nobody has answered to a publish or a get. */
enum {
    NATS_ERRORS_REFUSED = ERRORS_OTHER + 1,
    NATS_ERRORS_UNANSWERED,
    NATS_ERRORS_BUSY,
    NATS_ERRORS_FAILED,
    NATS_ERRORS_FULL,
};
/* Why an instance does not go on: in the order of enum blocked_kind, from BLOCKED_NO_CODE. */
enum { STANDING_UNKNOWN = 0 }; /* an engine of an earlier version wrote its row; then enum blocked_kind */
enum { PARTITIONS_CLOSED, PARTITIONS_OPENING, PARTITIONS_OPEN, PARTITIONS_CLOSING };
/* Why a partition was closed. OTHER: the log says why. */
enum closed_cause {
    CLOSED_OTHER,
    CLOSED_HANDED_OVER,
    CLOSED_NATS_LOST,
    CLOSED_POSTGRES_LOST,
    CLOSED_RIVAL,
    CLOSED_APPEND_REFUSED,
    CLOSED_APPEND_UNANSWERED,
    CLOSED_NATS_REQUEST,
    CLOSED_POSTGRES_REQUEST,
    CLOSED_INBOX,
    CLOSED_ROWS_REMOVED,
    CLOSED_HANDOVER_SLOW,
    CLOSED_STORAGE_FULL,
    CLOSED_CLOCK,
    CLOSED_ROWS_RESTORED,
    CLOSED_HISTORY_LOST,  /* the stream is gone, or belongs to another namespace */
    CLOSED_HISTORY_OLDER, /* the stream lacks records that had been kept for long */
    CLOSED_INBOX_LOST,    /* the stream of its inbox is gone */
};
/* Requests whose duration is shown. */
enum { DURATION_APPEND, DURATION_PUBLISH_WORK, DURATION_SEND_MESSAGE, DURATION_LOAD, DURATION_APPLY };
/* Of a row: in the order of enum worker_row_state; UNANSWERED: the statement has failed, or the row's part of
 * it. */
enum {
    CLAIMS_GONE,
    CLAIMS_CLAIMED,
    CLAIMS_STOLEN,
    CLAIMS_CANDIDATE,
    CLAIMS_HELD,
    CLAIMS_UNKNOWN,
    CLAIMS_FORGED,
    CLAIMS_UNANSWERED,
};
/* Likewise for renewals and completions. */
enum { ROWS_GONE, ROWS_MINE, ROWS_STOLEN, ROWS_UNKNOWN, ROWS_UNANSWERED };
/* How a worker learns of a cancellation. */
enum { CANCELLATIONS_PUSH, CANCELLATIONS_RENEWAL, CANCELLATIONS_REFUSED };
enum { HANDLERS_OK, HANDLERS_APP, HANDLERS_CANCELLED, HANDLERS_LATER, HANDLERS_OTHER };
enum { RESULTS_STORED, RESULTS_FAILED };
enum { IGNORED_MALFORMED, IGNORED_UNPROVEN };
/* In the order of enum bind_action, then: */
enum { BINDER_REJECTED = 3, BINDER_PUT_BACK };
enum { BINDER_RULES_SERVED, BINDER_RULES_FAILING };
enum { BINDER_LAG_PENDING, BINDER_LAG_ACK_PENDING };
enum { QUEUE_PENDING, QUEUE_ACK_PENDING };
enum { SESSIONS_STOPPED, SESSIONS_SILENT, SESSIONS_NOT_STARTED };
enum { SESSIONS_OF_GATEWAY, SESSIONS_OF_QUEUE }; /* sessions_refused */
enum { TASKS_GIVEN, TASKS_AGAIN };
enum { OUTCOMES_STORED, OUTCOMES_CANCELLED, OUTCOMES_REFUSED };
enum { RENEWALS_HELD, RENEWALS_GONE };
/* Requests to a gateway, in the order of enum endpoint_kind. */
#endif
