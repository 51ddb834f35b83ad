/* Inside streams/: ephemeral push consumers without acknowledgement, and JetStream's reply subjects. Pure
 * except push_remove(). */
#ifndef THOLE_PUSH_CONSUMER_H
#define THOLE_PUSH_CONSUMER_H
#include "link.h"

enum { PUSH_NAME_BYTES = 64, PUSH_JSON_MAX = 4096, PUSH_API_BYTES = 512 };

struct push_options {
    const char *stream, *filter; /* filter NULL = all */
    const char *name, *deliver;  /* the consumer's name; where it sends to */
    uint64_t from;               /* 0 or 1: from the beginning */
    bool last_per_subject;       /* instead of from; filter NULL = ">" */
    uint64_t heartbeat_ms;
    uint64_t expires_ms; /* the server removes it when nobody has listened for so long */
};
enum { PUSH_EXPIRES_MS = 30000 };
/*
 * The name of a consumer that delivers to @p inbox: KIND_<connection>_<unique>, the last two tokens of the
 * inbox, so it has 132 random bits. NATS permits whole tokens only, so it cannot permit some consumers of a
 * stream and not others by how their names begin: what protects one is that others do not know its name.
 */
void push_name(const char *kind, const char *inbox, char ret[PUSH_NAME_BYTES]);
/* The API subject and the request that make it. THOLE_INVALID: a name does not fit. */
THOLE_NODISCARD thole_status push_request(const struct push_options *options,
                                          char ret_subject[PUSH_API_BYTES], struct buf *to,
                                          thole_error *reterr);
/* Requests its removal without waiting. */
void push_remove(struct link *link, const char *stream, const char *name);
/* Answers a flow control message; false when @p reply is not one. */
bool push_flow_reply(struct link *link, thole_slice reply);

/* $JS.ACK.… of a delivered message, in both forms. */
struct ack_meta {
    thole_slice stream, consumer;
    uint64_t deliveries, stream_sequence, consumer_sequence, stored_ns, pending;
};
bool ack_parse(thole_slice reply, struct ack_meta *ret);
bool slice_uint(thole_slice text, uint64_t *ret); /* decimal digits that fit */
#endif
