/* A few threads that do the blocking requests to NATS of all shards, in the order in which they come. */
#ifndef THOLE_LOADER_H
#define THOLE_LOADER_H
#include "thole/types.h"

struct engine_host;
struct loader;
struct request;
THOLE_NODISCARD thole_status loader_start(struct engine_host *engine, struct loader **ret,
                                          thole_error *reterr);
void loader_submit(struct loader *loader, struct request *request); /* takes the request */
void loader_stop(struct loader *loader);                            /* after what was submitted; NULL-safe */
#endif
