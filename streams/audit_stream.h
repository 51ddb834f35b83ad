/*
 * THOLE_<ns>_AUDIT: what is published of the logs of a namespace, so that a change of them is seen: on
 * thole.<ns>.audit.<p>.leaves and thole.<ns>.audit.<p>.checkpoint. docs/audit.md has the bytes.
 */
#ifndef THOLE_AUDIT_STREAM_H
#define THOLE_AUDIT_STREAM_H
#include "reader.h"

/* Makes the stream, unless it is there: nothing may be removed from it. */
THOLE_NODISCARD thole_status audit_stream_ensure(struct connection *connection, const char *ns,
                                                 uint32_t replicas, thole_error *reterr);
/* All messages about the partition, in order. None when there is no stream. Uses a consumer. */
THOLE_NODISCARD thole_status audit_stream_read(struct connection *connection, const char *ns, uint32_t p,
                                               stream_delivery_fn *each, void *arg, thole_error *reterr);
#define AUDIT_LEAVES "leaves"
#define AUDIT_CHECKPOINT_SUBJECT "checkpoint"
bool audit_stream_is(thole_slice subject, const char *what); /* leaves or checkpoint */
/* THOLE_OK: it is stored. */
THOLE_NODISCARD thole_status audit_stream_publish(struct connection *connection, const char *ns, uint32_t p,
                                                  const char *what, thole_slice body, thole_error *reterr);
#endif
