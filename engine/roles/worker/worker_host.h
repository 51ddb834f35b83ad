/* The worker role: pulls activity messages, runs them on slots, renews, completes. */
#ifndef THOLE_WORKER_HOST_H
#define THOLE_WORKER_HOST_H
#include "options.h"

struct worker_host;
/* As engine_host_start(). options.forkserver when an activity of the program runs in a process. Also waits
 * (visibly, with a log line) until an engine has set the namespace up. */
THOLE_NODISCARD thole_status worker_host_start(const struct host_options *options,
                                               const thole_program *program, bool (*stop_requested)(void),
                                               struct worker_host **ret, thole_error *reterr);
/* Graceful: stops pulling, lets running activities finish within options.stop_limit_ms, hands back the rest,
 * joins, frees. NULL-safe. */
void worker_host_stop(struct worker_host *worker);
#endif
