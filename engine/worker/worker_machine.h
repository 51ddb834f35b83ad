/*
 * Inside engine/worker/: the machine's state, and what its parts do for each other.
 *
 *   worker.c           options, dispatch, time, poll       lease_table.c      what is held
 *   worker_claim.c     delivered, wanted, claimed          worker_renew.c     renewed, +WPI, confirmed
 *   worker_end.c       run, fired, finished, ended         worker_complete.c  completion batches, releases,
 *   worker_lane.c      suspects, one at a time; claims that                   what is completed later
 *                      were let go
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
    uint64_t attempt, delay_ms;
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

/* Where suspects are run, one at a time. */
struct lane {
    struct lease *lease; /* waits for its claim, is in it, or is unsettled until its result is stored; NULL =
                            nobody */
    uint64_t since_ms;   /* when it took the lane */
    uint64_t unsettled_ms; /* how long it is alone */
    uint64_t settled_ms;   /* since it started: others may be started when a renewal after this is kept */
    uint64_t gate_ms;      /* no other suspect before this */
    uint64_t started_ms;   /* when anything was started last */
    bool telling;          /* the renewal in flight says that it has settled */
    size_t untold;         /* let go while apart, and their rows have not heard of it: nothing is claimed */
};

/* A claim that this worker gave up, to be told to its row. */
struct let_go {
    struct worker_key key; /* its instance lies in instance_bytes */
    uint64_t attempt;
    bool apart;
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

    uint32_t slots_used; /* reserved by a claim, running, or abandoned and not yet replaced */
    uint32_t wanted;     /* the wish that the host knows of, counted down by deliveries */
    size_t parked;

    struct lease_list queued;
    bool claim_in_flight;
    struct lease *claims[WORKER_CLAIM_MAX]; /* in flight, in its order */
    size_t claims_len;
    uint64_t claim_sent_ms, claim_gate_ms; /* after a failure not before the gate */
    uint32_t claim_failures;

    bool renew_in_flight;
    uint64_t renew_sent_ms, renew_due_ms, renew_gate_ms;
    uint64_t *renew_ids;
    size_t renew_len;
    size_t confirms; /* leases with CONFIRM_WANTED */
    uint64_t progress_due_ms;

    struct lease_list ready;
    enum batch_step step;
    struct lease *batch[WORKER_CLAIM_MAX];
    size_t batch_len, batch_open; /* open: publishes that are not answered yet */
    uint64_t batch_sent_ms;

    struct lease_list releasing;
    bool release_in_flight;
    struct lease *released[WORKER_CLAIM_MAX];
    size_t released_len;

    struct lane lane;
    struct let_go *let_go; /* ring of table.cap */
    size_t let_go_at, let_go_len, let_go_sent;
    bool let_go_in_flight;
    uint32_t let_go_failures;
    uint64_t let_go_gate_ms;

    struct lease_list leaving;
    bool leave_in_flight;
    struct lease *left[WORKER_CLAIM_MAX];
    size_t left_len;

    bool stopping, stop_fired, killed, stopped;
    uint64_t stop_ms, kill_ms; /* when the limit is over; when the grace after it is over */
};

/* ---- worker.c ---- */
/* Margin before the end of a lease at which the machine fences itself. */
uint64_t worker_margin_ms(const struct worker_machine *w);
/* When this lease is fenced; while it is not claimed, when its message is given up. */
uint64_t lease_fence_ms(const struct worker_machine *w, const struct lease *lease);
/* To be called whenever what time does to a lease may come earlier than before. */
void lease_refresh(struct worker_machine *w, struct lease *lease);
/* How often leases are renewed. */
uint64_t worker_renew_every_ms(const struct worker_machine *w);
/* 50 ms, doubled with each retry, at most 2 s and an eighth of the lease. */
uint64_t worker_backoff_ms(const struct worker_machine *w, uint32_t retries);

/* ---- worker_claim.c ---- */
thole_status worker_delivered(struct worker_machine *w, const struct worker_in *in);
void worker_claimed(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_want(struct worker_machine *w, struct worker_out *ret);
bool worker_poll_claim(struct worker_machine *w, struct worker_out *ret);
uint64_t worker_claim_due_ms(const struct worker_machine *w);

/* It waits a while, and is then handed back. */
void lease_park(struct worker_machine *w, struct lease *lease);

/* ---- worker_lane.c ---- */
/* The row says that it is a suspect. */
void lane_offer(struct worker_machine *w, struct lease *lease);
/* Is it the lane's? NULL is not. */
bool lane_has(const struct worker_machine *w, const struct lease *lease);
/* When the suspect that waits may be claimed; UINT64_MAX: not yet, or none waits. */
uint64_t lane_due_ms(const struct worker_machine *w);
/* It is claimed, and starts. */
void lane_started(struct worker_machine *w, const struct lease *lease, uint32_t lost);
/* Its handler is called. */
void lane_runs(struct worker_machine *w, const struct lease *lease);
/* It can be lost here no more, or its row has heard that it has settled: does nothing for any other lease. */
void lane_leave(struct worker_machine *w, const struct lease *lease);
/* When it has been alone for long enough, and its row is to be told; UINT64_MAX: there is none to tell. */
uint64_t lane_settles_ms(const struct worker_machine *w);
/* Its row is told that this worker lives and holds it no more. */
void lease_let_go(struct worker_machine *w, const struct lease *lease);
void worker_let_go_told(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_let_go(struct worker_machine *w, struct worker_out *ret);
uint64_t worker_let_go_due_ms(const struct worker_machine *w);

/* ---- worker_renew.c ---- */
/* After an answer that says nothing it is asked again so soon. */
uint64_t worker_ask_again_ms(const struct worker_machine *w);
/* The lease was claimed: it takes part in renewals. */
void worker_renew_arm(struct worker_machine *w, const struct lease *lease);
/* Its message is kept by +WPI. */
void worker_progress_arm(struct worker_machine *w, const struct lease *lease);
void lease_confirm(struct worker_machine *w, struct lease *lease, enum lease_confirm confirm);
void worker_renewed(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_renew(struct worker_machine *w, struct worker_out *ret);
bool worker_poll_progress(struct worker_machine *w, struct worker_out *ret);
uint64_t worker_renew_due_ms(const struct worker_machine *w);

/* ---- worker_end.c ---- */
void lease_run(struct worker_machine *w, struct lease *lease);
/* Fires the token unless it was fired before. A handler that was not started never is: the caller must expect
 * that the lease does not run any more. */
void lease_fire(struct worker_machine *w, struct lease *lease, enum worker_path path);
/* Its grace, should it have begun, is over at that time at the latest. */
void lease_hurry(struct worker_machine *w, struct lease *lease, uint64_t grace_ms);
/* The lease is over (by time, or stolen). */
void lease_lose(struct worker_machine *w, struct lease *lease, bool stolen);
void lease_abandon(struct worker_machine *w, struct lease *lease);
/* It is over without having been run. */
void lease_expire(struct worker_machine *w, struct lease *lease);
/* It must not be run. */
void lease_poison(struct worker_machine *w, struct lease *lease);
/* Last output. Unlists it. */
void lease_end(struct worker_machine *w, struct lease *lease, enum worker_out_kind kind, enum worker_end end);
/* Last output: it is handed back for a while. */
void lease_put_back(struct worker_machine *w, struct lease *lease, uint64_t delay_ms, enum worker_end end);
void worker_finished(struct worker_machine *w, const struct worker_in *in);
void worker_pushed(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_event(struct worker_machine *w, struct worker_out *ret);

/* ---- worker_complete.c ---- */
void lease_ready(struct worker_machine *w, struct lease *lease);
/* The list in which it waits when it is ready. */
struct lease_list *lease_ready_list(struct worker_machine *w, const struct lease *lease);
void lease_hand_back(struct worker_machine *w, struct lease *lease);
void worker_begun(struct worker_machine *w, const struct worker_in *in);
void worker_published(struct worker_machine *w, const struct worker_in *in);
void worker_committed(struct worker_machine *w, const struct worker_in *in);
void worker_released(struct worker_machine *w);
void worker_left(struct worker_machine *w, const struct worker_in *in);
bool worker_poll_complete(struct worker_machine *w, struct worker_out *ret);
bool worker_poll_release(struct worker_machine *w, struct worker_out *ret);
bool worker_poll_leave(struct worker_machine *w, struct worker_out *ret);
#endif
