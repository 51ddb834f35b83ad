/*
 * Legal holds: instances that must not be deleted, pruned or archived, in the bucket THOLE_<ns>_HOLDS. A key
 * for each instance, whose values say who has set or released a hold, when and why. The last HOLDS_HISTORY
 * values of each stay. In NATS, so that a projection that is made again does not lose them.
 */
#ifndef THOLE_HOLDS_H
#define THOLE_HOLDS_H
#include "connection.h"

enum { HOLDS_HISTORY = 64, HOLDS_MAX = 1000 * 1000 /* instances of a namespace */ };

struct hold {
    thole_slice instance;
    bool held; /* false: this released it */
    thole_slice by, reason;
    uint64_t time_ms;
    uint64_t revision;
};
/* Slices are borrowed for the call. Anything but THOLE_OK stops, and is returned. */
typedef thole_status hold_fn(void *arg, const struct hold *hold);

/* Makes the bucket unless it is there. @p replicas: of the namespace. */
THOLE_NODISCARD thole_status holds_ensure(struct connection *connection, const char *ns, uint32_t replicas,
                                          thole_error *reterr);
/* THOLE_CONFLICT: it is held already, or, for a release, it is not; THOLE_INVALID: no id is so. The revision
 * of @p hold is not looked at; *ret_revision is the one that it has. */
THOLE_NODISCARD thole_status holds_put(struct connection *connection, const char *ns, const struct hold *hold,
                                       uint64_t *ret_revision, thole_error *reterr);
/* Whether it is held, asked of the bucket's leader. @p each, which may be NULL, gets the hold, if there is
 * one. No bucket: it is not held. */
THOLE_NODISCARD thole_status holds_find(struct connection *connection, const char *ns, thole_slice instance,
                                        bool *ret_held, hold_fn *each, void *arg, thole_error *reterr);
/* The holds of all instances that are held now, in the order of their ids. */
THOLE_NODISCARD thole_status holds_list(struct connection *connection, const char *ns, hold_fn *each,
                                        void *arg, thole_error *reterr);
/* All that was said of one instance, releases too, in order. */
THOLE_NODISCARD thole_status holds_history(struct connection *connection, const char *ns,
                                           thole_slice instance, hold_fn *each, void *arg,
                                           thole_error *reterr);
#endif
