/*
 * Ends tries that are past their deadline, also when no worker is alive to report it. For the store's thread
 * of one shard.
 */
#ifndef THOLE_DEADLINES_H
#define THOLE_DEADLINES_H
#include "batch.h"
#include "thole/types.h"

struct deadlines;
struct engine_host;
struct postgres;
struct request;
struct deadlines *deadlines_create(struct engine_host *engine);
void deadlines_destroy(struct deadlines *deadlines); /* NULL-safe */
/* Carries out a REQ_EXPIRE; blocks until the timeouts are stored. */
THOLE_NODISCARD thole_status deadlines_store(struct postgres *pg, struct request *request);
/* Milliseconds to the first deadline that a claim of the added rows can set; UINT64_MAX: none. */
uint64_t deadlines_first(const struct batch *batch);
#endif
