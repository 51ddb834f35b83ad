/*
 * The subjects that a user of NATS may publish and subscribe to, by its role. NATS matches whole tokens, and
 * stream names have one for each partition, so the number of partitions is an input. Pure.
 */
#ifndef THOLE_NATS_PERMISSIONS_H
#define THOLE_NATS_PERMISSIONS_H
#include "inbox_prefix.h"
#include "thole/types.h"

/* Lists are names with commas between them; NULL: not narrowed. */
struct permission_wish {
    const char *roles; /* "engine", "engine,worker" */
    const char *ns;
    const char *inbox; /* prefix of the user's inboxes; NULL: one of each role, or of each of its queues */
    const char *api_prefix; /* where it asks JetStream */
    uint32_t partitions;
    const char *verbs;          /* instead of a client's usual ones */
    const char *queues;         /* of a worker; NULL: default */
    const char *orchestrations; /* those that it may start */
    const char *events;         /* those that it may raise */
    const char *queries;        /* those that it may ask */
    const char *bound;          /* streams of messages that may be bound */
    const char *actor;          /* the only one that it may be; NULL: any, but only stated */
};

struct permissions {
    struct permission_wish wish;
    uint64_t rights; /* enum right of nats_permissions.c */
    bool answers;    /* answers requests: allow_responses */
};

/* THOLE_INVALID with a sentence for what is no role, verb or name. Borrows the texts of @p wish. */
THOLE_NODISCARD thole_status permissions_make(const struct permission_wish *wish, struct permissions *ret,
                                              thole_error *reterr);

/* The @p i-th prefix of the user's inboxes; false after the last. */
bool permissions_inbox(const struct permissions *permissions, size_t i, char ret[INBOX_PREFIX_BYTES_MAX + 1]);

enum permission_side { PERMISSION_PUBLISH, PERMISSION_SUBSCRIBE };
typedef void permission_fn(void *arg, const char *subject);
/* Calls @p each for every subject of that side, none twice. */
void permissions_each(const struct permissions *permissions, enum permission_side side, permission_fn *each,
                      void *arg);
/* Of those, the subjects that pass between the user's account and that of the streams, when the two are
 * different. Messages between workers, gateways and their clients do not pass: these share an account. */
void permissions_each_crossing(const struct permissions *permissions, enum permission_side side,
                               permission_fn *each, void *arg);
/* False: the user belongs into the account of the streams. An engine makes them; a binder, an auditor, a
 * notary and an archivist have the server deliver to subjects, which does not pass between accounts. */
bool permissions_may_cross(const struct permissions *permissions);
#endif
