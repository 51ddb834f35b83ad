/*
 * A worker's calls of Postgres: claim, renew, complete. Statuses: see postgres.h. One thread at a time for
 * each connection. A row is held by the worker that it names (the incarnation of its process, which is
 * globally unique); the worker must not run a try twice at a time. If the database has lost a claim (a crash
 * undid it, or the row was projected again), its worker's next call restores it, unless another worker has a
 * lease by then, or the row is about another message, of which the digest differs: that claim is ROW_STOLEN. A
 * row of another try of the same activity counts as missing, and so does one that is completed from outside. A
 * missing row means cancelled or done only if the partition's rows are complete (projector_store_complete()); else
 * it is ROW_UNKNOWN, and must be asked again. So is one of several rows that Postgres refuses to change for what
 * is in it: those beside it are changed.
 *
 * Each call is one statement for all claims and one round trip; a second one reads those that had no row to
 * change, if any. Rows are locked in the order of their keys, so that calls never deadlock. A call waits for
 * rows that another transaction has locked: an uncommitted completion blocks renewals of the same activities,
 * so leave those out of a renewal. With any status but THOLE_OK states are not valid.
 */
#ifndef THOLE_WORKER_STORE_H
#define THOLE_WORKER_STORE_H
#include "arena.h"
#include "postgres.h"

struct activity_key {
    thole_slice instance;
    uint64_t execution, activity_id;
    uint32_t try_number; /* from 1 */
};

enum row_state {
    ROW_MISSING = 0,   /* cancelled or done: confirmed, the message may be dropped */
    ROW_MINE = 1,      /* claimed / kept / deleted by me */
    ROW_STOLEN = 2,    /* the row exists, but another worker holds it */
    ROW_CANDIDATE = 3, /* of a claim: it was not made, because it may only be made isolated */
    ROW_HELD = 4,      /* of a claim: it was not made, because another worker's lease lasts, for left_ms */
    ROW_UNKNOWN = 5,   /* there is none, and the database may have lost it */
    ROW_FORGED = 6,    /* of a claim: it was not made, because the message is not what the row is about */
};

/* The policy for lost claims: those whose worker died, or did not renew for a lease. */
struct claim_policy {
    uint32_t candidate_after; /* after so many losses a try is claimed only isolated (column apart) */
    uint32_t strikes_max;     /* poisoned after so many isolated losses, and the sum of both in all */
};                            /* above INT32_MAX: never */

struct claim {
    struct activity_key key;
    uint32_t partition; /* of the instance; not for release and not_lost */
    uint64_t lease_ms;  /* in for claim and renew: length of the lease; 0: it ends at once */
    uint64_t attempt; /* in for renew, complete, release and leave; out for claim: attempt := attempt + 1, and
                         for renew */
    uint64_t claimed_us; /* out for claim, renew and quick; in for all but claim: when that claim was made, by
                            the database's clock. Another claim may have the same attempt */
    bool quick;          /* in for complete_quick: it was not claimed */
    bool isolated;       /* in for claim: nothing else will be started beside it until it is settled */
    bool settled;        /* in for renew: the isolated run has settled */
    bool unheard;        /* in for renew: who runs it has not been heard of since it was resumed */
    thole_slice digest;  /* in for all but release and not_lost: of its message, see work_digest.h */
    enum row_state state; /* out */
    /* out for claim, when it is mine */
    bool compared;    /* the row has a digest, which is that of the message */
    bool expired;     /* the try's deadline has passed: its handler must not be run (again) */
    uint64_t left_ms; /* until its deadline, at least 1; 0: it has none. HELD: until that lease ends */
    uint32_t lost;    /* claims of this try that were lost */
    bool poisoned;    /* enough of them, strikes_max while isolated: it must not be run */
    thole_slice orchestration; /* in the arena: of the instance; empty: the instance is deleted */
    uint32_t version;          /* of its code */
    thole_slice lost_worker;   /* in the arena: the worker of the last lost claim; may be empty */
    thole_slice lost_report;   /* likewise: that worker's crash report; empty: none */
    /* out for claim, in its arena; in for renew, release and leave, when noted: what the last heartbeat said
     */
    thole_slice details;
    bool noted;
    thole_slice activity; /* out for resume, in its arena */
};

/* Claims rows in one statement, which alone decides which worker may run a try. It takes a row that no worker
 * has claimed or that was handed back, whose lease is over, or that is this worker's own; any other row is
 * ROW_HELD. A row whose digest is not that of the message is ROW_FORGED, also while a worker has it, and is
 * not changed. A claim takes the row off the shelf. If the database's clock has gone back, the lease is
 * shortened to its length from now. ROW_STOLEN for a key given twice (one of the two is MINE) or whose row
 * appeared, or became free, a moment later: claim it again; ROW_CANDIDATE by the policy, but never for a
 * poisoned try or an isolated claim. A claim that replaces another worker's records that claim as lost. @p
 * policy NULL: no poison candidates. The try's first claim writes its deadline, by the database's clock.
 * Details go to @p arena (NULL: not wanted); THOLE_LIMIT or THOLE_NOMEM when it is full (the claims are made
 * nevertheless). */
THOLE_NODISCARD thole_status worker_store_claim(struct postgres *pg, thole_slice worker,
                                                const struct claim_policy *policy, struct claim *claims,
                                                size_t n, struct arena *arena, thole_error *reterr);
/*
 * Marks rows whose activity no worker of the queue knows: their messages are removed then, and the engine
 * publishes them again when there is such a worker (projector_store_unshelve()). state = MINE: it is marked,
 * also if it was before. MISSING, HELD, FORGED, STOLEN, UNKNOWN: as of a claim; nothing was changed.
 * Idempotent.
 */
THOLE_NODISCARD thole_status worker_store_shelve(struct postgres *pg, thole_slice worker,
                                                 struct claim *claims, size_t n, thole_error *reterr);
/* Renews in one statement, from now on by the database's clock. A claim that the database has forgotten is
 * restored with the time that it had, so that a later not_lost is about it also when this answer is lost.
 * state = MINE (kept), MISSING, STOLEN or UNKNOWN. */
THOLE_NODISCARD thole_status worker_store_renew(struct postgres *pg, thole_slice worker, struct claim *claims,
                                                size_t n, thole_error *reterr);
/* Takes claims over from another worker, which this one replaces, in one statement: key, attempt, claimed_us
 * and digest must match the claim. state = MINE: from now on this worker's, with a lease; the former worker
 * has lost it, whatever it does. STOLEN: another worker's, or another claim. MISSING, UNKNOWN: as of a
 * renewal. A third worker that repeats the call takes the claim over again, until a renewal that is not
 * unheard shows that the second worker lives. Details and activities go to @p arena. */
struct resumption {
    thole_slice worker; /* this one */
    thole_slice from;   /* suffix of the former worker's name, after its last - */
    thole_slice queue;
};
THOLE_NODISCARD thole_status worker_store_resume(struct postgres *pg, const struct resumption *resumption,
                                                 struct claim *claims, size_t n, struct arena *arena,
                                                 thole_error *reterr);
/* BEGIN and DELETE ... AND it is mine RETURNING, in one round trip. state for each, as of a renewal. The
 * transaction stays open until commit or rollback; on an error it is rolled back already. The server ends the
 * connection, and with it the transaction, when it is idle for longer than the option idle_in_transaction_ms.
 * Until then no other call may use this connection. */
THOLE_NODISCARD thole_status worker_store_complete_begin(struct postgres *pg, thole_slice worker,
                                                         struct claim *claims, size_t n, thole_error *reterr);
/* Like worker_store_complete_begin(), where some are quick: the row of a quick one is deleted if no worker
 * has ever claimed it, and its digest is the message's. state = MINE: attempt, claimed_us, left_ms, compared,
 * orchestration, version and details are as a first claim would return them; until the commit no other call
 * can claim it, and after a rollback the row is as before. STOLEN: any other row, or none; claim it. Details
 * go to @p arena. */
THOLE_NODISCARD thole_status worker_store_complete_quick(struct postgres *pg, thole_slice worker,
                                                         struct claim *claims, size_t n, struct arena *arena,
                                                         thole_error *reterr);
/* The transaction is over afterwards, whatever the status. THOLE_UNAVAILABLE: whether the rows are deleted is
 * unknown. */
THOLE_NODISCARD thole_status worker_store_complete_commit(struct postgres *pg, thole_error *reterr);
/* Never fails: a connection that cannot roll back is closed, which rolls back. Does nothing without a
 * transaction. */
void worker_store_complete_rollback(struct postgres *pg);
/* Gives claimed rows back (graceful stop): worker = NULL, claimed_at = NULL, attempt stays. */
THOLE_NODISCARD thole_status worker_store_release(struct postgres *pg, thole_slice worker,
                                                  struct claim *claims, size_t n, thole_error *reterr);
/* This living worker has given these claims up: they do not count as lost, also if another worker has the row
 * by now. A later claim keeps its lease, whatever its attempt. Idempotent. state = MINE if a row was changed.
 */
THOLE_NODISCARD thole_status worker_store_not_lost(struct postgres *pg, thole_slice worker,
                                                   struct claim *claims, size_t n, thole_error *reterr);
/* A worker's death. */
struct worker_death {
    thole_slice worker, report; /* the report is for people */
    struct activity_key blamed; /* the activity in whose handler it died; no instance: not known */
    uint64_t attempt;           /* number of its claim of that activity */
    uint32_t candidate_after;   /* as in the claims' policy */
};
/* Writes the report to all rows that the worker holds; *ret_rows is their number. The claim of `blamed` is
 * lost at once, with a strike if it was a poison candidate, and the others are not lost. Without `blamed`,
 * the rows' next claims record the losses. Reads all rows of the table, which is acceptable for a rare
 * event. */
THOLE_NODISCARD thole_status worker_store_died(struct postgres *pg, const struct worker_death *death,
                                               size_t *ret_rows, thole_error *reterr);
/* Releases claimed rows that are completed from outside: claims, the sweeper and renewals skip them from now
 * on; deadlines still apply. Idempotent. */
THOLE_NODISCARD thole_status worker_store_leave(struct postgres *pg, thole_slice worker, struct claim *claims,
                                                size_t n, thole_error *reterr);
#endif
