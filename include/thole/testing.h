/**
 * The test kit: runs orchestrations in this process, without servers, in virtual time that skips to the next
 * timer. The engine's own partition and replay code runs underneath, over a history in memory.
 *
 * Unless told otherwise each instance is dropped from memory after every turn and replayed from its history
 * before the next one, so that every test also checks that the orchestration is deterministic.
 *
 * One thread at a time for each environment; activities run on that thread too, on stacks of 1 MiB. Nothing
 * here blocks but activities that do; thole_activity_wait() lets virtual time go by. What clients do is taken
 * in at once; activities begin in the functions that let something run (settle, advance, run). A call that
 * comes to no end in virtual time returns after a million steps.
 */
#ifndef THOLE_TESTING_H
#define THOLE_TESTING_H
#include "thole/client.h"
#include "thole/program.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct thole_test_env thole_test_env;

/** @param program  Borrowed for the environment's life. NULL when the system gives no shared memory. Time
 * begins at 1,000,000,000,000.
 */
THOLE_API thole_test_env *thole_test_create(const thole_program *program);
/** NULL is allowed. */
THOLE_API void thole_test_destroy(thole_test_env *env);

/** Instances stay in memory from turn to turn: faster, but replay is not checked. */
THOLE_API void thole_test_keep_parked(thole_test_env *env);

/* ---- activities: the program's own, unless scripted ---- */

/** Activity @p name, from now on, gives this instead of running: the next @p times calls, 0 = all. Scripts of
 * one name are used up in the order given; one without end ends where another is given. Slices are copied. */
THOLE_API void thole_test_returns(thole_test_env *env, const char *name, thole_slice output, size_t times);
/** … fails so, with error type @p type. */
THOLE_API void thole_test_fails(thole_test_env *env, const char *name, thole_slice type, thole_slice message,
                                size_t times);
/** … never ends: only a timeout, a cancellation or thole_test_complete() ends it. */
THOLE_API void thole_test_hangs(thole_test_env *env, const char *name, size_t times);
/** … takes so long before it does what it does otherwise. */
THOLE_API void thole_test_takes(thole_test_env *env, const char *name, uint64_t duration_ms);
/** Settles, then ends the oldest running activity of that name. THOLE_NOT_FOUND when none runs. */
THOLE_NODISCARD THOLE_API thole_status thole_test_complete(thole_test_env *env, const char *name,
                                                           thole_slice output);
/** How often activity @p name was begun, tries included; how often it was told to cancel. */
THOLE_API size_t thole_test_calls(const thole_test_env *env, const char *name);
THOLE_API size_t thole_test_cancels(const thole_test_env *env, const char *name);

/* ---- what clients do; statuses as in client.h ---- */

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
/** @param options  NULL: it must have ended. */
THOLE_NODISCARD THOLE_API thole_status thole_test_delete(thole_test_env *env, thole_slice instance,
                                                         const thole_delete_options *options);
/** @param ret_output  Borrowed until the next call. */
THOLE_NODISCARD THOLE_API thole_status thole_test_query(thole_test_env *env, thole_slice instance,
                                                        thole_slice name, thole_slice input,
                                                        thole_slice *ret_output);

/* ---- time and accidents ---- */

/** Runs until nothing is left to do now; time stands still. */
THOLE_API void thole_test_settle(thole_test_env *env);
/** Runs @p duration_ms of virtual time; what is due on the way happens in order. */
THOLE_API void thole_test_advance(thole_test_env *env, uint64_t duration_ms);
/** Runs, skipping from timer to timer, until the instance has ended, nothing more will happen, or it waits
 * for an activity that the program does not register and no script stands for: that would wait for ever, or
 * until a timeout hides it, so it is said on stderr and by thole_test_output().
 * @return Its status then. */
THOLE_API thole_instance_status thole_test_run(thole_test_env *env, thole_slice instance);
THOLE_API uint64_t thole_test_now_ms(const thole_test_env *env);
/** The engine dies and another opens the partition; running activities die with it and are begun again. One
 * that is in thole_activity_wait() is told by its token, so that it can free what it holds; its result is
 * lost. */
THOLE_API void thole_test_crash(thole_test_env *env);
/** The same once, in the midst of whatever call comes to it: after @p steps more of the things that the
 * engine and the workers do one after the other. A loop over 0, 1, 2, … until thole_test_crashes() stays 0
 * has seen a crash at each point. */
THOLE_API void thole_test_crash_after(thole_test_env *env, size_t steps);
THOLE_API size_t thole_test_crashes(const thole_test_env *env);
/** Another program is deployed: it takes over as after a crash, with the same servers. Whether new code can
 * go on with what old code has begun. @param program  Borrowed like the first one. */
THOLE_API void thole_test_deploy(thole_test_env *env, const thole_program *program);

/* ---- what came of it; slices are borrowed until the next call ---- */

THOLE_API thole_instance_status thole_test_status(thole_test_env *env, thole_slice instance);
/** Output, failure text or reason of an instance that has ended; why it waits or is stuck; else empty. */
THOLE_API thole_slice thole_test_output(thole_test_env *env, thole_slice instance);
THOLE_API thole_slice thole_test_error_type(thole_test_env *env, thole_slice instance);
THOLE_API thole_slice thole_test_custom_status(thole_test_env *env, thole_slice instance);
/** The history of the latest execution as text, one event a line: "#2 ActivityScheduled charge(card)". For
 * comparison with what a test, or a file beside it, expects. NUL-terminated. */
THOLE_API const char *thole_test_history(thole_test_env *env, thole_slice instance);

#ifdef __cplusplus
}
#endif
#endif
