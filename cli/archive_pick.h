/* Which instances an archive takes: those that have ended, by age, status, orchestration and prefix; and old
 * executions of those that continue as new. */
#ifndef THOLE_ARCHIVE_PICK_H
#define THOLE_ARCHIVE_PICK_H
#include "client_internal.h"
#include "command.h"

struct archive_candidate {
    thole_slice instance, parent; /* allocated together */
    uint64_t ended_ms;
    uint64_t upto;  /* of an instance that goes on: executions up to this one; 0: it has ended, and all of
                       it goes */
    uint64_t after; /* of these, what was archived by this pass */
};
struct archive_picked {
    struct archive_candidate *items; /* by end, the earliest first */
    size_t len, cap;
};
/* By the projection's rows; what the histories say counts, later. THOLE_INVALID without a text: it was
 * complained already. Released in any case. */
THOLE_NODISCARD thole_status archive_pick(const struct cli *cli, thole_client *client,
                                          struct archive_picked *ret, thole_error *reterr);
void archive_picked_release(struct archive_picked *picked);
/* --ended-before or --older-than. False after a complaint. */
bool archive_age_is_good(const struct cli *cli, int *ret_code);

enum archive_why { ARCHIVE_GOES, ARCHIVE_HELD, ARCHIVE_PARENT_RUNS };
/* Whether the candidate may go, or the reason why it stays. */
THOLE_NODISCARD thole_status archive_judge(thole_client *client, const struct archive_candidate *candidate,
                                           enum archive_why *ret, thole_error *reterr);
#endif
