/* Histories that are read before they are written to an archive: many at once, as each takes round trips. */
#ifndef THOLE_ARCHIVE_AHEAD_H
#define THOLE_ARCHIVE_AHEAD_H
#include "archive_pick.h"
#include "history_linked.h"
#include "holds.h"

enum { ARCHIVE_AHEAD_MAX = 256 };

/* The records of a candidate, read ahead. A history that is long, large, or goes on is not kept: its user
 * reads it. */
struct archive_read {
    bool judged;
    enum archive_why why;
    struct linked_history history;
    struct log_rule owner; /* of its partition, after it was read; where it is whole */
};
struct archive_ahead {
    struct archive_read reads[ARCHIVE_AHEAD_MAX];
    size_t first, len; /* of which candidates */
    struct holds_mentioned mentioned;
};
/* Reads some from @p first on, unless they are few: then none. Released by the next, and by
 * archive_ahead_release(). */
THOLE_NODISCARD thole_status archive_ahead_read(struct archive_ahead *ahead, thole_client *client,
                                                const struct archive_picked *picked, size_t first,
                                                thole_error *reterr);
/* NULL: it was not read. */
const struct archive_read *archive_ahead_of(const struct archive_ahead *ahead, size_t candidate);
/* As client_history_records(), from what was read, or, where that is not known to be whole, read now. */
THOLE_NODISCARD thole_status archive_read_records(thole_client *client, thole_slice instance,
                                                  const struct archive_read *read, client_record_fn *each,
                                                  void *arg, thole_error *reterr);
void archive_ahead_release(struct archive_ahead *ahead); /* also when zeroed */
#endif
