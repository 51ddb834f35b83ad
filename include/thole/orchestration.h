/**
 * Writing orchestrations: deterministic functions whose progress survives crashes and moves.
 *
 * An orchestration runs on its own small stack (64 KiB; stack_bytes of its entry) and may be dropped at any
 * await without being unwound, then run again from the top over its recorded history. It must therefore
 *  - be deterministic: take time, ids, randomness and memory from @c ctx only; no clock, I/O, locks,
 *    threads, globals or thread-locals;
 *  - own nothing but memory from thole_alloc() and thole_format(), and what thole_on_drop() releases.
 *
 * Code that crashes, calls exit(), overflows its stack or does not return or await within --turn-limit (10 s)
 * takes the engine's process with it. The instance then first runs in a forked copy of the process, and is
 * Stuck after two crashes; other instances continue.
 *
 * All functions here must be called on the orchestration's own stack, except where a query handler may use
 * them. Scheduling never blocks and never fails: errors surface at the await. Only the thole_await functions
 * suspend. docs/guarantees.md has the guarantees.
 */
#ifndef THOLE_ORCHESTRATION_H
#define THOLE_ORCHESTRATION_H
#include "thole/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/** The running execution. Valid until the orchestration function returns. */
typedef struct thole_ctx thole_ctx;

/** Something scheduled: an activity, a timer, a wait for an event, a child. Plain data, copy freely. id 0 is
 * never valid. */
typedef struct thole_task {
    uint64_t id; /**< event id of the scheduling event in this execution's history */
} thole_task;

/**
 * Body of an orchestration.
 * @param input       Borrowed; valid until the function returns.
 * @param ret_output  Starts empty. Read when the function returns THOLE_OK: static memory, the input, a
 *                    task's result, or memory from thole_alloc(). At most the payload limit.
 * @return THOLE_OK completes the instance (or continues it as new, see thole_continue_as_new()).
 *         THOLE_CANCELLED after a cancellation ends it as cancelled. Any other status fails it, with the text
 *         of thole_throw() or of the last failed await.
 */
typedef thole_status thole_orchestration_fn(thole_ctx *ctx, thole_slice input, thole_slice *ret_output);

/* ---- activities ---- */

/**
 * Schedules activity @p name on the queue "default", with one try. It runs beside the code until the task is
 * awaited; a task that nobody awaits is cancelled when the function returns, and may never run.
 * @param name   [A-Za-z0-9_-]{1,64}. An invalid name makes the await return THOLE_INVALID.
 * @param input  Copied. More than the payload limit makes the await return THOLE_LIMIT.
 */
THOLE_NODISCARD THOLE_API thole_task thole_call(thole_ctx *ctx, thole_slice name, thole_slice input);

/** When a failed try is followed by another. Zeroed: never. */
typedef struct thole_retry {
    uint32_t tries_max;      /**< the first one included; 0 and 1 = no second try; at most 10,000 */
    uint64_t first_delay_ms; /**< before the second try */
    double factor;           /**< each later delay is the one before times this; 0 = 1; at most 1,000 */
    uint64_t max_delay_ms;   /**< ceiling of a delay; 0 = none */
    double jitter;           /**< 0..1: up to so much of each delay is taken off, differently for each try */
    /** Error types (see thole_activity_fail_as()) after which no other try follows; may be NULL. Copied. */
    const thole_slice *final_types;
    size_t final_types_len; /**< at most 64 */
} thole_retry;

/** Treatment of an activity that was lost with its workers too often (see `--poison-after`): its handler
 * seems to kill them, so it does not run any more. */
typedef enum thole_poison {
    /** The activity waits in quarantine for a user's decision: `thole queue retry` runs it again, `thole
     * queue fail` lets it fail. Without a decision it fails after the engine's `--quarantine` (1 h), with
     * error type "poison". Timeouts and cancellation still apply. */
    THOLE_POISON_QUARANTINE = 0,
    THOLE_POISON_FAIL = 1, /**< the activity fails at once, with error type "poison" */
    THOLE_POISON_RETRY =
        2 /**< a failed try with error type "poison", as any other: the retry policy decides */
} thole_poison;

/** Fill with zeroes, set size, then what differs. Recorded at the first run; a replay uses the recorded
 * options, so that all but the queue may be changed in the code under running instances. */
typedef struct thole_call_options {
    size_t size;               /**< sizeof(thole_call_options) */
    thole_slice queue;         /**< whose workers may run it; empty = "default" */
    uint64_t try_timeout_ms;   /**< from the start of a try to its end; it then fails; 0 = none */
    uint64_t total_timeout_ms; /**< from now to the end of the last try; 0 = none */
    thole_retry retry;
    thole_poison poison;
} thole_call_options;

/** thole_call() with options; NULL = none. A wrong option makes the await return THOLE_INVALID. */
THOLE_NODISCARD THOLE_API thole_task thole_call_with(thole_ctx *ctx, thole_slice name, thole_slice input,
                                                     const thole_call_options *options);

/* ---- timers, events, children ---- */

/** Schedules a durable timer @p delay_ms milliseconds after thole_now_ms(). At most 100 years. */
THOLE_NODISCARD THOLE_API thole_task thole_timer(thole_ctx *ctx, uint64_t delay_ms);

/**
 * Waits for the next external event called @p name. Events of a name are taken in the order in which they
 * came, also those that came before this call, or before the instance existed. A wait that is cancelled or
 * loses a race takes no event: an event that it had taken and that no await has returned goes to the next
 * wait.
 * @param name  [A-Za-z0-9_-]{1,64}; else the await returns THOLE_INVALID.
 */
THOLE_NODISCARD THOLE_API thole_task thole_event(thole_ctx *ctx, thole_slice name);

/** Raises an event in another instance (or in this one). Durable with this turn; delivered once. An instance
 * that has ended drops it; for one that does not exist yet it is kept until the start, for 7 days. A wrong
 * id, name or size makes the next await return THOLE_INVALID or THOLE_LIMIT; an execution that ends without
 * another await fails with it. */
THOLE_API void thole_raise(thole_ctx *ctx, thole_slice instance, thole_slice name, thole_slice data);

/** Emits an event for other services: a CloudEvent 1.0 on the subject
 * thole.<namespace>.event.<orchestration>.<instance>.ce.<type>. Durable with this turn, and sent after its
 * commit, at least once where the namespace has the stream THOLE_<namespace>_EVENTS; repetitions have the
 * same id. Events of an instance are sent in the order in which it emits them. docs/events.md has the rest.
 * @param type  Names [A-Za-z0-9_-] with dots between them, such as com.example.order.shipped: 1 to 128 bytes,
 *              not beginning with "thole.".
 * @param data  At most the payload limit; JSON is marked as such.
 * A wrong type or size is reported as by thole_raise(). */
THOLE_API void thole_emit(thole_ctx *ctx, thole_slice type, thole_slice data);

/** Treatment of a running child when its parent ends or continues as new. */
typedef enum thole_close {
    THOLE_CLOSE_CANCEL = 0,   /**< the child is asked to cancel, and may compensate */
    THOLE_CLOSE_ABANDON = 1,  /**< the child continues */
    THOLE_CLOSE_TERMINATE = 2 /**< the child ends at once, also while it cleans up after a cancellation */
} thole_close;

/** Fill with zeroes, set size, then what differs. */
typedef struct thole_child_options {
    size_t size;          /**< sizeof(thole_child_options) */
    thole_slice instance; /**< the child's id; empty = "<parent>:<execution>:<event id>" */
    uint32_t version;     /**< of its code, at most 2,147,483,647; THOLE_VERSION_NEWEST where it starts */
    thole_close close;
} thole_child_options;

/** Starts a child orchestration; the await gives its output. An id in use makes the await return THOLE_APP
 * with error type "conflict". Cancelling the task cancels the child. @param options  NULL = none. */
THOLE_NODISCARD THOLE_API thole_task thole_child(thole_ctx *ctx, thole_slice orchestration, thole_slice input,
                                                 const thole_child_options *options);

/** Starts a root instance without waiting for it; has no effect if the id is in use. Wrong arguments are
 * reported like those of thole_raise(). options.close is not used. */
THOLE_API void thole_start(thole_ctx *ctx, thole_slice orchestration, thole_slice input,
                           const thole_child_options *options);

/* ---- awaits ---- */

/**
 * Suspends until @p task is resolved.
 * @param ret_result  May be NULL. On THOLE_OK: the activity's or child's output, the event's data (empty for
 * a timer), borrowed until the orchestration returns.
 * @return THOLE_OK; THOLE_APP (it failed, see thole_task_failure()); THOLE_TIMEOUT (an activity's time is
 *         over); THOLE_CANCELLED (the task, the child itself, or the whole orchestration, was cancelled);
 *         THOLE_INVALID; THOLE_LIMIT.
 */
THOLE_NODISCARD THOLE_API thole_status thole_await(thole_ctx *ctx, thole_task task, thole_slice *ret_result);

/**
 * A race: suspends until the first of @p tasks is resolved (the earliest in history wins), then cancels
 * the others. Read the winner's result with thole_await(), which returns at once.
 * @param n           1..1,000,000
 * @param ret_winner  Index of the winner.
 * @return THOLE_OK, also when the winner failed; THOLE_CANCELLED; THOLE_INVALID; THOLE_LIMIT.
 */
THOLE_NODISCARD THOLE_API thole_status thole_await_any(thole_ctx *ctx, const thole_task *tasks, size_t n,
                                                       size_t *ret_winner);

/** Like thole_await_any(), but the others continue and can be awaited later. */
THOLE_NODISCARD THOLE_API thole_status thole_await_first(thole_ctx *ctx, const thole_task *tasks, size_t n,
                                                         size_t *ret_first);

/**
 * Suspends until all @p tasks are resolved.
 * @param ret_results  NULL, or room for @p n slices: the output of each task that succeeded, else empty.
 * @return THOLE_OK when all succeeded; otherwise the status of the first in @p tasks that did not (the
 *         others are resolved too); THOLE_CANCELLED.
 */
THOLE_NODISCARD THOLE_API thole_status thole_await_all(thole_ctx *ctx, const thole_task *tasks, size_t n,
                                                       thole_slice *ret_results);

/**
 * thole_await() with a limit: a timer of @p limit_ms runs against the task, and what loses is cancelled. A
 * task that is resolved already needs no timer.
 * @return As thole_await(); THOLE_TIMEOUT: the limit is over, and the task is cancelled; code that
 *         returns this status fails with a text that names the task and the limit.
 */
THOLE_NODISCARD THOLE_API thole_status thole_await_for(thole_ctx *ctx, thole_task task, uint64_t limit_ms,
                                                       thole_slice *ret_result);
/** thole_call_with() and thole_await(). @param options  NULL = none. @return As thole_await(). */
THOLE_NODISCARD THOLE_API thole_status thole_await_call(thole_ctx *ctx, thole_slice name, thole_slice input,
                                                        const thole_call_options *options,
                                                        thole_slice *ret_result);
/** thole_timer() and thole_await(). @return THOLE_OK; THOLE_CANCELLED; THOLE_INVALID; THOLE_LIMIT. */
THOLE_NODISCARD THOLE_API thole_status thole_sleep(thole_ctx *ctx, uint64_t delay_ms);

/** True when an await of @p task would return at once. */
THOLE_API bool thole_ready(thole_ctx *ctx, thole_task task);

/** Cancels @p task unless it is resolved: the activity's worker, or the child, is told at once; a timer does
 * not fire. Awaiting it afterwards returns THOLE_CANCELLED. @p reason is copied; at most 1024 bytes are kept.
 */
THOLE_API void thole_cancel(thole_ctx *ctx, thole_task task, thole_slice reason);

/** How a task failed. */
typedef struct thole_failure {
    thole_status status; /**< THOLE_OK: it did not fail (yet). THOLE_APP, THOLE_TIMEOUT, THOLE_CANCELLED, … */
    thole_slice type;    /**< error type, such as "card_declined"; may be empty. "timeout", "conflict" and
                              "poison" are the engine's */
    thole_slice message; /**< borrowed until the return, as is type */
    uint32_t tries;      /**< how many tries an activity had: above its tries_max if a user has run it again
                              from quarantine */
} thole_failure;
THOLE_API thole_failure thole_task_failure(thole_ctx *ctx, thole_task task);

/** The message of thole_task_failure(). */
THOLE_API thole_slice thole_task_error(thole_ctx *ctx, thole_task task);

/** Sets the failure text of this orchestration and returns THOLE_APP: `return thole_throw(ctx, "…")`. */
THOLE_NODISCARD THOLE_API thole_status thole_throw(thole_ctx *ctx, const char *fmt, ...) THOLE_PRINTF(2, 3);
/** Like thole_throw(), with an error type, [A-Za-z0-9_.-]{0,64}, that a parent can read; any other text is
 * left out. The type is static or thole_alloc() memory. */
THOLE_NODISCARD THOLE_API thole_status thole_throw_as(thole_ctx *ctx, thole_slice type, const char *fmt, ...)
    THOLE_PRINTF(3, 4);

/** Returns the last failure of thole_throw() or thole_throw_as(): status THOLE_APP, type and message, also
 * after compensations; status THOLE_OK: neither was called. Borrowed until the return. tries is 0. */
THOLE_API thole_failure thole_thrown(const thole_ctx *ctx);

/* ---- deterministic values: time, ids, random numbers, side effects ---- */

/** Logical time of this turn: milliseconds since 1970-01-01 UTC. Never goes back within an execution. */
THOLE_API uint64_t thole_now_ms(const thole_ctx *ctx);
/** This instance's id. Borrowed until the return. */
THOLE_API thole_slice thole_instance_id(const thole_ctx *ctx);
/** 1 for the first execution of the instance. */
THOLE_API uint64_t thole_execution_id(const thole_ctx *ctx);
/** The name under which this orchestration was started. Borrowed until the return. */
THOLE_API thole_slice thole_orchestration_name(const thole_ctx *ctx);
/** The arg of its entry (thole_orchestration_entry). For queries, too. */
THOLE_API void *thole_orchestration_arg(const thole_ctx *ctx);
/** The version of the code that this execution runs. */
THOLE_API uint32_t thole_version_id(const thole_ctx *ctx);

/** The next number of this execution's random sequence; the same in every replay. Not for secrets. */
THOLE_API uint64_t thole_random(thole_ctx *ctx);
/** A version 4 UUID from thole_random(), 36 characters in thole_alloc() memory; empty at the memory limit. */
THOLE_API thole_slice thole_uuid(thole_ctx *ctx);

/** Computes a value that may differ from run to run. The function may read clocks and generate random
 * numbers; it must be quick, and of the orchestration's functions it may use only thole_alloc() and
 * thole_format(). */
typedef thole_status thole_side_effect_fn(thole_ctx *ctx, void *arg, thole_slice *ret_value);
/**
 * Calls @p make once and records its value; a replay gets the recorded value and does not call it. Use an
 * activity for anything that may fail or block, or that has effects outside.
 * @return What @p make returned, THOLE_LIMIT (larger than the payload limit) or THOLE_INVALID (it called a
 * forbidden function). Any status but THOLE_OK is recorded without a value: a replay returns it again.
 */
THOLE_NODISCARD THOLE_API thole_status thole_side_effect(thole_ctx *ctx, thole_side_effect_fn *make,
                                                         void *arg, thole_slice *ret_value);

typedef enum thole_log_level {
    THOLE_LOG_DEBUG,
    THOLE_LOG_INFO,
    THOLE_LOG_WARN,
    THOLE_LOG_ERROR
} thole_log_level;
/** Writes a line to the engine's log with the instance's id: at most 511 bytes of it, and 64 KiB of lines in
 * a turn. No output in replay and in queries; dropped if the turn is not recorded. */
THOLE_API void thole_log(thole_ctx *ctx, thole_log_level level, const char *fmt, ...) THOLE_PRINTF(3, 4);

/* ---- visible outside ---- */

/** Sets a short text or document that list, show and the client see. At most 1024 bytes, else cut. */
THOLE_API void thole_set_status(thole_ctx *ctx, thole_slice status);

/**
 * Answers a query from the parked instance, or from one that has ended. The handler sees @p arg and the state
 * as the code last left them, must change neither, and must not schedule, wait, raise or set anything: such
 * calls are refused, and the query fails. thole_format() and thole_alloc() give memory that lives until the
 * answer is sent.
 */
typedef thole_status thole_query_fn(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output);
/** Registers @p answer under @p name from here on. @p arg must live as long as the execution: thole_alloc()
 * memory that points to nothing else, or static data, is also available when the execution has ended; if it
 * points into the orchestration's own stack, queries are then refused with THOLE_INVALID. At most 64; an
 * invalid name is not registered. */
THOLE_API void thole_on_query(thole_ctx *ctx, thole_slice name, thole_query_fn *answer, void *arg);

/* ---- state that survives continue-as-new ---- */

/** Sets @p key (1..64 bytes) to a copy of @p value. All keys and values together: at most the payload limit;
 * beyond that nothing is set, and the next await returns THOLE_LIMIT (see thole_raise()). */
THOLE_API void thole_state_set(thole_ctx *ctx, thole_slice key, thole_slice value);
/** Removes @p key. */
THOLE_API void thole_state_remove(thole_ctx *ctx, thole_slice key);
/** THOLE_OK or THOLE_NOT_FOUND. The value is borrowed until the key is set or removed. For queries too. */
THOLE_NODISCARD THOLE_API thole_status thole_state_get(thole_ctx *ctx, thole_slice key,
                                                       thole_slice *ret_value);
/** The first key that sorts (byte by byte) after @p key, empty = the first of all. THOLE_NOT_FOUND at the
 * end. For queries too. */
THOLE_NODISCARD THOLE_API thole_status thole_state_next(thole_ctx *ctx, thole_slice key, thole_slice *ret_key,
                                                        thole_slice *ret_value);

/* ---- long-running instances and new code ---- */

/**
 * Ends this execution and starts the next one of the same instance with @p input and an empty history:
 * `return thole_continue_as_new(ctx, input, THOLE_VERSION_SAME);`. State, custom status, parent, events that
 * no wait has taken and a cancellation that no await has returned are kept; outstanding tasks are cancelled.
 * @param version  Version of the code of the next execution; THOLE_VERSION_SAME.
 * @return THOLE_OK, to be returned at once; THOLE_LIMIT (input too large); THOLE_INVALID (the version is more
 * than 2,147,483,647).
 */
THOLE_NODISCARD THOLE_API thole_status thole_continue_as_new(thole_ctx *ctx, thole_slice input,
                                                             uint32_t version);
/** True once the history has more than 10,000 events or 8 MiB: time to continue as new. */
THOLE_API bool thole_should_continue_as_new(const thole_ctx *ctx);

/**
 * For a change of code under running instances: true where the new code must run. New executions, and those
 * whose history has not reached this call, always get true (a marker is recorded); those whose history went
 * through the old code always get false. When no old execution is left remove the call and the old code.
 * @param change  [A-Za-z0-9_-]{1,64}, once for each change; an invalid one is false.
 */
THOLE_API bool thole_patch(thole_ctx *ctx, thole_slice change);

/* ---- cancellation and compensation ---- */

/** True after an await has returned the orchestration's cancellation. */
THOLE_API bool thole_is_cancelled(const thole_ctx *ctx);
/** The reason of the cancellation; empty before. */
THOLE_API thole_slice thole_cancel_reason(const thole_ctx *ctx);

/** Steps to undo. Zeroed = none. */
typedef struct thole_saga {
    struct thole_saga_step *last; /**< private to the library */
} thole_saga;
/** Adds a compensation: activity @p name with @p input. Both are copied. */
THOLE_API void thole_saga_add(thole_ctx *ctx, thole_saga *saga, thole_slice name, thole_slice input,
                              const thole_call_options *options);
/** Runs the added activities, the last one first, each after the one before it has ended, and removes them.
 * Continues after a failed one. A cancellation of the whole orchestration during this does not skip a step:
 * the activity that it has cancelled is run again.
 * @return THOLE_OK, or the status of the first that did not succeed. */
THOLE_NODISCARD THOLE_API thole_status thole_saga_compensate(thole_ctx *ctx, thole_saga *saga);

/* ---- memory ---- */

/**
 * Zeroed memory that lives until the orchestration ends. Never freed singly.
 * @return NULL when the instance's memory limit is reached; every later await then returns THOLE_LIMIT.
 */
THOLE_API void *thole_alloc(thole_ctx *ctx, size_t bytes);
/** A copy of @p text that ends with a NUL, in memory as of thole_alloc(); NULL when the limit is reached. */
THOLE_API const char *thole_cstr(thole_ctx *ctx, thole_slice text);
/** Releases what thole_on_drop() was given; free() is one. */
typedef void thole_drop_fn(void *arg);
/**
 * For what an orchestration holds beside thole_alloc() memory, such as an interpreter of another language: @p
 * release is called with @p arg once, when this execution leaves the memory of this process. This happens
 * after the execution's end, and while it is parked: when it is evicted or replaced, after an error, and when
 * the engine stops. A replay runs the code again, which then makes what it needs. A process that dies calls
 * nothing.
 *
 * The last one registered is called first, before thole_alloc() memory is freed. Until then also a query of
 * the execution that has ended finds what it needs. @p arg is such memory, or from the heap; an address on
 * the orchestration's own stack is not valid any more after the end. Code that releases a resource earlier
 * notes that there (a pointer set to NULL).
 * @param release  Runs on a thread of the engine: it must be quick, must not block, and must use no function
 *                 of this header. Its crash counts as one of the orchestration.
 * @return THOLE_OK; THOLE_LIMIT (the instance's memory limit is reached, later awaits return it, too);
 *         THOLE_INVALID (in a query or a side effect, or @p release is NULL). After these two it is never
 *         called.
 */
THOLE_NODISCARD THOLE_API thole_status thole_on_drop(thole_ctx *ctx, thole_drop_fn *release, void *arg);
/** printf into such memory; an empty slice when the limit is reached. */
THOLE_API thole_slice thole_format(thole_ctx *ctx, const char *fmt, ...) THOLE_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
