/* Makes the consumers of queues when workers ask for them (queue_wish.h): one thread, one after the other. */
#ifndef THOLE_QUEUE_MAKER_H
#define THOLE_QUEUE_MAKER_H
#include "thole/types.h"

struct engine_host;
struct queue_maker;
/* *ret is also set when it fails: release it. */
THOLE_NODISCARD thole_status queue_maker_start(struct engine_host *engine, struct queue_maker **ret,
                                               thole_error *reterr);
void queue_maker_stop(struct queue_maker *maker); /* NULL-safe; joins it, and frees it */
#endif
