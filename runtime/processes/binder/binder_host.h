/* The binder role: messages of streams start and signal instances, as the rules of thole bind say
 * (docs/events.md). */
#ifndef THOLE_BINDER_HOST_H
#define THOLE_BINDER_HOST_H
#include "options.h"

struct binder_host;
/* As worker_host_start(). Needs no Postgres. */
THOLE_NODISCARD thole_status binder_host_start(const struct host_options *options,
                                               const struct stop_check *stop, struct binder_host **ret,
                                               thole_error *reterr);
/* Stops the binder. Messages in flight are answered first, for at most the time of a request; delivered
 * messages that are not begun are handed back. NULL-safe. */
void binder_host_stop(struct binder_host *binder);
#endif
