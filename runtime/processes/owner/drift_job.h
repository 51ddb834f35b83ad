/*
 * Compares the rows of the engine's partitions with their histories, from time to time and slowly
 * (runtime/reconcile/row_checker.h): says what is wrong in the log and in a metric, and changes nothing. A
 * thread, with a connection to Postgres while it works.
 */
#ifndef THOLE_DRIFT_JOB_H
#define THOLE_DRIFT_JOB_H
#include "engine.h"

struct drift_job;
/* Sets *ret to NULL when --drift is 0. */
THOLE_NODISCARD thole_status drift_job_start(struct engine_host *engine, struct drift_job **ret,
                                             thole_error *reterr);
void drift_job_stop(struct drift_job *job); /* NULL-safe */
#endif
