/*
 * Inside engine/worker/: the machine's state, and the functions that its files share. Each file uses only
 * those above it:
 *
 *   lease_states.c     which state may follow which
 *   lease_table.c      what is held, in which state
 *   lease_times.c      when something is due
 *   worker_isolation.c poison candidates, one at a time; claims that were given up
 *   worker_end.c       run, fired, finished, pushed, ended
 *   worker_shelf.c     what no worker of the queue knows
 *   worker_claim.c     delivered, resumed, wanted, claimed
 *   worker_renew.c     renewed, +WPI, confirmed
 *   worker_complete.c  completion batches, releases, what is completed later
 *   worker.c           dispatch, time, stop, poll
 *   worker_check.c     what always holds
 */
#ifndef THOLE_WORKER_MACHINE_H
#define THOLE_WORKER_MACHINE_H
#include "lease_table.h"

enum {
    LEASE_EVENTS_MAX = 5
}; /* RUN; FIRE, EXPIRED or POISONED; HURRY, ABANDON; and ACK, NAK, TERM or DROP */

/* An output about one message; waits in a ring. */
struct worker_event {
    enum worker_out_kind kind;
    enum worker_path path;
    enum worker_end end;
    uint64_t attempt, delay_ms, deadline_ms;
    struct lease *lease;
};

enum batch_step {
    BATCH_IDLE,
    BATCH_BEGINNING,
    BATCH_TO_RUN,
    BATCH_RUNNING,
    BATCH_TO_PUBLISH,
    BATCH_PUBLISHING,
    BATCH_TO_COMMIT,
    BATCH_COMMITTING,
    BATCH_TO_ROLL_BACK,
};

/* Where poison candidates are run, one at a time. */
struct isolation_slot {
    /* waits for its claim, is being claimed, or is unsettled until its result is stored; NULL = none */
    struct lease *lease;
    uint64_t since_ms;     /* when it took the isolation slot */
    uint64_t unsettled_ms; /* how long nothing else starts beside it */
    uint64_t settled_ms;   /* after its start: others may start when a renewal after this time is kept */
    uint64_t gate_ms;      /* no other poison candidate before this */
    uint64_t started_ms;   /* when an activity was last started */
    uint64_t abandoned_ms; /* until then abandoned handlers are suspected; 0: there was none */
    bool telling;          /* the renewal in flight records that it has settled */
    /* given up while isolated and not yet recorded in their rows: nothing is claimed meanwhile */
    size_t untold;
};

/* A claim that this worker gave up, to be recorded in its row. */
struct not_lost {
    struct worker_key key; /* the key's instance points to instance_bytes */
    uint64_t attempt, claimed_us;
    bool isolated;
    uint8_t instance_bytes[THOLE_ID_BYTES_MAX];
};

struct worker_machine {
    struct worker_options options;
    struct lease_table table;
    struct worker_counters counters;
    uint64_t now_ms;
    uint64_t wake_ms; /* no lease is due before this */

    struct worker_event *events; /* ring of table.cap * LEASE_EVENTS_MAX */
    size_t events_at, events_len;
    struct worker_row *rows; /* of the output that was taken last; table.cap */
    uint64_t *ids;

    uint32_t slots_abandoned; /* and not yet replaced */
    uint32_t wanted;          /* the last WANT, counted down by deliveries */

    uint64_t claim_sent_ms, claim_gate_ms; /* no claim before the gate, after a failure */
    uint32_t claim_failures;

    uint64_t shelve_gate_ms; /* none is shelved before it, after a failure */
    uint32_t shelve_failures;

    bool renew_in_flight;
    uint64_t renew_sent_ms, renew_due_ms, renew_gate_ms;
    uint64_t *renew_ids;
    size_t renew_len;
    size_t pushes_wanted; /* leases with PUSH_WANTED */
    uint64_t progress_due_ms;

    enum batch_step step;
    bool batch_quick;       /* has quick handlers to run, or has run them */
    uint64_t quick_gate_ms; /* until then quick ones are claimed first */
    size_t batch_unrun;     /* of these, those that have not returned */
    size_t batch_open;      /* publishes not answered yet */
    uint64_t batch_sent_ms;

    struct isolation_slot isolation;
    struct not_lost *not_lost; /* ring of table.cap */
    size_t not_lost_at, not_lost_len, not_lost_sent;
    bool not_lost_in_flight;
    uint32_t not_lost_failures;
    uint64_t not_lost_gate_ms;

    bool stopping, stop_fired, killed, stopped;
    uint64_t stop_ms, kill_ms; /* when the limit is over; when the grace after it is over */
};

/* Leases in a state, in the order in which they entered it. */
static inline const struct lease_list *leases_in(const struct worker_machine *w, enum lease_state state)
{
    return &w->table.lists[state];
}

/* Slots that are reserved by a claim, have a handler, or are abandoned and not yet replaced. */
static inline uint32_t worker_slots_used(const struct worker_machine *w)
{
    return (uint32_t)(leases_in(w, LEASE_CLAIMING)->len + leases_in(w, LEASE_STARTING)->len +
                      leases_in(w, LEASE_RUNNING)->len + leases_in(w, LEASE_CANCELLING)->len) +
           w->slots_abandoned;
}

/* ---- lease_times.c ---- */
/* Margin before the end of a lease at which the machine fences itself. */
uint64_t worker_margin_ms(const struct worker_machine *w);
/* How often leases are renewed. */
uint64_t worker_renew_every_ms(const struct worker_machine *w);
/* 50 ms, doubled with each retry, at most 2 s and an eighth of the lease. */
uint64_t worker_backoff_ms(const struct worker_machine *w, uint32_t retries);
/* Delay until it asks again after an unknown answer. */
uint64_t worker_ask_again_ms(const struct worker_machine *w);
/* When this lease is fenced; if it is not claimed, when its message is given up. */
uint64_t lease_fence_ms(const struct worker_machine *w, const struct lease *lease);
/* When the lease is due by time; UINT64_MAX: never in this state. */
uint64_t lease_due_ms(const struct worker_machine *w, const struct lease *lease);
/* Must be called when a lease may be due earlier than before. */
void lease_refresh(struct worker_machine *w, const struct lease *lease);
/* The lease was claimed: it takes part in renewals. */
void worker_renew_arm(struct worker_machine *w, const struct lease *lease);
/* +WPI keeps the lease's message. */
void worker_progress_arm(struct worker_machine *w, const struct lease *lease);

/* ---- worker_isolation.c ---- */
/* The poison candidate takes the isolation slot, which must be free. */
void isolation_take(struct worker_machine *w, struct lease *lease);
/* Whether the lease has the isolation slot. False for NULL. */
bool isolation_has(const struct worker_machine *w, const struct lease *lease);
/* When the waiting poison candidate may be claimed; UINT64_MAX: not yet, or none waits. */
uint64_t isolation_due_ms(const struct worker_machine *w);
/* The poison candidate is claimed and starts. */
void isolation_started(struct worker_machine *w, const struct lease *lease, uint32_t lost);
/* The host calls its handler. */
void isolation_runs(struct worker_machine *w, const struct lease *lease);
/* A handler was abandoned: it may run on, also when its slot is replaced. */
void isolation_abandoned(struct worker_machine *w);
/* Frees the isolation slot: the lease cannot be lost here any more, or its row has recorded that it has
 * settled. Does nothing for other leases. */
void isolation_leave(struct worker_machine *w, const struct lease *lease);
/* When the isolated run has settled and its row must be told; UINT64_MAX: nothing to tell. */
uint64_t isolation_settles_ms(const struct worker_machine *w);
/* Queues a NOT_LOST: this worker lives and has given the claim up. */
void lease_not_lost(struct worker_machine *w, const struct lease *lease);
void worker_not_lost_told(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_not_lost(struct worker_machine *w, struct worker_out *ret);
uint64_t worker_not_lost_due_ms(const struct worker_machine *w);

/* ---- worker_end.c ---- */
void lease_set_push(struct worker_machine *w, struct lease *lease, enum lease_push push);
void lease_run(struct worker_machine *w, struct lease *lease);
/* Fires the token unless it was fired before. If the handler was not started it never is: the lease may have
 * ended when this returns. */
void lease_fire(struct worker_machine *w, struct lease *lease, enum worker_path path);
/* Like lease_fire(), because the row is missing. */
void lease_cancelled(struct worker_machine *w, struct lease *lease);
/* The lease is over: CLAIM_EXPIRED or CLAIM_STOLEN. */
void lease_lose(struct worker_machine *w, struct lease *lease, enum lease_claim claim);
/* Shortens the grace, which has begun, to at most @p grace_ms from now. */
void lease_hurry(struct worker_machine *w, struct lease *lease, uint64_t grace_ms);
void lease_abandon(struct worker_machine *w, struct lease *lease);
/* Ends it without a run: the deadline has passed. */
void lease_expire(struct worker_machine *w, struct lease *lease);
/* Ends it without a run: it is poisoned. */
void lease_poison(struct worker_machine *w, struct lease *lease);
/* Readies a lease that has a result, or (later) is completed from outside. */
void lease_ready(struct worker_machine *w, struct lease *lease, bool later);
/* Gives its claim back. */
void lease_hand_back(struct worker_machine *w, struct lease *lease);
/* Last output. */
void lease_end(struct worker_machine *w, struct lease *lease, enum worker_out_kind kind, enum worker_end end);
/* Last output: hands the message back with a delay. */
void lease_put_back(struct worker_machine *w, struct lease *lease, uint64_t delay_ms, enum worker_end end);
void worker_finished(struct worker_machine *w, const struct worker_in *in);
void worker_pushed(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_event(struct worker_machine *w, struct worker_out *ret);

/* ---- worker_claim.c ---- */
thole_status worker_delivered(struct worker_machine *w, const struct worker_in *in);
thole_status worker_resumed(struct worker_machine *w, const struct worker_in *in);
void worker_claimed(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_want(struct worker_machine *w, struct worker_out *ret);
bool worker_poll_claim(struct worker_machine *w, struct worker_out *ret);
uint64_t worker_claim_due_ms(const struct worker_machine *w);

/* ---- worker_shelf.c ---- */
/* Those that are on their way to the shelf. */
static inline size_t worker_shelf_len(const struct worker_machine *w)
{
    return leases_in(w, LEASE_UNSERVED)->len + leases_in(w, LEASE_SHELVING)->len;
}
/* False: it must be parked, as there is no room, or the last SHELVE has failed. */
bool worker_may_shelve(const struct worker_machine *w);
void worker_shelved(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_shelve(struct worker_machine *w, struct worker_out *ret);

/* ---- worker_renew.c ---- */
/* Whether +WPI is sent for its message. Also for a cancelled handler that still runs, so that no other worker
 * gets the message. Not if its row could not be renewed the last time: then the message must be redelivered
 * when the lease is over.
 */
bool lease_needs_progress(const struct worker_machine *w, const struct lease *lease);
void worker_renewed(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_renew(struct worker_machine *w, struct worker_out *ret);
bool worker_poll_progress(struct worker_machine *w, struct worker_out *ret);
uint64_t worker_renew_due_ms(const struct worker_machine *w);

/* ---- worker_complete.c ---- */
/* Whether it is a quick handler of the batch that has returned. */
bool worker_quick_finished(struct worker_machine *w, const struct worker_in *in);
void worker_begun(struct worker_machine *w, const struct worker_in *in);
void worker_published(struct worker_machine *w, const struct worker_in *in);
void worker_committed(struct worker_machine *w, const struct worker_in *in);
void worker_released(struct worker_machine *w);
void worker_left(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_complete(struct worker_machine *w, struct worker_out *ret);
bool worker_poll_release(struct worker_machine *w, struct worker_out *ret);
bool worker_poll_leave(struct worker_machine *w, struct worker_out *ret);
#endif
