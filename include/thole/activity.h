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

/*
 * Why a token fired. One list feeds the enum and the names. Append only: the first ones are stored in
 * history.
 */
#define THOLE_CANCEL_KIND_MAP(X)                                                                             \
    X(NONE, 0, "none")                                                                                       \
    X(REQUESTED, 1, "requested")       /* the instance was cancelled: `thole cancel` */                      \
    X(SELECT_LOSER, 2, "select_loser") /* lost a thole_await_any() */                                        \
    X(EXPLICIT, 3, "explicit")         /* thole_cancel() of its handle */                                    \
    X(ENDED, 4, "ended")               /* the execution ended, or continued as new, without waiting */       \
    X(TIMEOUT, 5, "timeout")           /* the timeout of this try, or of all tries, has passed */            \
    X(TERMINATED, 6, "terminated")     /* the instance was terminated */                                     \
    X(CANCELLED, 32, "cancelled")      /* cancelled for one of these reasons; which one was lost */          \
    X(LEASE_LOST, 33, "lease_lost")    /* this worker no longer has the lease; another runs it, or will */   \
    X(SHUTDOWN, 34, "shutdown")        /* this worker stops: a success still counts, else it runs again */

/** Why a token fired; NONE: it has not. */
typedef enum thole_cancel_kind {
#define X(name, value, text) THOLE_CANCEL_##name = value,
    THOLE_CANCEL_KIND_MAP(X)
#undef X
} thole_cancel_kind;
/** "select_loser", …; "unknown" for a value that this library does not know. Static text. */
THOLE_API const char *thole_cancel_kind_name(thole_cancel_kind kind);

/** True once the cancellation token has fired. Cheap enough for an inner loop. */
THOLE_API bool thole_activity_cancelled(const thole_activity *act);
/**
 * Waits at most @p wait_ms milliseconds for the token to fire. Blocks.
 * @return THOLE_CANCELLED as soon as the token fires (at once if it has); THOLE_OK when the time is over.
 */
THOLE_NODISCARD THOLE_API thole_status thole_activity_wait(thole_activity *act, uint64_t wait_ms);
/** Why the token fired; THOLE_CANCEL_NONE before. The first reason stays. */
THOLE_API thole_cancel_kind thole_activity_cancel_kind(const thole_activity *act);
/** The reason as text for people: the one given to `thole cancel` or thole_cancel(), the winner of the race
 * ("timer 5 won"), else the kind's name; empty before the token fires. Borrowed until the return. */
THOLE_API thole_slice thole_activity_cancel_reason(const thole_activity *act);
/** Milliseconds that are left of the grace period: after them this try's slot is given up, or its process is
 * killed. UINT64_MAX before the token has fired. */
THOLE_API uint64_t thole_activity_grace_left_ms(const thole_activity *act);

/** The instance that scheduled this activity. Borrowed until the return, as are all texts here. */
THOLE_API thole_slice thole_activity_instance(const thole_activity *act);
/** The registered name of the orchestration that scheduled it, and the version of its code, from 1. Empty and
 * 0 if not known: the instance was just deleted. The name is borrowed until the return. */
THOLE_API thole_slice thole_activity_orchestration(const thole_activity *act);
THOLE_API uint32_t thole_activity_version(const thole_activity *act);
/** The worker that runs it: its node's name with a unique suffix, as in logs and in `thole queue list`.
 * Borrowed until the return. */
THOLE_API thole_slice thole_activity_worker(const thole_activity *act);
/** The arg of its entry (thole_activity_entry). */
THOLE_API void *thole_activity_arg(const thole_activity *act);
/** The registered name of this activity. */
THOLE_API thole_slice thole_activity_name(const thole_activity *act);
/** Idempotency key: the same for every try and every re-run of this scheduled activity, unique in the
 * namespace. Printable ASCII, at most 640 bytes. */
THOLE_API thole_slice thole_activity_key(const thole_activity *act);
/** Execution of the instance, from 1. */
THOLE_API uint64_t thole_activity_execution(const thole_activity *act);
/** Event id of the scheduling event, unique within the execution. */
THOLE_API uint64_t thole_activity_id(const thole_activity *act);
/** The try of the retry policy, from 1. */
THOLE_API uint32_t thole_activity_try(const thole_activity *act);
/** How many times this try has been claimed, from 1; more than 1 after a worker was lost. The first run of an
 * activity that is declared quick is no claim: after the loss of its worker it says 1 again. */
THOLE_API uint32_t thole_activity_attempt(const thole_activity *act);
/** The queue of this activity. Borrowed until the return. */
THOLE_API thole_slice thole_activity_queue(const thole_activity *act);
/** W3C Trace Context: the traceparent that the instance was started with, by a client or by a parent that had
 * it. The library makes no spans and does not change it: a span of this activity's own is a child of it.
 * Empty: none was given. Borrowed until the return. */
THOLE_API thole_slice thole_activity_traceparent(const thole_activity *act);
/** The tracestate that belongs to it; may be empty. Borrowed until the return. */
THOLE_API thole_slice thole_activity_tracestate(const thole_activity *act);
/** Milliseconds until this try's timeout (0 = it has passed); UINT64_MAX = no limit. */
THOLE_API uint64_t thole_activity_time_left_ms(const thole_activity *act);

/**
 * A descriptor that becomes readable when the token fires, for poll() and event loops. Owned by the library:
 * do not read, write or close it. @return -1 when there are no more descriptors.
 */
THOLE_API int thole_activity_cancel_fd(thole_activity *act);

/**
 * Records progress. The details are stored with the lease's next renewal, so that the next try, or the next
 * claim after a crash, can continue from there. Does not block; cheap; the last call counts.
 * @param details  Copied; at most 16 KiB.
 * @return THOLE_OK; THOLE_CANCELLED once the token has fired; THOLE_LIMIT (too large, not recorded);
 * THOLE_NOMEM.
 */
THOLE_API thole_status thole_activity_heartbeat(thole_activity *act, thole_slice details);
/** The details of the last heartbeat before this try or claim; empty for none. Borrowed until the return. */
THOLE_API thole_slice thole_activity_details(const thole_activity *act);

/**
 * Completes this activity later, from any process, with thole_client_complete() or thole_client_fail():
 * return its status from the handler, `return thole_activity_later(act, &token)`. It then has no lease: only
 * a timeout, a cancellation (the holder of the token is not told) or the completion ends it, so give it a
 * timeout.
 * @param ret_token  Printable ASCII; borrowed until the handler returns. Valid for this try only.
 */
THOLE_NODISCARD THOLE_API thole_status thole_activity_later(thole_activity *act, thole_slice *ret_token);

/** Zeroed memory that is freed after the result has been taken. NULL when out of memory. */
THOLE_API void *thole_activity_alloc(thole_activity *act, size_t bytes);
/** printf into such memory; an empty slice when out of memory. */
THOLE_API thole_slice thole_activity_format(thole_activity *act, const char *fmt, ...) THOLE_PRINTF(2, 3);
/** Sets the failure text and returns THOLE_APP: `return thole_activity_fail(act, "bank is away")`. The call's
 * retry policy decides whether another try follows. */
THOLE_NODISCARD THOLE_API thole_status thole_activity_fail(thole_activity *act, const char *fmt, ...)
    THOLE_PRINTF(2, 3);
/** Like thole_activity_fail(), with an error type, [A-Za-z0-9_.-]{0,64}, that orchestrations and retry
 * policies can distinguish. */
THOLE_NODISCARD THOLE_API thole_status thole_activity_fail_as(thole_activity *act, thole_slice type,
                                                              const char *fmt, ...) THOLE_PRINTF(3, 4);
/** Like thole_activity_fail_as(), but no other try follows, whatever the policy is. */
THOLE_NODISCARD THOLE_API thole_status thole_activity_fail_final(thole_activity *act, thole_slice type,
                                                                 const char *fmt, ...) THOLE_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
