/*
 * The worker: leases with a fence, as a state machine without I/O (docs/architecture.md). The host gives
 * inputs, takes outputs and carries them out; it makes no decisions. The same code runs in the simulation.
 *
 *   worker_input(w, &in, now);   any number of times
 *   worker_advance(w, now);      does what is due by time
 *   while (worker_poll(w, &out)) do what out says
 *   sleep until worker_next_deadline_ms(w) or the next input
 *
 * Time is a monotonic clock in milliseconds; a step back is ignored. Pure, one thread at a time.
 *
 * Memory: inputs are borrowed for the call (instance and reason are copied). Outputs are borrowed until the
 * next call of any function here.
 *
 * The host chooses an id for each message (not 0, unique at a time). Each DELIVERED that was taken ends with
 * exactly one of ACK, NAK, TERM or DROP; the machine then no longer uses the id, and the host frees the
 * message and the handler's result, or leaves that to an abandoned handler's thread.
 *
 * Each CLAIM, RENEW, RELEASE, LEAVE, SHELVE, NOT_LOST, COMPLETE_BEGIN and COMPLETE_COMMIT is answered exactly
 * once, however late; at most one of each kind is in flight. Each id of a COMPLETE_PUBLISH is answered
 * exactly once. The answer "unknown", for a call or for one of its rows, means that it may or may not have
 * happened, or that the database does not know: the machine concludes nothing and asks again. No other output
 * is answered.
 *
 * The row holds the lease, and it alone decides who may run a try (docs/guarantees.md). The message only
 * brings the try to a worker; signals for the message are hints.
 *  - A claim is refused (HELD) while another worker's lease lasts: the message is handed back for that time.
 *  - The row has the digest of the engine's message. A claim for a message with another digest is refused
 *    (FORGED): the message is removed, also while a worker has the row. While such a message is held beside
 *    the engine's own, the claims decide, one after the other.
 *  - A handler that ran when this machine begins, under the claim of a worker whose place this one takes, is
 *    RESUMED: the claim is in the row already, and the message comes when it is redelivered. If the row is
 *    missing the token fires at once, as after a renewal.
 *  - A message that is redelivered while it is held here replaces the earlier delivery (CONFLICT): it is not
 *    claimed again, and the try is not run twice. While a handler whose lease was lost has grace, the message
 *    is handed back for that time: another worker may run it.
 *
 * Times, with L = lease_ms:
 *  - The lease ends L after the claim or the last renewal of its row was sent, whatever the state of the
 *    broker.
 *  - All claimed rows are renewed every renew_ms in one statement, and after an unknown answer every L / 15
 *    (at most 1 s). As often +WPI extends the ack-wait of their messages, except of those whose rows could
 *    not be renewed the last time: they must be redelivered when the lease is over.
 *  - A margin of L / 5 (at most 2 s) before the lease ends the machine fences itself: the token fires, a
 *    later result is discarded, nothing is sent for the message. A result that exists by then is kept until
 *    the row says who holds it.
 *  - While claims fail, messages that wait for a claim are handed back L / 3 after their delivery: another
 *    worker may reach the database. One message at a time is fetched to try a claim with. No message waits
 *    for a claim longer than L less the margin.
 *
 * A try may have a deadline, which the claim returns. When it passes, the token fires; the result is then a
 * timeout, whatever the handler returns, and also if it does not return within its grace. A claim that comes
 * after the deadline does not run the handler at all: EXPIRED.
 *
 * A handler that returns THOLE_LATER has no result: the row stays for the completion from outside, and the
 * message is acknowledged.
 *
 * A quick handler returns at once. Its message is not claimed: the batch of completions deletes its row, if
 * no worker has ever claimed it, runs the handler, publishes the result and commits. So the row is locked
 * while it runs, and no other worker runs it; when its worker dies the row is as before. Only the first
 * delivery of a message is taken that way, so that a handler that kills its worker is claimed, and counted,
 * from the second one on. A message that cannot go that way (another worker has claimed it, Postgres does not
 * answer) is claimed like any other. A batch that has run handlers publishes within QUICK_MS of its begin or
 * not at all: no lease guards a row whose transaction is lost. A handler that was run keeps its result, which
 * then counts like that of a claim that the database has forgotten.
 *
 * An activity that this program does not know is never claimed: another worker of the queue may know it (a
 * rolling deployment). Its message is parked without taking a slot and handed back after 100 ms, doubled with
 * every delivery that it had, at most a third of the lease: a worker that knows it gets it soon, and the
 * others do little work for it. At most WORKER_PARKED_MAX messages are parked; further ones are handed back
 * with that delay at once.
 *
 * One that no worker of the queue knows (unserved) must not be in flight: a consumer delivers only so many
 * messages at a time, and those that no worker can run would be all of them. SHELVE marks its row, and then
 * its message is removed; the engine publishes it again when a worker says that it knows the name. So it
 * takes room here only for the time of a statement; at most WORKER_SHELVED_MAX do, and as long as some do no
 * more messages are wanted than there is room for.
 *
 * A claim is lost when its worker dies. Activities that run beside a handler that kills the worker lose their
 * claims as well, so a lost claim alone proves little. Therefore an activity that was lost candidate_after
 * times is a poison candidate and is claimed isolated. It starts when nothing else runs here, or nothing else
 * has been started for L / 3. Nothing else starts beside it for L / 3, twice as long with each further loss,
 * or until its result is stored; after that a renewal records that it has settled. Only losses while isolated
 * and unsettled count against it; after strikes_max such losses, of candidate_after + strikes_max in all, the
 * claim returns that it is poisoned, and it is not run again. A worker runs poison candidates at most half of
 * its time; those that it cannot take it hands back like unknown ones. A living worker that gives a claim up
 * reports it (NOT_LOST), so that it does not count as lost. Until that is recorded in the row of an isolated
 * one, nothing else is claimed.
 */
#ifndef THOLE_WORKER_H
#define THOLE_WORKER_H
#include "thole/types.h"
#include "work_digest.h"

enum {
    WORKER_PARKED_MAX = 64,
    WORKER_SHELVED_MAX = 64,    /* rows in one SHELVE, and those that wait for the next */
    WORKER_CLAIM_MAX = 256,     /* rows in one CLAIM, one completion batch, one RELEASE */
    WORKER_QUICK_MAX = 128,     /* handlers that one completion batch runs */
    WORKER_KIND_BYTES_MAX = 64, /* longer kinds are cut, as are reasons above WORKER_REASON_BYTES_MAX */
    WORKER_REASON_BYTES_MAX = 1024,
};

struct worker_options {
    uint32_t slots;           /* handlers at a time; at least 1 */
    uint32_t completions_max; /* results being stored at a time, beyond the slots */
    uint32_t resumed_max;     /* claims that may be resumed, beyond both */
    uint64_t lease_ms;        /* ack_wait of the queue */
    uint64_t renew_ms;        /* 0 = a third of the lease; at most half of it */
    uint64_t grace_ms;        /* time that a cancelled handler has to return */
    uint64_t stop_grace_ms;   /* likewise after the limit of a graceful stop */
    uint64_t silence_ms;      /* a dead host of the handlers goes unreported for at most this long; 0: the
                                 machine dies with the host */
    uint32_t poison_after;    /* lost claims until an activity is poisoned; at least 2; 0 = never */
};
/* 16 slots, as many completions, lease 30 s, grace 10 s, stop grace 2 s, poisoned after 5. */
void worker_options_init(struct worker_options *options);
/* After so many lost claims an activity is a poison candidate; UINT32_MAX: never. */
uint32_t worker_candidate_after(uint32_t poison_after);
/* After so many more, isolated, it is poisoned; UINT32_MAX: never. */
uint32_t worker_strikes_max(uint32_t poison_after);

struct worker_machine;
struct worker_machine *worker_create(const struct worker_options *options);
void worker_destroy(struct worker_machine *w); /* at any time; NULL-safe */

struct worker_key {
    thole_slice instance;
    uint64_t execution, activity_id;
    uint32_t try_number; /* from 1; PUSHED: 0 = any try */
};

/* Same values as enum row_state of the store. */
enum worker_row_state {
    WORKER_ROW_MISSING = 0,
    WORKER_ROW_MINE = 1,
    WORKER_ROW_STOLEN = 2,
    WORKER_ROW_CANDIDATE = 3, /* of a CLAIM that was not isolated: not claimed */
    WORKER_ROW_HELD = 4,      /* of a CLAIM: another worker's lease lasts, for left_ms */
    WORKER_ROW_UNKNOWN = 5,   /* no row, and the database may have lost it */
    WORKER_ROW_FORGED = 6,    /* of a CLAIM: the message does not say what the row is about */
};

struct worker_row {
    uint64_t id;
    struct worker_key key;
    uint64_t attempt;    /* in; out for CLAIM, and for RENEW when it is mine */
    uint64_t claimed_us; /* CLAIM, RENEW: when the claim was made, by the database's clock: the row may
                            count attempts from the beginning again, and older rows never had this time. 0:
                            not claimed */
    enum worker_row_state state; /* out */
    bool expired;                /* out for CLAIM: the try's deadline has passed */
    uint64_t left_ms;            /* out for CLAIM: until its deadline, from now; 0 = it has none; HELD: until
                                    that lease ends */
    struct work_digest digest;   /* in for all but NOT_LOST: of what its message says */
    bool compared; /* out for CLAIM, when it is mine: with the row's digest; false: the row has none */
    bool quick; /* in for COMPLETE_BEGIN: it was not claimed, and is mine if nobody ever has claimed it. Then
                   out: attempt, claimed_us, left_ms, compared, as for CLAIM; else only that it is not MINE */
    bool isolated; /* in for CLAIM: also claims poison candidates; nothing else will be started beside it */
    bool settled;  /* in for RENEW: the isolated run has settled */
    uint32_t lost; /* out for CLAIM: claims of this try that were lost */
    bool poisoned; /* out for CLAIM: it must not be run again */
};

enum worker_in_kind {
    WORKER_IN_DELIVERED, /* id, key, digest, nonce, known, unserved, quick, deliveries, arrived_ms */
    WORKER_IN_RESUMED,   /* id, key, digest, nonce, arrived_ms, rows (one: its claim, MINE or MISSING) */
    WORKER_IN_CLAIMED,   /* unknown, or rows: those of CLAIM in its order, with what is out for it */
    WORKER_IN_RENEWED,   /* unknown, or rows: those of RENEW in its order, with what is out for it */
    WORKER_IN_FINISHED,  /* id, status: the handler returned; ignored when its slot was abandoned. unknown: it
                            does not run, and has no result: the claim is given back. Of a COMPLETE_RUN:
                            neither does any of it that was not answered before */
    WORKER_IN_SLOT,      /* an abandoned slot was replaced (it may be later or never) */
    WORKER_IN_BEGUN,     /* unknown (nothing is open), or rows: those of COMPLETE_BEGIN in its order */
    WORKER_IN_PUBLISHED, /* id, ok: stored, or known to have been stored before */
    WORKER_IN_COMMITTED, /* unknown, or not */
    WORKER_IN_RELEASED,  /* answer to RELEASE; unknown makes no difference */
    WORKER_IN_LEFT,      /* unknown, or rows: those of LEAVE in its order, with state */
    WORKER_IN_NOT_LOST,  /* answer to NOT_LOST; unknown: it is sent again */
    WORKER_IN_SHELVED,   /* unknown, or rows: those of SHELVE in its order, with state and left_ms */
    WORKER_IN_PUSHED,    /* key.instance, .execution, .try_number, activity_ids, proofs, early, since_ms,
                            cancel_kind, reason */
    WORKER_IN_STOP,      /* limit_ms: stop gracefully; a second one can only shorten it */
};

struct worker_in {
    enum worker_in_kind kind;
    uint64_t id;
    struct worker_key key;
    struct work_digest digest; /* DELIVERED, RESUMED: of what the message says */
    bool known, ok, unknown;
    bool unserved;       /* DELIVERED, not known: nor does any worker of the queue, as they said just now */
    bool quick;          /* DELIVERED: its handler returns at once and waits for nothing */
    thole_slice nonce;   /* DELIVERED, RESUMED: of the activity; at most NONCE_TEXT_LEN characters */
    uint64_t deliveries; /* DELIVERED: from 1; a hint */
    uint64_t arrived_ms; /* DELIVERED: when the host received it; 0 = now. RESUMED: when the row was asked */
    thole_status status; /* FINISHED */
    const struct worker_row *rows;
    size_t rows_len;
    const uint64_t *activity_ids; /* PUSHED */
    const uint64_t *proofs;       /* PUSHED: of each activity, see cancel_proof.h; without the right one it is
                                     ignored, and counted */
    size_t activity_ids_len;
    bool early;                      /* PUSHED: the rows are still being deleted, another push follows */
    uint64_t since_ms;               /* PUSHED: when it was decided; 0: not known. Only measured with */
    thole_slice cancel_kind, reason; /* PUSHED */
    uint64_t limit_ms;               /* STOP */
};
/* THOLE_OK. A RESUMED that is not taken: THOLE_LIMIT, no room; THOLE_CONFLICT, the try is held already. A
 * DELIVERED that is not taken: THOLE_LIMIT, no room (more came than was wanted): hand it back;
 * THOLE_CONFLICT, it is held here under the id that worker_holds() returns, and signals for that id must use
 * this delivery from now on, if worker_takes_again(). Nothing else fails. */
THOLE_NODISCARD thole_status worker_input(struct worker_machine *w, const struct worker_in *in,
                                          uint64_t now_ms);
/* The message of this try that is held here, says the same, and whose lease is not lost; 0: none. */
uint64_t worker_holds(const struct worker_machine *w, const struct worker_key *key,
                      const struct work_digest *digest);
/* The ids of all messages that are held, one after the other: *at begins at 0. 0: no more. For a host that
 * gives its machine up. */
uint64_t worker_next_held(const struct worker_machine *w, size_t *at);
/* A CONFLICT may be with another message, which says the same: one of the two is acknowledged. True: it is
 * the one that came before. @p held, @p again: their sequences in WORK. */
bool worker_takes_again(uint64_t held, uint64_t again);
void worker_advance(struct worker_machine *w, uint64_t now_ms);
/* When worker_advance() has something to do; UINT64_MAX: never, unless something comes in. May be early. */
uint64_t worker_next_deadline_ms(const struct worker_machine *w);

enum worker_out_kind {
    WORKER_OUT_WANT,     /* count: number of further messages wanted in total (replaces the last WANT) */
    WORKER_OUT_CLAIM,    /* rows (id, key): one statement; answer CLAIMED */
    WORKER_OUT_RUN,      /* id, attempt, deadline_ms: run the handler on a free slot (there is one); answer
                            FINISHED */
    WORKER_OUT_EXPIRED,  /* id, attempt: in place of RUN: the result is a timeout */
    WORKER_OUT_POISONED, /* id, attempt: in place of RUN: the result is that it is poisoned */
    WORKER_OUT_FIRE,    /* id, path, cancel_kind, reason: fire its token; after RUN, at most once for each id.
                           Path TIMEOUT: the result is a timeout, should it be published. deadline_ms: when
                           its slot is given up */
    WORKER_OUT_HURRY,   /* id, deadline_ms: its token has fired, and its grace is shortened; at most once */
    WORKER_OUT_ABANDON, /* id: it did not return in time: give its slot up; answer SLOT once it is replaced.
                           Handlers abandoned while stopping need not be replaced */
    WORKER_OUT_RENEW,   /* rows (id, key, attempt): one statement; answer RENEWED */
    WORKER_OUT_PROGRESS,       /* ids: +WPI for each; no answer */
    WORKER_OUT_COMPLETE_BEGIN, /* rows: begin, and delete them if they are mine; answer BEGUN */
    WORKER_OUT_COMPLETE_RUN, /* rows (id, attempt, left_ms): run these handlers, now; answer FINISHED for each
                              */
    WORKER_OUT_COMPLETE_PUBLISH,  /* ids: publish their results; answer PUBLISHED for each */
    WORKER_OUT_COMPLETE_COMMIT,   /* answer COMMITTED */
    WORKER_OUT_COMPLETE_ROLLBACK, /* no answer; done before the next COMPLETE_BEGIN */
    WORKER_OUT_RELEASE,           /* rows: give the claims back; answer RELEASED */
    WORKER_OUT_LEAVE,             /* rows: they are completed later, from outside; answer LEFT */
    WORKER_OUT_SHELVE,            /* rows (digest): they wait for a worker; answer SHELVED */
    WORKER_OUT_NOT_LOST, /* rows (key, attempt, claimed_us; no ids): their claims were not lost; answer
                            NOT_LOST */
    WORKER_OUT_ACK,      /* id, end: acknowledge the message. The id is no longer used */
    /* id, end, delay_ms: hand the message back with that delay. The id is no longer used */
    WORKER_OUT_NAK,
    WORKER_OUT_TERM,    /* id, end: remove the message, which is not the engine's. The id is no longer used */
    WORKER_OUT_DROP,    /* id, end: send nothing for the message. The id is no longer used */
    WORKER_OUT_STOPPED, /* once, after STOP: nothing is held and nothing is in flight */
};

/* Why a token fired. */
enum worker_path {
    WORKER_PATH_PUSH,
    WORKER_PATH_RENEWAL,    /* the row is missing */
    WORKER_PATH_LEASE_LOST, /* fenced by time, or another worker holds the row */
    WORKER_PATH_SHUTDOWN,
    WORKER_PATH_TIMEOUT, /* the try's deadline has passed */
};
/* "push", "renewal", "lease_lost", "shutdown", "timeout" */
const char *worker_path_name(enum worker_path path);

/* How the worker's part in a message ended, for logs and counters. */
enum worker_end {
    WORKER_END_COMPLETED,   /* the completion is stored */
    WORKER_END_GONE,        /* the row was missing when it was claimed: cancelled or done before */
    WORKER_END_CANCELLED,   /* cancelled while held here; confirmed by the row unless it ends with DROP */
    WORKER_END_REFUSED,     /* the completion found no row: cancelled in the last moment; nothing published */
    WORKER_END_STOLEN,      /* another claim holds the row; nothing published */
    WORKER_END_LEASE_LOST,  /* fenced by time */
    WORKER_END_UNCLAIMED,   /* could not be claimed in time */
    WORKER_END_UNKNOWN,     /* an activity that this program does not know */
    WORKER_END_HANDED_BACK, /* by a graceful stop */
    WORKER_END_LATER,       /* completed from outside, now or already */
    /* a poison candidate that cannot be run isolated here now, or a message that would have to wait for
     * one */
    WORKER_END_DEFERRED,
    WORKER_END_HELD,     /* another worker's lease lasts, or a handler of it has grace here */
    WORKER_END_FORGED,   /* the message does not say what the engine has scheduled */
    WORKER_END_UNSERVED, /* no worker of the queue knows it: its row is marked, and the message removed */
};
const char *worker_end_name(enum worker_end end);

struct worker_out {
    enum worker_out_kind kind;
    uint64_t id;
    uint64_t attempt;
    uint64_t deadline_ms; /* RUN: of the try, UINT64_MAX = none; FIRE, HURRY: of its grace */
    uint64_t delay_ms;    /* NAK: until it may come again; 0 = at once */
    uint32_t count;
    const struct worker_row *rows;
    size_t rows_len;
    const uint64_t *ids;
    size_t ids_len;
    enum worker_path path;
    enum worker_end end;
    thole_slice cancel_kind; /* FIRE: as pushed, else "cancelled", "lease_lost", "shutdown" or "timeout" */
    thole_slice reason;      /* FIRE: as pushed; may be empty */
    /* FIRE by PUSH: when it was decided, 0: not known. FIRE by RENEWAL, end REFUSED: when the row was last
     * seen */
    uint64_t since_ms;
};
/* Takes the next output; false when there is none. */
bool worker_poll(struct worker_machine *w, struct worker_out *ret);

struct worker_counters {
    uint64_t delivered, claimed, completed;
    uint64_t cancelled_by_push, cancelled_by_renewal; /* tokens fired that way */
    uint64_t lease_lost; /* leases that ended by time, with or without a result */
    uint64_t abandoned, stolen;
    uint64_t gone, refused, unclaimed, unknown, handed_back;
    uint64_t contradicted; /* pushed, yet the row was still there */
    uint64_t unproven;     /* pushed without the activity's proof: ignored */
    uint64_t timed_out;    /* tries whose deadline passed here, or before they could be run */
    uint64_t left;         /* to be completed from outside */
    uint64_t isolated;     /* poison candidates that were run isolated */
    uint64_t deferred;     /* handed back: poison candidates, and messages that waited for one */
    uint64_t poisoned;
    uint64_t held;    /* another worker's lease lasted */
    uint64_t adopted; /* redelivered while they were held here */
    uint64_t resumed; /* claims of a worker before */
    uint64_t quick;   /* claimed, of claimed: run in the batch that completed them */
    uint64_t forged;  /* messages that do not say what the engine has scheduled */
    uint64_t shelved; /* activities that no worker of the queue knew */
};
struct worker_counters worker_counters(const struct worker_machine *w);
/* Largest number of rows or ids in one output. */
size_t worker_capacity(const struct worker_machine *w);
/* Number of messages taken and not ended; for tests and logs. */
size_t worker_held(const struct worker_machine *w);
/* NULL, or the invariant that does not hold, as static text. For tests, at any time between two calls. */
const char *worker_check(const struct worker_machine *w);
#endif
