/*
 * The rows as they are stored, for who compares them with the history, and their mending. Statuses: see
 * postgres.h.
 */
#ifndef THOLE_ROW_STORE_H
#define THOLE_ROW_STORE_H
#include "arena.h"
#include "postgres.h"
#include "row_check.h"

struct row_partition {
    uint64_t watermark; /* all records up to here are in the rows */
    uint64_t epoch;     /* 0: no engine has ever opened the partition */
    bool complete;      /* false: its rows are being made again */
};
THOLE_NODISCARD thole_status row_store_partition(struct postgres *pg, uint32_t p, struct row_partition *ret,
                                                 thole_error *reterr);

typedef thole_status row_id_fn(void *arg, thole_slice instance);
/* Every instance of which a row says that it is of partition @p p, each once, in order. @p each must not use
 * the connection. Reads pages along the primary keys. */
THOLE_NODISCARD thole_status row_store_ids(struct postgres *pg, uint32_t p, row_id_fn *each, void *arg,
                                           thole_error *reterr);
/* Of rows that say they are of a partition that there is not, at most 10,000. Reads all rows. */
THOLE_NODISCARD thole_status row_store_stray(struct postgres *pg, uint32_t partitions, row_id_fn *each,
                                             void *arg, thole_error *reterr);

/* Instances of the partition of which rows are set aside, each once, in order. */
THOLE_NODISCARD thole_status row_store_set_aside(struct postgres *pg, uint32_t p, row_id_fn *each, void *arg,
                                                 thole_error *reterr);

/* All rows of an instance, sorted, in @p arena, and before them its partition's watermark. */
THOLE_NODISCARD thole_status row_store_read(struct postgres *pg, thole_slice instance, uint32_t p,
                                            struct arena *arena, struct row_partition *ret_partition,
                                            struct stored_row **ret, size_t *ret_len, thole_error *reterr);

/*
 * Mending, in one transaction of several calls:
 *
 *   row_store_fence()   locks the partition and fences its owner, which opens it again when that is committed
 *   row_store_read(), row_store_mend()   for each instance
 *   row_store_commit()
 *
 * On an error, and by row_store_rollback(), it is undone.
 */
THOLE_NODISCARD thole_status row_store_fence(struct postgres *pg, uint32_t p, thole_error *reterr);
/* Removes what should not be there, adds what is missing, and writes what is wrong. Claims of rows that are
 * still right stay. Rows that Postgres refuses for what is in them are set aside, and no others of the
 * instance any more; *ret_refused: how many. THOLE_INVALID: a table takes no row. */
THOLE_NODISCARD thole_status row_store_mend(struct postgres *pg, thole_slice instance, uint32_t p,
                                            const struct row_difference *differences, size_t n,
                                            size_t *ret_refused, thole_error *reterr);
THOLE_NODISCARD thole_status row_store_commit(struct postgres *pg, thole_error *reterr);
void row_store_rollback(struct postgres *pg);
#endif
