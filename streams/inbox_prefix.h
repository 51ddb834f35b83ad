/*
 * Where the answers to a user of NATS arrive: each role has a prefix of its own, workers and gateways one for
 * each queue. Every inbox of a connection is PREFIX.CONNECTION.UNIQUE, with a
 * random name of the connection, so that the permission to subscribe to PREFIX.> is all that a user needs to
 * hear its own answers, and lets nobody hear another's.
 */
#ifndef THOLE_INBOX_PREFIX_H
#define THOLE_INBOX_PREFIX_H
#include "thole/types.h"

#define INBOX_PREFIX_DEFAULT "_INBOX.thole" /* of connections that belong to no role */
enum {
    INBOX_PREFIX_BYTES_MAX = 288, /* _INBOX_<ns>_<role>_<queue>, with each underscore in two names twice */
    INBOX_CONNECTION_BYTES = 22,  /* of 64 letters each: 132 random bits */
    INBOX_OF_CONNECTION_BYTES = INBOX_PREFIX_BYTES_MAX + 1 + INBOX_CONNECTION_BYTES + 1,
};

/* THOLE_INVALID with a sentence unless engines and workers answer below @p prefix: see subject_is_reply(). */
THOLE_NODISCARD thole_status inbox_prefix_check(const char *prefix, thole_error *reterr);
/* PREFIX.CONNECTION of a new connection; of a prefix that inbox_prefix_check() takes. */
THOLE_NODISCARD thole_status inbox_of_connection(const char *prefix, char ret[INBOX_OF_CONNECTION_BYTES],
                                                 thole_error *reterr);
/*
 * _INBOX_<ns>_<role>, or _INBOX_<ns>_<role>_<queue>. An underscore of ns or queue is written twice, so that
 * no two owners have one prefix.
 */
struct inbox_owner {
    const char *ns, *role, *queue; /* queue NULL: the role has one prefix for all */
};
void inbox_prefix_of(const struct inbox_owner *owner, char ret[INBOX_PREFIX_BYTES_MAX + 1]);
/* @p chosen, unless it is NULL: then that of the owner, in @p room. */
const char *inbox_prefix_or_own(const char *chosen, const struct inbox_owner *owner,
                                char room[INBOX_PREFIX_BYTES_MAX + 1]);
#endif
