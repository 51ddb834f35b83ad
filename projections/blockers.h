/*
 * Sessions of the roles of workers and readers that keep the engines' from going on: a worker may lock rows,
 * and the table of the queue, and keep its transaction open for as long as it likes. The role of engines is a
 * member of theirs (deploy/postgres/roles.sql), so it sees them and may end them.
 */
#ifndef THOLE_BLOCKERS_H
#define THOLE_BLOCKERS_H
#include "postgres.h"

enum { BLOCKER_HELD_MS = 20000, BLOCKER_WAITED_MS = 2000, BLOCKERS_MAX = 32 };

struct blocker {
    thole_slice role, address,
        application; /* borrowed for the call; what the session says of itself is cut */
    uint64_t pid, held_ms;
};
typedef void blocker_fn(void *arg, const struct blocker *blocker);
/* Ends each of these sessions whose transaction is older than BLOCKER_HELD_MS while a session of this user
 * waits for it for longer than BLOCKER_WAITED_MS; one call for each. */
THOLE_NODISCARD thole_status blockers_end(struct postgres *pg, blocker_fn *each, void *arg,
                                          thole_error *reterr);
#endif
