/**
 * The client library: starts, watches, cancels and lists instances from any process.
 *
 * A client is safe to use from several threads at once; each call blocks its caller only. Calls return
 * THOLE_UNAVAILABLE when a server cannot be reached within the client's timeout; start and cancel are then
 * safe to repeat with the same arguments (a start that was stored before returns THOLE_CONFLICT). A lost
 * connection is made again automatically; running calls continue then.
 *
 * THOLE_NOMEM is returned for memory of data: results, answers, histories. If the system has no memory for a
 * small allocation of the library itself, the process prints a message on stderr and aborts.
 */
#ifndef THOLE_CLIENT_H
#define THOLE_CLIENT_H
#include "thole/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct thole_client thole_client;

/** Fill with thole_client_options_init(), then set what differs. Strings are borrowed for the call. */
typedef struct thole_client_options {
    size_t size;            /**< set by init */
    const char *nats_url;   /**< default $THOLE_NATS_URL, else nats://127.0.0.1:4222 */
    const char *nats_creds; /**< path of a .creds file, of the seed of an NKey, of `user:` and `password:`
                               lines, or of a `token:` line; default $THOLE_NATS_CREDS, else none */
    const char *postgres; /**< libpq connection string; default $THOLE_POSTGRES; only list and show need it */
    const char *ns;       /**< namespace; default $THOLE_NAMESPACE, else "default" */
    uint64_t timeout_ms;  /**< of each round trip; default 5000 */
    size_t payload_max;   /**< bytes of an input; 0, the default: the namespace's limit */
    /** Prefix of the subjects on which answers arrive, at most 288 bytes, beginning with `_INBOX`. The user
     * must have the permission to subscribe to the prefix followed by `.>`; else thole_client_open() fails
     * with THOLE_DENIED. Default $THOLE_NATS_INBOX, else `_INBOX_<namespace>_client`, with each underscore of
     * the namespace twice. */
    const char *nats_inbox;
    /** TLS is used where the URL (tls://), this file, the certificate or the server name is given, or the
     * server asks for it. Paths of PEM files; default $THOLE_NATS_CA, else the authorities that the system
     * trusts. They are read at each connect. */
    const char *nats_ca;
    const char *nats_cert; /**< the own certificate and its chain; default $THOLE_NATS_CERT, else none */
    const char
        *nats_key; /**< the certificate's key, unencrypted; default $THOLE_NATS_KEY; only with nats_cert */
    /** The host name or address that the servers' certificates must be for; default $THOLE_NATS_SERVER_NAME,
     * else the host of the URL. */
    const char *nats_server_name;
    /** Name of the person or service that asks, at most 200 bytes: recorded with all requests as the client's
     * own statement (docs/audit.md). Default $THOLE_ACTOR, else the user and the host of this process. */
    const char *actor;
    /** Name of the program that asks, at most 64 bytes; default "thole" and the library's version. */
    const char *client_name;
    /** Name for which NATS vouches, in place of `actor`: the client publishes on subjects that contain it,
     * and NATS permits that only to users with this name (docs/audit.md). Default $THOLE_VOUCHED_ACTOR. */
    const char *vouched_actor;
    /** Prefix of JetStream's subjects, at most 64 bytes, without a dot at the end: that of an account that
     * imports JetStream's subjects from the account of the streams (docs/operations.md, "Accounts"), or of a
     * domain (`$JS.hub.API`). Default $THOLE_NATS_API_PREFIX, else `$JS.API`. */
    const char *nats_api_prefix;
} thole_client_options;

/** The status of an instance. Values are stored; append only. */
typedef enum thole_instance_status {
    THOLE_INSTANCE_UNKNOWN = 0,
    THOLE_INSTANCE_RUNNING = 1,   /**< runs, or waits for an activity, a timer or an event */
    THOLE_INSTANCE_WAITING = 2,   /**< the engine of its partition lacks its code; continues with it */
    THOLE_INSTANCE_STUCK = 3,     /**< the code diverged from the history, or the history is damaged */
    THOLE_INSTANCE_COMPLETED = 4, /**< terminal, as are the next two */
    THOLE_INSTANCE_FAILED = 5,
    THOLE_INSTANCE_CANCELLED = 6,
    THOLE_INSTANCE_TERMINATED = 7, /**< terminal too */
    THOLE_INSTANCE_PAUSED = 8,
    THOLE_INSTANCE_CONTINUED_AS_NEW = 9, /**< ended with it; of an instance only for a moment */
    THOLE_INSTANCE_PENDING = 10          /**< start stored, first turn not yet run; never in the projection */
} thole_instance_status;

/** "Running", "Waiting", "Stuck", "Completed", "Failed", "Cancelled", "Terminated", "Paused",
 * "ContinuedAsNew", "Pending", "Unknown". Static text. */
THOLE_API const char *thole_instance_status_name(thole_instance_status status);

/** How an instance ended. Release with thole_outcome_release(). */
typedef struct thole_outcome {
    thole_instance_status status;
    /** The result when completed, else the failure or cancellation text. Owned; a NUL that is not counted
     * follows, so that text can be printed. */
    thole_slice output;
    thole_slice error_type; /**< of a failure; may be empty. Owned */
    uint64_t execution;
} thole_outcome;

/** One event of a history, as read back from the stream. Slices are borrowed for the callback. */
typedef struct thole_history_event {
    uint64_t sequence;   /**< of the record in the history stream */
    uint64_t execution;  /**< from 1; 0: events before the instance was started */
    uint64_t turn;       /**< from 1 within the execution */
    uint64_t id;         /**< from 1 within the execution */
    uint64_t ref;        /**< id of the event that this one resolves; 0 = none */
    uint64_t time_ms;    /**< logical time of the turn, milliseconds since 1970 UTC */
    uint64_t due_ms;     /**< when a timer fires or the next try is due, else 0 */
    const char *kind;    /**< "Started", "ActivityScheduled", …; static text */
    thole_slice name;    /**< orchestration, activity, event, state key or change, else empty */
    thole_slice data;    /**< payload, failure text or reason */
    uint32_t try_number; /**< of an activity's end and of its next tries, else 0 */
    uint32_t version;    /**< of the orchestration that is started; 0 = none, or not chosen yet */
    thole_status status; /**< of a failure, else THOLE_OK */
    const char *cause; /**< why something was cancelled: "requested", "select_loser", …; static; else NULL */
    thole_slice error_type;   /**< of a failure; may be empty */
    thole_slice queue;        /**< of an activity, else empty */
    thole_slice instance;     /**< the other one: child, parent, receiver of an event; else empty */
    thole_slice request_id;   /**< of what a client or another instance asked for, else empty */
    uint64_t pruned_before;   /**< of HistoryPruned: executions before it, but the first, are removed */
    thole_slice actor;        /**< name of the one who asked; empty: no client did, or not known */
    bool actor_authenticated; /**< false: the sender says so; docs/audit.md says what the other one proves */
    thole_slice client;       /**< the program of the actor, such as "thole 0.9.0"; may be empty */
    thole_slice traceparent;  /**< W3C Trace Context of the request; may be empty */
    thole_slice worker;       /**< the worker of an activity's result, by its own account; or empty */
    thole_slice host;         /**< of that worker */
    uint64_t attempt;         /**< the number of the worker's claim, from 1; 0: not known */
    uint64_t run_started_ms, run_ended_ms; /**< of that run, by its host's clock; 0: not known */
    bool redacted; /**< a payload of it was erased: data may be empty for that reason (docs/audit.md) */
} thole_history_event;
/** Called for each event in order, on the caller's thread. Any status but THOLE_OK stops reading and is
 * returned. The function may call other functions of the client. */
typedef thole_status thole_history_fn(void *arg, const thole_history_event *event);

/** An execution that has a history, from the projection. */
typedef struct thole_execution_info {
    uint64_t execution;
    thole_instance_status status;  /**< CONTINUED_AS_NEW for all but the newest */
    uint64_t started_ms, ended_ms; /**< logical time of its first and its last turn; 0: not ended */
    uint64_t turns;
} thole_execution_info;
/** As thole_instance_fn. */
typedef thole_status thole_execution_fn(void *arg, const thole_execution_info *info);

/** One row of the projection. Slices are borrowed for the callback. */
typedef struct thole_instance_info {
    thole_slice instance, orchestration;
    uint64_t execution;
    thole_instance_status status;
    uint64_t created_ms; /**< logical time of the first turn */
    uint64_t updated_ms; /**< and of the last; while it is RUNNING perhaps of one up to 10 s earlier */
    thole_slice detail;  /**< why it waits or is stuck; the failure text's head; else empty */
    uint32_t partition;
    uint64_t open_activities; /**< scheduled and not yet resolved */
    uint64_t open_timers;
    uint32_t version;          /**< of its orchestration; 0 = not chosen yet */
    thole_slice custom_status; /**< of thole_set_status(); else empty */
    thole_slice parent;        /**< the instance whose child it is; else empty */
    uint64_t turns;            /**< of the latest execution; as of updated_ms */
    bool foreign;              /**< no instance can have this id: thole has not written the row */
    /** Why it does not go on: "no_code", "divergence", "damaged", "too_new", "limit", "paused", "not_started"
     * or "crashed"; static text. NULL: it goes on, or has ended, or the reason is not known. */
    const char *reason;
} thole_instance_info;
/** Called for each row on the caller's thread. Anything but THOLE_OK stops and is returned. The function must
 * not call thole_client_show() or thole_client_list() of the same client, which serve one call at a time. */
typedef thole_status thole_instance_fn(void *arg, const thole_instance_info *info);

/** Selection of thole_client_list(). Zeroed = everything, newest first. Slices are borrowed. */
typedef struct thole_list_filter {
    size_t size;
    thole_instance_status status;                 /**< THOLE_INSTANCE_UNKNOWN = any */
    thole_slice orchestration;                    /**< empty = any */
    thole_slice id_prefix;                        /**< empty = any */
    thole_slice parent;                           /**< children of this instance; empty = any */
    uint64_t created_after_ms, created_before_ms; /**< 0 = any; the first inclusive, the second not */
    uint64_t limit;                               /**< rows at most, not counting foreign ones; 0 = 100 */
    /** For the next page: only rows after this one, the last of the page before. Empty = from the first. */
    thole_slice behind_instance;
    uint64_t behind_created_ms;
    thole_slice custom_status; /**< exactly this one; empty = any */
    /** 1 << status for each of several, such as THOLE_STATUSES_OPEN, if `status` is UNKNOWN; 0 = any */
    uint32_t statuses;
} thole_list_filter;
/** All that have not ended: Running, Waiting, Stuck, Paused, ContinuedAsNew. */
enum { THOLE_STATUSES_OPEN = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 8 | 1 << 9 };

/** Instances of one orchestration that do not go on, for one reason. Slices are borrowed for the call. */
typedef struct thole_standing_info {
    thole_slice orchestration;
    thole_instance_status status; /**< Waiting, Stuck or Paused */
    const char *reason;           /**< as in thole_instance_info */
    uint64_t count;
    thole_slice example; /**< the one whose last turn is oldest */
    uint64_t updated_ms; /**< of that one, as is detail */
    thole_slice detail;
} thole_standing_info;
/** As thole_instance_fn. */
typedef thole_status thole_standing_fn(void *arg, const thole_standing_info *info);

/** Why an instance does not go on until a user acts. Slices are borrowed for the call. */
typedef struct thole_hindrance {
    /** A reason of thole_instance_info; or "no_engine"; "not_taken": its start is stored; "not_there": no
     * such instance was started; "no_worker" serves an activity's queue; "unknown_activity": no worker of the
     * queue knows it; "quarantined"; "child": a child that it waits for does not go on. Static text. */
    const char *kind;
    thole_slice text;   /**< the present state, as a sentence */
    thole_slice remedy; /**< the action that would let it go on */
} thole_hindrance;
/** Called on the caller's thread. Anything but THOLE_OK stops and is returned. */
typedef thole_status thole_hindrance_fn(void *arg, const thole_hindrance *hindrance);

/** How many instances have each status. Set size. */
typedef struct thole_instance_counts {
    size_t size;
    uint64_t of[16]; /**< by thole_instance_status */
    bool exact;      /**< false: of a status that has 10,000 there are at least so many */
} thole_instance_counts;

/** An activity in quarantine: its claims were lost with their workers, so it is not run until a user decides.
 * Slices are borrowed for the call. */
typedef struct thole_poisoned_info {
    thole_slice instance, activity, queue;
    uint64_t execution, activity_id;
    uint32_t try_number; /**< which try it was, from 1 */
    uint32_t claims;     /**< how many were lost */
    thole_slice worker;  /**< of the last lost claim */
    thole_slice reason;
    uint64_t since_ms; /**< milliseconds since 1970 */
    uint64_t until_ms; /**< when it fails by itself; 0 = never */
    bool foreign;      /**< no instance can have this id: thole has not written the row */
} thole_poisoned_info;
/** As thole_instance_fn. */
typedef thole_status thole_poisoned_fn(void *arg, const thole_poisoned_info *info);

/** Selection of thole_client_poisoned(). Zeroed = everything, newest first. Slices are borrowed. */
typedef struct thole_poisoned_filter {
    size_t size;
    thole_slice queue;    /**< empty = any */
    thole_slice instance; /**< empty = any */
    uint64_t limit;       /**< rows at most, not counting foreign ones; 0 = 100 */
    /** As in thole_list_filter. */
    thole_slice behind_instance;
    uint64_t behind_since_ms, behind_execution, behind_activity_id;
} thole_poisoned_filter;

/** A worker that holds activities of a queue. */
typedef struct thole_queue_worker {
    thole_slice worker;
    uint64_t activities;
    uint64_t silent_ms; /**< since its last claim or renewal (every third of the lease) */
} thole_queue_worker;
/** Number of activities of one name in a queue. */
typedef struct thole_queue_activity {
    thole_slice activity;
    uint64_t count; /**< waiting or running */
} thole_queue_activity;
/** The contents of a queue. Slices and workers are borrowed for the call. */
typedef struct thole_queue_info {
    thole_slice queue;
    uint64_t waiting;  /**< no worker has them, or only one that is silent for longer than the lease */
    uint64_t running;  /**< a worker has them */
    uint64_t outside;  /**< completed from outside */
    uint64_t poisoned; /**< in quarantine */
    uint64_t limit;    /**< how many may run at once; 0 = no limit */
    uint64_t lease_ms; /**< 0 = no worker has served it yet */
    const thole_queue_worker *workers; /**< by name, the silent ones too */
    size_t workers_len;
    const thole_queue_activity *activities; /**< by name */
    size_t activities_len;
    bool foreign; /**< no queue can have this name: thole has not written the rows; limit and lease are 0
                   */
    uint64_t oldest_ms; /**< how long the oldest that waits has waited; 0 = none waits */
    uint64_t delivered; /**< activities handed to workers since the queue's consumer was made, repetitions
                             too; grows, and begins again at 0 with another consumer */
} thole_queue_info;
/** As thole_instance_fn. */
typedef thole_status thole_queue_fn(void *arg, const thole_queue_info *info);

/** Kinds of unresolved tasks. Append only. */
typedef enum thole_pending_kind {
    THOLE_PENDING_ACTIVITY = 1,
    THOLE_PENDING_TIMER = 2,
    THOLE_PENDING_EVENT = 3,
    THOLE_PENDING_CHILD = 4
} thole_pending_kind;
/** An unresolved task of an execution. */
typedef struct thole_pending {
    thole_pending_kind kind;
    uint64_t id;           /**< id of its scheduling event */
    thole_slice name;      /**< activity, event, or the child's orchestration; a timer has none */
    thole_slice queue;     /**< of an activity */
    thole_slice instance;  /**< the child's id */
    uint32_t try_number;   /**< of an activity, from 1 */
    bool waiting;          /**< of an activity: for its next try, or in quarantine */
    bool quarantined;      /**< waits for thole_client_poisoned_retry() */
    uint64_t asked_for_ms; /**< logical time of the turn */
    uint64_t due_ms;       /**< when the timer fires, the next try is due, the quarantine ends; 0 = never */
} thole_pending;
/** Events of one name that an instance keeps. */
typedef struct thole_kept_event {
    thole_slice name;
    uint64_t count;
} thole_kept_event;
/** The latest execution of an instance, or the one at a point, as its history has it. Slices are borrowed for
 * the call. */
typedef struct thole_inspection {
    thole_slice orchestration;
    uint64_t execution;
    uint32_t version; /**< 0 = not chosen yet */
    thole_instance_status
        status; /**< Running, Paused, or how it ended; why one waits or is stuck is not here */
    thole_slice input;
    thole_slice output;           /**< result, failure text or reason of the end; empty before */
    thole_slice error_type;       /**< of a failure; may be empty */
    const thole_pending *pending; /**< by id */
    size_t pending_len;
    thole_slice custom_status;
    uint64_t turns;                       /**< of the execution, up to here */
    uint64_t event;                       /**< the last one that counted */
    uint64_t time_ms;                     /**< of its turn, milliseconds since 1970 */
    bool input_redacted, output_redacted; /**< there was one: a redaction erased it */
    /** THOLE_INSTANCE_PENDING, execution and event are 0, time_ms says since when: at most so many messages
     * of its partition are taken before its start. */
    uint64_t ahead;
    /** Events that nothing has waited for yet, perhaps of a mistyped name; by the first of each. */
    const thole_kept_event *kept;
    size_t kept_len;
} thole_inspection;
/** A point in an instance's history: the end of an event, or a time. Zeroed = now. */
typedef struct thole_inspect_point {
    size_t size;
    uint64_t execution; /**< 0 = the latest, or the one that ran at time_ms */
    uint64_t event;     /**< id in the execution; 0 = its last one */
    uint64_t time_ms;   /**< records up to this time count, milliseconds since 1970; 0 = now */
} thole_inspect_point;
/** Called once, on the caller's thread. Its status is returned. */
typedef thole_status thole_inspection_fn(void *arg, const thole_inspection *inspection);

/** An activity in its queue, from the projection. Slices are borrowed for the call. */
typedef struct thole_activity_info {
    uint64_t execution, activity_id;
    thole_slice queue, activity;
    uint32_t try_number;
    thole_slice worker; /**< the worker that has it; empty = none */
    uint64_t silent_ms; /**< since that worker's last claim or renewal */
    bool outside;       /**< completed from outside with its token */
} thole_activity_info;
/** As thole_instance_fn. */
typedef thole_status thole_activity_info_fn(void *arg, const thole_activity_info *info);

/** A row of the projection that Postgres refuses for what is in it: what it is for does not happen. Slices
 * are borrowed for the call. */
typedef struct thole_set_aside_info {
    thole_slice table;
    uint64_t execution; /**< 0 of the table instances */
    uint64_t id;        /**< activity or timer; 0 of instances and executions */
    bool removal;       /**< true: the row could not be removed; false: not written */
    thole_slice column; /**< the one that is refused, or several that may be; empty = not known */
    thole_slice code;   /**< SQLSTATE; empty: the engine does not send the value */
    thole_slice reason;
    uint64_t since_ms; /**< milliseconds since 1970, by the database's clock */
} thole_set_aside_info;
/** As thole_instance_fn. */
typedef thole_status thole_set_aside_fn(void *arg, const thole_set_aside_info *info);

/** A worker that answered. Slices are borrowed for the call. */
typedef struct thole_worker_info {
    thole_slice worker, queue;
    uint64_t slots;
    const thole_slice *activities; /**< names that its program registers */
    size_t activities_len;
} thole_worker_info;
/** Called on the caller's thread. Anything but THOLE_OK stops and is returned. */
typedef thole_status thole_worker_fn(void *arg, const thole_worker_info *info);

/** An engine with a heartbeat within the node TTL. Slices are borrowed for the call. */
typedef struct thole_engine_info {
    thole_slice node;
    uint64_t started_ms;
    const thole_slice *orchestrations; /**< "name", and "name@version" beyond version 1 */
    size_t orchestrations_len;
} thole_engine_info;
/** As thole_worker_fn. */
typedef thole_status thole_engine_fn(void *arg, const thole_engine_info *info);

THOLE_API void thole_client_options_init(thole_client_options *options);

/**
 * Connects to NATS and reads the namespace's configuration. Postgres is connected at the first call that
 * needs it.
 * @param options  NULL = defaults.
 * @return THOLE_OK; THOLE_UNAVAILABLE; THOLE_DENIED; THOLE_NOT_FOUND (no engine has ever run in this
 *         namespace); THOLE_INVALID; THOLE_NOMEM.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_open(const thole_client_options *options,
                                                         thole_client **ret_client, thole_error *reterr);
/** Closes and frees. NULL is allowed. No other call may be under way. */
THOLE_API void thole_client_close(thole_client *client);

/**
 * Starts an instance unless one with the same id exists (running or ended).
 * Durable when it returns THOLE_OK. Waits up to the client's timeout for an engine to accept it; without
 * a live engine the start stays queued and @p ret_accepted is false.
 * @param ret_accepted  May be NULL.
 * @return THOLE_OK; THOLE_CONFLICT (id in use, or another start waits for an engine before this one, which
 *         will be refused); THOLE_INVALID; THOLE_LIMIT (input too large); THOLE_UNAVAILABLE.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_start(thole_client *client, thole_slice instance,
                                                          thole_slice orchestration, thole_slice input,
                                                          bool *ret_accepted, thole_error *reterr);
/**
 * The sender of one request, when that is not the client itself: for a service that acts for its users. The
 * sender is recorded as a statement of the client, unless it is `vouched` (docs/audit.md). Without actor and
 * client_name, the client's own options are used. Slices are borrowed for the call; all may be empty.
 */
typedef struct thole_sender {
    thole_slice actor;       /**< at most 200 bytes of UTF-8 */
    thole_slice client_name; /**< the actor's program; at most 64 bytes of UTF-8 */
    thole_slice traceparent; /**< W3C Trace Context of the request; what is not valid is ignored */
    thole_slice tracestate;
    bool vouched; /**< the actor, not empty, is in the subject, as that of `vouched_actor`: of a service that
                     has itself seen who asks, and has the permission to name anybody */
} thole_sender;
/** Fill with zeroes, set size, then what differs. Slices are borrowed for the call. */
typedef struct thole_start_options {
    size_t size;       /**< sizeof(thole_start_options) */
    uint32_t version;  /**< of the orchestration, at most 2,147,483,647; THOLE_VERSION_NEWEST */
    thole_slice event; /**< signal with start: name of an event that is delivered in any case, whether the
                          instance is started now or was before; then an id in use is a conflict only if that
                          instance has ended, and THOLE_LIMIT if it keeps no more events: nothing is
                          delivered in both cases. Empty = none */
    thole_slice event_data;
    /** Equal for every repetition of one start, which then takes effect once: UTF-8 like an instance id, not
     * beginning with '<'. Borrowed until the call returns. Empty = a new one. */
    thole_slice request_id;
    thole_slice traceparent; /**< W3C Trace Context, version 00: passed on unchanged to activities, child
                                orchestrations, live events and log lines. What is not valid is ignored, as
                                that specification asks for. Not used if the instance exists. Empty = none */
    thole_slice tracestate;  /**< at most 512 bytes; a longer one is ignored. Empty = none */
    thole_sender sender;     /**< without its trace: a start has its own, above */
    /** THOLE_NOT_FOUND, and nothing is started, when no engine that lives knows the orchestration, in this
     * version: one with a mistyped name would wait for ever. Reads the engines' heartbeats before. */
    bool require_known;
} thole_start_options;
/** thole_client_start() with options. */
THOLE_NODISCARD THOLE_API thole_status thole_client_start_with(thole_client *client, thole_slice instance,
                                                               thole_slice orchestration, thole_slice input,
                                                               const thole_start_options *options,
                                                               bool *ret_accepted, thole_error *reterr);
/** One of many starts. @ref thole_client_start_many fills it with zeroes before each call of the source. */
typedef struct thole_start_item {
    size_t size;          /**< sizeof(thole_start_item); set before the call */
    thole_slice instance; /**< slices are borrowed until the source is called again */
    thole_slice orchestration;
    thole_slice input;
    uint32_t version; /**< of the orchestration, at most 2,147,483,647; THOLE_VERSION_NEWEST */
    uint64_t token;   /**< returned with the answer; chosen by the caller, for example a line number */
} thole_start_item;
/** Gives the next start. THOLE_OK; THOLE_NOT_FOUND: no more; any other status: stop. */
typedef thole_status thole_start_source_fn(void *arg, thole_start_item *ret_item, thole_error *reterr);
/**
 * The outcome of one start. Slices are borrowed for the call. @p error->status: THOLE_OK (stored: it will be
 * taken exactly once); THOLE_INVALID, THOLE_LIMIT (refused, not sent); THOLE_UNAVAILABLE (not known to be
 * stored); THOLE_DENIED (not stored in time, and NATS forbids it).
 * @return THOLE_OK, or any other status to stop.
 */
typedef thole_status thole_start_answer_fn(void *arg, uint64_t token, thole_slice instance,
                                           const thole_error *error);
/**
 * Starts many instances without waiting for an engine to accept each: thousands are in flight at a time.
 * Memory is bounded, however many there are: at most 2,048 starts and 16 MiB of them (or one) wait for their
 * answer.
 *
 * Both functions are called on the caller's thread, never at the same time; the answers come in no particular
 * order, one for each start that the source gave. A refused start does not affect others. Each is repeated,
 * under one request id, until the stream has stored it, for the client's timeout: it is taken once. If a
 * start cannot be stored within that time no more are taken from the source, those in flight are answered,
 * and the call returns THOLE_UNAVAILABLE; starting the same ids again does not change those that were stored.
 *
 * An id in use is not reported here: the engine refuses such a start, and nothing changes.
 * @return THOLE_OK (each start was answered, with or without an error); THOLE_UNAVAILABLE; THOLE_DENIED (the
 * same, and NATS's permissions forbid it); the status that a function returned.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_start_many(thole_client *client,
                                                               thole_start_source_fn *source,
                                                               thole_start_answer_fn *answer, void *arg,
                                                               thole_error *reterr);
/**
 * Waits until the instance has ended. The answer comes from committed history. While it waits it makes one
 * read of the newest record every five seconds, since the notice that ends the wait may be lost; a read that
 * fails is repeated while there is time.
 * @param wait_ms  0 = look once; UINT64_MAX = for ever.
 * @return THOLE_OK with *ret_outcome filled; THOLE_TIMEOUT (still running, or its start is stored and waits
 * for its first turn); THOLE_NOT_FOUND (no such instance within the time); THOLE_UNAVAILABLE; THOLE_INVALID.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_wait(thole_client *client, thole_slice instance,
                                                         uint64_t wait_ms, thole_outcome *ret_outcome,
                                                         thole_error *reterr);
/**
 * thole_client_start() and thole_client_wait() with one subscription: the fastest way to a result. Nothing is
 * checked before; the engine refuses an id in use.
 * @return As both. THOLE_TIMEOUT: the start is stored and the instance has not ended within @p wait_ms;
 * continue with thole_client_wait().
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_run(thole_client *client, thole_slice instance,
                                                        thole_slice orchestration, thole_slice input,
                                                        uint64_t wait_ms, thole_outcome *ret_outcome,
                                                        thole_error *reterr);
/**
 * thole_client_run() with the options of a start; NULL: none. With an event (signal with start) an instance
 * that runs already gets it and is waited for; with a request id a repetition waits for what the first one
 * started, and costs a read of the history.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_run_with(thole_client *client, thole_slice instance,
                                                             thole_slice orchestration, thole_slice input,
                                                             const thole_start_options *options,
                                                             uint64_t wait_ms, thole_outcome *ret_outcome,
                                                             thole_error *reterr);
/** Frees what an outcome owns. A zeroed outcome is allowed. */
THOLE_API void thole_outcome_release(thole_outcome *outcome);

/**
 * Requests cancellation. Durable when it returns THOLE_OK; the instance sees the request in its next turn.
 * Repeating it changes nothing; the first reason wins. Reads the history's last record first; without one,
 * looks whether the instance's start waits for its first turn: then the request is taken after the start. No
 * request is sent to an instance that has ended. The instance may still end before its engine takes the
 * request, which then changes nothing.
 * @param reason  At most 1024 bytes; may be empty.
 * @return THOLE_OK; THOLE_NOT_FOUND; THOLE_CONFLICT (the instance has ended: the text says how and when);
 *         THOLE_INVALID; THOLE_UNAVAILABLE.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_cancel(thole_client *client, thole_slice instance,
                                                           thole_slice reason, thole_error *reterr);
/** Fill with zeroes, set size, then what differs. Slices are borrowed for the call. */
typedef struct thole_end_options {
    size_t size;        /**< sizeof(thole_end_options) */
    thole_slice reason; /**< at most 1024 bytes */
    /** Equal for every repetition of one request: UTF-8 like an instance id, not beginning with '<'. An
     * instance that this very request has ended is then no conflict. Empty = a new one. */
    thole_slice request_id;
    thole_sender sender;
} thole_end_options;
/** thole_client_cancel() with options; NULL: none. */
THOLE_NODISCARD THOLE_API thole_status thole_client_cancel_with(thole_client *client, thole_slice instance,
                                                                const thole_end_options *options,
                                                                thole_error *reterr);
/**
 * Raises an event in an instance. Durable when it returns THOLE_OK; delivered once. For an instance that does
 * not exist yet it is kept until the start, for 7 days (the engines' --early-events). An instance that has
 * ended is detected as in thole_client_cancel(). One that ends before its engine takes the event drops it;
 * one for which 10,000 events, or 8 MiB, wait rejects it (too_many): thole_signal_options.confirm tells.
 * @param request_id  As in thole_end_options; empty = a new one.
 * @param ret_kept    May be NULL. True: there is no such instance yet, the event is kept.
 * @return THOLE_OK; THOLE_CONFLICT (it has ended, and had not taken this event before; or another event had
 *         this request id); THOLE_INVALID; THOLE_LIMIT (data too large); THOLE_UNAVAILABLE.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_signal(thole_client *client, thole_slice instance,
                                                           thole_slice name, thole_slice data,
                                                           thole_slice request_id, bool *ret_kept,
                                                           thole_error *reterr);
/** Fill with zeroes, set size, then what differs. */
typedef struct thole_signal_options {
    size_t size;            /**< sizeof(thole_signal_options) */
    thole_slice request_id; /**< as of thole_client_signal() */
    thole_sender sender;
    /** THOLE_OK says that the history has it; THOLE_LIMIT: it was rejected, as too many wait; THOLE_CONFLICT:
     * the instance ended before it; THOLE_TIMEOUT: it is stored, and no engine took it in time. */
    bool confirm;
} thole_signal_options;
/** thole_client_signal() with options; NULL: none. */
THOLE_NODISCARD THOLE_API thole_status thole_client_signal_with(thole_client *client, thole_slice instance,
                                                                thole_slice name, thole_slice data,
                                                                const thole_signal_options *options,
                                                                bool *ret_kept, thole_error *reterr);
/** Ends the instance at once; its code does not run again. Else as thole_client_cancel(). */
THOLE_NODISCARD THOLE_API thole_status thole_client_terminate(thole_client *client, thole_slice instance,
                                                              thole_slice reason, thole_error *reterr);
/** thole_client_terminate() with options; NULL: none. */
THOLE_NODISCARD THOLE_API thole_status thole_client_terminate_with(thole_client *client, thole_slice instance,
                                                                   const thole_end_options *options,
                                                                   thole_error *reterr);
/** Fill with zeroes, set size, then what differs. Slices are borrowed for the call. */
typedef struct thole_delete_options {
    size_t size;        /**< sizeof(thole_delete_options) */
    bool force;         /**< terminate it first, if it has not ended */
    thole_slice reason; /**< at most 1024 bytes; stays in the log, as does the id */
} thole_delete_options;
/**
 * Deletes an instance that has ended, or with force any instance: its rows, then its history. A record with
 * its id, the time and the reason stays. Effects of its activities are not undone. The id can be used again,
 * for another instance; events that are raised meanwhile wait for that one. Durable when it returns THOLE_OK.
 * Waits up to the client's timeout for an engine to do it; without a live engine the request stays queued and
 * @p ret_accepted is false.
 * @param options       NULL = defaults.
 * @param ret_accepted  May be NULL. True: the deletion is recorded; the rest of the history is removed soon.
 * @return THOLE_OK; THOLE_NOT_FOUND; THOLE_CONFLICT (it has not ended, and force is not set: nothing was
 * changed); THOLE_INVALID; THOLE_UNAVAILABLE.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_delete(thole_client *client, thole_slice instance,
                                                           const thole_delete_options *options,
                                                           bool *ret_accepted, thole_error *reterr);
/** The executions of an instance that have a history, in order. @return THOLE_OK, also for none;
 * THOLE_INVALID; THOLE_UNAVAILABLE; the status that the callback returned. */
THOLE_NODISCARD THOLE_API thole_status thole_client_executions(thole_client *client, thole_slice instance,
                                                               thole_execution_fn *each, void *arg,
                                                               thole_error *reterr);
/**
 * Removes histories of old executions of an instance that has continued as new: those before @p before, but
 * never that of the first execution (it has the time and the request of the start) nor of the current one.
 * Nothing else changes. The history gets the event HistoryPruned, and the records are removed soon
 * afterwards; repeating the call changes nothing. Durable when it returns THOLE_OK.
 * @param before  Number of an execution. A number above the current one: all that have ended.
 * @param reason  Kept in the history. May be empty; at most 1024 bytes.
 * @return THOLE_OK; THOLE_NOT_FOUND; THOLE_CONFLICT (the instance has ended: delete it); THOLE_INVALID
 * (before is 0); THOLE_UNAVAILABLE (safe to call again).
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_prune(thole_client *client, thole_slice instance,
                                                          uint64_t before, thole_slice reason,
                                                          thole_error *reterr);
/** Pauses the instance: its code does not run until it is resumed, cancelled or terminated; messages are kept
 * meanwhile, running activities continue. THOLE_CONFLICT also if the history says that it is paused and no
 * other request about it waits to be taken: nothing is sent then. Else as thole_client_cancel(). */
THOLE_NODISCARD THOLE_API thole_status thole_client_pause(thole_client *client, thole_slice instance,
                                                          thole_slice reason, thole_error *reterr);
/** Ends a pause. THOLE_CONFLICT also if it is not paused, as of thole_client_pause(). */
THOLE_NODISCARD THOLE_API thole_status thole_client_resume(thole_client *client, thole_slice instance,
                                                           thole_slice reason, thole_error *reterr);
/** Tries a Stuck instance again with the engine's code: its crash count is cleared, its history is replayed.
 * THOLE_CONFLICT also if its history says that it runs or is paused, as of thole_client_pause(). Else as
 * thole_client_cancel().
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_retry(thole_client *client, thole_slice instance,
                                                          thole_slice reason, thole_error *reterr);
/**
 * Has a timer of an instance fire now, or the next try of an activity start that waits for its time, whenever
 * that is due: for times that a wrong clock has set. Durable when it returns THOLE_OK; recorded as TimerFired
 * or ActivityTryStarted, with who asked for it. Changes nothing when the timer has fired, was cancelled, or
 * is none, nor when the activity runs, is in quarantine or has ended.
 * @param execution  The instance's current one, from 1.
 * @param timer      The id of its TimerCreated or ActivityScheduled, as in thole_pending.id.
 * @return THOLE_OK; THOLE_NOT_FOUND; THOLE_CONFLICT (the instance has ended); THOLE_INVALID;
 * THOLE_UNAVAILABLE.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_fire_timer(thole_client *client, thole_slice instance,
                                                               uint64_t execution, uint64_t timer,
                                                               thole_error *reterr);
/**
 * Queries an instance, by its owner; see thole_on_query(). Changes nothing. An instance that has ended is
 * replayed from its history for each query. The query "__source" is answered by the engine: where in the
 * source the code waits, as text for people.
 * @param ret_output  On THOLE_OK: owned, release with thole_client_release().
 * @return THOLE_OK; THOLE_NOT_FOUND (no such instance, or no such query); THOLE_INVALID (its code cannot run
 *         there; it has ended, and the query's argument was on its stack); THOLE_UNAVAILABLE (no engine owns
 *         it now, none answers in time, or too many ended instances are queried at once); the status that the
 *         handler returned.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_query(thole_client *client, thole_slice instance,
                                                          thole_slice name, thole_slice input,
                                                          thole_slice *ret_output, thole_error *reterr);
/** Completes an activity whose handler returned thole_activity_later(). Durable when it returns THOLE_OK; a
 * late or repeated completion changes nothing. THOLE_INVALID: not a token. */
THOLE_NODISCARD THOLE_API thole_status thole_client_complete(thole_client *client, thole_slice token,
                                                             thole_slice output, thole_error *reterr);
/** Fails the activity; the retry policy decides whether another try follows. */
THOLE_NODISCARD THOLE_API thole_status thole_client_fail(thole_client *client, thole_slice token,
                                                         thole_slice type, thole_slice message,
                                                         thole_error *reterr);
/** Lists the activities in quarantine, from the projection. @param filter  NULL = everything. */
THOLE_NODISCARD THOLE_API thole_status thole_client_poisoned(thole_client *client,
                                                             const thole_poisoned_filter *filter,
                                                             thole_poisoned_fn *each, void *arg,
                                                             thole_error *reterr);
/**
 * Lists queues that are not empty, by name. Counts the projection's rows, which takes about two scans of all
 * scheduled activities in Postgres; two requests to NATS for each queue.
 * @param queue  Only this queue; empty = all.
 * @return THOLE_OK; THOLE_UNAVAILABLE; THOLE_INVALID; what @p each returned.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_queues(thole_client *client, thole_slice queue,
                                                           thole_queue_fn *each, void *arg,
                                                           thole_error *reterr);
/**
 * Runs an activity in quarantine again, in a new try whose losses count from 0. Durable when it returns
 * THOLE_OK; has no effect on one that is not in quarantine.
 * @param execution, activity_id, try_number  As thole_client_poisoned() gave them; try 0 = any.
 * @return THOLE_OK; THOLE_INVALID; THOLE_UNAVAILABLE (safe to repeat).
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_poisoned_retry(thole_client *client, thole_slice instance,
                                                                   uint64_t execution, uint64_t activity_id,
                                                                   uint32_t try_number, thole_error *reterr);
/** Lets an activity in quarantine fail, with error type "poison". */
THOLE_NODISCARD THOLE_API thole_status thole_client_poisoned_fail(thole_client *client, thole_slice instance,
                                                                  uint64_t execution, uint64_t activity_id,
                                                                  uint32_t try_number, thole_error *reterr);
/** A message to an instance that no engine could take. Slices are borrowed for the callback. */
typedef struct thole_rejected_info {
    thole_slice code;    /**< for programs: "malformed", "too_large", …; see docs/wire.md */
    thole_slice reason;  /**< for people */
    thole_slice subject; /**< the subject of the message; bytes that are not printable ASCII as %XX */
    thole_slice payload; /**< the first bytes of the message */
    uint64_t bytes;      /**< of all of it */
    uint64_t stored_ms;  /**< when its inbox stored it */
    uint64_t sequence;   /**< in its inbox */
    uint64_t number;     /**< counts rejected messages since the namespace was created, from 1 */
    uint32_t partition;
} thole_rejected_info;
typedef thole_status thole_rejected_fn(void *arg, const thole_rejected_info *info);
/**
 * Lists rejected messages, the newest first. They are kept for a limited time and number: see
 * docs/operations.md.
 * @param behind  0: begin with the newest; else only messages with a smaller number.
 * @param limit   Largest number of messages; 0 = 100.
 * @return THOLE_OK, also when there is none; the status of @p each unless THOLE_OK; THOLE_NOT_FOUND (the
 *         engines are older than this function); THOLE_UNAVAILABLE; THOLE_LIMIT (more than memory allows).
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_rejected(thole_client *client, uint64_t behind,
                                                             uint64_t limit, thole_rejected_fn *each,
                                                             void *arg, thole_error *reterr);
/** Frees a slice for which a function's documentation says so. Empty is allowed. */
THOLE_API void thole_client_release(thole_slice owned);
/** Reads the instance's history from the stream, in order; an instance whose start waits for its first turn
 * has none yet. THOLE_NOT_FOUND when there is no history; THOLE_CORRUPT when a record does not decode, or one
 * before it is missing: @p each has got the records before it. */
THOLE_NODISCARD THOLE_API thole_status thole_client_history(thole_client *client, thole_slice instance,
                                                            thole_history_fn *each, void *arg,
                                                            thole_error *reterr);
/**
 * Reads the instance's history as thole_client_history(), then waits, and gives each further event within a
 * few milliseconds of its commit, until the instance has ended. An execution that continues as new is no end.
 * While nothing is recorded, @p each is called with NULL about once a second, so that a caller can stop.
 * Needs the permission to subscribe to histories (`thole doctor --nats-permissions auditor`); without it new
 * events come within a second.
 * @return THOLE_OK (the instance has ended, and all events were given); THOLE_NOT_FOUND (also: it was deleted
 *         meanwhile); the status that @p each returned; THOLE_UNAVAILABLE (no server answers: call again,
 *         from the beginning; the function itself does not repeat events).
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_history_follow(thole_client *client, thole_slice instance,
                                                                   thole_history_fn *each, void *arg,
                                                                   thole_error *reterr);
/**
 * Reads the history of the latest execution and returns its unresolved tasks. No code is run, so which of
 * them the code awaits now is not known. It reads the whole execution, so do not call it often. One whose
 * start waits for its first turn is THOLE_INSTANCE_PENDING; it has no row for thole_client_show() and
 * -list().
 * @return THOLE_OK; THOLE_NOT_FOUND (also when it was never started, but has waiting events); THOLE_LIMIT
 *         (more than 256 MiB of history); THOLE_CORRUPT; THOLE_UNAVAILABLE; what @p each returned.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_inspect(thole_client *client, thole_slice instance,
                                                            thole_inspection_fn *each, void *arg,
                                                            thole_error *reterr);
/** Like thole_client_inspect(), for a point in the history, which is read up to there. @param point NULL =
 * now. THOLE_NOT_FOUND also when the instance had not begun then, or has no such event. Pruned executions are
 * missing. */
THOLE_NODISCARD THOLE_API thole_status thole_client_inspect_at(thole_client *client, thole_slice instance,
                                                               const thole_inspect_point *point,
                                                               thole_inspection_fn *each, void *arg,
                                                               thole_error *reterr);
/** The rows of an instance's activities that are in queues, by execution and id; at most 10,000. */
THOLE_NODISCARD THOLE_API thole_status thole_client_activities(thole_client *client, thole_slice instance,
                                                               thole_activity_info_fn *each, void *arg,
                                                               thole_error *reterr);
/** The rows of an instance that are set aside, by table and key; at most 1,000. THOLE_OK also when there are
 * none. */
THOLE_NODISCARD THOLE_API thole_status thole_client_set_aside(thole_client *client, thole_slice instance,
                                                              thole_set_aside_fn *each, void *arg,
                                                              thole_error *reterr);
/**
 * Asks all workers of the namespace what they serve. Ends when no answer has come for 100 ms, or after half a
 * second without any answer (a worker may be frozen), at once when there is no worker. Workers of a version
 * without this call, or that cannot answer now, are missing.
 * @return THOLE_OK; THOLE_UNAVAILABLE; THOLE_NOMEM; what @p each returned.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_workers(thole_client *client, thole_worker_fn *each,
                                                            void *arg, thole_error *reterr);
/** Lists the live engines, from their heartbeats: a crashed one is listed for the node TTL. */
THOLE_NODISCARD THOLE_API thole_status thole_client_engines(thole_client *client, thole_engine_fn *each,
                                                            void *arg, thole_error *reterr);
/** Reads one row of the projection. THOLE_NOT_FOUND when there is none (yet). */
THOLE_NODISCARD THOLE_API thole_status thole_client_show(thole_client *client, thole_slice instance,
                                                         thole_instance_fn *each, void *arg,
                                                         thole_error *reterr);
/** Lists from the projection how many instances do not go on, the most first; 1000 lines at most. */
THOLE_NODISCARD THOLE_API thole_status thole_client_standing(thole_client *client, thole_standing_fn *each,
                                                             void *arg, thole_error *reterr);
/**
 * Says what keeps an instance from going on by itself: @p each is called for each cause, and not at all when
 * it runs, waits for time or an event, or has ended. Takes up to half a second, without Postgres. For a
 * program that waits: between two calls of thole_client_wait() of some seconds that were THOLE_TIMEOUT.
 * @return THOLE_OK; THOLE_INVALID; THOLE_UNAVAILABLE; THOLE_DENIED; THOLE_CORRUPT; what @p each returned.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_explain(thole_client *client, thole_slice instance,
                                                            thole_hindrance_fn *each, void *arg,
                                                            thole_error *reterr);
/** Lists rows of the projection. */
THOLE_NODISCARD THOLE_API thole_status thole_client_list(thole_client *client,
                                                         const thole_list_filter *filter,
                                                         thole_instance_fn *each, void *arg,
                                                         thole_error *reterr);
/**
 * Counts rows of the projection by status, up to 10,000 of each. Of the filter its status, limit and place do
 * not count. @param filter  NULL = everything.
 */
THOLE_NODISCARD THOLE_API thole_status thole_client_count(thole_client *client,
                                                          const thole_list_filter *filter,
                                                          thole_instance_counts *ret, thole_error *reterr);
#ifdef __cplusplus
}
#endif
#endif
