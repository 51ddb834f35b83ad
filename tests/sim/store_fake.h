/*
 * Postgres as the projection uses it: rows, transactions that are atomic, row locks of an open completion,
 * the fence of partitions(epoch). A crash rolls open transactions back and may lose the last committed ones
 * (synchronous_commit = off), always a suffix.
 */
#ifndef THOLE_STORE_FAKE_H
#define THOLE_STORE_FAKE_H
#include "net_fake.h"
#include "partition.h"
#include "worker_store.h"

enum row_kind { ROW_PARTITION = 1, ROW_ACTIVITY, ROW_TIMER, ROW_INSTANCE, ROW_EXECUTION, ROW_QUARANTINE };

enum { STORE_LOST_WINDOW_MS = 600 }; /* commits older than this survive a crash */

struct attempts { /* an array of bigint; the world keeps it, and nobody changes it */
    const uint64_t *items;
    size_t len;
};

struct store_tx;
struct row {
    enum row_kind kind;
    uint32_t partition;
    size_t instance; /* of a partition's row: 0 */
    uint64_t execution, id;
    bool present;
    uint64_t made; /* number of this row among all that were ever added */
    const struct store_tx *locked_by;
    bool back; /* had been removed, and came with older rows; its partition has not been completed since */
    /* ROW_ACTIVITY */
    thole_slice queue, activity, worker;
    struct work_digest digest; /* of its work message */
    uint32_t try_number;
    uint64_t attempt, touched_ms;         /* inserted, claimed, renewed or swept */
    uint64_t try_timeout_ms, deadline_ms; /* deadline: since the first claim of the try; 0 = none */
    uint64_t claimed;                     /* number of the claim, in place of the time of it; 0 = none */
    uint64_t lease_until_ms;              /* 0 = nobody's */
    bool later;                           /* nobody's: it is completed from outside */
    bool shelved;                         /* no worker knew it, and it has no message */
    struct attempts lost, strikes;        /* see migration 0003 */
    bool isolated;
    thole_slice lost_worker;
    /* ROW_TIMER; ROW_QUARANTINE: until then, and lost_worker, queue, activity, try_number */
    uint64_t due_ms;
    uint32_t lost_len;
    /* ROW_INSTANCE; ROW_EXECUTION: from status on */
    thole_slice orchestration, detail, custom_status, parent;
    uint32_t version;
    uint64_t execution_now, created_ms, updated_ms;
    uint32_t status;
    uint64_t turns, history_seq;
    /* ROW_PARTITION */
    uint64_t epoch;
    struct rows_state state;
    uint64_t written;     /* as `claimed` of claims: number of the last claim before it was written last */
    uint64_t incarnation; /* of the database, for which its rows are complete; 0 = none */
    bool foreign;         /* the partition's rows are of another time than its log's */
};

struct store *store_create(struct world *w);
uint64_t store_down_until_ms(const struct store *store);
uint64_t store_life(const struct store *store); /* grows with every crash */
void store_goes_down(struct world *w, uint64_t outage_ms);
void store_crashes(struct world *w); /* loses up to a few transactions */
/* NULL: not there. */
const struct row *store_find(const struct store *store, enum row_kind kind, uint32_t partition,
                             size_t instance, uint64_t execution, uint64_t id);
const struct row *store_row(const struct store *store,
                            size_t i); /* NULL after the last; may be not present */

/* The projector's statements. ret_status: OK or FENCED. ret_epoch: what is registered now. */
enum executed store_open(struct world *w, uint32_t partition, uint64_t epoch, struct rows_state *ret_rows,
                         uint64_t *ret_epoch);
enum executed store_apply(struct world *w, const struct batch *batch, thole_status *ret_status);
enum executed store_reset(struct world *w, uint32_t partition, uint64_t epoch, struct rows_state *ret_rows,
                          thole_status *ret_status);
/* Whether the partition's rows are complete, and those that its owner has left. */
bool store_is_as_left(const struct world *w, uint32_t partition, uint64_t epoch,
                      const struct rows_state *rows);
/* Whether they are not older than that. */
bool store_is_not_older(const struct world *w, uint32_t partition, uint64_t epoch, uint64_t batches);
struct store_timers {
    struct batch_timer *items;
    size_t len;
    uint64_t next_due_ms;
};
struct store_timers store_timers(struct world *w, uint32_t partition, uint64_t before_ms);
struct store_live {
    struct batch_instance *blocked;
    size_t blocked_len;
    thole_slice *names;
    uint64_t *counts;
    size_t names_len;
    uint64_t activities;
};
struct store_live store_live(struct world *w, uint32_t partition);
/* The rows of the partition are complete up to what its log had when it was opened. */
void store_complete(struct world *w, uint32_t partition, uint64_t epoch, uint64_t batches);
/* Whether that has happened since the store lost transactions last. */
bool store_is_complete(const struct world *w, uint32_t partition);

/* An activity of the partition that nobody touched for that long; it then counts as touched. NULL: none.
 * Those that are completed from outside are nobody's. */
/* A row of the partition that is on the shelf, off it from now on; NULL: there is none. */
const struct row *store_unshelve(struct world *w, uint32_t partition);
const struct row *store_orphan(struct world *w, uint32_t partition, uint64_t older_than_ms);

/* A try of the partition whose deadline has passed. NULL: none. The row goes when the result is stored. */
const struct row *store_expired(struct world *w, uint32_t partition);
void store_expire(struct world *w, const struct row *row);

/* The worker's statements; see worker_store.h. */
struct sim_claim {
    size_t instance;
    uint64_t execution, activity_id;
    uint32_t try_number;
    uint64_t attempt, claimed; /* claimed: as in its row */
    struct work_digest digest; /* in, of a claim: of its message */
    bool isolated, settled;    /* in */
    bool quick;                /* in, of a completion: it was not claimed */
    enum row_state state;
    bool replaced;    /* out, when it is gone: an owner says so that others have replaced */
    uint64_t left_ms; /* out of a claim: HELD for so long */
    uint32_t lost;    /* out, as are the others */
    bool poisoned;
    thole_slice lost_worker;
};
enum { STORE_TX_ROWS_MAX = 256 };
struct store_tx {    /* of one connection */
    bool open, dead; /* dead: the connection is gone, what still arrives on it does nothing */
    bool idle;       /* dead, because its worker did nothing for too long */
    size_t rows[STORE_TX_ROWS_MAX], rows_len;
};
enum executed store_claim(struct world *w, thole_slice worker, const struct claim_policy *policy,
                          struct sim_claim *claims, size_t n);
enum executed store_renew(struct world *w, thole_slice worker, struct sim_claim *claims, size_t n);
enum executed store_complete_begin(struct world *w, struct store_tx *tx, thole_slice worker,
                                   struct sim_claim *claims, size_t n);
/* The server ends the session of a worker that does nothing in an open transaction. */
void store_tx_idles(struct world *w, struct store_tx *tx);
bool store_complete_commit(struct world *w, struct store_tx *tx); /* false: the transaction is gone */
void store_complete_rollback(struct world *w, struct store_tx *tx);
void store_tx_dies(struct world *w, struct store_tx *tx);
enum executed store_release(struct world *w, thole_slice worker, struct sim_claim *claims, size_t n);
enum executed store_not_lost(struct world *w, thole_slice worker, struct sim_claim *claims, size_t n);
/* The worker's crash reporter stores the cause of death. */
enum executed store_died(struct world *w, thole_slice worker, const struct sim_claim *blamed,
                         uint32_t candidate_after);
enum executed store_leave(struct world *w, thole_slice worker, struct sim_claim *claims, size_t n);
enum executed store_shelve(struct world *w, thole_slice worker, struct sim_claim *claims, size_t n);
#endif
