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

/* Whose rows, and that they are not older than those that the owner has seen: with fewer batches, or of an
 * epoch before, they are of another time (a restored backup), and are left alone. */
struct rows_owner {
    uint32_t partition;
    uint64_t epoch, batches;
};

/*
 * Registers @p epoch as the partition's owner and reads its row (creates it if needed), which from now on is
 * not complete. THOLE_FENCED when a newer epoch is registered already; the same epoch again is fine.
 * Partitions 0..65535. ret_epoch (may be NULL) is then the one that is registered, also with THOLE_FENCED.
 */
THOLE_NODISCARD thole_status projector_store_open(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                                  struct rows_state *ret_rows, uint64_t *ret_epoch,
                                                  thole_error *reterr);
/* Which key the rows of activities are signed with: *ret_mark is that of the rows. @p mark, not 0, is written
 * where they have none, since no row was written after a reset, or an earlier version has written them.
 * THOLE_FENCED when @p epoch is not the partition's, or it is not open on this connection. */
THOLE_NODISCARD thole_status projector_store_sign(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                                  uint64_t mark, uint64_t *ret_mark, thole_error *reterr);
/* Marks the rows of the partition as complete up to the log's end at its opening: from now on workers may
 * take a missing row for cancelled or done (worker_store.h), until the server loses transactions again or the
 * partition is reset. Does nothing when the rows are another owner's, or older; THOLE_FENCED when it is not
 * open on this connection. */
THOLE_NODISCARD thole_status projector_store_complete(struct postgres *pg, const struct rows_owner *owner,
                                                      thole_error *reterr);

/* A partition's row, compared with what its owner knows of it. */
struct rows_look {
    uint32_t partition;
    uint64_t epoch;         /* the owner's */
    struct rows_state rows; /* after its last batch */
    bool complete;          /* projector_store_complete() was called in this epoch */
    /* Answers. OK: it is as it was left; FENCED: there is a newer epoch; CONFLICT: it is of another time. */
    thole_status status;
    uint64_t found_epoch; /* 0: there is none */
    struct rows_state found;
    bool found_complete;
};
/* Looks at the rows of several partitions, in one statement. */
THOLE_NODISCARD thole_status projector_store_look(struct postgres *pg, struct rows_look *looks, size_t n,
                                                  thole_error *reterr);
/* The status of a look, and what it found in words. */
thole_status projector_store_found(const struct rows_look *look, thole_error *reterr);
/*
 * Applies the batches, each of another partition, in one transaction, by set-based statements only (unnest).
 * Rows never go back to an older state. Each follows the batch before it: on rows of another time nothing is
 * written, THOLE_CONFLICT, and the partition is to be opened again, which makes them right from where they
 * are.
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
 *    bytes in details are replaced. All or nothing: THOLE_FENCED when one of the partitions has a newer epoch
 *    than its batch, or is not open on this connection, and of several also in place of THOLE_CONFLICT;
 *    THOLE_INVALID for more than BATCH_ROWS_MAX rows of a kind in all, or when one of them
 *    is invalid: then apply each alone to find it. Sets `held` of removed activities.
 */
THOLE_NODISCARD thole_status projector_store_apply(struct postgres *pg, struct batch *const *batches,
                                                   size_t n, thole_error *reterr);
/* Rows that are not written: set aside. */
struct projector_refused {
    size_t rows;
    char first[384]; /* of which the first one is, and why; one line */
};
/*
 * Like projector_store_apply(), for one batch that was refused with THOLE_INVALID or THOLE_LIMIT: writes all
 * of its rows but those that Postgres refuses for their contents, which are listed in the table set_aside, in
 * the same transaction. A row that is written later is set aside no more. Takes many round trips. Statuses as
 * before; THOLE_INVALID when a table refuses any row, or when more than SET_ASIDE_MAX rows of the partition
 * would be set aside.
 */
enum { SET_ASIDE_MAX = 1000 };
THOLE_NODISCARD thole_status projector_store_apply_apart(struct postgres *pg, struct batch *batch,
                                                         struct projector_refused *ret, thole_error *reterr);
/* How many rows of the partition were set aside when it was opened here, or with its last batch. */
uint64_t projector_store_set_aside(const struct postgres *pg, uint32_t partition);
/* Of all kinds. */
size_t projector_store_rows(const struct batch *batch);
/* Removes every row of the partition and clears the watermark (rebuild). FENCED when the epoch is not the
 * partition's. Counts as opening, and as a batch. May take minutes: its timeout is ten. */
THOLE_NODISCARD thole_status projector_store_reset(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                                   struct rows_state *ret_rows, thole_error *reterr);

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
 * returned again only after the same time, so that rows which no worker can run do not hide later ones. Skips
 * rows that are locked, completed from outside, or shelved; finds none in rows that are older than the
 * owner's. ret_next_in_ms: until the next row can be an orphan, 0 when there may be more already; UINT64_MAX:
 * none can.
 */
THOLE_NODISCARD thole_status projector_store_orphans(struct postgres *pg, const struct rows_owner *owner,
                                                     uint64_t older_than_ms, size_t limit,
                                                     struct arena *arena, struct batch_activity **ret,
                                                     size_t *ret_len, uint64_t *ret_next_in_ms,
                                                     thole_error *reterr);

/* Activities whose messages were removed, as no worker of their queue knew them: worker_store_shelve(). */
struct shelved_name {
    uint32_t partition;
    thole_slice queue, activity;
    uint64_t rows;
};
/* By partition, queue and name, at most @p limit. Slices live in @p arena; THOLE_LIMIT when it is full. */
THOLE_NODISCARD thole_status projector_store_shelved(struct postgres *pg, const uint32_t *partitions,
                                                     size_t n, size_t limit, struct arena *arena,
                                                     struct shelved_name **ret, size_t *ret_len,
                                                     thole_error *reterr);
/* Takes at most @p limit rows of these names off the shelf that have been on it for @p least_ms, about the
 * oldest first. The caller must publish their messages; else they are orphans. None in rows that are older
 * than the owner's. */
THOLE_NODISCARD thole_status projector_store_unshelve(struct postgres *pg, const struct rows_owner *owner,
                                                      const struct shelved_name *names, size_t names_len,
                                                      uint64_t least_ms, size_t limit, struct arena *arena,
                                                      struct batch_activity **ret, size_t *ret_len,
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
 * worker is completing at the moment are skipped, as are all in rows older than the owner's. The transaction
 * stays open until commit or rollback, as with worker_store_complete_begin(); on an error it is rolled back
 * already.
 */
THOLE_NODISCARD thole_status projector_store_expire_begin(struct postgres *pg, const struct rows_owner *owner,
                                                          uint64_t since_ms, size_t limit,
                                                          struct arena *arena, struct expired_try **ret,
                                                          size_t *ret_len, thole_error *reterr);
THOLE_NODISCARD thole_status projector_store_expire_commit(struct postgres *pg, thole_error *reterr);
void projector_store_expire_rollback(struct postgres *pg);
#endif
