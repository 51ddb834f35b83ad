/*
 * A worker's death does not show which of its activities caused it. So an activity that was lost often enough
 * runs isolated from others, one at a time, and activities that only ran beside it stop counting losses; and
 * a claim that a living worker gave up is subtracted from the lost ones.
 */
#include "worker_machine.h"
#include <assert.h>
#include <string.h>

enum { SETTLE_DOUBLINGS_MAX = 16 };

bool isolation_has(const struct worker_machine *w, const struct lease *lease)
{
    return lease != NULL && w->isolation.lease == lease;
}

void isolation_take(struct worker_machine *w, struct lease *lease)
{
    assert(w->isolation.lease == NULL);
    w->isolation.lease = lease;
    w->isolation.since_ms = w->now_ms;
    w->isolation.settled_ms = UINT64_MAX;
}

static uint64_t quiet_ms(const struct worker_machine *w)
{
    return w->options.lease_ms / 3;
}

/* A handler that has run this long here has run for quiet_ms() on its host, and its death would be known. */
static uint64_t calm_ms(const struct worker_machine *w)
{
    return quiet_ms(w) + w->options.silence_ms;
}

/* Handlers that have run for quiet_ms() are not suspected: the candidate may start beside them. Those that
 * were abandoned may run without a slot, and are suspected like the others. */
uint64_t isolation_due_ms(const struct worker_machine *w)
{
    if (w->isolation.lease == NULL || w->isolation.lease->state != LEASE_ISOLATED || w->batch_unrun > 0)
        return UINT64_MAX; /* a batch that runs handlers is over in a moment */
    return worker_slots_used(w) == 0 ? w->isolation.abandoned_ms : w->isolation.started_ms + calm_ms(w);
}

/* The abandoned handler has started at the last start, or before. */
void isolation_abandoned(struct worker_machine *w)
{
    w->isolation.abandoned_ms = w->isolation.started_ms + calm_ms(w);
}

void isolation_started(struct worker_machine *w, const struct lease *lease, uint32_t lost)
{
    uint32_t const free = worker_candidate_after(w->options.poison_after);
    uint32_t const more = lost > free ? lost - free : 0;
    if (isolation_has(w, lease)) {
        w->counters.isolated++;
        w->isolation.unsettled_ms = quiet_ms(w)
                                    << (more < SETTLE_DOUBLINGS_MAX ? more : SETTLE_DOUBLINGS_MAX);
        w->isolation.unsettled_ms += w->options.silence_ms;
    }
    isolation_runs(w, lease);
}

/* Measured again here: this process may have been frozen since the claim was answered. */
void isolation_runs(struct worker_machine *w, const struct lease *lease)
{
    w->isolation.started_ms = w->now_ms;
    if (isolation_has(w, lease))
        w->isolation.settled_ms = w->now_ms + w->isolation.unsettled_ms;
}

void isolation_leave(struct worker_machine *w, const struct lease *lease)
{
    if (!isolation_has(w, lease))
        return;
    w->isolation.lease = NULL;
    w->isolation.telling = false;
    w->isolation.gate_ms = w->now_ms + (w->now_ms - w->isolation.since_ms); /* as much time for all others */
}

uint64_t isolation_settles_ms(const struct worker_machine *w)
{
    const struct lease *lease = w->isolation.lease;
    return lease != NULL && lease_takes_part(lease) ? w->isolation.settled_ms : UINT64_MAX;
}

/* ---- claims that were given up, not lost ---- */

static struct not_lost *not_lost_at(const struct worker_machine *w, size_t i)
{
    return &w->not_lost[(w->not_lost_at + i) % w->table.cap];
}

/* Without room in the ring the claim counts as lost once. */
void lease_not_lost(struct worker_machine *w, const struct lease *lease)
{
    if (lease->attempt == 0 || lease->unwritten || w->not_lost_len == w->table.cap)
        return;
    struct not_lost *const to = not_lost_at(w, w->not_lost_len++);
    to->key = lease->key;
    to->attempt = lease->attempt;
    to->claimed_us = lease->claimed_us;
    to->isolated = isolation_has(w, lease);
    w->isolation.untold += to->isolated;
    memcpy(to->instance_bytes, lease->instance_bytes, lease->key.instance.len);
    to->key.instance.ptr = to->instance_bytes;
}

uint64_t worker_not_lost_due_ms(const struct worker_machine *w)
{
    if (w->not_lost_in_flight || w->not_lost_len == 0)
        return UINT64_MAX;
    return w->stopping ? 0 : w->not_lost_gate_ms;
}

bool worker_poll_not_lost(struct worker_machine *w, struct worker_out *ret)
{
    size_t n = 0;
    if (w->now_ms < worker_not_lost_due_ms(w))
        return false;
    for (; n < w->not_lost_len && n < WORKER_CLAIM_MAX; n++) {
        const struct not_lost *const claim = not_lost_at(w, n);
        w->rows[n] = (struct worker_row){
            .key = claim->key, .attempt = claim->attempt, .claimed_us = claim->claimed_us};
    }
    w->not_lost_sent = n;
    w->not_lost_in_flight = true;
    *ret = (struct worker_out){.kind = WORKER_OUT_NOT_LOST, .rows = w->rows, .rows_len = n};
    return true;
}

/* A worker that stops sends it only once. */
void worker_not_lost_told(struct worker_machine *w, const struct worker_in *in)
{
    assert(w->not_lost_in_flight && w->not_lost_sent <= w->not_lost_len);
    size_t const over = !in->unknown ? w->not_lost_sent : w->stopping ? w->not_lost_len : 0;
    w->not_lost_in_flight = false;
    w->not_lost_failures = in->unknown ? w->not_lost_failures + 1 : 0;
    w->not_lost_gate_ms = in->unknown ? w->now_ms + worker_backoff_ms(w, w->not_lost_failures) : 0;
    for (size_t i = 0; i < over; i++)
        w->isolation.untold -= not_lost_at(w, i)->isolated;
    w->not_lost_at = (w->not_lost_at + over) % w->table.cap;
    w->not_lost_len -= over;
}
