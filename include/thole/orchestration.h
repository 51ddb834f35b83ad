/**
 * Writing orchestrations: deterministic functions whose progress survives crashes and moves.
 *
 * An orchestration runs on its own small stack (64 KiB) and may be dropped at any await without being
 * unwound, then run again from the top over its recorded history. It must therefore
 *  - be deterministic: take time, ids and memory from @c ctx only; no clock, randomness, I/O, locks,
 *    threads, globals or thread-locals;
 *  - own nothing but memory from thole_alloc() and thole_format().
 *
 * All functions here must be called on the orchestration's own stack. Scheduling never blocks and never
 * fails: errors surface at the await. Only the thole_await functions suspend.
 */
#ifndef THOLE_ORCHESTRATION_H
#define THOLE_ORCHESTRATION_H
#include "thole/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/** The running execution. Valid until the orchestration function returns. */
typedef struct thole_ctx thole_ctx;

/** Something scheduled: an activity or a timer. Plain data, copy freely. id 0 is never valid. */
typedef struct thole_task {
    uint64_t id; /**< event id of the scheduling event in this execution's history */
} thole_task;

/**
 * Body of an orchestration.
 * @param input       Borrowed; valid until the function returns.
 * @param ret_output  Starts empty. Read when the function returns THOLE_OK: static memory, the input, an
 *                    activity's result, or memory from thole_alloc(). At most the payload limit.
 * @return THOLE_OK completes the instance. THOLE_CANCELLED after a cancellation ends it as cancelled.
 *         Any other status fails it, with the text of thole_throw() or of the last failed await.
 */
typedef thole_status thole_orchestration_fn(thole_ctx *ctx, thole_slice input, thole_slice *ret_output);

/**
 * Schedules activity @p name on the default queue.
 * @param name   [A-Za-z0-9_-]{1,64}. An invalid name makes the await return THOLE_INVALID.
 * @param input  Copied. More than the payload limit makes the await return THOLE_LIMIT.
 */
THOLE_API thole_task thole_call(thole_ctx *ctx, thole_slice name, thole_slice input);

/** Schedules a durable timer @p delay_ms milliseconds after thole_now_ms(). At most 100 years. */
THOLE_API thole_task thole_timer(thole_ctx *ctx, uint64_t delay_ms);

/**
 * Suspends until @p task is resolved.
 * @param ret_result  May be NULL. On THOLE_OK: the activity's output (empty for a timer), borrowed until
 *                    the orchestration returns.
 * @return THOLE_OK; THOLE_APP (the activity failed, see thole_task_error()); THOLE_CANCELLED (the task, or
 *         the whole orchestration, was cancelled); THOLE_INVALID; THOLE_LIMIT.
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

/** Like thole_await_any(), but the others go on and can be awaited later. */
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

/** Cancels @p task unless it is resolved: the activity's worker is told at once. Awaiting it afterwards
 * returns THOLE_CANCELLED. @p reason is copied; at most 1024 bytes are kept. */
THOLE_API void thole_cancel(thole_ctx *ctx, thole_task task, thole_slice reason);

/** Failure text of a task whose await returned THOLE_APP; empty otherwise. Borrowed until the return. */
THOLE_API thole_slice thole_task_error(thole_ctx *ctx, thole_task task);

/** Sets the failure text of this orchestration and returns THOLE_APP: `return thole_throw(ctx, "…")`. */
THOLE_API thole_status thole_throw(thole_ctx *ctx, const char *fmt, ...) THOLE_PRINTF(2, 3);

/** Logical time of this turn: milliseconds since 1970-01-01 UTC. Never goes back within an execution. */
THOLE_API uint64_t thole_now_ms(const thole_ctx *ctx);
/** This instance's id. Borrowed until the return. */
THOLE_API thole_slice thole_instance_id(const thole_ctx *ctx);
/** 1 for the first execution of the instance. */
THOLE_API uint64_t thole_execution_id(const thole_ctx *ctx);

/**
 * Zeroed memory that lives until the orchestration ends. Never freed singly.
 * @return NULL when the instance's memory limit is reached; every later await then returns THOLE_LIMIT.
 */
THOLE_API void *thole_alloc(thole_ctx *ctx, size_t bytes);
/** printf into such memory; an empty slice when the limit is reached. */
THOLE_API thole_slice thole_format(thole_ctx *ctx, const char *fmt, ...) THOLE_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
