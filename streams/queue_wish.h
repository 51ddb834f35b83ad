/*
 * Requests to the engines about a queue. A worker, before it pulls, asks them to give the queue the right
 * consumer; a user who sets the queue's limit or lease asks them to apply it. Only engines make and change
 * consumers of queues: a user who may do so may also filter a consumer to nothing, stop it, or have the
 * server deliver its messages elsewhere. Requests on thole.<ns>.queues.<queue> and
 * thole.<ns>.queues.<queue>.settings, core NATS, that one of the engines answers; body and answer are JSON
 * (docs/wire.md).
 */
#ifndef THOLE_QUEUE_WISH_H
#define THOLE_QUEUE_WISH_H
#include "connection.h"
#include "subject.h"

enum { QUEUE_WISH_SUBJECT_BYTES = 2 * THOLE_NAME_BYTES_MAX + 32 };

enum queue_wish_kind {
    QUEUE_WISH_CONSUMER, /* the consumer must exist; number: its lease, 0 = any */
    QUEUE_WISH_LEASE,    /* number: the lease that it gets */
    QUEUE_WISH_LIMIT,    /* number: how many of its activities run at once, 0 = any number */
};
struct queue_wish {
    enum queue_wish_kind kind;
    thole_slice queue;
    uint64_t number;
};

/* An empty queue: of any. Both were checked. */
void queue_wish_subject(const char *ns, const char *queue, char ret[QUEUE_WISH_SUBJECT_BYTES]);
void queue_settings_subject(const char *ns, const char *queue, char ret[QUEUE_WISH_SUBJECT_BYTES]);

/*
 * For workers: returns when the queue has a consumer that fits, after it has asked the engines where it has
 * none, is ahead of its stream, or has another limit than was set. @p lease_ms: what its lease must be, and
 * what a new one gets; 0: any, and 30 s. *@p ret_lease_ms: what it is. *@p ret_asked (may be NULL): an engine
 * made it, or put it right. Blocks for a few requests.
 *
 * THOLE_UNAVAILABLE: try again; the text says so when no engine answers. THOLE_INVALID: it has another lease,
 * or is not a queue's. Where engines live that are older than contract 2.15, and do not answer, it is made
 * here, as workers of before did.
 */
THOLE_NODISCARD thole_status queue_wish(struct connection *connection, const char *ns, thole_slice queue,
                                        uint64_t lease_ms, uint64_t *ret_lease_ms, bool *ret_asked,
                                        thole_error *reterr);

/* For who sets its limit or lease: returns when an engine has done so. THOLE_UNAVAILABLE: none has answered;
 * older ones than contract 2.16 do not. */
THOLE_NODISCARD thole_status queue_wish_setting(struct connection *connection, const char *ns,
                                                const struct queue_wish *wish, thole_error *reterr);

/* For engines: what @p delivery wishes. THOLE_INVALID: it is none. The queue is borrowed. */
THOLE_NODISCARD thole_status queue_wish_read(const struct delivery *delivery, struct queue_wish *ret,
                                             thole_error *reterr);
/* Makes it, or puts it right: topology_ensure_queue(), with the lease that the queue had before when it was
 * lost. Or changes its limit or lease. */
THOLE_NODISCARD thole_status queue_wish_fulfil(struct connection *connection, const char *ns,
                                               const struct queue_wish *wish, uint64_t *ret_lease_ms,
                                               bool *ret_made, thole_error *reterr);
/* The answer to @p reply; @p error: of a status that is not THOLE_OK. */
THOLE_NODISCARD thole_status queue_wish_answer(struct connection *connection, const char *reply,
                                               thole_status status, uint64_t lease_ms,
                                               const thole_error *error, thole_error *reterr);
#endif
