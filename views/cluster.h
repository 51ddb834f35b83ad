/* The engines of a namespace and who owns its partitions, as far as NATS tells. */
#ifndef THOLE_CLUSTER_H
#define THOLE_CLUSTER_H
#include "arena.h"
#include "connection.h"
#include "forecast.h"

struct thole_client;

struct cluster_engine {
    struct cluster_engine *next;
    thole_slice node;
    uint64_t started_ms, heartbeat_ms; /* since 1970; how old its heartbeat is, by the server's clock */
    size_t orchestrations_len;
    bool reads_all;                         /* reads all records that this version writes */
    bool told;                              /* the engine has reported: */
    uint64_t now_ms, asked_ms, answered_ms; /* the engine's clock; this machine's before and after */
};
enum cluster_state { CLUSTER_UNTOLD, CLUSTER_CLOSED, CLUSTER_OPENING, CLUSTER_OPEN, CLUSTER_CLOSING };
extern const char *const cluster_states[CLUSTER_CLOSING + 1];
/* A missing or changed object, as an engine has seen it. */
struct cluster_defect {
    struct cluster_defect *next;
    thole_slice text, remedy, object;
    bool warns;
};
/* A limit that an orchestration has met in the last minutes. */
struct cluster_limited {
    struct cluster_limited *next;
    thole_slice limit, orchestration, text, remedy;
    thole_slice instance; /* the instance that met it last, in one partition */
    uint64_t count;       /* how often */
};
/* An object that an engine has made again, in the last minutes. */
struct cluster_mended {
    struct cluster_mended *next;
    thole_slice object, name;
    uint64_t at_ms;
};
/* The stored size of an object, as an engine has seen it: "account", "database", a stream, or all streams of
 * a kind. */
struct cluster_room {
    struct cluster_room *next;
    thole_slice what;
    uint64_t streams, messages; /* 0: it is no kind of them */
    struct forecast forecast;
};
struct cluster_partition {
    thole_slice last; /* the engine that opened it last; empty: none ever did */
    bool owned;       /* `last` reports it as open, or has a heartbeat and was not started since */
    uint64_t epoch, opened_ms;
    enum cluster_state state; /* as its engine says */
    uint64_t since_ms;        /* in this state */
    uint64_t closed_lately;   /* how often, in the last five minutes, but not handed over */
    thole_slice cause, why;   /* why it was closed last, when it was; empty: never */
    bool lag_known;
    uint64_t inbox_lag;      /* messages that no record has incorporated */
    uint64_t projection_lag; /* sequences of the log that the rows do not have */
};
struct cluster {
    struct arena arena;
    struct cluster_engine *engines; /* by name */
    size_t engines_len;
    struct cluster_defect *defects;
    struct cluster_mended *mended;
    struct cluster_limited *limited; /* one for each limit and orchestration */
    struct cluster_room *room;
    struct cluster_partition *partitions;
    uint32_t partitions_len;
};

/* One call for each heartbeat, each engine and each partition. Released in any case. */
thole_status cluster_read(struct cluster *cluster, struct connection *connection, const char *ns,
                          uint32_t partitions, thole_error *reterr);
/* The lag of the owners, from the streams and Postgres: two calls and a statement for each partition. Some
 * are known when it fails. */
thole_status cluster_read_lags(struct cluster *cluster, struct thole_client *client, thole_error *reterr);
void cluster_release(struct cluster *cluster);
/* "0-2,5": the partitions that it owns; empty: none. @p ret_len: how many. */
void cluster_shares(const struct cluster *cluster, thole_slice node, struct buf *to, size_t *ret_len);
#endif
