/*
 * What a partition's projector asks of Postgres. Statuses: see postgres.h. Each call is one round trip; one
 * thread at a time.
 *
 * Changes go through the connection on which the partition was opened. After a connection was lost and made
 * again projector_store_apply() answers THOLE_FENCED until projector_store_open() has told how far the
 * database really is: a server that crashed may have forgotten its last commits.
 */
#ifndef THOLE_PROJECTOR_STORE_H
#define THOLE_PROJECTOR_STORE_H
#include "batch.h"
#include "postgres.h"

/*
 * Registers @p epoch as the partition's owner and reads how far it is projected (creates the row at need).
 * THOLE_FENCED when a newer epoch is registered already; the same epoch again is fine. Partitions 0..65535.
 */
THOLE_NODISCARD thole_status projector_store_open(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                                  uint64_t *ret_projected_seq, thole_error *reterr);
/*
 * Applies the batch in one transaction: set-based statements only (unnest), inserts with ON CONFLICT DO
 * NOTHING (activities, timers) or DO UPDATE (instances and executions, never to an older history_seq),
 * deletes USING unnest; projected_seq never goes back. A delete waits for a worker that is completing the
 * same activity. THOLE_FENCED (nothing applied) when the partition's epoch is not the batch's, or the
 * partition is not open on this connection. THOLE_INVALID for more than BATCH_ROWS_MAX rows of a kind.
 * Idempotent.
 */
THOLE_NODISCARD thole_status projector_store_apply(struct postgres *pg, const struct batch *batch,
                                                   thole_error *reterr);
/* Removes every row of the partition and sets projected_seq = 0 (rebuild). FENCED when the epoch is not the
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
/* Instances of the partition in status WAITING or STUCK (to be tried again by a new owner), oldest first, and
 * the distinct orchestration names of all that have not ended, by name. Arrays and slices live in the arena.
 */
struct live_summary {
    struct batch_instance *blocked;
    size_t blocked_len;
    thole_slice *orchestrations;
    uint64_t *orchestration_counts; /* live instances of each */
    size_t orchestrations_len;
    uint64_t open_activities; /* rows in worker_queue */
};
THOLE_NODISCARD thole_status projector_store_live(struct postgres *pg, uint32_t partition,
                                                  struct arena *arena, struct live_summary *ret,
                                                  thole_error *reterr);
/*
 * Activities of the partition that nobody claimed or renewed since @p older_than_ms milliseconds (database
 * clock; at most 24 days), about the oldest first, at most @p limit: for the sweeper. Takes them: a row comes
 * again only after the same time, so that rows which nobody can run do not hide those behind them. Passes
 * over rows that are being worked on at the moment.
 */
THOLE_NODISCARD thole_status projector_store_orphans(struct postgres *pg, uint32_t partition,
                                                     uint64_t older_than_ms, size_t limit,
                                                     struct arena *arena, struct batch_activity **ret,
                                                     size_t *ret_len, thole_error *reterr);
#endif
