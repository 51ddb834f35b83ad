/* Threads for the blocking NATS requests of all shards, in order of submission. An engine has two groups: the
 * loader, for what instances wait for, and the cleaner, for what nothing waits for. */
#ifndef THOLE_LOADER_H
#define THOLE_LOADER_H
#include "thole/types.h"

enum { LOADER_THREADS_MAX = 8 };

struct engine_host;
struct loader;
struct request;
/* @p threads: 1 to LOADER_THREADS_MAX; @p thread_name is borrowed. */
THOLE_NODISCARD thole_status loader_start(struct engine_host *engine, const char *thread_name, size_t threads,
                                          struct loader **ret, thole_error *reterr);
void loader_submit(struct loader *loader, struct request *request); /* takes the request */
/* finishes submitted requests first; NULL-safe */
void loader_stop(struct loader *loader);
#endif
