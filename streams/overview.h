/*
 * Facts about a NATS server for people: its namespaces, their heartbeats, its time. Blocking, and without
 * consumers, so that a user needs no right to create any.
 */
#ifndef THOLE_OVERVIEW_H
#define THOLE_OVERVIEW_H
#include "connection.h"

/* Of the settings of a namespace; 0: this one is not stored (yet). */
struct overview_namespace {
    char ns[THOLE_NAME_BYTES_MAX + 1];
    uint64_t partitions, format, payload_max;
    uint64_t replicas; /* of its bucket CONFIG, which the other streams follow */
    uint64_t now_ms;   /* the server's clock when it answered */
    bool clustered;    /* the server is one of a cluster */
    uint64_t offline;  /* replicas of the bucket that are offline or lag */
};
/* THOLE_NOT_FOUND when there is no such bucket. A format that this program does not know is no error. */
THOLE_NODISCARD thole_status overview_namespace(struct connection *connection, const char *ns,
                                                struct overview_namespace *ret, thole_error *reterr);

/* How much of JetStream's storage is used. A maximum of 0: there is none, or it is not said. */
struct overview_room {
    uint64_t file_bytes, file_bytes_max, memory_bytes, memory_bytes_max;
};
/* The room of the connection's account. Where the account has limits for each number of replicas (tiers, as
 * JWTs give them), the room for streams with @p replicas. */
THOLE_NODISCARD thole_status overview_account(struct connection *connection, uint64_t replicas,
                                              struct overview_room *ret, thole_error *reterr);
/* Like overview_account(), from the server's answer. */
struct overview_room overview_account_room(thole_slice said, uint64_t replicas);

struct overview_server {
    struct overview_room room;
    bool sync_always;
    uint64_t sync_ms;
    uint64_t servers; /* of the cluster; 0: there is none, or it is not said */
};
/* A server's facts about its JetStream, for users of the system account, and for accounts that import
 * $SYS.REQ.SERVER.PING.JSZ from it. All others get an error. */
THOLE_NODISCARD thole_status overview_server(struct connection *connection, struct overview_server *ret,
                                             thole_error *reterr);

/* Return anything but THOLE_OK to stop; it is passed on. */
typedef thole_status overview_namespace_fn(void *arg, const struct overview_namespace *found);
/* Those in the account of the connection, by name. */
THOLE_NODISCARD thole_status overview_namespaces(struct connection *connection, overview_namespace_fn *each,
                                                 void *arg, thole_error *reterr);

/* @p age_ms: by the server's clock. As overview_namespace_fn. */
typedef thole_status overview_heartbeat_fn(void *arg, thole_slice heartbeat, uint64_t age_ms);
/* The heartbeats in the bucket NODES, without those that were removed. */
THOLE_NODISCARD thole_status overview_heartbeats(struct connection *connection, const char *ns,
                                                 overview_heartbeat_fn *each, void *arg, thole_error *reterr);
#endif
