/* Renewal of claimed rows with its three outcomes; +WPI; confirmation of pushes. */
#include "worker_machine.h"
#include <assert.h>

static uint64_t worker_renew_min_ms(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool lease_needs_progress(const struct worker_machine *w, const struct lease *lease)
{
    uint64_t const every_ms = worker_renew_every_ms(w);
    bool const gone = !lease_has_row(lease) && !lease_is_lost(lease);
    bool const renewed =
        lease->renewed_ms == UINT64_MAX || gone || w->now_ms <= lease->renewed_ms + every_ms + every_ms / 2;
    switch (lease->state) {
    case LEASE_ISOLATED:
    case LEASE_STARTING:
    case LEASE_RUNNING:
    case LEASE_CONFIRMING:
    case LEASE_READY:
    case LEASE_COMPLETING:
    case LEASE_TO_LEAVE:
    case LEASE_LEAVING:
    case LEASE_RETRYING: return renewed;
    case LEASE_CANCELLING: return renewed && !lease_is_lost(lease);
    default: return false;
    }
}

uint64_t worker_renew_due_ms(const struct worker_machine *w)
{
    uint64_t const due_ms =
        w->pushes_wanted > 0 ? 0 : worker_renew_min_ms(w->renew_due_ms, isolation_settles_ms(w));
    if (w->renew_in_flight)
        return UINT64_MAX;
    return due_ms > w->renew_gate_ms ? due_ms : w->renew_gate_ms;
}

/* At each renewal time all claimed rows; between them those with a push to confirm or a settled run to
 * record. */
bool worker_poll_renew(struct worker_machine *w, struct worker_out *ret)
{
    bool const tick = w->now_ms >= w->renew_due_ms, settles = w->now_ms >= isolation_settles_ms(w);
    if (w->now_ms < worker_renew_due_ms(w) || (!tick && !settles && w->pushes_wanted == 0))
        return false;
    w->renew_len = 0;
    for (size_t i = 0; i < w->table.cap; i++) {
        struct lease *const lease = &w->table.leases[i];
        bool const settled = settles && isolation_has(w, lease);
        if (!lease_takes_part(lease) || (!tick && !settled && lease->push != PUSH_WANTED))
            continue;
        if (lease->push == PUSH_WANTED || lease->push == PUSH_EARLY)
            lease_set_push(w, lease, PUSH_ASKED);
        w->rows[w->renew_len] = (struct worker_row){.id = lease->id,
                                                    .key = lease->key,
                                                    .digest = lease->digest,
                                                    .attempt = lease->attempt,
                                                    .claimed_us = lease->claimed_us,
                                                    .settled = settled};
        w->isolation.telling |= settled;
        w->renew_ids[w->renew_len++] = lease->id;
    }
    assert(w->pushes_wanted == 0); /* every lease with PUSH_WANTED takes part */
    if (tick)
        w->renew_due_ms = w->renew_len > 0 ? w->now_ms + worker_renew_every_ms(w) : UINT64_MAX;
    if (w->renew_len == 0)
        return false;
    w->renew_in_flight = true;
    w->renew_sent_ms = w->now_ms;
    *ret = (struct worker_out){.kind = WORKER_OUT_RENEW, .rows = w->rows, .rows_len = w->renew_len};
    return true;
}

/* Unknown is neither kept nor gone: nothing fires, and it is asked again soon; if it stays unknown the lease
 * is fenced by time. */
static void worker_renew_unknown(struct worker_machine *w, struct lease *lease)
{
    w->renew_gate_ms = w->now_ms + worker_ask_again_ms(w);
    w->renew_due_ms = worker_renew_min_ms(w->renew_due_ms, w->renew_gate_ms);
    if (lease->push == PUSH_ASKED)
        lease_set_push(w, lease, PUSH_WANTED);
}

static void worker_renew_kept(struct worker_machine *w, struct lease *lease, const struct worker_row *row)
{
    bool const same = lease->attempt == row->attempt; /* else what was told was not of the row's claim */
    lease->attempt = row->attempt;                    /* a claim of this worker whose answer was lost */
    lease->claimed_us = row->claimed_us;
    lease->unwritten = false;
    if (lease->renewed_ms < w->renew_sent_ms)
        lease->renewed_ms = w->renew_sent_ms;
    worker_progress_arm(w, lease); /* +WPI may have left it out */
    if (w->isolation.telling && same)
        isolation_leave(w, lease);
    if (lease->push != PUSH_ASKED) /* not asked yet: the row may be deleted after this answer */
        return;
    lease_set_push(w, lease, PUSH_DENIED);
    w->counters.contradicted++;
    if (lease->state == LEASE_CONFIRMING) /* a push alone ends nothing: the message is handed back */
        lease_end(w, lease, WORKER_OUT_DROP, WORKER_END_CANCELLED);
}

static void worker_renew_missing(struct worker_machine *w, struct lease *lease)
{
    switch (lease->state) {
    case LEASE_STARTING:
    case LEASE_RUNNING:
    case LEASE_CANCELLING: lease_cancelled(w, lease); break;
    case LEASE_CONFIRMING: lease_end(w, lease, WORKER_OUT_ACK, WORKER_END_CANCELLED); break;
    case LEASE_READY: /* deleted before its completion asked, or by its completion, whose answer was lost */
    case LEASE_TO_LEAVE:
    case LEASE_RETRYING:
        lease_end(w, lease, WORKER_OUT_ACK,
                  lease->result.published ? WORKER_END_COMPLETED
                  : lease->result.later   ? WORKER_END_LATER
                                          : WORKER_END_REFUSED);
        break;
    default: assert(false); /* such a state takes no part in renewals */
    }
}

void worker_renewed(struct worker_machine *w, const struct worker_in *in)
{
    assert(w->renew_in_flight && (in->unknown || in->rows_len == w->renew_len));
    w->renew_in_flight = false;
    for (size_t i = 0; i < w->renew_len; i++) {
        struct lease *const lease = lease_table_find(&w->table, w->renew_ids[i]);
        assert(in->unknown || in->rows[i].id == w->renew_ids[i]);
        if (lease == NULL || !lease_takes_part(lease)) /* ended or in completion since it was asked */
            continue;
        switch (in->unknown ? WORKER_ROW_UNKNOWN : in->rows[i].state) {
        case WORKER_ROW_MINE: worker_renew_kept(w, lease, &in->rows[i]); break;
        case WORKER_ROW_MISSING: worker_renew_missing(w, lease); break;
        case WORKER_ROW_STOLEN: lease_lose(w, lease, CLAIM_STOLEN); break;
        case WORKER_ROW_UNKNOWN: worker_renew_unknown(w, lease); break;
        case WORKER_ROW_HELD:
        case WORKER_ROW_FORGED:
        case WORKER_ROW_CANDIDATE: assert(false); break;
        }
    }
    w->isolation.telling = false;
}

bool worker_poll_progress(struct worker_machine *w, struct worker_out *ret)
{
    size_t n = 0;
    if (w->now_ms < w->progress_due_ms)
        return false;
    for (size_t i = 0; i < w->table.cap; i++) {
        struct lease *const lease = &w->table.leases[i];
        if (!lease_needs_progress(w, lease))
            continue;
        lease->signal_ms = w->now_ms;
        w->ids[n++] = lease->id;
    }
    w->progress_due_ms = n > 0 ? w->now_ms + worker_renew_every_ms(w) : UINT64_MAX;
    if (n == 0)
        return false;
    *ret = (struct worker_out){.kind = WORKER_OUT_PROGRESS, .ids = w->ids, .ids_len = n};
    return true;
}
