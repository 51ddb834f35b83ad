/**
 * Writing activities: ordinary functions that do the work. They may block, allocate and do I/O.
 *
 * An activity runs at least once: after a crash of its worker it runs again elsewhere. Make its effect
 * idempotent, for example with thole_activity_key(). Each try runs on a thread of the worker's slots.
 * Functions here may be called from any thread until the activity function returns, unless they say
 * otherwise.
 */
#ifndef THOLE_ACTIVITY_H
#define THOLE_ACTIVITY_H
#include "thole/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/** One running try of one activity. Valid until the activity function returns. */
typedef struct thole_activity thole_activity;

/**
 * Body of an activity.
 * @param input       Borrowed; valid until the function returns.
 * @param ret_output  Starts empty. Read when the function returns THOLE_OK: static memory, the input, or
 *                    memory from thole_activity_alloc(). At most the payload limit.
 * @return THOLE_OK completes it; THOLE_CANCELLED after its token fired (the result is discarded); any other
 *         status fails it, with the text of thole_activity_fail() if that was called.
 */
typedef thole_status thole_activity_fn(thole_activity *act, thole_slice input, thole_slice *ret_output);

/** True once the cancellation token has fired. Cheap enough for an inner loop. */
THOLE_API bool thole_activity_cancelled(const thole_activity *act);
/**
 * Waits at most @p wait_ms milliseconds for the token to fire. Blocks.
 * @return THOLE_CANCELLED as soon as the token fires (at once if it has); THOLE_OK when the time is over.
 */
THOLE_NODISCARD THOLE_API thole_status thole_activity_wait(thole_activity *act, uint64_t wait_ms);
/** Why the token fired, for example "select_loser" or the reason given to `thole cancel`; empty before. */
THOLE_API thole_slice thole_activity_cancel_reason(const thole_activity *act);

/** The instance that scheduled this activity. Borrowed until the return, as are the next two. */
THOLE_API thole_slice thole_activity_instance(const thole_activity *act);
/** The registered name of this activity. */
THOLE_API thole_slice thole_activity_name(const thole_activity *act);
/** Idempotency key: the same for every try and every re-run of this scheduled activity, unique in the
 * namespace. Printable ASCII, at most 640 bytes. */
THOLE_API thole_slice thole_activity_key(const thole_activity *act);
/** Execution of the instance, from 1. */
THOLE_API uint64_t thole_activity_execution(const thole_activity *act);
/** Event id of the scheduling event, unique within the execution. */
THOLE_API uint64_t thole_activity_id(const thole_activity *act);
/** How many times this activity has been claimed, from 1; more than 1 after a worker was lost. */
THOLE_API uint32_t thole_activity_attempt(const thole_activity *act);

/** Zeroed memory that is freed after the result has been taken. NULL when out of memory. */
THOLE_API void *thole_activity_alloc(thole_activity *act, size_t bytes);
/** printf into such memory; an empty slice when out of memory. */
THOLE_API thole_slice thole_activity_format(thole_activity *act, const char *fmt, ...) THOLE_PRINTF(2, 3);
/** Sets the failure text and returns THOLE_APP: `return thole_activity_fail(act, "card declined")`. */
THOLE_API thole_status thole_activity_fail(thole_activity *act, const char *fmt, ...) THOLE_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
