/*
 * The worker's side of processes that run activities. A slot's thread takes a process, sends it the activity,
 * reads heartbeats and the result, and puts it back for the next activity of the same kind; or, if the
 * process ends, reports a failure. Only that thread communicates with it. Other threads (the loop) may fire
 * its token and kill it.
 *
 * There are as many processes as activities ran at the same time, at most one for each slot; idle ones are
 * kept for reuse.
 */
#ifndef THOLE_PROCESS_POOL_H
#define THOLE_PROCESS_POOL_H
#include "activity_run.h"
#include "forkserver.h"

/* At most @p max processes are kept. All is borrowed. */
struct process_pool *process_pool_create(struct forkserver *forkserver, const thole_program *program,
                                         uint32_t max);
/* No activity runs any more. Releases the processes: forkserver_stop() waits for them. NULL-safe. */
void process_pool_destroy(struct process_pool *pool);

/* The handler (act->run) of an activity that runs in a process: act->pool and act->entry are set. Returns
 * when the handler has returned, or when its process and all that it has started are dead. */
thole_status process_pool_run(thole_activity *act, thole_slice input, thole_slice *ret_output);
/* Kills the process that runs it, now or as soon as there is one. Does not wait. Any thread. */
void process_pool_kill(struct thole_activity *act);
#endif
