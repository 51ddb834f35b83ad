/*
 * Executor: one thread that removes histories, many at a time (see removing.h). Its requests are
 * asynchronous, over the engine's shared connection, where no append and no message of an inbox waits for
 * them; few are in flight at a time, so that the server has time for others, and more while a removal is
 * urgent. The records of an execution that must be looked for in order are read over a consumer; meanwhile
 * its thread does nothing else.
 */
#ifndef THOLE_REMOVER_H
#define THOLE_REMOVER_H
#include "thole/types.h"

struct engine_host;
struct remover;
struct request;
THOLE_NODISCARD thole_status remover_start(struct engine_host *engine, struct remover **ret,
                                           thole_error *reterr);
/* An append of a shard, or a message to workers, has waited so long for its answer: removals leave the server
 * time for others. Any thread; NULL-safe. */
void remover_hear_wait(struct remover *remover, uint64_t us);
void remover_submit(struct remover *remover, struct request *request); /* takes the request */
/* Stops the thread. Unfinished removals are answered as such: a new owner does them. NULL-safe. */
void remover_stop(struct remover *remover);
#endif
