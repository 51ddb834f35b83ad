/* Instances that others have started: by their rows in Postgres. */
#ifndef THOLE_CHILDREN_H
#define THOLE_CHILDREN_H
#include "buf.h"
#include "thole/client.h"

struct children {
    struct buf ids; /* each followed by a NUL, parents before their children */
    size_t len;
};

/* The children of @p instance, of whichever incarnation, that have rows: at most CHILDREN_SHOWN_MAX. The
 * caller releases @p ret in any case, also of the next. */
enum { CHILDREN_SHOWN_MAX = 1000 };
THOLE_NODISCARD thole_status children_read(thole_client *client, thole_slice instance, struct children *ret,
                                           thole_error *reterr);
/* All of them, their children, and so on. THOLE_LIMIT: more than can be taken at once. */
THOLE_NODISCARD thole_status children_read_all(thole_client *client, thole_slice instance,
                                               struct children *ret, thole_error *reterr);
/* The id at @p at, 0 at first, which moves to the next one. False: no more. */
bool children_next(const struct children *children, size_t *at, thole_slice *ret);
void children_release(struct children *children);
#endif
