/*
 * Which programs use up the limits of an account: a number of streams, and of consumers of each stream
 * (nats-server compares max_consumers of an account with those of one stream). When a stream is close to the
 * limit, engines get no consumer, and its partition does not open. Then the consumers' names are counted in
 * groups, by their prefix, with the role in whose inboxes they arrive.
 */
#ifndef THOLE_CROWD_H
#define THOLE_CROWD_H
#include "topology.h"

enum { CROWD_GROUPS_MAX = 64, CROWD_TEXT_BYTES = 64, CROWD_SHARE_PERCENT = 90 };

struct crowd_group {
    char begin[CROWD_TEXT_BYTES]; /* how the names begin; all of a name that has no end to cut off */
    char role[CROWD_TEXT_BYTES];  /* whose inboxes they arrive in; "": in none, as of pulls */
    uint64_t count;
};
struct crowd {
    struct crowd_group groups[CROWD_GROUPS_MAX];
    size_t len;
    uint64_t counted, ungrouped; /* all names; those for which there was no group any more */
};
/* Adds one name. @p deliver: the subject that its messages go to; empty: none. Pure. */
void crowd_add(struct crowd *crowd, const char *ns, thole_slice name, thole_slice deliver);
/* The largest groups: "900 x_* (inboxes of auditor), 30 reader_* (inboxes of engine)". Pure. */
void crowd_text(struct crowd *crowd, char *to, size_t cap);

/*
 * For engines and thole doctor: one call of @p each, with DEFECT_LIMITS, for each stream of the namespace
 * that has at least CROWD_SHARE_PERCENT of the consumers that it may have, and one for the streams of the
 * account. THOLE_DENIED: this user may not see it. Lists names only then.
 */
THOLE_NODISCARD thole_status crowd_look(struct connection *connection, const struct topology *topology,
                                        defect_fn *each, void *arg, thole_error *reterr);
#endif
