/*
 * Legal holds: instances that must not be deleted, pruned or archived, in the bucket THOLE_<ns>_HOLDS. A key
 * for each instance, whose values say who has set or released a hold, when and why. The last
 * STORE_HOLDS_HISTORY values of each stay (stream_specs.h). In NATS, so that a projection that is made again
 * does not lose them.
 */
#ifndef THOLE_HOLDS_H
#define THOLE_HOLDS_H
#include "connection.h"

enum { HOLDS_MAX = 1000 * 1000 /* instances of a namespace */ };

struct hold {
    thole_slice instance;
    bool held; /* false: this released it */
    thole_slice by, reason;
    uint64_t time_ms;
    uint64_t revision;
};
/* Slices are borrowed for the call. Anything but THOLE_OK stops, and is returned. */
typedef thole_status hold_fn(void *arg, const struct hold *hold);

/* Checks that the bucket exists. THOLE_NOT_FOUND: no engine has made it yet. THOLE_CONFLICT, here and in all
 * functions below: it existed and is lost (marked_store.h), together with all holds. */
THOLE_NODISCARD thole_status holds_require(struct connection *connection, const char *ns,
                                           thole_error *reterr);
/* THOLE_CONFLICT: it is held already, or, for a release, it is not; THOLE_INVALID: no id is so. The revision
 * of @p hold is not looked at; *ret_revision is the one that it has. */
THOLE_NODISCARD thole_status holds_put(struct connection *connection, const char *ns, const struct hold *hold,
                                       uint64_t *ret_revision, thole_error *reterr);
/* Whether it is held, asked of the bucket's leader. @p each, which may be NULL, gets the hold, if there is
 * one. No bucket, and none was ever made: it is not held. */
THOLE_NODISCARD thole_status holds_find(struct connection *connection, const char *ns, thole_slice instance,
                                        bool *ret_held, hold_fn *each, void *arg, thole_error *reterr);
/*
 * The instances of which anything was ever said: only these can be held. They become more, never fewer, so
 * that what is new alone is read; when nothing is, one question is enough for many instances.
 */
struct holds_mentioned {
    uint64_t *hashes; /* of ids, as their keys are encoded */
    size_t len, cap;
    uint64_t revision; /* all up to here are known */
};
enum { HOLDS_MENTIONED_MAX = 4096 };
/* Up to now, by the bucket's leader. THOLE_LIMIT: more than HOLDS_MENTIONED_MAX; ask for each instead. A
 * failed call may be repeated. */
THOLE_NODISCARD thole_status holds_mentioned_read(struct connection *connection, const char *ns,
                                                  struct holds_mentioned *mentioned, thole_error *reterr);
/* False: it is not held. */
bool holds_mentioned_has(const struct holds_mentioned *mentioned, thole_slice instance);
void holds_mentioned_release(struct holds_mentioned *mentioned); /* also when zeroed */
/* The holds of all instances that are held now, in the order of their ids. */
THOLE_NODISCARD thole_status holds_list(struct connection *connection, const char *ns, hold_fn *each,
                                        void *arg, thole_error *reterr);
/* All that was said of one instance, releases too, in order. */
THOLE_NODISCARD thole_status holds_history(struct connection *connection, const char *ns,
                                           thole_slice instance, hold_fn *each, void *arg,
                                           thole_error *reterr);
#endif
