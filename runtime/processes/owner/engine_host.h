/* The engine role: membership, shards of partitions, projectors, timers. Started and stopped by one thread.
 */
#ifndef THOLE_ENGINE_HOST_H
#define THOLE_ENGINE_HOST_H
#include "options.h"

struct engine_host;
/*
 * Connects, verifies streams, migrates Postgres, starts its threads. While NATS or Postgres cannot be reached
 * it keeps trying with capped backoff (and logs it) until @p stop is requested (then
 * THOLE_CANCELLED). A refusal (wrong configuration, wrong password) is returned at once: THOLE_INVALID,
 * DENIED, UNSUPPORTED.
 */
THOLE_NODISCARD thole_status engine_host_start(const struct host_options *options,
                                               const thole_program *program, const struct stop_check *stop,
                                               struct engine_host **ret, thole_error *reterr);
/* Graceful: finishes what is in flight, closes partitions, removes the heartbeat, joins all threads, frees.
 * NULL-safe. */
void engine_host_stop(struct engine_host *engine);
#endif
