#include "metric_table.h"

#define VALUES(...)                                                                                          \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

enum { MILLI = 1000, SECOND = 1000 * MILLI };
static const uint64_t call_bounds[] = {
    MILLI / 2,   MILLI,       2 * MILLI,  5 * MILLI, 10 * MILLI, 25 * MILLI,  50 * MILLI,
    100 * MILLI, 250 * MILLI, SECOND / 2, SECOND,    5 * SECOND, 10 * SECOND, 0};
/* From a push to a renewal of a long lease. */
static const uint64_t cancel_bounds[] = {MILLI,      2 * MILLI,   5 * MILLI,   10 * MILLI,  25 * MILLI,
                                         50 * MILLI, 100 * MILLI, 250 * MILLI, SECOND / 2,  SECOND,
                                         5 * SECOND, 10 * SECOND, 30 * SECOND, 60 * SECOND, 0};
static const uint64_t run_bounds[] = {MILLI,
                                      10 * MILLI,
                                      50 * MILLI,
                                      100 * MILLI,
                                      SECOND / 2,
                                      SECOND,
                                      5 * SECOND,
                                      10 * SECOND,
                                      30 * SECOND,
                                      60 * SECOND,
                                      300 * SECOND,
                                      UINT64_C(1800) * SECOND,
                                      UINT64_C(3600) * SECOND,
                                      0};

#define REQUESTS                                                                                             \
    VALUES("append", "read_tail", "read_log", "delete_records", "look_up", "walk", "load", "read_ids",       \
           "remove_history", "find_dispensable", "remove_records", "publish_work", "withdraw_work",          \
           "find_orphans", "find_work", "find_input", "requeue", "expire", "find_shelved", "unshelve",       \
           "open_inbox", "close_inbox", "look_inbox", "purge_inbox", "read_results", "send_message", "emit", \
           "reject", "read_crashes", "put_crash", "forget_crashes", "know_log", "keep_log", "store_open",    \
           "store_reset", "store_live", "store_timers", "apply", "look_rows")
#define EVENTS                                                                                               \
    VALUES("rejected_none", "rejected_subject", "rejected_partition", "rejected_malformed",                  \
           "rejected_unsupported", "rejected_instance", "rejected_request_id", "rejected_too_large",         \
           "rejected_too_many", "rejected_route", "rejected_nonce", "rejected_unreadable", "rejected_event", \
           "rejected_held", "rejected_hold_unknown", "rejected_not_kept", "heartbeats_ignored",              \
           "nodes_too_many", "nodes_joined", "nodes_left", "nodes_gone", "nodes_silent", "nodes_absent",     \
           "not_answering", "not_opened", "requeued", "unknown_rows", "not_sent", "messages_refused",        \
           "work_refused", "work_forged", "foreign_records", "removals_delayed", "traces_ignored",           \
           "events_not_stored", "batches_set_aside", "shelved", "stopped_no_code", "stopped_divergence",     \
           "stopped_damaged", "stopped_too_new", "stopped_limit", "stopped_paused", "stopped_crashed",       \
           "other_code", "queries_refused", "queries_cut", "limited_executions", "limited_turns")

/* In the order of enum defect_object. */
#define OBJECT_NAMES                                                                                         \
    "config", "secret", "nodes", "crashes", "work", "rejected", "events", "in", "hist", "queue", "tables",   \
        "holds", "bindings", "audit", "restored", "limits"
#define OBJECTS VALUES(OBJECT_NAMES)

#define GATEWAY_REQUESTS                                                                                     \
    VALUES("open", "next", "renew", "complete", "close", "start", "signal", "cancel", "terminate", "query",  \
           "wait", "start_event", "describe", "list", "complete_activity")

const struct metric_rule metric_rules[METRICS] = {
    [METRIC_SERVING] = {.name = "thole_serving",
                        .kind = METRIC_GAUGE,
                        .roles = METRIC_EACH,
                        .label = "role",
                        .values = VALUES("engine", "worker", "binder", "gateway"),
                        .help = "1 from the log line \"serving\" until the process is asked to stop"},
    [METRIC_LOOP_BUSY] = {.name = "thole_loop_busy_seconds",
                          .kind = METRIC_GAUGE,
                          .unit = METRIC_MILLISECONDS,
                          .join = METRIC_MAX,
                          .roles = METRIC_EACH,
                          .help =
                              "how long the loop that is busy longest has not waited for input; 0: all wait"},
    [METRIC_NATS_CONNECTIONS] = {.name = "thole_nats_connections",
                                 .kind = METRIC_GAUGE,
                                 .roles = METRIC_EACH,
                                 .label = "state",
                                 .values = VALUES("up", "down"),
                                 .help = "connections to NATS, one for each role"},
    [METRIC_NATS_DISCONNECTS] = {.name = "thole_nats_disconnects_total",
                                 .roles = METRIC_EACH,
                                 .help = "connections to NATS that were lost"},
    [METRIC_NATS_ERRORS] = {.name = "thole_nats_errors_total",
                            .roles = METRIC_EACH,
                            .label = "class",
                            .values = VALUES("unavailable", "timeout", "denied", "invalid", "corrupt",
                                             "other", "refused", "unanswered", "busy", "failed", "full"),
                            .help =
                                "requests to NATS that failed, and attempts to connect; denied: also what "
                                "the server reports as forbidden; refused: the stream has gone on, another "
                                "owner has written; busy: no leader; full: no storage is left"},
    [METRIC_POSTGRES_CONNECTIONS] =
        {.name = "thole_postgres_connections",
         .kind = METRIC_GAUGE,
         .roles = METRIC_EACH,
         .label = "state",
         .values = VALUES("up", "down"),
         .help = "connections to Postgres; down: the last statement was not answered"},
    [METRIC_POSTGRES_ERRORS] = {.name = "thole_postgres_errors_total",
                                .roles = METRIC_EACH,
                                .label = "class",
                                .values =
                                    VALUES("unavailable", "timeout", "denied", "invalid", "corrupt", "other"),
                                .help = "calls to Postgres that failed, and attempts to connect"},

    [METRIC_CLOCK_OFFSET] = {.name = "thole_clock_offset_seconds",
                             .kind = METRIC_GAUGE,
                             .unit = METRIC_MILLISECONDS,
                             .join = METRIC_MAX,
                             .roles = METRIC_ENGINE,
                             .label = "server",
                             .values = VALUES("nats", "postgres"),
                             .help =
                                 "how far the clock of the engine's machine is from the server's, ahead or "
                                 "behind; the log says which"},
    [METRIC_ENGINE_JOINED] = {.name = "thole_engine_joined",
                              .kind = METRIC_GAUGE,
                              .roles = METRIC_ENGINE,
                              .help = "1 while the engine takes part in who owns what: its heartbeat is "
                                      "stored, and the others are known"},
    [METRIC_ENGINE_PARTITIONS] =
        {.name = "thole_engine_partitions",
         .kind = METRIC_GAUGE,
         .roles = METRIC_ENGINE,
         .label = "state",
         .values = VALUES("closed", "opening", "open", "closing"),
         .help = "partitions that the engine should own, or still has, by state. The sum of open ones over "
                 "all engines should be the number of partitions of the namespace"},
    [METRIC_ENGINE_PARTITIONS_WANTED] = {.name = "thole_engine_partitions_wanted",
                                         .kind = METRIC_GAUGE,
                                         .roles = METRIC_ENGINE,
                                         .help = "partitions that the engine should own"},
    [METRIC_ENGINE_OPENED] = {.name = "thole_engine_partitions_opened_total",
                              .roles = METRIC_ENGINE,
                              .help = "partitions that were opened here, again ones included"},
    [METRIC_ENGINE_CLOSED] =
        {.name = "thole_engine_partitions_closed_total",
         .roles = METRIC_ENGINE,
         .label = "cause",
         .values = VALUES("other", "handed_over", "nats_lost", "postgres_lost", "rival",
                          "append_refused", "append_unanswered", "nats_request", "postgres_request", "inbox",
                          "rows_removed", "handover_slow", "storage_full", "clock", "rows_restored",
                          "history_lost", "history_older", "inbox_lost"),
         .help = "partitions that were closed; all but those that were handed over open again"},
    [METRIC_ENGINE_LOST_RECORDS] = {.name = "thole_engine_log_lost_records_total",
                                    .roles = METRIC_ENGINE,
                                    .help = "records at the end of a log that Postgres had rows of and that "
                                            "NATS has lost, at least: a server "
                                            "lost its power with what it had not synced"},
    [METRIC_ENGINE_TURNS] = {.name = "thole_engine_turns_total",
                             .roles = METRIC_ENGINE,
                             .help = "turns of orchestrations that were given to the log"},
    [METRIC_ENGINE_APPENDS_IN_FLIGHT] = {.name = "thole_engine_appends_in_flight",
                                         .kind = METRIC_GAUGE,
                                         .roles = METRIC_ENGINE,
                                         .help = "records that are appended and not committed yet"},
    [METRIC_ENGINE_APPENDS_IN_FLIGHT_BYTES] = {.name = "thole_engine_appends_in_flight_bytes",
                                               .kind = METRIC_GAUGE,
                                               .unit = METRIC_BYTES,
                                               .roles = METRIC_ENGINE,
                                               .help = "their size"},
    [METRIC_ENGINE_INBOX_MESSAGES] = {.name = "thole_engine_inbox_messages_total",
                                      .roles = METRIC_ENGINE,
                                      .help = "messages that were read from the inboxes, again ones "
                                              "included; each of several results in one message counts"},
    [METRIC_ENGINE_INBOX_DELAY] = {.name = "thole_engine_inbox_delay_seconds",
                                   .kind = METRIC_HISTOGRAM,
                                   .unit = METRIC_MICROSECONDS,
                                   .roles = METRIC_ENGINE,
                                   .bounds = call_bounds,
                                   .help = "from the storing of an inbox message, by the clock of "
                                           "nats-server, until its partition has it, by the engine's"},
    [METRIC_ENGINE_INBOX_WAITING] = {.name = "thole_engine_inbox_waiting",
                                     .kind = METRIC_GAUGE,
                                     .roles = METRIC_ENGINE,
                                     .help = "messages and timers that wait in memory for a turn"},
    [METRIC_ENGINE_INBOX_WAITING_BYTES] = {.name = "thole_engine_inbox_waiting_bytes",
                                           .kind = METRIC_GAUGE,
                                           .unit = METRIC_BYTES,
                                           .roles = METRIC_ENGINE,
                                           .help = "their memory"},
    [METRIC_ENGINE_UNPROJECTED] =
        {.name = "thole_engine_unprojected_records",
         .kind = METRIC_GAUGE,
         .roles = METRIC_ENGINE,
         .help = "committed records whose effects outside (rows, messages) are not all done"},
    [METRIC_ENGINE_EVENTS_WAITING] = {.name = "thole_engine_events_waiting",
                                      .kind = METRIC_GAUGE,
                                      .roles = METRIC_ENGINE,
                                      .help = "CloudEvents that are not stored yet, and those behind them "
                                              "that are; at 8192 in a partition its turns pause"},
    [METRIC_ENGINE_INSTANCES] = {.name = "thole_engine_instances",
                                 .kind = METRIC_GAUGE,
                                 .roles = METRIC_ENGINE,
                                 .help = "instances that are in memory"},
    [METRIC_ENGINE_PARKED] = {.name = "thole_engine_parked_instances",
                              .kind = METRIC_GAUGE,
                              .roles = METRIC_ENGINE,
                              .help =
                                  "of these, those that are parked: their code waits on its stack; at most "
                                  "--parked-max in each partition, with --parked-memory-max, and more while "
                                  "they cannot be evicted"},
    [METRIC_ENGINE_EARLY] = {.name = "thole_engine_early_ids",
                             .kind = METRIC_GAUGE,
                             .roles = METRIC_ENGINE,
                             .help =
                                 "of the instances in memory: ids for which events wait, and that are not "
                                 "started; at most --parked-max in each partition"},
    [METRIC_ENGINE_EARLY_BYTES] = {.name = "thole_engine_early_bytes",
                                   .kind = METRIC_GAUGE,
                                   .roles = METRIC_ENGINE,
                                   .help =
                                       "memory of their events; at --early-memory-max it keeps no more of "
                                       "them, and reads them again when something comes for their id"},
    [METRIC_ENGINE_OPEN_ACTIVITIES] = {.name = "thole_engine_open_activities",
                                       .kind = METRIC_GAUGE,
                                       .roles = METRIC_ENGINE,
                                       .help =
                                           "activities that are scheduled and not resolved, or a few more"},
    [METRIC_ENGINE_OLDEST_WAITING] = {.name = "thole_engine_oldest_waiting_activity_seconds",
                                      .kind = METRIC_GAUGE,
                                      .unit = METRIC_MILLISECONDS,
                                      .join = METRIC_MAX,
                                      .roles = METRIC_ENGINE,
                                      .help = "how long the activity that waits longest for a worker has "
                                              "waited when the sweeper last looked; 0: none waits"},
    [METRIC_ENGINE_SHELVED] = {.name = "thole_engine_shelved_activities",
                               .kind = METRIC_GAUGE,
                               .roles = METRIC_ENGINE,
                               .help = "activities that no worker of their queue knew: they wait outside of "
                                       "the queue until one does"},
    [METRIC_ENGINE_CANCEL_PUSHES] =
        {.name = "thole_engine_cancel_pushes_total",
         .roles = METRIC_ENGINE,
         .help = "activities whose cancellation was pushed to workers; a repetition is not counted"},
    [METRIC_ENGINE_CANCEL_PUSH_DELAY] =
        {.name = "thole_engine_cancel_push_delay_seconds",
         .kind = METRIC_HISTOGRAM,
         .unit = METRIC_MICROSECONDS,
         .roles = METRIC_ENGINE,
         .bounds = call_bounds,
         .help = "from the turn that decided a cancellation until its first push was sent"},
    [METRIC_ENGINE_CRASHES] = {.name = "thole_engine_code_crashes_total",
                               .roles = METRIC_ENGINE,
                               .help = "crashes of orchestrations' code that were recorded"},
    [METRIC_ENGINE_STANDING] =
        {.name = "thole_engine_standing_instances",
         .kind = METRIC_GAUGE,
         .roles = METRIC_ENGINE,
         .named = "orchestration",
         .label = "reason",
         .values = VALUES("unknown", "no_code", "divergence", "damaged", "too_new", "limit", "paused",
                          "not_started", "crashed"),
         .help = "instances that do not go on until somebody does something: those that wait for code, are "
                 "Stuck or paused. Known to the engine that should own partition 0, 0 at the others; of more "
                 "than 63 orchestrations the others count as `<other>`"},
    [METRIC_ENGINE_LIMITED] =
        {.name = "thole_engine_limited_total",
         .roles = METRIC_ENGINE,
         .named = "orchestration",
         .label = "limit",
         .values = VALUES("executions", "turns"),
         .help = "how often an orchestration has met a limit of what one may have of "
                 "the engine (docs/operations.md#limits): executions: one began later; turns: "
                 "it rests beside another, counted once a second for each partition. "
                 "Of more than 63 orchestrations the others count as `<other>`"},
    [METRIC_ENGINE_SET_ASIDE] = {.name = "thole_engine_set_aside_rows",
                                 .kind = METRIC_GAUGE,
                                 .roles = METRIC_ENGINE,
                                 .help = "rows of the engine's partitions that Postgres refuses for what is "
                                         "in them: what they are for does not happen until `thole "
                                         "projections verify` has written them"},
    [METRIC_ENGINE_REFUSED] = {.name = "thole_engine_rows_refused_total",
                               .kind = METRIC_COUNTER,
                               .roles = METRIC_ENGINE,
                               .help = "rows that were set aside; again ones included"},
    [METRIC_ENGINE_DRIFT_ROWS] = {.name = "thole_engine_drift_rows",
                                  .kind = METRIC_GAUGE,
                                  .roles = METRIC_ENGINE,
                                  .help = "rows of the engine's partitions that were not what the histories "
                                          "say, when they were compared last (--drift)"},
    [METRIC_ENGINE_DRIFT_CHECKED] = {.name = "thole_engine_drift_checked_rows_total",
                                     .roles = METRIC_ENGINE,
                                     .help = "rows that were compared with the histories"},
    [METRIC_ENGINE_AUDIT_CHECKPOINTS] = {.name = "thole_engine_audit_checkpoints_total",
                                         .roles = METRIC_ENGINE,
                                         .help = "checkpoints of histories that were signed and published "
                                                 "(--audit-key)"},
    [METRIC_ENGINE_AUDIT_RECORDS] = {.name = "thole_engine_audit_records_total",
                                     .roles = METRIC_ENGINE,
                                     .help = "records of which leaves were published for them"},
    [METRIC_ENGINE_AUDIT_AGE] = {.name = "thole_engine_audit_age_seconds",
                                 .kind = METRIC_GAUGE,
                                 .unit = METRIC_MILLISECONDS,
                                 .join = METRIC_MAX,
                                 .roles = METRIC_ENGINE,
                                 .help = "for how long the engine's newest checkpoints have not had all of "
                                         "their partitions' records: of the worst partition; 0: they have"},
    [METRIC_ENGINE_AUDIT_REFUSED] = {.name = "thole_engine_audit_refused_partitions",
                                     .kind = METRIC_GAUGE,
                                     .roles = METRIC_ENGINE,
                                     .help = "partitions that get no checkpoint since their history is not "
                                             "what was written"},
    [METRIC_ENGINE_DEFECTS] =
        {.name = "thole_engine_defects",
         .kind = METRIC_GAUGE,
         .roles = METRIC_ENGINE,
         .label = "object",
         .values = OBJECTS,
         .help = "streams, buckets, settings, consumers and tables that are missing, or otherwise "
                 "than the namespace needs them, one for each difference. The engine "
                 "looks that should own partition 0, and each that has not joined"},
    [METRIC_ENGINE_MENDED] = {.name = "thole_engine_mended_total",
                              .roles = METRIC_ENGINE,
                              .label = "object",
                              .values = OBJECTS,
                              .help = "streams, buckets and tables that were missing and that the engine has "
                                      "made again"},
    [METRIC_ENGINE_BLOCKERS_ENDED] =
        {.name = "thole_engine_blockers_ended_total",
         .roles = METRIC_ENGINE,
         .help =
             "sessions of workers and readers in Postgres that kept engines waiting for 20 s, and that the "
             "engine has ended"},
    [METRIC_ENGINE_FOREIGN] = {.name = "thole_engine_foreign_messages_total",
                               .roles = METRIC_ENGINE,
                               .help = "messages in histories that were not published to them: the server "
                                       "delivered them there for somebody"},
    [METRIC_ENGINE_INTRUDERS] = {.name = "thole_engine_intruders_removed_total",
                                 .roles = METRIC_ENGINE,
                                 .help =
                                     "consumers that delivered into the namespace's streams, and that the "
                                     "engine has removed"},
    [METRIC_ENGINE_STORED] =
        {.name = "thole_engine_stored_bytes",
         .kind = METRIC_GAUGE,
         .roles = METRIC_ENGINE,
         .label = "object",
         .values = VALUES(OBJECT_NAMES, "account", "database"),
         .help = "what the streams of the namespace take; account: all streams of the NATS account; "
                 "database: all of "
                 "the Postgres database. Known to the engine that should own partition 0, 0 at the others"},
    [METRIC_ENGINE_MESSAGES] = {.name = "thole_engine_stored_messages",
                                .kind = METRIC_GAUGE,
                                .roles = METRIC_ENGINE,
                                .label = "object",
                                .values = OBJECTS,
                                .help = "messages in the streams of the namespace; those of hist are what "
                                        "instances, ended ones and deleted ones have left. Known to the "
                                        "engine that should own partition 0, 0 at the others"},
    [METRIC_ENGINE_ROOM] = {.name = "thole_engine_room_seconds",
                            .kind = METRIC_GAUGE,
                            .roles = METRIC_ENGINE,
                            .label = "of",
                            .unit = METRIC_MILLISECONDS,
                            .values = VALUES("account", "stream"),
                            .help = "time until the NATS account, or the first stream with a limit, is "
                                    "full, if it grows as in the last hours, in whole days; 0.001: it is "
                                    "full within a day; 0: it does not grow, has no limit, it is too "
                                    "early to say, or another engine knows it"},
    [METRIC_ENGINE_REQUESTS] = {.name = "thole_engine_requests_total",
                                .roles = METRIC_ENGINE,
                                .label = "request",
                                .values = REQUESTS,
                                .help = "requests to NATS and Postgres that were answered, or failed"},
    [METRIC_ENGINE_REQUEST_FAILURES] = {.name = "thole_engine_request_failures_total",
                                        .roles = METRIC_ENGINE,
                                        .label = "request",
                                        .values = REQUESTS,
                                        .help = "those that failed"},
    [METRIC_ENGINE_REQUEST_DURATION] =
        {.name = "thole_engine_request_duration_seconds",
         .kind = METRIC_HISTOGRAM,
         .unit = METRIC_MICROSECONDS,
         .roles = METRIC_ENGINE,
         .label = "request",
         .values = VALUES("append", "publish_work", "send_message", "load", "apply"),
         .bounds = call_bounds,
         .help = "from the asking until the answer was taken, tries again included"},
    [METRIC_ENGINE_EVENTS] = {.name = "thole_engine_events_total",
                              .roles = METRIC_ENGINE,
                              .label = "event",
                              .values = EVENTS,
                              .help = "what the log has lines of, and counts where there are too many"},

    [METRIC_WORKER_SLOTS] = {.name = "thole_worker_slots",
                             .kind = METRIC_GAUGE,
                             .roles = METRIC_RUNS,
                             .help = "activities that may run at the same time: --slots"},
    [METRIC_WORKER_HELD] = {.name = "thole_worker_held",
                            .kind = METRIC_GAUGE,
                            .roles = METRIC_RUNS,
                            .help = "messages of activities that this worker has and that have not ended"},
    [METRIC_WORKER_RUNNING] = {.name = "thole_worker_running",
                               .kind = METRIC_GAUGE,
                               .roles = METRIC_RUNS,
                               .help = "handlers that run, with those that were given up and still run"},
    [METRIC_WORKER_QUEUE_OK] = {.name = "thole_worker_queue_ok",
                                .kind = METRIC_GAUGE,
                                .roles = METRIC_RUNS,
                                .help =
                                    "1: the queue has its consumer, as far as is known; 0: it gives no work"},
    [METRIC_WORKER_QUEUE_MESSAGES] =
        {.name = "thole_worker_queue_messages",
         .kind = METRIC_GAUGE,
         .join = METRIC_MAX,
         .roles = METRIC_WORKER,
         .label = "state",
         .values = VALUES("pending", "ack_pending"),
         .help =
             "activities in the worker's queue, of all its workers, looked at each 10 s: not delivered yet, "
             "delivered and not done"},
    [METRIC_WORKER_DELIVERED] = {.name = "thole_worker_delivered_total",
                                 .roles = METRIC_RUNS,
                                 .help = "messages of activities that were delivered, again ones included"},
    [METRIC_WORKER_CLAIMS] = {.name = "thole_worker_claims_total",
                              .roles = METRIC_RUNS,
                              .label = "outcome",
                              .values = VALUES("gone", "claimed", "stolen", "candidate", "held", "unknown",
                                               "forged", "unanswered"),
                              .help = "rows that were to be claimed"},
    [METRIC_WORKER_RENEWALS] = {.name = "thole_worker_renewals_total",
                                .roles = METRIC_RUNS,
                                .label = "outcome",
                                .values = VALUES("gone", "renewed", "stolen", "unknown", "unanswered"),
                                .help =
                                    "leases that were to be renewed; gone: it was cancelled or completed"},
    [METRIC_WORKER_COMPLETIONS] = {.name = "thole_worker_completions_total",
                                   .roles = METRIC_RUNS,
                                   .label = "outcome",
                                   .values = VALUES("refused", "accepted", "stolen", "unknown", "unanswered"),
                                   .help =
                                       "completions, by what the row said; accepted ones are then published "
                                       "and committed"},
    [METRIC_WORKER_ENDED] = {.name = "thole_worker_ended_total",
                             .roles = METRIC_RUNS,
                             .label = "end",
                             .values = VALUES("completed", "gone", "cancelled", "refused", "stolen",
                                              "lease_lost", "unclaimed", "unknown", "handed_back", "later",
                                              "deferred", "held", "forged", "unserved"),
                             .help = "messages of activities that have ended here"},
    [METRIC_WORKER_RESULTS] = {.name = "thole_worker_results_published_total",
                               .roles = METRIC_RUNS,
                               .label = "outcome",
                               .values = VALUES("stored", "failed"),
                               .help = "publishes of results; failed ones are tried again"},
    [METRIC_WORKER_CANCELLATIONS] =
        {.name = "thole_worker_cancellations_total",
         .roles = METRIC_RUNS,
         .label = "path",
         .values = VALUES("push", "renewal", "refused_completion"),
         .help = "activities that the worker learned were cancelled, by how it learned it"},
    [METRIC_WORKER_CANCELLATION_DELAY] = {.name = "thole_worker_cancellation_delay_seconds",
                                          .kind = METRIC_HISTOGRAM,
                                          .unit = METRIC_MICROSECONDS,
                                          .roles = METRIC_RUNS,
                                          .label = "path",
                                          .values = VALUES("push", "renewal", "refused_completion"),
                                          .bounds = cancel_bounds,
                                          .help = "how late cancellations were learned: until the token "
                                                  "fired or the completion was refused; push: "
                                                  "since the turn that decided, by the engine's clock; "
                                                  "others: since the row was last there, so at "
                                                  "most that"},
    [METRIC_WORKER_CANCELLATION_GRACE] = {.name = "thole_worker_cancellation_grace_seconds",
                                          .kind = METRIC_HISTOGRAM,
                                          .unit = METRIC_MICROSECONDS,
                                          .roles = METRIC_RUNS,
                                          .bounds = call_bounds,
                                          .help =
                                              "from the firing of a token until the handler has returned"},
    [METRIC_WORKER_TOKENS] = {.name = "thole_worker_tokens_fired_total",
                              .roles = METRIC_RUNS,
                              .label = "path",
                              .values = VALUES("push", "renewal", "lease_lost", "shutdown", "timeout"),
                              .help = "cancellation tokens that were fired, by the reason"},
    [METRIC_WORKER_PUSHES_IGNORED] = {.name = "thole_worker_pushes_ignored_total",
                                      .roles = METRIC_RUNS,
                                      .label = "reason",
                                      .values = VALUES("malformed", "unproven"),
                                      .help = "cancel pushes that no engine has sent"},
    [METRIC_WORKER_PUSHES_CONTRADICTED] = {.name = "thole_worker_pushes_contradicted_total",
                                           .roles = METRIC_RUNS,
                                           .help = "cancel pushes for activities whose row was still there"},
    [METRIC_WORKER_ACTIVITY_DURATION] = {.name = "thole_worker_activity_duration_seconds",
                                         .kind = METRIC_HISTOGRAM,
                                         .unit = METRIC_MICROSECONDS,
                                         .roles = METRIC_WORKER,
                                         .label = "activity",
                                         .bounds = run_bounds,
                                         .help = "how long handlers ran"},
    [METRIC_WORKER_HANDLERS] = {.name = "thole_worker_handlers_total",
                                .roles = METRIC_RUNS,
                                .label = "returned",
                                .values = VALUES("ok", "app", "cancelled", "later", "other"),
                                .help = "handlers that have returned; app: thole_activity_fail()"},
    [METRIC_WORKER_ABANDONED] = {.name = "thole_worker_abandoned_total",
                                 .roles = METRIC_RUNS,
                                 .help = "handlers that did not return in their grace"},
    [METRIC_WORKER_POISONED] = {.name = "thole_worker_poisoned_total",
                                .roles = METRIC_RUNS,
                                .help =
                                    "activities that were not run again, because they were lost with their "
                                    "workers too often"},
    [METRIC_WORKER_STATEMENT_DURATION] = {.name = "thole_worker_statement_duration_seconds",
                                          .kind = METRIC_HISTOGRAM,
                                          .unit = METRIC_MICROSECONDS,
                                          .roles = METRIC_RUNS,
                                          .label = "statement",
                                          .values = VALUES("claim", "renew", "release", "leave", "not_lost",
                                                           "shelve", "begin", "commit", "rollback"),
                                          .bounds = call_bounds,
                                          .help = "statements on rows of activities"},
    [METRIC_BINDER_MESSAGES] = {.name = "thole_binder_messages_total",
                                .roles = METRIC_BINDER,
                                .label = "outcome",
                                .values =
                                    VALUES("start", "signal", "signal_with_start", "rejected", "put_back"),
                                .help = "messages that were sent to an inbox and acknowledged, or rejected; "
                                        "put_back: handed back to the server, and delivered again"},
    [METRIC_BINDER_IN_FLIGHT] = {.name = "thole_binder_in_flight",
                                 .kind = METRIC_GAUGE,
                                 .roles = METRIC_BINDER,
                                 .help = "messages that this binder has and that are not done"},
    [METRIC_BINDER_RULES] = {.name = "thole_binder_rules",
                             .kind = METRIC_GAUGE,
                             .join = METRIC_MAX,
                             .roles = METRIC_BINDER,
                             .label = "state",
                             .values = VALUES("served", "failing"),
                             .help = "rules; failing: they cannot be served, the log says why"},
    [METRIC_BINDER_LAG] = {.name = "thole_binder_lag_messages",
                           .kind = METRIC_GAUGE,
                           .join = METRIC_MAX,
                           .roles = METRIC_BINDER,
                           .label = "state",
                           .values = VALUES("pending", "ack_pending"),
                           .help = "messages of all rules that are not done, over all binders: not delivered "
                                   "yet, delivered and not acknowledged"},

    [METRIC_GATEWAY_SESSIONS] = {.name = "thole_gateway_sessions",
                                 .kind = METRIC_GAUGE,
                                 .roles = METRIC_GATEWAY,
                                 .help = "sessions of workers elsewhere; at most 1000"},
    [METRIC_GATEWAY_SESSIONS_ENDED] =
        {.name = "thole_gateway_sessions_ended_total",
         .roles = METRIC_GATEWAY,
         .label = "end",
         .values = VALUES("stopped", "silent", "not_started"),
         .help = "sessions that have ended; silent: its worker was not heard of for a lease"},
    [METRIC_GATEWAY_SESSIONS_REFUSED] =
        {.name = "thole_gateway_sessions_refused_total",
         .roles = METRIC_GATEWAY,
         .label = "limit",
         .values = VALUES("gateway", "queue"),
         .help = "sessions that were not opened: the gateway has as many as it can, or as --queue-sessions "
                 "allows for one queue"},
    [METRIC_GATEWAY_TASKS] = {.name = "thole_gateway_tasks_total",
                              .roles = METRIC_GATEWAY,
                              .label = "sent",
                              .values = VALUES("given", "again"),
                              .help =
                                  "tasks that workers have asked for; again: they had not arrived before"},
    [METRIC_GATEWAY_OUTCOMES] = {.name = "thole_gateway_outcomes_total",
                                 .roles = METRIC_GATEWAY,
                                 .label = "outcome",
                                 .values = VALUES("stored", "cancelled", "refused"),
                                 .help = "outcomes that workers have sent; refused: the claim was gone"},
    [METRIC_GATEWAY_RENEWALS] = {.name = "thole_gateway_renewals_total",
                                 .roles = METRIC_GATEWAY,
                                 .label = "claim",
                                 .values = VALUES("held", "gone"),
                                 .help = "claims that workers have named in renewals"},
    [METRIC_GATEWAY_CANCELLATIONS] = {.name = "thole_gateway_cancellations_told_total",
                                      .roles = METRIC_GATEWAY,
                                      .help = "notices to workers that a task is to end"},
    [METRIC_GATEWAY_REQUESTS] = {.name = "thole_gateway_requests_total",
                                 .roles = METRIC_GATEWAY,
                                 .label = "request",
                                 .values = GATEWAY_REQUESTS,
                                 .help = "requests of workers and clients that were answered"},
    [METRIC_GATEWAY_REQUEST_FAILURES] = {.name = "thole_gateway_request_failures_total",
                                         .roles = METRIC_GATEWAY,
                                         .label = "request",
                                         .values = GATEWAY_REQUESTS,
                                         .help = "those whose answer was an error"},
};
