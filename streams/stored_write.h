/* A message to a subject of a stream, that is stored when the call returns: a bucket's key, a record. */
#ifndef THOLE_STORED_WRITE_H
#define THOLE_STORED_WRITE_H
#include "connection.h"

#define STORED_WRITE_ANY UINT64_MAX
struct stored_write {
    const char *subject;
    uint64_t expected;     /* sequence of the subject's last message, 0: it has none; STORED_WRITE_ANY */
    thole_slice operation; /* KV-Operation of a bucket's key; empty: none */
    thole_slice body;
};
/* THOLE_CONFLICT: another message is the subject's last; nothing was stored. THOLE_UNAVAILABLE: it may be
 * stored. @p ret_sequence may be NULL. */
THOLE_NODISCARD thole_status stored_write(struct connection *connection, const struct stored_write *write,
                                          uint64_t *ret_sequence, thole_error *reterr);
#endif
