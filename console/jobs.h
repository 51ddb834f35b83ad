/* A fixed number of threads, and a queue of stated length of what they do. */
#ifndef THOLE_JOBS_H
#define THOLE_JOBS_H
#include "thole/types.h"
#include <stdbool.h>
#include <stddef.h>

/* Does one job. @p worker: which thread it is, from 0. */
typedef void job_fn(void *arg, size_t worker, void *job);

struct jobs;
THOLE_NODISCARD thole_status jobs_start(size_t workers, size_t waiting_max, job_fn *run, void *arg,
                                        struct jobs **ret, thole_error *reterr);
/* False: so many wait that it is refused. Any thread. */
bool jobs_put(struct jobs *jobs, void *job);
/* Does what waits, joins the threads; jobs_put() refuses from then on. NULL-safe. */
void jobs_stop(struct jobs *jobs);
/* They are stopped, and no thread puts any more. NULL-safe. */
void jobs_free(struct jobs *jobs);
#endif
