/*
 * Inside engine/worker/: the machine's state, and what its parts do for each other. Each file uses only those
 * above it:
 *
 *   lease_states.c     which state may follow which
 *   lease_table.c      what is held, in which state
 *   lease_times.c      when something is due
 *   worker_isolation.c poison candidates, one at a time; claims that were given up
 *   worker_end.c       run, fired, finished, pushed, ended
 *   worker_claim.c     delivered, wanted, claimed
 *   worker_renew.c     renewed, +WPI, confirmed
 *   worker_complete.c  completion batches, releases, what is completed later
 *   worker.c           dispatch, time, stop, poll
 *   worker_check.c     what always holds
 */
#ifndef THOLE_WORKER_MACHINE_H
#define THOLE_WORKER_MACHINE_H
#include "lease_table.h"

enum { LEASE_EVENTS_MAX = 5 }; /* RUN; FIRE, EXPIRED or POISONED; HURRY, ABANDON; and ACK, NAK or DROP */

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
    BATCH_TO_PUBLISH,
    BATCH_PUBLISHING,
    BATCH_TO_COMMIT,
    BATCH_COMMITTING,
    BATCH_TO_ROLL_BACK,
};

/* Where poison candidates are run, one at a time. */
struct isolation_slot {
    struct lease *lease; /* waits for its claim, is in it, or is unsettled until its result is stored; NULL =
                            nobody */
    uint64_t since_ms;   /* when it took the isolation slot */
    uint64_t unsettled_ms; /* how long it is alone */
    uint64_t settled_ms;   /* since it started: others may be started when a renewal after this is kept */
    uint64_t gate_ms;      /* no other poison candidate before this */
    uint64_t started_ms;   /* when anything was started last */
    bool telling;          /* the renewal in flight says that it has settled */
    size_t untold; /* given up while isolated, and their rows have not heard of it: nothing is claimed */
};

/* A claim that this worker gave up, to be told to its row. */
struct not_lost {
    struct worker_key key; /* its instance lies in instance_bytes */
    uint64_t attempt;
    bool isolated;
    uint8_t instance_bytes[THOLE_ID_BYTES_MAX];
};

struct worker_machine {
    struct worker_options options;
    struct lease_table table;
    struct worker_counters counters;
    uint64_t now_ms;
    uint64_t wake_ms; /* no lease has anything to do before this */

    struct worker_event *events; /* ring of table.cap * LEASE_EVENTS_MAX */
    size_t events_at, events_len;
    struct worker_row *rows; /* of the output that was taken last; table.cap */
    uint64_t *ids;

    uint32_t slots_abandoned; /* and not yet replaced */
    uint32_t wanted;          /* the wish that the host knows of, counted down by deliveries */

    uint64_t claim_sent_ms, claim_gate_ms; /* after a failure not before the gate */
    uint32_t claim_failures;

    bool renew_in_flight;
    uint64_t renew_sent_ms, renew_due_ms, renew_gate_ms;
    uint64_t *renew_ids;
    size_t renew_len;
    size_t pushes_wanted; /* leases with PUSH_WANTED */
    uint64_t progress_due_ms;

    enum batch_step step;
    size_t batch_open; /* publishes that are not answered yet */
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

/* Those in a state, in the order in which they entered it. */
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
/* After an answer that says nothing it is asked again so soon. */
uint64_t worker_ask_again_ms(const struct worker_machine *w);
/* When this lease is fenced; while it is not claimed, when its message is given up. */
uint64_t lease_fence_ms(const struct worker_machine *w, const struct lease *lease);
/* When time does something to it; UINT64_MAX: never in this state. */
uint64_t lease_due_ms(const struct worker_machine *w, const struct lease *lease);
/* To be called whenever what time does to a lease may come earlier than before. */
void lease_refresh(struct worker_machine *w, const struct lease *lease);
/* The lease was claimed: it takes part in renewals. */
void worker_renew_arm(struct worker_machine *w, const struct lease *lease);
/* Its message is kept by +WPI. */
void worker_progress_arm(struct worker_machine *w, const struct lease *lease);

/* ---- worker_isolation.c ---- */
/* Nobody has it, and the poison candidate takes it. */
void isolation_take(struct worker_machine *w, struct lease *lease);
/* Does it have the isolation slot? NULL is not. */
bool isolation_has(const struct worker_machine *w, const struct lease *lease);
/* When the poison candidate that waits may be claimed; UINT64_MAX: not yet, or none waits. */
uint64_t isolation_due_ms(const struct worker_machine *w);
/* It is claimed, and starts. */
void isolation_started(struct worker_machine *w, const struct lease *lease, uint32_t lost);
/* Its handler is called. */
void isolation_runs(struct worker_machine *w, const struct lease *lease);
/* It can be lost here no more, or its row has heard that it has settled: does nothing for any other lease. */
void isolation_leave(struct worker_machine *w, const struct lease *lease);
/* When it has been alone for long enough, and its row is to be told; UINT64_MAX: there is none to tell. */
uint64_t isolation_settles_ms(const struct worker_machine *w);
/* Its row is told that this worker lives and holds it no more. */
void lease_not_lost(struct worker_machine *w, const struct lease *lease);
void worker_not_lost_told(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_not_lost(struct worker_machine *w, struct worker_out *ret);
uint64_t worker_not_lost_due_ms(const struct worker_machine *w);

/* ---- worker_end.c ---- */
void lease_set_push(struct worker_machine *w, struct lease *lease, enum lease_push push);
void lease_run(struct worker_machine *w, struct lease *lease);
/* Fires the token unless it was fired before. A handler that was not started never is: the caller must expect
 * that the lease does not run any more. */
void lease_fire(struct worker_machine *w, struct lease *lease, enum worker_path path);
/* The same: its row is missing. */
void lease_cancelled(struct worker_machine *w, struct lease *lease);
/* The lease is over: CLAIM_EXPIRED or CLAIM_STOLEN. */
void lease_lose(struct worker_machine *w, struct lease *lease, enum lease_claim claim);
/* Its grace, which has begun, is over at that time at the latest. */
void lease_hurry(struct worker_machine *w, struct lease *lease, uint64_t grace_ms);
void lease_abandon(struct worker_machine *w, struct lease *lease);
/* It is over without having been run. */
void lease_expire(struct worker_machine *w, struct lease *lease);
/* It must not be run. */
void lease_poison(struct worker_machine *w, struct lease *lease);
/* It has a result, or (later) a row that is left to others. */
void lease_ready(struct worker_machine *w, struct lease *lease, bool later);
/* Its claim is given back. */
void lease_hand_back(struct worker_machine *w, struct lease *lease);
/* Last output. */
void lease_end(struct worker_machine *w, struct lease *lease, enum worker_out_kind kind, enum worker_end end);
/* Last output: it is handed back for a while. */
void lease_put_back(struct worker_machine *w, struct lease *lease, uint64_t delay_ms, enum worker_end end);
void worker_finished(struct worker_machine *w, const struct worker_in *in);
void worker_pushed(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_event(struct worker_machine *w, struct worker_out *ret);

/* ---- worker_claim.c ---- */
thole_status worker_delivered(struct worker_machine *w, const struct worker_in *in);
void worker_claimed(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_want(struct worker_machine *w, struct worker_out *ret);
bool worker_poll_claim(struct worker_machine *w, struct worker_out *ret);
uint64_t worker_claim_due_ms(const struct worker_machine *w);

/* ---- worker_renew.c ---- */
/* A handler that still runs keeps its message by +WPI even when it is cancelled, so that no other worker gets
 * it. Not when its row could not be renewed the last time: the message is to be back when the lease is over.
 */
bool lease_needs_progress(const struct worker_machine *w, const struct lease *lease);
void worker_renewed(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_renew(struct worker_machine *w, struct worker_out *ret);
bool worker_poll_progress(struct worker_machine *w, struct worker_out *ret);
uint64_t worker_renew_due_ms(const struct worker_machine *w);

/* ---- worker_complete.c ---- */
void worker_begun(struct worker_machine *w, const struct worker_in *in);
void worker_published(struct worker_machine *w, const struct worker_in *in);
void worker_committed(struct worker_machine *w, const struct worker_in *in);
void worker_released(struct worker_machine *w);
void worker_left(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_complete(struct worker_machine *w, struct worker_out *ret);
bool worker_poll_release(struct worker_machine *w, struct worker_out *ret);
bool worker_poll_leave(struct worker_machine *w, struct worker_out *ret);
#endif
