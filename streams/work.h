/*
 * The WORK stream: activity messages, pulled by workers. The subject says which try of which activity it is,
 * the header Thole-Activity its name, Thole-Nonce what its result must carry (nonce.h), Thole-Results: list
 * that all engines take several results in one message, and the body is the raw input, so that a worker in
 * any language needs no protobuf.
 */
#ifndef THOLE_WORK_H
#define THOLE_WORK_H
#include "requests.h"
#include "trace.h"
#include "work_digest.h"

struct work_item {
    thole_slice queue, instance, activity, input;
    thole_slice nonce;                           /* see nonce.h */
    struct trace trace;                          /* not part of its digest */
    uint64_t execution, activity_id, try_number; /* from 1; in messages at most INT64_MAX, tries INT32_MAX */
    bool lists; /* the result may be in a message with others (result_list.h); no part of the digest,
                   either */
};
/* Publishes to the item's own subject, also when it has a message already. Statuses of requests_publish(). */
THOLE_NODISCARD thole_status work_publish(struct requests *requests, const char *ns,
                                          const struct work_item *item, uint64_t token, thole_error *reterr);
/* Asks the stream's leader whether the item is queued; its input and activity are not looked at. The answer
 * is for work_look_answer(). */
THOLE_NODISCARD thole_status work_look(struct requests *requests, const char *ns,
                                       const struct work_item *item, uint64_t token, thole_error *reterr);

/* The newest message on the item's subject; sequence 0: none, or, if the later one of two was removed, not
 * known. *ret_digest: of what it says, if a worker could read it; else *ret_read is false, and a worker will
 * remove it. */
THOLE_NODISCARD thole_status work_look_answer(thole_slice answer, thole_slice queue, uint64_t *ret_sequence,
                                              bool *ret_read, struct work_digest *ret_digest,
                                              thole_error *reterr);

/* A delivered message; owned by its holder; free with work_message_destroy(). */
struct work_message {
    struct work_item item;     /* slices borrow from the message */
    struct work_digest digest; /* of what it says */
    uint64_t deliveries;       /* a hint only */
    uint64_t sequence;         /* in WORK */
    char *reply;               /* of the newest delivery */
    void *native;
};
/* One that another worker has: it cannot be signalled until work_message_adopt(). Copies the
 * item, without its trace. */
struct work_message *work_message_elsewhere(const struct work_item *item, const struct work_digest *digest);
void work_message_destroy(struct work_message *message); /* NULL-safe; sends nothing */
/* @p again is a later delivery of the same message: signals for @p message use it from now on. Takes @p
 * again. */
void work_message_adopt(struct work_message *message, struct work_message *again);

/*
 * Signals are hints. The server identifies the message by its sequence in WORK, not by the delivery or the
 * connection: +WPI from any sender postpones the redelivery by an ack-wait from now; -NAK causes a
 * redelivery, at once or after a delay; both do nothing when the server has no pending delivery of it, or has
 * already chosen it for redelivery. +ACK removes it, however late. So send an ACK only for a message that is
 * not needed any more; no signal decides who may run a try.
 */
enum work_signal { WORK_ACK, WORK_NAK, WORK_PROGRESS, WORK_TERM };
/* Does not wait. THOLE_UNAVAILABLE: nothing was sent, there is no connection. */
THOLE_NODISCARD thole_status work_message_signal(struct connection *connection,
                                                 const struct work_message *message, enum work_signal signal,
                                                 thole_error *reterr);
/* -NAK: it is redelivered after @p delay_ms, to any worker that pulls then. */
THOLE_NODISCARD thole_status work_message_put_back(struct connection *connection,
                                                   const struct work_message *message, uint64_t delay_ms,
                                                   thole_error *reterr);

/*
 * Pulls from one queue's durable consumer with raw requests (nats.c's Fetch is not used: heap overflow before
 * 3.8.3, 1 ms per call). Keeps requests for at least half of the wanted messages; requests again after two
 * missed idle heartbeats, after 404/408/409/503 answers (with growing pauses) and after a reconnect; never
 * polls. Messages that are no longer wanted are handed back (-NAK) at once.
 */
struct puller;
typedef void puller_fn(void *arg,
                       struct work_message *message); /* takes the message; the connection's reading thread */
/* A malformed message (headers missing, subject and headers disagree) goes here; it stays unacknowledged
 * until this terminates it. Text says what is wrong. */
typedef void puller_bad_fn(void *arg, struct work_message *message, const char *text);
/* The server refused a request: the consumer does not exist, or there are no responders. The request is
 * repeated in any case. May be NULL; must not block. */
typedef void puller_refused_fn(void *arg);
THOLE_NODISCARD thole_status puller_open(struct connection *connection, const char *ns, thole_slice queue,
                                         puller_fn *each, puller_bad_fn *bad, puller_refused_fn *refused,
                                         void *arg, struct puller **ret, thole_error *reterr);
/* From now on at most @p free_slots more messages are wanted in total (replaces the earlier number; every
 * delivery decrements it). 0 = stop pulling. Thread-safe, does not block. */
void puller_want(struct puller *puller, uint32_t free_slots);
/* NULL-safe; no callback runs after it returns. Later deliveries are handed back. */
void puller_close(struct puller *puller);
#endif
