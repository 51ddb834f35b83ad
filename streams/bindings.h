/*
 * Data of `thole bind` and `thole binder` in NATS: the bucket THOLE_<ns>_BINDINGS, with a key for each rule
 * and its last STORE_BINDINGS_HISTORY revisions (stream_specs.h), and a durable pull consumer for each rule
 * on the user's stream, thole_<ns>_bind_<rule>. This file does not know the contents of a rule.
 */
#ifndef THOLE_BINDINGS_H
#define THOLE_BINDINGS_H
#include "work.h"

enum {
    BINDINGS_MAX = 1000, /* rules of a namespace */
    BINDING_CONSUMER_BYTES = 160,
    BINDING_ACK_WAIT_MS = 10000, /* messages of a dead binder come again after it */
    BOUND_HEADERS_MAX = 64,
};

/* ---- the bucket ---- */

/* Checks that the bucket exists. THOLE_NOT_FOUND: no engine has made it yet. */
THOLE_NODISCARD thole_status bindings_require(struct connection *connection, const char *ns,
                                              thole_error *reterr);
/* Any revision is replaced with BINDINGS_ANY; 0: only if there is no such key. THOLE_CONFLICT: the key has
 * another revision. */
#define BINDINGS_ANY UINT64_MAX
THOLE_NODISCARD thole_status bindings_put(struct connection *connection, const char *ns, thole_slice name,
                                          thole_slice value, uint64_t revision, uint64_t *ret_revision,
                                          thole_error *reterr);
/* *ret_revision 0: there is none. THOLE_NOT_FOUND: no bucket. */
THOLE_NODISCARD thole_status bindings_get(struct connection *connection, const char *ns, thole_slice name,
                                          struct buf *ret, uint64_t *ret_revision, thole_error *reterr);
THOLE_NODISCARD thole_status bindings_delete(struct connection *connection, const char *ns, thole_slice name,
                                             thole_error *reterr);
/* Sorted by name. Anything but THOLE_OK stops, and is returned. */
typedef thole_status bindings_fn(void *arg, thole_slice name, thole_slice value, uint64_t revision);
THOLE_NODISCARD thole_status bindings_list(struct connection *connection, const char *ns, bindings_fn *each,
                                           void *arg, thole_error *reterr);

/* All that are there, then each change; a value of length 0: deleted. From the connection's reading thread,
 * one at a time; after a lost connection perhaps again. Must not block. */
typedef void bindings_watch_fn(void *arg, thole_slice name, thole_slice value, uint64_t revision);
struct bindings_watch;
THOLE_NODISCARD thole_status bindings_watch_open(struct connection *connection, const char *ns,
                                                 bindings_watch_fn *each, void *arg,
                                                 struct bindings_watch **ret, thole_error *reterr);
void bindings_watch_close(struct bindings_watch *watch); /* NULL-safe; no callback runs afterwards */

/* ---- consumers ---- */

struct binding_consumer {
    thole_slice stream, subject;
    bool only_new; /* when it is made: only messages from then on */
    uint64_t in_flight;
};
struct binding_state {
    uint64_t pending;     /* messages that were not delivered yet */
    uint64_t ack_pending; /* delivered and not acknowledged */
    uint64_t redelivered; /* of these */
    uint64_t acked;       /* all messages of the stream up to this sequence are done */
};
void binding_consumer_name(const char *ns, thole_slice rule, char ret[BINDING_CONSUMER_BYTES]);
/* The stream that takes the subjects; those of namespaces only when no other does. THOLE_NOT_FOUND;
 * THOLE_INVALID: there are several, which the text names. */
THOLE_NODISCARD thole_status binding_stream_of(struct connection *connection, thole_slice subject,
                                               struct buf *ret, thole_error *reterr);
/* Whether messages of @p subject come to @p stream. THOLE_NOT_FOUND: no such stream; THOLE_INVALID: it takes
 * none of them; the text names those that do. */
THOLE_NODISCARD thole_status binding_stream_takes(struct connection *connection, thole_slice stream,
                                                  thole_slice subject, thole_error *reterr);
/* Makes the consumer, or changes the filter and the limit of an existing one, whose place in the stream
 * stays. THOLE_NOT_FOUND: no such stream. */
THOLE_NODISCARD thole_status binding_consumer_ensure(struct connection *connection, const char *ns,
                                                     thole_slice rule,
                                                     const struct binding_consumer *consumer,
                                                     thole_error *reterr);
/* THOLE_NOT_FOUND: no binder has made it yet, or there is no such stream. */
THOLE_NODISCARD thole_status binding_consumer_state(struct connection *connection, const char *ns,
                                                    thole_slice rule, thole_slice stream,
                                                    struct binding_state *ret, thole_error *reterr);
/* One that does not exist counts as done. */
THOLE_NODISCARD thole_status binding_consumer_delete(struct connection *connection, const char *ns,
                                                     thole_slice rule, thole_slice stream,
                                                     thole_error *reterr);

/* ---- messages ---- */

/* puller_open() on a rule's consumer. Messages have no item; bound_view() shows what they are. */
THOLE_NODISCARD thole_status binding_puller_open(struct connection *connection, const char *ns,
                                                 thole_slice rule, thole_slice stream, puller_fn *each,
                                                 puller_refused_fn *refused, void *arg, struct puller **ret,
                                                 thole_error *reterr);
/* Borrowed from the message. */
struct bound_header {
    thole_slice name, value;
};
struct bound_view {
    thole_slice subject, stream, body;
    struct bound_header headers[BOUND_HEADERS_MAX]; /* by name */
    size_t headers_len;
    bool more_headers; /* than there is room for */
    uint64_t sequence, stored_ns, deliveries;
};
void bound_view(const struct work_message *message, struct bound_view *ret);
#endif
