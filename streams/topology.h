/* Creates, reads and verifies streams, consumers and buckets of a namespace. */
#ifndef THOLE_TOPOLOGY_H
#define THOLE_TOPOLOGY_H
#include "connection.h"
#include "nonce.h"

enum { CONFIG_FORMAT = 2, PARTITIONS_DEFAULT = 8, NODES_TTL_MS_DEFAULT = 10000 };

struct topology_options {
    const char *ns;
    uint32_t partitions;   /* 0 = what CONFIG says, else PARTITIONS_DEFAULT */
    uint32_t replicas;     /* 1, 3 or 5; 0 = keep the existing number, else 1 */
    uint64_t nodes_ttl_ms; /* of the NODES bucket; 0 = default */
    uint64_t payload_max;  /* 0 = what CONFIG says, else THOLE_PAYLOAD_BYTES_DEFAULT */
    uint64_t
        events_age_ms; /* how long the stream EVENTS keeps events; 0 = what is there, else there is none */
};
struct topology {
    char ns[THOLE_NAME_BYTES_MAX + 1];
    uint32_t partitions;
    uint32_t replicas;
    uint64_t nodes_ttl_ms;
    struct nonce_key nonce_key; /* topology_ensure() alone: clients and workers cannot read it */
    uint64_t payload_max;       /* bytes of one payload: the same for all engines of the namespace */
    bool events_stored;         /* topology_ensure() alone: there is a stream EVENTS */
};

/*
 * For engines: creates missing parts, reads everything back, and refuses with one error text what does not
 * fit: server older than 2.10.23, JetStream off, replicas, retention, discard policy, limits, max age,
 * max_msgs_per_subject, subjects, a partition count or a payload_max that differs from CONFIG, a newer CONFIG
 * format. Any number of engines may call it at once. THOLE_UNSUPPORTED / THOLE_INVALID for a refusal.
 */
THOLE_NODISCARD thole_status topology_ensure(struct connection *connection,
                                             const struct topology_options *options, struct topology *ret,
                                             thole_error *reterr);
/* For clients and workers: reads CONFIG and checks the server's version. THOLE_NOT_FOUND when no engine has
 * set the namespace up yet. */
THOLE_NODISCARD thole_status topology_read(struct connection *connection, const char *ns,
                                           struct topology *ret, thole_error *reterr);
/* The key of nonces, for who compares or writes rows. *ret_there false: there is none yet. THOLE_DENIED: only
 * engines may read it. */
THOLE_NODISCARD thole_status topology_read_key(struct connection *connection, const char *ns,
                                               struct nonce_key *ret, bool *ret_there, thole_error *reterr);
/* What both look at first: THOLE_UNSUPPORTED for a server that is too old, for JetStream that is off. */
THOLE_NODISCARD thole_status topology_check_version(struct connection *connection, thole_error *reterr);
THOLE_NODISCARD thole_status topology_check_jetstream(struct connection *connection, thole_error *reterr);
/* THOLE_INVALID when @p wanted, unless 0, is not the namespace's payload_max. */
THOLE_NODISCARD thole_status topology_check_payload(const struct topology *topology, uint64_t wanted,
                                                    thole_error *reterr);
/*
 * For workers: creates the queue's durable pull consumer with ack_wait = @p lease_ms, or verifies the one
 * that is there. @p lease_ms 0 takes what is there, else 30 s. THOLE_INVALID when it differs from the
 * request.
 *
 * A consumer that is ahead of its stream is created again: after a loss of the stream's tail (power, a
 * backup) it would skip new messages; nats-server 2.10.27 does not check that, later ones do for one replica.
 * Unacknowledged messages are delivered again. *@p ret_anew (may be NULL): the consumer was created.
 */
THOLE_NODISCARD thole_status topology_ensure_queue(struct connection *connection, const char *ns,
                                                   thole_slice queue, uint64_t lease_ms,
                                                   uint64_t *ret_lease_ms, bool *ret_anew,
                                                   thole_error *reterr);
/*
 * Limit of activities of a queue that run at once, over all workers; 0 = no limit. Stored in CONFIG and
 * enforced by the queue's consumer: the server delivers no further message while that many are not
 * acknowledged. When it is lowered, running activities continue, and nothing is delivered until fewer run.
 */
THOLE_NODISCARD thole_status topology_queue_limit(struct connection *connection, const char *ns,
                                                  thole_slice queue, uint64_t *ret, thole_error *reterr);
THOLE_NODISCARD thole_status topology_limit_queue(struct connection *connection, const char *ns,
                                                  thole_slice queue, uint64_t limit, thole_error *reterr);
/* What its consumer has not delivered, and what it has delivered and nobody has acknowledged: the depth of
 * the queue. THOLE_NOT_FOUND: it has none yet. */
THOLE_NODISCARD thole_status topology_queue_depth(struct connection *connection, const char *ns,
                                                  thole_slice queue, uint64_t *ret_pending,
                                                  uint64_t *ret_ack_pending, thole_error *reterr);
/* The lease of its consumer, and how often that has delivered a message; 0: it has none, as no worker has
 * served the queue. */
THOLE_NODISCARD thole_status topology_queue_lease(struct connection *connection, const char *ns,
                                                  thole_slice queue, uint64_t *ret_lease_ms,
                                                  uint64_t *ret_delivered, thole_error *reterr);
#endif
