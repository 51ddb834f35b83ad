/*
 * Asks the workers which activities they know, while rows wait for one who does (shelf.c): a thread, which
 * sleeps else.
 */
#ifndef THOLE_SERVED_JOB_H
#define THOLE_SERVED_JOB_H
#include "served_names.h"

struct engine_host;
struct served_job;
/* Starts its thread; *ret must be given to the next two also when that fails. */
THOLE_NODISCARD thole_status served_job_start(struct engine_host *engine, struct served_job **ret,
                                              thole_error *reterr);
/* Joins its thread, when no shard's thread runs any more. NULL-safe, as is the next. */
void served_job_end(struct served_job *job);
void served_job_release(struct served_job *job);
/* Any thread, until it ends. */
struct served_names *served_job_names(struct served_job *job);
void served_job_ask(struct served_job *job); /* soon, unless that was done just now */
#endif
