/* Creates, reads and verifies streams, consumers and buckets of a namespace. */
#ifndef THOLE_TOPOLOGY_H
#define THOLE_TOPOLOGY_H
#include "connection.h"
#include "defect.h"
#include "namespace_verdict.h"
#include "nonce.h"
#include "subject.h"

enum { CONFIG_FORMAT = 2, PARTITIONS_DEFAULT = 8, NODES_TTL_MS_DEFAULT = 10000 };

struct topology_options {
    const char *ns;
    uint32_t partitions;    /* 0 = what CONFIG says, else PARTITIONS_DEFAULT */
    uint32_t replicas;      /* 1, 3 or 5; 0 = keep the existing number, else 1 */
    uint64_t nodes_ttl_ms;  /* of the NODES bucket; 0 = default */
    uint64_t payload_max;   /* 0 = what CONFIG says, else THOLE_PAYLOAD_BYTES_DEFAULT */
    uint64_t events_age_ms; /* how long the stream EVENTS keeps events; 0 = as it is, or no stream */
    bool accept_loss;       /* lost parts are made again: only when people have decided so */
};
struct topology {
    char ns[THOLE_NAME_BYTES_MAX + 1];
    uint32_t partitions;
    uint32_t replicas;
    uint64_t nodes_ttl_ms;
    struct namespace_id id;     /* topology_ensure() alone */
    struct nonce_key nonce_key; /* topology_ensure() alone: clients and workers cannot read it */
    uint64_t payload_max;       /* bytes of one payload: the same for all engines of the namespace */
    bool ensured;               /* topology_ensure() alone: this user may see and make all of it */
    bool events_stored;         /* topology_ensure() alone: there is a stream EVENTS */
    uint64_t events_age_ms;     /* topology_ensure() alone: how long it keeps them; 0: for ever, or no
                                   stream */
    bool events_again;          /* topology_ensure() alone: it was lost, and was made again */
};

/*
 * For engines: creates missing parts, reads everything back, and refuses with one error text what does not
 * fit: server older than 2.10.23, JetStream off, replicas, retention, discard policy, limits, max age,
 * max_msgs_per_subject, subjects, a partition count or a payload_max that differs from CONFIG, a newer CONFIG
 * format. Any number of engines may call it at once. THOLE_UNSUPPORTED / THOLE_INVALID for a refusal;
 * THOLE_CONFLICT: a part is lost (part_judge()), and is not made.
 */
THOLE_NODISCARD thole_status topology_ensure(struct connection *connection,
                                             const struct topology_options *options, struct topology *ret,
                                             thole_error *reterr);
/* The stores that all may use and engines alone make (marked_store.h): what topology_ensure() does of them,
 * again. EVENTS is made by the engines that are asked to store events. */
THOLE_NODISCARD thole_status topology_set_up_stores(struct connection *connection,
                                                    const struct topology *topology, thole_error *reterr);
/* For clients and workers: reads CONFIG and checks the server's version. THOLE_NOT_FOUND when no engine has
 * set the namespace up yet. */
THOLE_NODISCARD thole_status topology_read(struct connection *connection, const char *ns,
                                           struct topology *ret, thole_error *reterr);
/* NATS's part of the namespace, in whatever state: nothing is made, and nothing is checked but the server. */
struct topology_found {
    bool made, orphans; /* as in struct namespace_sides */
    struct namespace_id id;
    uint32_t partitions; /* 0: not known */
    uint32_t histories;  /* of orphans: how many there are, from 0 on */
    bool secret;         /* the key of nonces; true also where this user cannot see it */
};
THOLE_NODISCARD thole_status topology_find(struct connection *connection, const char *ns,
                                           struct topology_found *ret, thole_error *reterr);
/* The identity alone; "" when there is none, or no bucket. */
THOLE_NODISCARD thole_status topology_read_id(struct connection *connection, const char *ns,
                                              struct namespace_id *ret, thole_error *reterr);
/* The identity from now on, whatever it was. */
THOLE_NODISCARD thole_status topology_write_id(struct connection *connection, const char *ns,
                                               const struct namespace_id *id, thole_error *reterr);
/* Keeps @p value, JSON, among the settings: key loss_<time_ms>. */
THOLE_NODISCARD thole_status topology_note_loss(struct connection *connection, const char *ns,
                                                uint64_t time_ms, thole_slice value, thole_error *reterr);
/* A partition's two streams. @p known says which records' marks are looked at; NULL: none. */
THOLE_NODISCARD thole_status topology_look_log(struct connection *connection, const char *ns, uint32_t p,
                                               const struct log_known *known, struct log_there *ret,
                                               thole_error *reterr);
THOLE_NODISCARD thole_status topology_look_inbox(struct connection *connection, const char *ns, uint32_t p,
                                                 bool *ret_there, thole_error *reterr);
/* The key of nonces, for who compares or writes rows. *ret_there false: there is none yet. THOLE_DENIED: only
 * engines may read it. */
THOLE_NODISCARD thole_status topology_read_key(struct connection *connection, const char *ns,
                                               struct nonce_key *ret, bool *ret_there, thole_error *reterr);
/*
 * Looks at the streams and buckets themselves, with one request each; calls @p each for each one that is
 * missing or differs from its specification. Those that this user may not see are left out and counted; the
 * bucket SECRET is looked at for engines alone, EVENTS where it is stored. Changes nothing.
 */
enum { TOPOLOGY_LIMITS_MAX = 8 };
struct topology_usage { /* of the streams of one kind */
    uint64_t streams, messages, bytes;
    uint64_t created_ms; /* of the oldest one; 0: not known */
};
struct topology_limit { /* of one stream that refuses messages when it is full */
    char name[STREAM_NAME_BYTES_MAX];
    uint64_t bytes, bytes_max, created_ms;
};
struct topology_seen {
    uint32_t looked, hidden;
    struct topology_usage kinds[DEFECT_OBJECTS];
    struct topology_limit limits[TOPOLOGY_LIMITS_MAX]; /* the fullest ones */
    size_t limits_len;
    uint64_t work_created_ns; /* when the stream WORK was made; 0: it is not there, or hidden */
    uint64_t now_ms;          /* by the server's clock */
};
THOLE_NODISCARD thole_status topology_look(struct connection *connection, const struct topology *topology,
                                           struct topology_seen *ret, defect_fn *each, void *arg,
                                           thole_error *reterr);
/* Like topology_look(), for the consumers of queues: existing ones that differ from those that an engine
 * makes. */
THOLE_NODISCARD thole_status topology_look_queues(struct connection *connection,
                                                  const struct topology *topology, defect_fn *each, void *arg,
                                                  thole_error *reterr);
/* Like topology_look(), for the settings and the key of nonces that @p topology has from
 * topology_ensure(). */
THOLE_NODISCARD thole_status topology_look_keys(struct connection *connection,
                                                const struct topology *topology, defect_fn *each, void *arg,
                                                thole_error *reterr);
/* Like topology_look(), for the stores that not every namespace has (marked_store.h): lost ones, and those
 * that differ from their specification. For engines it also marks unmarked ones. Adds the stores found to @p
 * seen. THOLE_DENIED: this user may not see them. */
THOLE_NODISCARD thole_status topology_look_stores(struct connection *connection,
                                                  const struct topology *topology, struct topology_seen *seen,
                                                  defect_fn *each, void *arg, thole_error *reterr);
/* For engines: stores the key of nonces that @p topology has again, where the bucket or its key is gone.
 * THOLE_CONFLICT: there is another one. */
THOLE_NODISCARD thole_status topology_keep_key(struct connection *connection, const struct topology *topology,
                                               thole_error *reterr);
/* When the stream WORK was made; 0: it is not there. */
THOLE_NODISCARD thole_status topology_work_created(struct connection *connection, const char *ns,
                                                   uint64_t *ret_ns, thole_error *reterr);
/* Makes what can be made again of what is missing, puts right what may be changed: a defect whose cure is
 * not CURE_NONE. Others may do it at the same time. */
THOLE_NODISCARD thole_status topology_mend(struct connection *connection, const struct topology *topology,
                                           const struct defect *defect, thole_error *reterr);
/* The checks that both make first: THOLE_UNSUPPORTED for a server that is too old, for JetStream that is
 * off. */
THOLE_NODISCARD thole_status topology_check_version(struct connection *connection, thole_error *reterr);
THOLE_NODISCARD thole_status topology_check_jetstream(struct connection *connection, thole_error *reterr);
/* THOLE_INVALID when @p wanted, unless 0, is not the namespace's payload_max. */
THOLE_NODISCARD thole_status topology_check_payload(const struct topology *topology, uint64_t wanted,
                                                    thole_error *reterr);
/* For workers, which ask engines for the rest (queue_wish.h): checks that the queue's consumer exists, is not
 * ahead of its stream, and has the limit that was set. THOLE_INVALID: its lease is not @p lease_ms (0: any),
 * or it differs from its specification. */
THOLE_NODISCARD thole_status topology_check_queue(struct connection *connection, const char *ns,
                                                  thole_slice queue, uint64_t lease_ms,
                                                  uint64_t *ret_lease_ms, bool *ret_fits,
                                                  thole_error *reterr);
/*
 * For engines: creates the queue's durable pull consumer with the lease that is kept for it, else with an
 * ack_wait of @p lease_ms, or verifies the existing one. @p lease_ms 0 takes the existing lease, else 30 s.
 * THOLE_INVALID when it differs from the request.
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
/* Keeps the lease for when the consumer is lost. */
THOLE_NODISCARD thole_status topology_keep_lease(struct connection *connection, const char *ns,
                                                 thole_slice queue, uint64_t lease_ms, thole_error *reterr);
/* Inside streams/: one call for each difference of a queue's consumer, as the server answers it, from what a
 * engine makes. */
void topology_compare_queue(const char *ns, thole_slice queue, thole_slice info, defect_fn *each, void *arg);
/* Removes the consumer; workers ask for it again. */
THOLE_NODISCARD thole_status topology_remove_queue(struct connection *connection, const char *ns,
                                                   thole_slice queue, thole_error *reterr);
/* The depth of the queue: messages that its consumer has not delivered, and delivered ones that are not
 * acknowledged. THOLE_NOT_FOUND: the queue has no consumer yet. */
THOLE_NODISCARD thole_status topology_queue_depth(struct connection *connection, const char *ns,
                                                  thole_slice queue, uint64_t *ret_pending,
                                                  uint64_t *ret_ack_pending, thole_error *reterr);
/* The lease of its consumer, and how often that has delivered a message; 0: it has none, as no worker has
 * served the queue. */
THOLE_NODISCARD thole_status topology_queue_lease(struct connection *connection, const char *ns,
                                                  thole_slice queue, uint64_t *ret_lease_ms,
                                                  uint64_t *ret_delivered, thole_error *reterr);
/* Changes it, and keeps it for when the consumer is lost. Running workers keep the one that they began with.
 * THOLE_NOT_FOUND: it has no consumer. */
THOLE_NODISCARD thole_status topology_lease_queue(struct connection *connection, const char *ns,
                                                  thole_slice queue, uint64_t lease_ms, thole_error *reterr);
#endif
