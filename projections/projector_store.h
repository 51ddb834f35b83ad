/*
 * Postgres calls of a partition's projector. Statuses: see postgres.h. Each call is one round trip; one
 * thread at a time.
 *
 * Changes go through the connection on which the partition was opened. After a connection was lost and made
 * again projector_store_apply() answers THOLE_FENCED until projector_store_open() has read the watermark
 * again: a crashed server may have lost its last commits.
 */
#ifndef THOLE_PROJECTOR_STORE_H
#define THOLE_PROJECTOR_STORE_H
#include "batch.h"
#include "postgres.h"

/*
 * Registers @p epoch as the partition's owner and reads its watermark (creates the row if needed).
 * THOLE_FENCED when a newer epoch is registered already; the same epoch again is fine. Partitions 0..65535.
 * ret_epoch (may be NULL) is then the one that is registered, also with THOLE_FENCED.
 */
THOLE_NODISCARD thole_status projector_store_open(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                                  struct projected *ret_projected, uint64_t *ret_epoch,
                                                  thole_error *reterr);
/* Marks the rows of the partition as complete up to the log's end at its opening: from now on workers may
 * take a missing row for cancelled or done (worker_store.h), until the server loses transactions again or the
 * partition is reset. Does nothing when the epoch is not the partition's; THOLE_FENCED when it is not open on
 * this connection. */
THOLE_NODISCARD thole_status projector_store_complete(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                                      thole_error *reterr);
/*
 * Applies the batches, each of another partition, in one transaction, by set-based statements only (unnest).
 * Rows never go back to an older state.
 *  - Deletions, before all else: the instance's rows in all tables, of its executions up to the one named;
 *    rows of later records than its history_seq stay.
 *  - Activities: added unless they exist; a later try replaces the row of an earlier one. A removal deletes
 *    the row of the try that it names (0: any) or of an older one. A removal waits for a worker that is
 *    completing the same activity.
 *  - Timers: removed, then added; adding replaces the due time.
 *  - Quarantine: removed, then added; adding replaces.
 *  - Instances and executions: never to an older history_seq. Of several rows of one instance the last
 *    execution counts. An execution's row is written when it begins and when it ends: between the two the
 *    state is in its instance's row, which says all of execution 1, too, until that continues as new. Invalid
 *    bytes in details are replaced. All or nothing: THOLE_FENCED when the epoch of one of the partitions is
 *    not its batch's, or it is not open on
 *    this connection; THOLE_INVALID for more than BATCH_ROWS_MAX rows of a kind in all, or when one of them
 *    is invalid: then apply each alone to find it. Idempotent. Sets `held` of removed activities.
 */
THOLE_NODISCARD thole_status projector_store_apply(struct postgres *pg, struct batch *const *batches,
                                                   size_t n, thole_error *reterr);
/* Of all kinds. */
size_t projector_store_rows(const struct batch *batch);
/* Removes every row of the partition and clears the watermark (rebuild). FENCED when the epoch is not the
 * partition's. Counts as opening. May take minutes: its timeout is ten. */
THOLE_NODISCARD thole_status projector_store_reset(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                                   thole_error *reterr);

/* Timers of the partition that are due before @p before_ms, by due time, at most @p limit; also when the next
 * one after those is due (0 = none; before @p before_ms when the limit cut). Arrays and slices live in @p
 * arena.
 */
THOLE_NODISCARD thole_status projector_store_timers(struct postgres *pg, uint32_t partition,
                                                    uint64_t before_ms, size_t limit, struct arena *arena,
                                                    struct batch_timer **ret_timers, size_t *ret_len,
                                                    uint64_t *ret_next_due_ms, thole_error *reterr);
/* Instances of the partition in status WAITING, STUCK or CONTINUED_AS_NEW (to be tried again by a new owner),
 * oldest first, and the distinct orchestrations of all that have not ended, "name" or from version 2 on
 * "name@version", by name. Arrays and slices live in the arena.
 */
struct live_summary {
    struct batch_instance *blocked;
    size_t blocked_len;
    thole_slice *orchestrations;
    uint64_t *orchestration_counts; /* live instances of each */
    size_t orchestrations_len;
    uint64_t open_activities; /* rows in worker_queue */
    uint64_t deadline_in_ms;  /* as projector_store_next_deadline() says */
};
THOLE_NODISCARD thole_status projector_store_live(struct postgres *pg, uint32_t partition,
                                                  struct arena *arena, struct live_summary *ret,
                                                  thole_error *reterr);
/*
 * Activities of the partition that no worker claimed or renewed since @p older_than_ms milliseconds (database
 * clock; at most 24 days), about the oldest first, at most @p limit: for the sweeper. Marks them: a row is
 * returned again only after the same time, so that rows which no worker can run do not hide those behind
 * them. Skips rows that are locked, and those that are completed from outside. ret_next_in_ms: until the next
 * row can be an orphan, 0 when there may be more already; UINT64_MAX: none can.
 */
THOLE_NODISCARD thole_status projector_store_orphans(struct postgres *pg, uint32_t partition,
                                                     uint64_t older_than_ms, size_t limit,
                                                     struct arena *arena, struct batch_activity **ret,
                                                     size_t *ret_len, uint64_t *ret_next_in_ms,
                                                     thole_error *reterr);

/* How long, by the database's clock, the partition's oldest activity that no worker has a lease of has been
 * there; 0: there is none. Not of those that are completed from outside. */
THOLE_NODISCARD thole_status projector_store_waiting(struct postgres *pg, uint32_t partition,
                                                     uint64_t *ret_ms, thole_error *reterr);

/* Milliseconds, by the database's clock, to the partition's next deadline, or to the first one that a claim
 * could make from now on; 0: one has passed; UINT64_MAX: there is no try with a timeout. */
THOLE_NODISCARD thole_status projector_store_next_deadline(struct postgres *pg, uint32_t partition,
                                                           uint64_t *ret_in_ms, thole_error *reterr);
/* A try that is over. */
struct expired_try {
    struct batch_activity row; /* without queue and activity; details of its last heartbeat */
    uint64_t attempt;          /* of its last claim */
};
/*
 * BEGIN, and DELETE of tries whose deadline passed more than @p since_ms ago, at most @p limit; those that a
 * worker is completing at the moment are skipped. The transaction stays open until commit or rollback, as
 * with worker_store_complete_begin(); on an error it is rolled back already.
 */
THOLE_NODISCARD thole_status projector_store_expire_begin(struct postgres *pg, uint32_t partition,
                                                          uint64_t since_ms, size_t limit,
                                                          struct arena *arena, struct expired_try **ret,
                                                          size_t *ret_len, thole_error *reterr);
THOLE_NODISCARD thole_status projector_store_expire_commit(struct postgres *pg, thole_error *reterr);
void projector_store_expire_rollback(struct postgres *pg);
#endif
