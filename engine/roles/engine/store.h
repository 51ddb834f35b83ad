/* A shard's projector: one thread, one Postgres connection, requests in order. It reconnects by itself,
 * reports up and down to its shard, and never polls the database. */
#ifndef THOLE_STORE_H
#define THOLE_STORE_H
#include "thole/types.h"

struct request;
struct shard;
struct store;
THOLE_NODISCARD thole_status store_start(struct shard *shard, struct store **ret, thole_error *reterr);
void store_submit(struct store *store, struct request *request); /* takes the request */
/* finishes submitted requests first; NULL-safe */
void store_stop(struct store *store);
uint64_t store_statements(const struct store *store);
#endif
