/* The worker machine: options, inputs, time, outputs. Its parts: worker_machine.h. */
#include "worker.h"
#include "memory.h"
#include "worker_machine.h"
#include <assert.h>
#include <stdlib.h>

enum { ENDING_MAX = 16 }; /* room for ended messages whose last output waits to be taken */

struct worker_machine *worker_create(const struct worker_options *options)
{
    assert(options->slots > 0 && options->lease_ms > 0 && options->poison_after != 1);
    assert(options->renew_ms <= options->lease_ms / 2);
    struct worker_machine *const w = memory_new(sizeof *w);
    size_t const cap = (size_t)options->slots + options->completions_max + options->resumed_max +
                       WORKER_PARKED_MAX + WORKER_SHELVED_MAX + ENDING_MAX;
    w->options = *options;
    w->wake_ms = w->renew_due_ms = w->progress_due_ms = UINT64_MAX;
    w->stop_ms = w->kill_ms = UINT64_MAX;
    w->events = memory_array(cap * LEASE_EVENTS_MAX, sizeof *w->events);
    w->rows = memory_array(cap, sizeof *w->rows);
    w->ids = memory_array(cap, sizeof *w->ids);
    w->renew_ids = memory_array(cap, sizeof *w->renew_ids);
    w->not_lost = memory_array(cap, sizeof *w->not_lost);
    lease_table_init(&w->table, cap);
    return w;
}

void worker_destroy(struct worker_machine *w)
{
    if (w == NULL)
        return;
    lease_table_release(&w->table);
    free(w->events);
    free(w->rows);
    free(w->ids);
    free(w->renew_ids);
    free(w->not_lost);
    free(w);
}

/* ---- time ---- */

static uint64_t worker_min_ms(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void running_due(struct worker_machine *w, struct lease *lease)
{
    if (lease_has_row(lease) && w->now_ms >= lease_fence_ms(w, lease))
        lease_lose(w, lease, CLAIM_EXPIRED);
    if ((lease->state == LEASE_STARTING || lease->state == LEASE_RUNNING) && w->now_ms >= lease->deadline_ms)
        lease_fire(w, lease, WORKER_PATH_TIMEOUT);
    if (lease->state == LEASE_CANCELLING && w->now_ms >= lease->cancelling.grace_ms)
        lease_abandon(w, lease);
}

static void lease_due(struct worker_machine *w, struct lease *lease)
{
    switch (lease->state) {
    case LEASE_PARKED:
        lease_end(w, lease, WORKER_OUT_NAK,
                  lease->parked.candidate ? WORKER_END_DEFERRED : WORKER_END_UNKNOWN);
        break;
    case LEASE_UNSERVED: lease_end(w, lease, WORKER_OUT_NAK, WORKER_END_UNKNOWN); break;
    case LEASE_QUEUED: /* another worker may reach the database */
    case LEASE_QUICK:
    case LEASE_ISOLATED: lease_end(w, lease, WORKER_OUT_NAK, WORKER_END_UNCLAIMED); break;
    case LEASE_STARTING:
    case LEASE_RUNNING:
    case LEASE_CANCELLING: running_due(w, lease); break;
    case LEASE_CONFIRMING: lease_end(w, lease, WORKER_OUT_DROP, WORKER_END_CANCELLED); break;
    case LEASE_RETRYING: lease_ready(w, lease, lease->result.later); break;
    default: assert(false); /* such a state is never due */
    }
}

/* Goes through all leases, but only when one of them may be due. */
static void advance_leases(struct worker_machine *w)
{
    if (w->now_ms < w->wake_ms)
        return;
    w->wake_ms = UINT64_MAX;
    for (size_t i = 0; i < w->table.cap; i++) {
        struct lease *const lease = &w->table.leases[i];
        if (lease_due_ms(w, lease) <= w->now_ms)
            lease_due(w, lease);
        lease_refresh(w, lease);
    }
}

/* ---- stopping ---- */

static void worker_stop(struct worker_machine *w, uint64_t limit_ms)
{
    uint64_t const stop_ms = limit_ms < UINT64_MAX / 4 ? w->now_ms + limit_ms : UINT64_MAX / 2;
    w->stop_ms = worker_min_ms(w->stop_ms, stop_ms);
    w->kill_ms = w->stop_ms + w->options.stop_grace_ms;
    if (w->stopping)
        return;
    w->stopping = true;
    for (size_t i = 0; i < w->table.cap; i++) {
        struct lease *const lease = &w->table.leases[i];
        if (lease->state == LEASE_QUEUED || lease->state == LEASE_QUICK || lease->state == LEASE_PARKED ||
            lease->state == LEASE_ISOLATED || lease->state == LEASE_UNSERVED)
            lease_end(w, lease, WORKER_OUT_NAK, WORKER_END_HANDED_BACK);
    }
}

static void fire_all(struct worker_machine *w)
{
    w->stop_fired = true;
    for (size_t i = 0; i < w->table.cap; i++) {
        struct lease *const lease = &w->table.leases[i];
        if (lease->state == LEASE_CANCELLING)
            lease_hurry(w, lease, w->kill_ms);
        else if (lease->state == LEASE_STARTING || lease->state == LEASE_RUNNING)
            lease_fire(w, lease, WORKER_PATH_SHUTDOWN);
    }
}

/* Nothing more is completed by this worker. */
static void worker_kill_all(struct worker_machine *w)
{
    w->killed = true;
    for (size_t i = 0; i < w->table.cap; i++) {
        struct lease *const lease = &w->table.leases[i];
        if (lease->state == LEASE_CONFIRMING)
            lease_end(w, lease, WORKER_OUT_DROP, WORKER_END_CANCELLED);
        else if (lease->state == LEASE_READY || lease->state == LEASE_TO_LEAVE ||
                 lease->state == LEASE_RETRYING)
            lease_hand_back(w, lease);
    }
}

static bool nothing_left(const struct worker_machine *w)
{
    return w->table.len == 0 && w->step == BATCH_IDLE && !w->renew_in_flight && w->not_lost_len == 0;
}

static bool poll_stopped(struct worker_machine *w, struct worker_out *ret)
{
    if (!w->stopping || w->stopped || !nothing_left(w))
        return false;
    w->stopped = true;
    *ret = (struct worker_out){.kind = WORKER_OUT_STOPPED};
    return true;
}

/* ---- calls of the host ---- */

static void set_now(struct worker_machine *w, uint64_t now_ms)
{
    if (now_ms > w->now_ms)
        w->now_ms = now_ms;
}

static void slot_replaced(struct worker_machine *w)
{
    assert(w->slots_abandoned > 0);
    w->slots_abandoned--;
}

thole_status worker_input(struct worker_machine *w, const struct worker_in *in, uint64_t now_ms)
{
    set_now(w, now_ms);
    switch (in->kind) {
    case WORKER_IN_DELIVERED: return worker_delivered(w, in);
    case WORKER_IN_RESUMED: return worker_resumed(w, in);
    case WORKER_IN_CLAIMED: worker_claimed(w, in); break;
    case WORKER_IN_RENEWED: worker_renewed(w, in); break;
    case WORKER_IN_FINISHED:
        if (!worker_quick_finished(w, in))
            worker_finished(w, in);
        break;
    case WORKER_IN_SLOT: slot_replaced(w); break;
    case WORKER_IN_BEGUN: worker_begun(w, in); break;
    case WORKER_IN_PUBLISHED: worker_published(w, in); break;
    case WORKER_IN_COMMITTED: worker_committed(w, in); break;
    case WORKER_IN_RELEASED: worker_released(w); break;
    case WORKER_IN_LEFT: worker_left(w, in); break;
    case WORKER_IN_NOT_LOST: worker_not_lost_told(w, in); break;
    case WORKER_IN_SHELVED: worker_shelved(w, in); break;
    case WORKER_IN_PUSHED: worker_pushed(w, in); break;
    case WORKER_IN_STOP: worker_stop(w, in->limit_ms); break;
    }
    return THOLE_OK;
}

void worker_advance(struct worker_machine *w, uint64_t now_ms)
{
    set_now(w, now_ms);
    if (w->stopping && !w->stop_fired && w->now_ms >= w->stop_ms)
        fire_all(w);
    if (w->stopping && !w->killed && w->now_ms >= w->kill_ms)
        worker_kill_all(w);
    advance_leases(w);
}

uint64_t worker_next_deadline_ms(const struct worker_machine *w)
{
    uint64_t next_ms = worker_min_ms(w->wake_ms, w->progress_due_ms);
    next_ms = worker_min_ms(next_ms, worker_renew_due_ms(w));
    next_ms = worker_min_ms(next_ms, worker_claim_due_ms(w));
    next_ms = worker_min_ms(next_ms, worker_not_lost_due_ms(w));
    if (w->stopping && !w->stop_fired)
        next_ms = worker_min_ms(next_ms, w->stop_ms);
    if (w->stopping && !w->killed)
        next_ms = worker_min_ms(next_ms, w->kill_ms);
    return next_ms;
}

bool worker_poll(struct worker_machine *w, struct worker_out *ret)
{
    return worker_poll_event(w, ret) || worker_poll_want(w, ret) || worker_poll_progress(w, ret) ||
           worker_poll_renew(w, ret) || worker_poll_claim(w, ret) || worker_poll_complete(w, ret) ||
           worker_poll_release(w, ret) || worker_poll_leave(w, ret) || worker_poll_shelve(w, ret) ||
           worker_poll_not_lost(w, ret) || poll_stopped(w, ret);
}

struct worker_counters worker_counters(const struct worker_machine *w)
{
    return w->counters;
}

size_t worker_capacity(const struct worker_machine *w)
{
    return w->table.cap;
}

size_t worker_held(const struct worker_machine *w)
{
    return w->table.len;
}
