/*
 * THOLE_<ns>_AUDIT: what is published of the logs of a namespace, so that a change of them is seen: on
 * thole.<ns>.audit.<p>.leaves and thole.<ns>.audit.<p>.checkpoint. docs/audit.md has the bytes.
 */
#ifndef THOLE_AUDIT_STREAM_H
#define THOLE_AUDIT_STREAM_H
#include "reader.h"

/* Checks that the stream, from which nothing may be removed, exists. THOLE_NOT_FOUND: no engine has made it
 * yet. THOLE_CONFLICT, here and where the stream is read: it existed and is lost (marked_store.h). */
THOLE_NODISCARD thole_status audit_stream_require(struct connection *connection, const char *ns,
                                                  thole_error *reterr);
/* All messages about the partition from that sequence on, in order. None when there is no stream. Uses a
 * consumer. */
THOLE_NODISCARD thole_status audit_stream_read(struct connection *connection, const char *ns, uint32_t p,
                                               uint64_t from, stream_delivery_fn *each, void *arg,
                                               thole_error *reterr);
/* The partition whose oldest record after its last checkpoint has waited longest. */
struct audit_waiting {
    uint64_t checkpoints; /* partitions that have one; 0: nobody signs */
    uint32_t p;
    uint64_t stored_ms; /* when that record was stored, by the server's clock; 0: none waits */
};
THOLE_NODISCARD thole_status audit_stream_waiting(struct connection *connection, const char *ns,
                                                  uint32_t partitions, struct audit_waiting *ret,
                                                  thole_error *reterr);
#define AUDIT_LEAVES "leaves"
#define AUDIT_CHECKPOINT_SUBJECT "checkpoint"
#define AUDIT_LIST "folded" /* copies of records that list dispensable ones */
bool audit_stream_is(thole_slice subject, const char *what); /* leaves or checkpoint */
/* The last message of that subject. *ret_sequence 0: there is none, or no stream. */
THOLE_NODISCARD thole_status audit_stream_last(struct connection *connection, const char *ns, uint32_t p,
                                               const char *what, uint64_t *ret_sequence, struct buf *ret,
                                               thole_error *reterr);
/* THOLE_OK: it is stored. */
THOLE_NODISCARD thole_status audit_stream_publish(struct connection *connection, const char *ns, uint32_t p,
                                                  const char *what, thole_slice body, thole_error *reterr);
/* A copy of that record of the partition's log, on AUDIT_LIST. One that is not there any more is left out. */
THOLE_NODISCARD thole_status audit_stream_publish_list(struct connection *connection, const char *ns,
                                                       uint32_t p, uint64_t sequence, thole_error *reterr);
/* Leaves, if the last ones are those at *sequence (0: there are none), which becomes where these are. So the
 * stream takes one message of leaves at each place. THOLE_CONFLICT: others are there.
 */
THOLE_NODISCARD thole_status audit_stream_publish_leaves(struct connection *connection, const char *ns,
                                                         uint32_t p, thole_slice body, uint64_t *sequence,
                                                         thole_error *reterr);
#endif
