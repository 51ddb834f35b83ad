/* The worker role: pulls activity messages, runs them on slots, renews, completes. */
#ifndef THOLE_WORKER_HOST_H
#define THOLE_WORKER_HOST_H
#include "options.h"

struct worker_host;
struct thole_activity;
struct remote_return;
/* As engine_host_start(). options.forkserver when an activity of the program runs in a process. Also waits
 * (visibly, with a log line) until an engine has set the namespace up. */
THOLE_NODISCARD thole_status worker_host_start(const struct host_options *options,
                                               const thole_program *program, const struct stop_check *stop,
                                               struct worker_host **ret, thole_error *reterr);
/* Graceful: stops pulling, lets running activities finish within options.stop_limit_ms, hands back the rest,
 * joins, frees. NULL-safe. */
void worker_host_stop(struct worker_host *worker);
/* Begins that with another limit, and returns; worker_host_stop() then waits for the end. Once. */
void worker_host_stop_within(struct worker_host *worker, uint64_t limit_ms);

/* ---- a worker whose activities run elsewhere: options.remote ---- */

/* A handler has returned what @p returned says, which is borrowed for the call. Any thread; once for each
 * that was run. */
void worker_host_returned(struct worker_host *worker, struct thole_activity *act,
                          const struct remote_return *returned);
/* Reports a sign of life of the handlers' host. Any thread. Until then another worker may resume the claims
 * that this worker has resumed, since the answer that they are its own may be lost. */
void worker_host_heard(struct worker_host *worker);
/* Stops the worker from asking for messages, until worker_host_wants(). Any thread; each call counts, in
 * their order. */
void worker_host_rests(struct worker_host *worker);
void worker_host_wants(struct worker_host *worker);
/* The worker's connection to NATS; for the host of the handlers, until the worker is stopped. */
struct connection *worker_host_connection(const struct worker_host *worker);
/* Reports the death of the handlers' host: its leases end at once and count as lost, like those of a dead
 * worker; @p report is for people. Joins, frees. Activities that were run and have not returned then belong
 * to the caller: activity_destroy(). */
void worker_host_died(struct worker_host *worker, const char *report);
/* The name in rows and logs; of the queue and the namespace. */
thole_slice worker_host_name(const struct worker_host *worker);
uint64_t worker_host_lease_ms(const struct worker_host *worker);
uint64_t worker_host_payload_max(const struct worker_host *worker);
#endif
