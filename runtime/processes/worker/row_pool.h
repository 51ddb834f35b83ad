/*
 * Connections to Postgres that the workers of one process share: the sessions of a gateway. Calls that need
 * one wait in a queue: renewals go first, then completions, then the rest, each in the order in which they
 * came. A completion keeps its connection while the result is stored, so completions get at most three
 * quarters of the connections: the rest serves renewals and claims whatever the completions wait for.
 * Thread-safe.
 */
#ifndef THOLE_ROW_POOL_H
#define THOLE_ROW_POOL_H
#include "metrics.h"
#include "postgres.h"
#include <stddef.h>

enum { ROW_POOL_MIN = 2, ROW_POOL_MAX = 1000 };
enum row_pool_use { ROW_POOL_RENEWAL, ROW_POOL_COMPLETION, ROW_POOL_OTHER, ROW_POOL_USES };

struct row_pool;
struct row_pool_options {
    struct postgres_options postgres; /* texts are borrowed for the pool's life; its timeouts are not used */
    size_t connections;               /* ROW_POOL_MIN to ROW_POOL_MAX; opened when they are needed */
    struct metrics *metrics;          /* NULL: nothing is counted */
};
struct row_pool *row_pool_create(const struct row_pool_options *options);
void row_pool_destroy(struct row_pool *pool); /* NULL-safe; all have been given back */
/* @p timeout_ms: of the wait for one, and of each statement on it until it is given back.
 * THOLE_UNAVAILABLE: all were in use for so long, or a new one could not be opened. */
THOLE_NODISCARD thole_status row_pool_take(struct row_pool *pool, enum row_pool_use use, uint64_t timeout_ms,
                                           struct postgres **ret, thole_error *reterr);
void row_pool_give(struct row_pool *pool, enum row_pool_use use, struct postgres *pg);
#endif
