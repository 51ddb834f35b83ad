/*
 * Makes all rows of a namespace again in a second schema, while engines and workers use the first, and puts
 * it in the first one's place: see schema_next.h. First the rows of all instances, then again and again those
 * of instances that had records meanwhile, until there are few. The owners project the rest when they open
 * their partitions again.
 */
#ifndef THOLE_ROW_REBUILD_H
#define THOLE_ROW_REBUILD_H
#include "row_checker.h"

struct row_rebuild {
    struct row_counts counts; /* wrong, mended: rows that were written */
    unsigned passes;          /* over what had changed */
    uint64_t switch_ms;       /* how long programs waited at most */
};
/* @p options: of the checker; pg, mend, alone and report are not used. THOLE_CONFLICT: another one is under
 * way. Unless it is THOLE_OK the first schema is as it was. */
THOLE_NODISCARD thole_status row_rebuild(const struct row_checker_options *options,
                                         const struct postgres_options *postgres, struct row_rebuild *ret,
                                         thole_error *reterr);
#endif
