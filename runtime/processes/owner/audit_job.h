/*
 * Publishes signed checkpoints of the logs of the engine's partitions (docs/audit.md): reads what the engine
 * has committed since the last one back from the stream, in a thread of its own, and goes on from the last
 * checkpoint. A record is in one after --audit-every, or sooner when there are --audit-records of them. The
 * partition does not wait for it. A log that is not what was written gets none: the log and a metric say so.
 */
#ifndef THOLE_AUDIT_JOB_H
#define THOLE_AUDIT_JOB_H
#include "engine.h"

struct audit_job;
/* Reads the keys, before anything is waited for. Sets *ret to NULL when there is no --audit-key.
 * THOLE_INVALID: a key. */
THOLE_NODISCARD thole_status audit_job_create(struct engine_host *engine, struct audit_job **ret,
                                              thole_error *reterr);
/* NULL-safe, as the next one. */
THOLE_NODISCARD thole_status audit_job_start(struct audit_job *job, thole_error *reterr);
/* When the shards have stopped: covers what they have written, unless NATS does not answer. */
void audit_job_stop(struct audit_job *job);
#endif
