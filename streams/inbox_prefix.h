/*
 * Where the answers to a user of NATS arrive. Every inbox of a connection is PREFIX.CONNECTION.UNIQUE, with a
 * random name of the connection, so that the permission to subscribe to PREFIX.> is all that a user needs to
 * hear its own answers, and lets nobody hear another's.
 */
#ifndef THOLE_INBOX_PREFIX_H
#define THOLE_INBOX_PREFIX_H
#include "thole/types.h"

#define INBOX_PREFIX_DEFAULT "_INBOX.thole"
enum {
    INBOX_PREFIX_BYTES_MAX = 64,
    INBOX_CONNECTION_BYTES = 22, /* of 64 letters each: 132 random bits */
    INBOX_OF_CONNECTION_BYTES = INBOX_PREFIX_BYTES_MAX + 1 + INBOX_CONNECTION_BYTES + 1,
};

/* THOLE_INVALID with a sentence unless engines and workers answer below @p prefix: see subject_is_reply(). */
THOLE_NODISCARD thole_status inbox_prefix_check(const char *prefix, thole_error *reterr);
/* PREFIX.CONNECTION of a new connection; of a prefix that inbox_prefix_check() takes. */
THOLE_NODISCARD thole_status inbox_of_connection(const char *prefix, char ret[INBOX_OF_CONNECTION_BYTES],
                                                 thole_error *reterr);
#endif
