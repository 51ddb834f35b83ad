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
    /** Several entries of one name may differ in this. 0 is read as 1. An instance keeps the version it began
     * with (until it continues as new); a start that names none gets the highest. */
    uint32_t version;
} thole_orchestration_entry;

/** Where the tries of an activity run. */
typedef enum thole_isolation {
    /** On a thread of the worker: cheap. A handler that ignores its token keeps its thread, and one that
     * crashes takes the worker down. */
    THOLE_ISOLATION_THREAD = 0,
    /** In a process of its own, which can be killed with all that it has started, and may crash: that is a
     * failed try of type "crash" (or "limit"). What differs for the handler:
     * - it runs in a fork of the program as it was at the begin of thole_main(): what main() has set up in
     *   memory is there, descriptors above 2 and threads are not; stdin is empty, stdout goes to stderr;
     *   signals have their default actions; it may change what is global (umask, folder, environment);
     * - nothing that it starts outlives its try, not even a daemon;
     * - functions of thole/activity.h are for this process, not for those that it forks: these may only use
     *   thole_activity_cancelled(), thole_activity_wait() and thole_activity_cancel_fd() (call it once
     * before). docs/process_isolation.md says what it costs, what is guaranteed and what escapes. */
    THOLE_ISOLATION_PROCESS = 1,
} thole_isolation;

/** How an activity is run. All that follows isolation is for THOLE_ISOLATION_PROCESS. */
typedef struct thole_activity_options {
    size_t size; /**< sizeof(thole_activity_options), so that the struct can grow */
    thole_isolation isolation;
    /** When the token fires, the process and its group get SIGTERM as well. */
    bool terminate;
    /** THOLE_NATS_URL, THOLE_NATS_CREDS and THOLE_POSTGRES stay in its environment, for a
     * thole_client_open(); else they are removed. */
    bool keep_env;
    /** A process is reused for the next try of the same activity, at most so many times in all. 0 = no limit;
     * 1 = a new one for each try, which costs a few milliseconds. */
    uint32_t runs_max;
    /** Seconds of CPU time of each process (RLIMIT_CPU): SIGXCPU, a second later SIGKILL. 0 = no limit. Each
     * try gets a new process then, because the system counts over the whole life of one. */
    uint32_t cpu_max_s;
    /** Bytes of address space of each process, libraries and all (RLIMIT_AS): allocations fail. 0 = no limit.
     */
    uint64_t memory_max;
    /** Milliseconds from the begin of the try to SIGKILL, without a grace. 0 = no limit. (A try timeout of
     * the call, which fires the token first, is kinder.) */
    uint64_t wall_max_ms;
} thole_activity_options;

/** A registered activity. */
typedef struct thole_activity_entry {
    const char *name; /**< NUL-terminated static string, [A-Za-z0-9_-]{1,64} */
    thole_activity_fn *run;
    const thole_activity_options *options; /**< NULL: on a thread */
} thole_activity_entry;

/** What a program can run. All pointers are borrowed for the duration of thole_main(). */
typedef struct thole_program {
    size_t size;      /**< sizeof(thole_program), so that the struct can grow */
    const char *name; /**< shown in --help and in logs */
    const thole_orchestration_entry *orchestrations;
    size_t orchestrations_len;
    const thole_activity_entry *activities;
    size_t activities_len;
} thole_program;

/**
 * Runs the role named in @p argv until SIGTERM or SIGINT, then stops gracefully.
 * `PROGRAM engine|worker|run [options]`; `PROGRAM replay ID...|--all|--file FILE [options]` instead runs the
 * orchestrations over recorded histories, says where they decide differently, and ends. `PROGRAM --help`
 * lists every option with its default and its environment variable. Logs go to stderr.
 * @return Exit code: 0 stopped as asked, 1 failed, 2 wrong usage, 6 cannot connect or configuration refused,
 *         130 on a second SIGINT; replay: 0 the same, 1 a history cannot be read, 3 no such instance, file or
 *         namespace, 7 permission denied,
 *         5 diverged, 11 it has code for none of the histories. Call once, from the main thread.
 *
 * `engine` and `run` fork first of all: the process that was started supervises, its child serves, is started
 * again when it crashes, and is the one that returns from this function; the supervisor ends with its exit
 * code, without running what the program has registered with atexit(). What main() does before this call is
 * done once, what it does behind it in the child. Code of an orchestration that crashes, or does not end its
 * turn within --turn-limit, is tried alone from then on, and is Stuck after --crash-limit crashes.
 *
 * A worker, and an engine, handle SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS and SIGTRAP where nothing
 * else does, to say what it dies of, and then dies of it as it would have. It forks a crash reporter for that
 * first, and a forkserver for activities in processes: start threads later than this call, in handlers say.
 * In main() a program may install handlers of its own for these signals, which then stay.
 */
THOLE_API int thole_main(int argc, char **argv, const thole_program *program);

/** The library's version, "0.1.0". Static text. */
THOLE_API const char *thole_version(void);

#ifdef __cplusplus
}
#endif
#endif
