/* The engines of a namespace and who owns its partitions, as far as NATS tells. */
#ifndef THOLE_CLUSTER_H
#define THOLE_CLUSTER_H
#include "arena.h"
#include "connection.h"

struct thole_client;

struct cluster_engine {
    struct cluster_engine *next;
    thole_slice node;
    uint64_t started_ms, heartbeat_ms; /* since 1970; how old its heartbeat is, by the server's clock */
    size_t orchestrations_len;
};
struct cluster_partition {
    thole_slice last; /* who opened it last; empty: nobody ever */
    bool owned;       /* that engine has a heartbeat, and has not been started anew since */
    uint64_t epoch, opened_ms;
    bool lag_known;
    uint64_t inbox_lag;      /* messages that no record has incorporated */
    uint64_t projection_lag; /* sequences of the log that the rows do not have */
};
struct cluster {
    struct arena arena;
    struct cluster_engine *engines; /* by name */
    size_t engines_len;
    struct cluster_partition *partitions;
    uint32_t partitions_len;
};

/* One call for each heartbeat and each partition. Released in any case. */
thole_status cluster_read(struct cluster *cluster, struct connection *connection, const char *ns,
                          uint32_t partitions, thole_error *reterr);
/* What the owners are behind by, from the streams and Postgres: two calls and a statement for each partition.
 * Some are known when it fails. */
thole_status cluster_read_lags(struct cluster *cluster, struct thole_client *client, thole_error *reterr);
void cluster_release(struct cluster *cluster);
/* "0-2,5": the partitions that it owns; empty: none. @p ret_len: how many. */
void cluster_shares(const struct cluster *cluster, thole_slice node, struct buf *to, size_t *ret_len);
#endif
