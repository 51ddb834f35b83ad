/*
 * The REJECTED stream: the newest inbox messages that could not be taken, for their senders and operators.
 *   thole.<ns>.rejected.<p>; headers Thole-Code (see reject_code_name()), Thole-Reason, Thole-Subject (that
 *   it was published to; bytes that are not printable ASCII as %XX), Thole-Sequence and Thole-Time (RFC 3339)
 *   in the inbox, Thole-Bytes (of the whole message), Nats-Msg-Id (so that it is kept once when it is found
 *   twice) and as body the message itself, cut.
 */
#ifndef THOLE_REJECTED_H
#define THOLE_REJECTED_H
#include "arena.h"
#include "requests.h"

struct rejected_item {
    uint32_t partition;
    const char *event;            /* of a CloudEvent: its Nats-Msg-Id; else NULL */
    const char *binding;          /* of a rule of thole bind: on thole.<ns>.rejected.bind-<rule>; else NULL */
    uint64_t sequence, stored_ns; /* in the inbox; of a CloudEvent its event id and time */
    uint32_t part;                /* of several results in that message, from 0 */
    thole_slice code, reason, subject, payload;
    uint64_t bytes;
    uint64_t number; /* in the stream; only where it was read */
};
/* Statuses of requests_publish(). */
THOLE_NODISCARD thole_status rejected_publish(struct requests *requests, const char *ns,
                                              const struct rejected_item *item, uint64_t token,
                                              thole_error *reterr);

struct rejected_list {
    uint64_t behind, most;       /* requested: those with smaller numbers (0: all), and at most how many */
    struct arena arena;          /* the caller's */
    struct rejected_item *items; /* the newest last */
    size_t len;
};
/* Blocking. THOLE_NOT_FOUND: the stream does not exist. */
THOLE_NODISCARD thole_status rejected_read(struct connection *connection, const char *ns,
                                           struct rejected_list *list, thole_error *reterr);
#endif
