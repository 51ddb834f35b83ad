/*
 * Short histories, read from the newest record back by what each record says of the one before it: its
 * sequence and its hash. The server has a record at once by its sequence; by a subject it looks through all
 * that stands between two records of the instance. The hashes leave no gap, so the history is whole as of the
 * newest record, whatever is deleted meanwhile.
 */
#ifndef THOLE_HISTORY_LINKED_H
#define THOLE_HISTORY_LINKED_H
#include "client_internal.h"

enum { LINKED_RECORDS_MAX = 64, LINKED_BYTES_MAX = 1024 * 1024 };

struct linked_record {
    uint64_t sequence;
    size_t at, len; /* in `bytes` */
};
struct linked_history {
    /* False: it is to be read otherwise, as it is long or large, has records that do not say what is before
     * them or were removed, or there is none. */
    bool whole;
    struct linked_record records[LINKED_RECORDS_MAX]; /* the newest first */
    size_t len;
    struct buf bytes;
    struct life life; /* the last deletion before the oldest record, and the first execution */
};
/* Released in any case. */
THOLE_NODISCARD thole_status linked_history_read(struct thole_client *client, thole_slice instance,
                                                 struct linked_history *ret, thole_error *reterr);
/* Of @p n instances side by side, each of at most @p bytes_max. One whose requests fail is not whole. */
THOLE_NODISCARD thole_status linked_histories_read(struct thole_client *client, const thole_slice *instances,
                                                   size_t n, size_t bytes_max, struct linked_history *ret,
                                                   thole_error *reterr);
thole_slice linked_history_nth(const struct linked_history *history, size_t i);
void linked_history_release(struct linked_history *history); /* also when zeroed */

/*
 * As client_history_records(), of a whole one. @p owner: owner_read() after it was read. *ret_done false:
 * nothing was given, as its newest record does not count; it is to be read otherwise.
 */
THOLE_NODISCARD thole_status linked_history_give(struct thole_client *client, thole_slice instance,
                                                 const struct linked_history *history,
                                                 const struct log_rule *owner, client_record_fn *each,
                                                 void *arg, bool *ret_done, thole_error *reterr);
#endif
