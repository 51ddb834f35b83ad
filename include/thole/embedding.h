/**
 * Engines and workers inside a service that has a main() of its own: any number of them in one process, of
 * several queues and namespaces, started and stopped while the service runs. thole_main() (thole/program.h)
 * is for programs that are nothing else, and gives more. Here
 * - no signal handler is installed (but the NATS library lets the process ignore SIGPIPE), no process is
 *   forked, and nothing is read but the arguments, THOLE_* variables and the files that they name;
 * - there is no crash reporter: when the service dies, its activities run again when their leases end, and
 *   the reason is not stored;
 * - there is no supervisor: orchestration code that crashes ends the service. Which code crashed is not known
 *   afterwards, so the next owner of the instance runs it again. A turn that does not end is logged
 *   (--turn-limit is not enforced). Run orchestrations that are not trusted to be correct in a program of
 *   thole_main();
 * - activities run on threads; an entry with THOLE_ISOLATION_PROCESS is refused;
 * - --core-dumps does nothing: core dumps concern the whole process, and so the service.
 *
 * All functions may be called from any thread. Each handle has one thread that starts and ends its role,
 * beside the threads of the role: slots of a worker, --engine-threads of an engine, and those of its
 * connections.
 */
#ifndef THOLE_EMBEDDING_H
#define THOLE_EMBEDDING_H
#include "thole/program.h"
#ifdef __cplusplus
extern "C" {
#endif

/** A worker of one queue. */
typedef struct thole_worker thole_worker;
/** An engine. */
typedef struct thole_engine thole_engine;

/**
 * Starts a worker of the activities of @p program, or an engine of its orchestrations: checks what it is
 * given, and returns. The role connects in the background, and waits there for servers that are away, as
 * thole_main() does.
 *
 * @param program   borrowed until ..._join() has returned, with all that it points to
 * @param arguments options as on the command line of thole_main(), one word each, ended by NULL, such as
 *                  {"--queue", "video", "--slots=64", NULL}; copied. NULL: none. Other options come from
 *                  THOLE_* variables, then from the file of --config, then from the defaults
 *                  (docs/operations.md#options). --http serves this handle's metrics and health: each handle
 *                  needs a port of its own.
 * @return THOLE_OK: *ret must be given to ..._join(). THOLE_INVALID: a bad option, one of another role
 *         (--slots of an engine), or a bad program.
 *         THOLE_UNSUPPORTED: an activity that needs a process. THOLE_NOMEM: no thread can be started.
 */
THOLE_API THOLE_NODISCARD thole_status thole_worker_start(const thole_program *program,
                                                          const char *const *arguments, thole_worker **ret,
                                                          thole_error *reterr);
THOLE_API THOLE_NODISCARD thole_status thole_engine_start(const thole_program *program,
                                                          const char *const *arguments, thole_engine **ret,
                                                          thole_error *reterr);

/**
 * Waits until the role serves: a worker takes activities, an engine partitions.
 * @param timeout_ms at most so long; 0 = only looks
 * @return THOLE_OK: it serves. THOLE_TIMEOUT: it does not yet (a server is away, or no engine has set up the
 *         namespace that a worker waits for: the log says which). THOLE_CANCELLED: it was stopped. Any other:
 *         the role was refused and has ended, @p reterr says by whom and why.
 */
THOLE_API THOLE_NODISCARD thole_status thole_worker_wait(thole_worker *worker, uint64_t timeout_ms,
                                                         thole_error *reterr);
THOLE_API THOLE_NODISCARD thole_status thole_engine_wait(thole_engine *engine, uint64_t timeout_ms,
                                                         thole_error *reterr);

/**
 * Asks the role to stop, and returns at once: as SIGTERM does for a program of thole_main(). A worker takes
 * nothing new, and lets running activities end within --stop-limit; an engine hands its partitions over. The
 * function may be called several times, and from a signal handler. NULL: nothing.
 */
THOLE_API void thole_worker_stop(thole_worker *worker);
THOLE_API void thole_engine_stop(thole_engine *engine);

/**
 * Waits for the role's end and frees the handle; once. Does not ask the role to stop. NULL: THOLE_OK.
 * @return THOLE_OK: the role was stopped as asked. Any other: it had been refused, as ..._wait() says.
 */
THOLE_API thole_status thole_worker_join(thole_worker *worker, thole_error *reterr);
THOLE_API thole_status thole_engine_join(thole_engine *engine, thole_error *reterr);

/** Gets each line of the log, without its end: a JSON object, or logfmt (--log-format). May be called by
 * several threads at once; must not call thole. @p level: 0 error, 1 warning, 2 info, 3 debug. */
typedef void thole_log_fn(void *arg, int level, const char *line, size_t len);
/** Where all handles of this process log: to stderr unless this is called, before the first of them is
 * started. Level and format are those of the first that is started. */
THOLE_API void thole_log_to(thole_log_fn *log, void *arg);

#ifdef __cplusplus
}
#endif
#endif
