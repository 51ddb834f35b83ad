/* A few threads for the blocking NATS requests of all shards, in order of submission. */
#ifndef THOLE_LOADER_H
#define THOLE_LOADER_H
#include "thole/types.h"

struct engine_host;
struct loader;
struct request;
THOLE_NODISCARD thole_status loader_start(struct engine_host *engine, struct loader **ret,
                                          thole_error *reterr);
void loader_submit(struct loader *loader, struct request *request); /* takes the request */
/* finishes submitted requests first; NULL-safe */
void loader_stop(struct loader *loader);
#endif
