/**
 * A user's program: registers orchestrations and activities and gets the roles `engine`, `worker`, `run`
 * (both) and `replay`, options, signals and logging from thole_main().
 */
#ifndef THOLE_PROGRAM_H
#define THOLE_PROGRAM_H
#include "thole/activity.h"
#include "thole/orchestration.h"
#ifdef __cplusplus
extern "C" {
#endif

/** A registered orchestration. @c name is a NUL-terminated static string, [A-Za-z0-9_-]{1,64}. */
typedef struct thole_orchestration_entry {
    const char *name;
    thole_orchestration_fn *run;
    /** Several entries of one name may have different versions. 0 is read as 1, 2,147,483,647 is the
     * largest. An instance keeps its version (until it continues as new); a start without a version gets the
     * highest. */
    uint32_t version;
    /** For thole_orchestration_arg(); may be NULL. The memory must exist before thole_main(), and stay the
     * same, or a replay decides differently. */
    void *arg;
    /** Options of each thole_call(), and of thole_call_with() without options: a retry policy and time-outs
     * for all activities of this orchestration. NULL: none. As with any options those that were recorded are
     * used in a replay, so that all but the queue may be changed under running instances. */
    const thole_call_options *call_options;
    /** Bytes of stack of its code, and of each of its query handlers: 64 KiB to 8 MiB; 0: 64 KiB. Rounded up
     * to 64 KiB times a power of two. Memory is taken for what is used of it, and counted in
     * --parked-memory-max while the instance is parked; an overflow is a crash. It may be changed under
     * running instances. */
    size_t stack_bytes;
} thole_orchestration_entry;

/** Where tries of an activity run. */
typedef enum thole_isolation {
    /** On a thread of the worker: cheap. A handler that ignores its token keeps its thread, and a crash ends
     * the worker. */
    THOLE_ISOLATION_THREAD = 0,
    /** In a process of its own, which can be killed with all processes that it has started; a crash is a
     * failed try of type "crash" (or "limit"). Differences for the handler:
     * - it runs in a fork of the program as it was at the begin of thole_main(): with memory that main() has
     *   set up, without descriptors above 2 and threads; stdin is empty, stdout goes to stderr; signals have
     *   their default actions; it may change process-wide state (umask, folder, environment);
     * - no process that it starts outlives its try, not even a daemon;
     * - functions of thole/activity.h are for this process, not for those that it forks: these may only use
     *   thole_activity_cancelled(), thole_activity_wait() and thole_activity_cancel_fd() (call it once
     *   before). docs/process_isolation.md has costs, guarantees and limits. */
    THOLE_ISOLATION_PROCESS = 1,
} thole_isolation;

/** How an activity is run. The fields after isolation are for THOLE_ISOLATION_PROCESS, except quick. */
typedef struct thole_activity_options {
    size_t size; /**< sizeof(thole_activity_options), so that the struct can grow */
    thole_isolation isolation;
    /** When the token fires, the process and its group get SIGTERM as well. */
    bool terminate;
    /** The process inherits the program's environment, which thole_client_open() may need. Otherwise it has
     * the variables that every program needs (PATH, HOME, LANG, …) and those that the option --process-env
     * names. docs/process_isolation.md has the list. */
    bool keep_env;
    /** Largest number of tries of one process; it is reused only for the same activity. 0 = no limit; 1 = a
     * new process for each try, which costs a few milliseconds. */
    uint32_t runs_max;
    /** Seconds of CPU time of each process (RLIMIT_CPU): SIGXCPU, a second later SIGKILL. 0 = no limit. Each
     * try then gets a new process, because the system counts over a process's life. */
    uint32_t cpu_max_s;
    /** Bytes of address space of each process, including libraries (RLIMIT_AS): allocations fail. 0 = no
     * limit.
     */
    uint64_t memory_max;
    /** Milliseconds from the begin of the try to SIGKILL, without a grace. 0 = no limit. (A try timeout of
     * the call fires the token first.) */
    uint64_t wall_max_ms;
    /** For THOLE_ISOLATION_THREAD: the handler returns within about a millisecond and waits for nothing: no
     * network, no disk, no lock that others hold for long. It then runs on the thread that serves the
     * worker's connections, between the deletion of its row and the storing of its result: no other thread is
     * woken, and no claim is written, which is a tenth to a seventh of what an activity costs. Meanwhile the
     * worker does nothing else: it neither renews leases nor takes cancellations. So:
     * - the handler's token never fires, and a deadline does not end the handler; if it never returns, its
     *   worker does nothing any more, and is not healthy;
     * - a handler that has taken longer than 100 ms once runs like any other from then on, until the program
     *   ends, and a line in the log says so;
     * - THOLE_LATER is a failure of type "quick", which is final;
     * - if the handler kills its worker, the first time is not counted among the losses after which it runs
     *   isolated.
     * Results, tries, retries and heartbeats' details are as those of any other activity. A worker behind a
     * gateway ignores this field. */
    bool quick;
} thole_activity_options;

/** A registered activity. */
typedef struct thole_activity_entry {
    const char *name; /**< NUL-terminated static string, [A-Za-z0-9_-]{1,64} */
    thole_activity_fn *run;
    const thole_activity_options *options; /**< NULL: on a thread */
    void *arg; /**< for thole_activity_arg(); may be NULL. Used by several threads at once, and by processes
                  that were forked at the begin of thole_main() */
} thole_activity_entry;

/**
 * The entries of a program and their number, for thole_program and nothing to forget:
 *
 *     static const thole_program program = {
 *         .size = sizeof program,
 *         .name = "checkout",
 *         THOLE_ORCHESTRATIONS({.name = "checkout", .run = checkout}),
 *         THOLE_ACTIVITIES({.name = "charge", .run = charge}, {.name = "ship", .run = ship}),
 *     };
 *
 * C only. Within a function the entries live as long as its block. For arrays: THOLE_ORCHESTRATIONS_OF(),
 * THOLE_ACTIVITIES_OF().
 */
#define THOLE_ORCHESTRATIONS(...) THOLE_ORCHESTRATIONS_OF(((const thole_orchestration_entry[]){__VA_ARGS__}))
#define THOLE_ACTIVITIES(...) THOLE_ACTIVITIES_OF(((const thole_activity_entry[]){__VA_ARGS__}))
/** Like the two macros above, for an array: `THOLE_ACTIVITIES_OF(activities)`. */
#define THOLE_ORCHESTRATIONS_OF(array)                                                                       \
    .orchestrations = (array), .orchestrations_len = sizeof(array) / sizeof((array)[0])
#define THOLE_ACTIVITIES_OF(array) .activities = (array), .activities_len = sizeof(array) / sizeof((array)[0])

/** The orchestrations and activities of a program. All pointers are borrowed for the duration of
 * thole_main(). */
typedef struct thole_program {
    size_t size;      /**< sizeof(thole_program), so that the struct can grow */
    const char *name; /**< shown in --help and in logs */
    const thole_orchestration_entry *orchestrations;
    size_t orchestrations_len;
    const thole_activity_entry *activities;
    size_t activities_len;
} thole_program;

/**
 * Runs the role named in @p argv until SIGTERM or SIGINT, then stops gracefully. `PROGRAM engine|worker|run
 * [options]`; `PROGRAM replay ID...|--all|--file FILE [options]` instead runs the orchestrations over
 * recorded histories, prints where they decide differently, and ends. `PROGRAM --help` lists every option
 * with its default and its environment variable. Logs go to stderr. Call once, from the main thread.
 * @return Exit code: 0 stopped as asked, 1 failed, 2 wrong usage, 6 cannot connect or configuration refused,
 *         130 on a second SIGINT; replay: 0 no difference, 1 a history cannot be read, 3 no such instance,
 *         file or namespace, 5 diverged, 7 permission denied, 11 the program has code for none of the
 *         histories.
 *
 * `engine` and `run` fork first: the process that was started is the supervisor. Its child serves, is started
 * again when it crashes, and returns from this function. The supervisor ends with the child's exit code,
 * without running the program's atexit() handlers. Code of main() before this call runs once, code after it
 * in the child. An orchestration whose code crashes, or does not end its turn within --turn-limit, first runs
 * in a forked process from then on, and is Stuck after --crash-limit crashes.
 *
 * A worker, and an engine, handle SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS and SIGTRAP if the program
 * does not, to report the crash, and then die of the signal as usual. A worker first forks a crash reporter,
 * and a forkserver for activities in processes: start threads only after this call, for example in handlers.
 * Handlers for these signals that main() has installed before stay in effect.
 */
THOLE_API int thole_main(int argc, char **argv, const thole_program *program);

/** The library's version, "0.1.0". Static text. */
THOLE_API const char *thole_version(void);

#ifdef __cplusplus
}
#endif
#endif
