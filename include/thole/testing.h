/**
 * The test kit: runs orchestrations in this process, without servers, in virtual time that skips to the next
 * timer. The engine's own partition and replay code runs underneath, over a history in memory.
 *
 * By default each instance is dropped from memory after every turn and replayed from its history before the
 * next one, so that every test also checks that the orchestration is deterministic. The recorded history is
 * also replayed on a thread of its own, which shows leaks when an instance is dropped there: memory from
 * malloc() that its code holds across an await and that thole_on_drop() does not release. In both cases the
 * instance is Stuck, and thole_test_output() says why. (Memory is counted by glibc: with the malloc() of a
 * sanitizer nothing is found here, and its own search for leaks sees them only if the library is sanitized,
 * too.)
 *
 * One thread at a time for each environment; activities run on that thread too, on stacks of 1 MiB. No
 * function blocks unless an activity does; thole_activity_wait() advances virtual time. Requests of clients
 * are taken at once; activities begin only in settle, advance and run. A call that does not end in virtual
 * time returns after a million steps.
 */
#ifndef THOLE_TESTING_H
#define THOLE_TESTING_H
#include "thole/client.h"
#include "thole/program.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct thole_test_env thole_test_env;

/** @param program  Borrowed for the environment's life. Time begins at 1,000,000,000,000. @return NULL when
 * the system gives no shared memory, or when thole_main() would refuse an entry of @p program; why is on
 * stderr.
 */
THOLE_API thole_test_env *thole_test_create(const thole_program *program);
/** NULL is allowed. */
THOLE_API void thole_test_destroy(thole_test_env *env);

/** Keeps instances in memory between turns: faster, but neither replay nor memory is checked. Without it both
 * are, after each of the first 64 turns, whenever there are twice as many, and at the end; with
 * THOLE_TEST_REPLAY=1 in the environment after every turn. */
THOLE_API void thole_test_keep_parked(thole_test_env *env);

/* ---- activities: the program's own, unless scripted ---- */

/** Scripts activity @p name: from now on it returns this instead of running, for the next @p times calls, 0 =
 * all. Scripts of one name are used in the order given; one for all calls ends when another is given. Slices
 * are copied. */
THOLE_API void thole_test_returns(thole_test_env *env, const char *name, thole_slice output, size_t times);
/** Scripts @p name like thole_test_returns(): each call fails, with error type @p type. */
THOLE_API void thole_test_fails(thole_test_env *env, const char *name, thole_slice type, thole_slice message,
                                size_t times);
/** Scripts @p name like thole_test_returns(): a call does not end until a timeout, a cancellation or
 * thole_test_complete(). */
THOLE_API void thole_test_hangs(thole_test_env *env, const char *name, size_t times);
/** Delays activity @p name, scripted or not, by @p duration_ms. */
THOLE_API void thole_test_takes(thole_test_env *env, const char *name, uint64_t duration_ms);
/** Settles, then ends the oldest running activity of that name. THOLE_NOT_FOUND when none runs. */
THOLE_NODISCARD THOLE_API thole_status thole_test_complete(thole_test_env *env, const char *name,
                                                           thole_slice output);
/** How often activity @p name was begun, including retries; how often it was cancelled. */
THOLE_API size_t thole_test_calls(const thole_test_env *env, const char *name);
THOLE_API size_t thole_test_cancels(const thole_test_env *env, const char *name);

/* ---- one activity, without an orchestration ---- */

/** How thole_test_activity() runs an activity. Fill with zeroes, set size, then what differs. */
typedef struct thole_test_activity_options {
    size_t size;             /**< sizeof(thole_test_activity_options) */
    thole_slice instance;    /**< thole_activity_instance(); empty = "test" */
    thole_slice queue;       /**< thole_activity_queue(); empty = "default" */
    thole_slice details;     /**< thole_activity_details(), of an earlier try or claim */
    uint32_t try_number;     /**< thole_activity_try(); 0 = 1 */
    uint32_t attempt;        /**< thole_activity_attempt(); 0 = 1 */
    uint64_t try_timeout_ms; /**< after which its token fires, with THOLE_CANCEL_TIMEOUT; 0 = none */
    uint64_t cancel_ms;      /**< after which its token fires, with cancel_kind; 0 = before it begins */
    /** THOLE_CANCEL_NONE: it is not cancelled. With THOLE_CANCEL_SHUTDOWN a success still counts. */
    thole_cancel_kind cancel_kind;
    thole_slice cancel_reason; /**< empty: the kind's name */
} thole_test_activity_options;

/** How a try has ended. The slices live as long as the environment. */
typedef struct thole_test_activity_result {
    /** For the orchestration: THOLE_OK; THOLE_APP or another failure; THOLE_TIMEOUT; THOLE_CANCELLED (its
     * token fired, what it returned is discarded); THOLE_LATER; THOLE_LIMIT (too large an output). */
    thole_status status;
    thole_status returned;           /**< by the handler itself; THOLE_UNAVAILABLE: it never returned */
    thole_slice output;              /**< of a success; of THOLE_LATER the token that was handed out */
    thole_slice error_type, message; /**< of a failure */
    bool final;                      /**< no other try follows, whatever the policy is */
    thole_slice details;             /**< of its last heartbeat; empty: there was none */
    uint64_t heartbeats;             /**< how many there were */
    uint64_t took_ms;                /**< virtual time from its begin to its return */
    uint64_t noticed_ms;             /**< the part of it after its token fired; 0: it did not fire */
} thole_test_activity_result;

/**
 * Runs one try of the program's own activity @p name, scripted or not, until it returns. Virtual time goes by
 * in thole_activity_wait(), for everything in the environment.
 * @param options  NULL: none.
 * @return THOLE_OK, whatever the activity returned; THOLE_NOT_FOUND (the program does not register it);
 *         THOLE_INVALID (wrong options, or called by an activity); THOLE_LIMIT (an input of more than the
 *         payload limit, or the steps of a call are used up: it waits for ever).
 */
THOLE_NODISCARD THOLE_API thole_status thole_test_activity(thole_test_env *env, const char *name,
                                                           thole_slice input,
                                                           const thole_test_activity_options *options,
                                                           thole_test_activity_result *ret_result);

/* ---- orchestrations that are scripted, for example children of the one under test ---- */

/** Scripts orchestration @p name: each instance of it that is started from now on, by a parent or by anybody,
 * is a real one that runs this instead of the program's code, which need not exist. For the next @p times
 * instances, 0 = all; then as for activities. Script a name before its first instance starts. An instance
 * beyond the last script waits like one of thole_test_child_hangs(). Slices are copied. */
THOLE_API void thole_test_child_returns(thole_test_env *env, const char *name, thole_slice output,
                                        size_t times);
/** Scripts @p name like thole_test_child_returns(): each instance fails, with error type @p type. */
THOLE_API void thole_test_child_fails(thole_test_env *env, const char *name, thole_slice type,
                                      thole_slice message, size_t times);
/** Scripts @p name like thole_test_child_returns(): an instance does not end until it is cancelled or
 * terminated, or thole_test_child_complete() ends it. */
THOLE_API void thole_test_child_hangs(thole_test_env *env, const char *name, size_t times);
/** Instances of @p name that start from now on take @p duration_ms before they do what their script says. */
THOLE_API void thole_test_child_takes(thole_test_env *env, const char *name, uint64_t duration_ms);
/** Settles, then completes the oldest instance of that name that hangs. THOLE_NOT_FOUND when none does. */
THOLE_NODISCARD THOLE_API thole_status thole_test_child_complete(thole_test_env *env, const char *name,
                                                                 thole_slice output);
/** How many instances of the scripted orchestration @p name have begun. */
THOLE_API size_t thole_test_child_starts(const thole_test_env *env, const char *name);

/* ---- requests of clients; statuses as in client.h ---- */

THOLE_NODISCARD THOLE_API thole_status thole_test_start(thole_test_env *env, thole_slice instance,
                                                        thole_slice orchestration, thole_slice input);
THOLE_NODISCARD THOLE_API thole_status thole_test_start_with(thole_test_env *env, thole_slice instance,
                                                             thole_slice orchestration, thole_slice input,
                                                             const thole_start_options *options);
THOLE_API void thole_test_signal(thole_test_env *env, thole_slice instance, thole_slice name,
                                 thole_slice data);
THOLE_API void thole_test_cancel(thole_test_env *env, thole_slice instance, thole_slice reason);
THOLE_API void thole_test_terminate(thole_test_env *env, thole_slice instance, thole_slice reason);
THOLE_API void thole_test_pause(thole_test_env *env, thole_slice instance);
THOLE_API void thole_test_resume(thole_test_env *env, thole_slice instance);
/** @param options  NULL: the instance must have ended. */
THOLE_NODISCARD THOLE_API thole_status thole_test_delete(thole_test_env *env, thole_slice instance,
                                                         const thole_delete_options *options);
/** @param ret_output  Borrowed until the next call. */
THOLE_NODISCARD THOLE_API thole_status thole_test_query(thole_test_env *env, thole_slice instance,
                                                        thole_slice name, thole_slice input,
                                                        thole_slice *ret_output);

/**
 * The instance that `thole export` wrote to @p path stands here as it stood there, so that a production case
 * becomes a test: its code is replayed, what had not ended begins again (activities by the program or by a
 * script, timers at their recorded time, children), and time goes on from its last turn. A child that had
 * ended is not there.
 * @param instance  Which one of the file; empty: its only one. @param until_event  Only the turns of the
 * latest execution that end at this event or before; 0 = all. @return THOLE_OK; THOLE_NOT_FOUND (no file, no
 * such history, no such turn); THOLE_INVALID (several histories, no instance given); THOLE_CONFLICT (the id
 * is in use); THOLE_CORRUPT; THOLE_UNSUPPORTED; THOLE_LIMIT (more than 256 MiB). A history that the code does
 * not repeat makes the instance Stuck, as in production.
 */
THOLE_NODISCARD THOLE_API thole_status thole_test_load_history(thole_test_env *env, const char *path,
                                                               thole_slice instance, uint64_t until_event,
                                                               thole_error *reterr);

/* ---- time and crashes ---- */

/** Runs until nothing is left to do at the current time. */
THOLE_API void thole_test_settle(thole_test_env *env);
/** Runs @p duration_ms of virtual time, with all timers in order. */
THOLE_API void thole_test_advance(thole_test_env *env, uint64_t duration_ms);
/** Runs, skipping from timer to timer, until the instance has ended, nothing more will happen, or it waits
 * for an activity that is neither registered nor scripted, which is reported on stderr and by
 * thole_test_output(). @return Its status then. */
THOLE_API thole_instance_status thole_test_run(thole_test_env *env, thole_slice instance);
THOLE_API uint64_t thole_test_now_ms(const thole_test_env *env);
/** The engine crashes and another opens the partition; running activities are lost and begun again. The token
 * of one that is in thole_activity_wait() fires, so that it can free its memory; its result is lost. */
THOLE_API void thole_test_crash(thole_test_env *env);
/** Like thole_test_crash(), once, within a later call: after @p steps more steps of the engine and the
 * workers. A loop over 0, 1, 2, … until thole_test_crashes() stays 0 tests a crash at each point. */
THOLE_API void thole_test_crash_after(thole_test_env *env, size_t steps);
THOLE_API size_t thole_test_crashes(const thole_test_env *env);
/** Deploys another program, which takes over as after a crash, with the same servers: tests whether new code
 * can continue instances of the old code. @param program  Borrowed like the first one. */
THOLE_API void thole_test_deploy(thole_test_env *env, const thole_program *program);

/* ---- results; slices are borrowed until the next call ---- */

THOLE_API thole_instance_status thole_test_status(thole_test_env *env, thole_slice instance);
/** Output, failure text or reason of an instance that has ended; why it waits or is stuck; else empty. */
THOLE_API thole_slice thole_test_output(thole_test_env *env, thole_slice instance);
THOLE_API thole_slice thole_test_error_type(thole_test_env *env, thole_slice instance);
THOLE_API thole_slice thole_test_custom_status(thole_test_env *env, thole_slice instance);
/** The history of the latest execution as text, one event a line: "#2 ActivityScheduled charge(card)". For
 * comparison with an expected text. NUL-terminated. */
THOLE_API const char *thole_test_history(thole_test_env *env, thole_slice instance);
/** Events that the instance has emitted so far with thole_emit(), in all its executions, one event a line:
 * "com.example.order.shipped(parcel)". Each appears once, as in the stream of events. NUL-terminated. */
THOLE_API const char *thole_test_events(thole_test_env *env, thole_slice instance);

#ifdef __cplusplus
}
#endif
#endif
