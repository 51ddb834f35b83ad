/*
 * What a worker asks of Postgres: claim, renew, complete. Statuses: see postgres.h. One thread at a time for
 * each connection. A row is held by the worker that it names, this process's incarnation, unique for ever;
 * the worker must not run a try twice at a time. Where the database has lost a claim (a crash undid it, or
 * the row was projected again), its worker's next call takes it back, unless somebody else has a lease by
 * then. A row of another try of the same activity is as good as missing, and so is one that is completed
 * later, from outside. A row that is missing is gone for good only where the partition's rows are complete
 * (projector_store_complete()); else it is ROW_UNKNOWN, and nothing follows from it.
 *
 * Each call is one statement for all claims and one round trip; a second one looks at those that had no row
 * to change, when there are any. Rows are locked in the order of their keys, so that calls never deadlock. A
 * call waits for rows that another transaction holds: a completion that is not yet committed holds up
 * renewals of the same activities, so leave those out of a renewal. On any status but THOLE_OK states are not
 * to be used.
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
    ROW_STOLEN = 2,    /* the row is there but another worker holds it */
    ROW_CANDIDATE = 3, /* of a claim: it was not made, because it may only be made isolated */
    ROW_HELD = 4,      /* of a claim: it was not made, because another worker's lease lasts, for left_ms */
    ROW_UNKNOWN = 5,   /* there is none, and the database may have lost it */
};

/* What a worker makes of claims that were lost: those whose worker died, or was not heard of for a lease. */
struct claim_policy {
    uint32_t candidate_after; /* lost so often, a try is claimed only isolated (column apart) */
    uint32_t strikes_max;     /* lost so often while isolated, and both together in all, it is poisoned */
};                            /* above INT32_MAX: never */

struct claim {
    struct activity_key key;
    uint32_t partition; /* of the instance; not for release and not_lost */
    uint64_t lease_ms;  /* in for claim and renew: nobody else may claim it for so long; 0: at once */
    uint64_t attempt; /* in for renew, complete, release and leave; out for claim: attempt := attempt + 1, and
                         for renew */
    bool isolated;    /* in for claim: nothing else will be started beside it until it is settled */
    bool settled;     /* in for renew: from now on other things may be */
    enum row_state state; /* out */
    /* out for claim, when it is mine */
    bool expired;     /* the try's deadline has passed: its handler must not be run (again) */
    uint64_t left_ms; /* until its deadline, at least 1; 0: it has none. HELD: until that lease ends */
    uint32_t lost;    /* claims of this try that were lost */
    bool poisoned;    /* enough of them, strikes_max while isolated: it must not be run */
    thole_slice orchestration; /* in the arena: of the instance; empty: it is gone */
    uint32_t version;          /* of its code */
    thole_slice lost_worker;   /* in the arena: with which it was lost last; may be empty */
    thole_slice lost_report;   /* likewise: what is known of that worker's end; empty: nothing */
    /* out for claim, in its arena; in for renew, release and leave, when noted: what the last heartbeat said
     */
    thole_slice details;
    bool noted;
};

/* Claims in one statement: the one rule by which a try is run, or not. It takes a row that nobody has claimed
 * or that was handed back, whose lease is over, or that is this worker's own; of any other row it says
 * ROW_HELD. A lease that the database's clock, going back, would make longer than it was meant ends that much
 * earlier. ROW_STOLEN for a key given twice (one of the two is MINE) or whose row appeared, or became free, a
 * moment later: claim it again; ROW_CANDIDATE as the policy says, but never for what is poisoned or claimed
 * isolated. A claim that takes over from another worker notes that claim as lost. @p policy NULL: nothing is
 * poison candidate. The try's first claim writes its deadline, by the database's clock. Details go to @p
 * arena (NULL: nobody wants them); THOLE_LIMIT or THOLE_NOMEM when it is full (the claims are made all the
 * same). */
THOLE_NODISCARD thole_status worker_store_claim(struct postgres *pg, thole_slice worker,
                                                const struct claim_policy *policy, struct claim *claims,
                                                size_t n, struct arena *arena, thole_error *reterr);
/* Renews in one statement, from now on by the database's clock. state = MINE (kept), MISSING, STOLEN or
 * UNKNOWN. */
THOLE_NODISCARD thole_status worker_store_renew(struct postgres *pg, thole_slice worker, struct claim *claims,
                                                size_t n, thole_error *reterr);
/* BEGIN and DELETE ... AND it is mine RETURNING, in one round trip. state for each, as of a renewal.
 * The transaction stays open until commit or rollback; on an error it is rolled back already. The server ends
 * the connection, and with it the transaction, when nothing follows for as long as the options say. Until
 * then no other call may use this connection. */
THOLE_NODISCARD thole_status worker_store_complete_begin(struct postgres *pg, thole_slice worker,
                                                         struct claim *claims, size_t n, thole_error *reterr);
/* The transaction is over afterwards, whatever the status. THOLE_UNAVAILABLE: whether the rows are deleted is
 * unknown. */
THOLE_NODISCARD thole_status worker_store_complete_commit(struct postgres *pg, thole_error *reterr);
/* Never fails: a connection that cannot roll back is as good as rolled back. Nothing to do: does nothing. */
void worker_store_complete_rollback(struct postgres *pg);
/* Gives claimed rows back (graceful stop): worker = NULL, claimed_at = NULL, attempt stays. */
THOLE_NODISCARD thole_status worker_store_release(struct postgres *pg, thole_slice worker,
                                                  struct claim *claims, size_t n, thole_error *reterr);
/* This worker lives and holds these claims no more: they are not lost, also where somebody else has the row
 * by now. Repeating it is fine. state = MINE where there was something to change. */
THOLE_NODISCARD thole_status worker_store_not_lost(struct postgres *pg, thole_slice worker,
                                                   struct claim *claims, size_t n, thole_error *reterr);
/* What is known of a worker that died. */
struct worker_death {
    thole_slice worker, report; /* the report is for people */
    struct activity_key blamed; /* what it died of; no instance: that is not known */
    uint64_t attempt;           /* that claim of it */
    uint32_t candidate_after;   /* as in the claims' policy */
};
/* Notes it in all rows that the worker still holds; *ret_rows is how many. What is blamed is lost at once,
 * and with a strike if it was a poison candidate, and what ran beside it is not lost at all: who died of what
 * is certain. If nothing is blamed, rows change hands, and count as lost, with their next claims. Looks at
 * all rows of the table: for what happens seldom. */
THOLE_NODISCARD thole_status worker_store_died(struct postgres *pg, const struct worker_death *death,
                                               size_t *ret_rows, thole_error *reterr);
/* Lets go of claimed rows that somebody completes later, from outside: no claim, orphan or renewal finds them
 * any more; deadlines still count. Repeating it is fine. */
THOLE_NODISCARD thole_status worker_store_leave(struct postgres *pg, thole_slice worker, struct claim *claims,
                                                size_t n, thole_error *reterr);
#endif
