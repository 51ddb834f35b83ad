/* From the delivery of a message to the claim of its row. */
#include "worker_machine.h"
#include <assert.h>

enum { PARK_MS_MIN = 100, PARK_DOUBLINGS_MAX = 20 };

static size_t main_cap(const struct worker_machine *w)
{
    return (size_t)w->options.slots + w->options.completions_max;
}

/* Longer with every delivery, so that a message that nobody knows does not go round for nothing. */
void lease_park(struct worker_machine *w, struct lease *lease)
{
    uint64_t const doublings = lease->deliveries > 0 ? lease->deliveries - 1 : 0;
    uint64_t const most_ms = w->options.lease_ms / 3;
    uint64_t delay_ms = (uint64_t)PARK_MS_MIN
                        << (doublings < PARK_DOUBLINGS_MAX ? doublings : PARK_DOUBLINGS_MAX);
    if (delay_ms > most_ms)
        delay_ms = most_ms;
    lease->state = LEASE_PARKED;
    lease->grace_ms = w->now_ms + delay_ms;
    w->parked++;
    if (w->parked > WORKER_PARKED_MAX)
        lease_end(w, lease, WORKER_OUT_DROP, lease->suspect ? WORKER_END_DEFERRED : WORKER_END_UNKNOWN);
    else if (w->stopping)
        lease_end(w, lease, WORKER_OUT_NAK, WORKER_END_HANDED_BACK);
    else
        lease_refresh(w, lease);
}

/* Of the same try; what has ended does not count. */
static struct lease *held_here(const struct worker_machine *w, const struct worker_key *key)
{
    struct lease *same = lease_table_find_key(&w->table, key);
    while (same != NULL && (same->key.try_number != key->try_number || same->state == LEASE_ENDED))
        same = lease_next_same(same);
    return same;
}

uint64_t worker_holds(const struct worker_machine *w, const struct worker_key *key)
{
    const struct lease *same = held_here(w, key);
    return same != NULL && !same->lost ? same->id : 0;
}

thole_status worker_delivered(struct worker_machine *w, const struct worker_in *in)
{
    struct lease *lease = NULL;
    const struct lease *const same = held_here(w, &in->key);
    if (w->wanted > 0)
        w->wanted--;
    if (same != NULL && !same->lost) {
        w->counters.adopted++;
        return THOLE_CONFLICT;
    }
    if (w->table.len - w->parked < main_cap(w) || !in->known)
        lease = lease_table_add(&w->table, in->id, &in->key);
    if (lease == NULL)
        return THOLE_LIMIT;
    w->counters.delivered++;
    lease->deliveries = in->deliveries;
    lease->arrived_ms = in->arrived_ms != 0 && in->arrived_ms < w->now_ms ? in->arrived_ms : w->now_ms;
    lease->signal_ms = lease->arrived_ms;
    lease->renewed_ms = lease->deadline_ms = UINT64_MAX;
    if (!in->known) {
        w->counters.unknown++;
        lease_park(w, lease);
        return THOLE_OK;
    }
    lease->state = LEASE_QUEUED;
    if (same != NULL) { /* its lease was lost here, and its handler has grace */
        lease_put_back(w, lease, same->grace_ms > w->now_ms ? same->grace_ms - w->now_ms : 0,
                       WORKER_END_HELD);
        return THOLE_OK;
    }
    if (w->stopping || w->lane.lease != NULL) {
        lease_end(w, lease, WORKER_OUT_NAK, w->stopping ? WORKER_END_HANDED_BACK : WORKER_END_DEFERRED);
        return THOLE_OK;
    }
    lease_list_append(&w->queued, lease);
    lease_refresh(w, lease);
    return THOLE_OK;
}

/* While claims fail nothing more is fetched than one message to try with: others may reach the database. */
static uint32_t want_now(const struct worker_machine *w)
{
    size_t const main_len = w->table.len - w->parked, queued = w->queued.len;
    size_t const slots = w->options.slots - w->slots_used;
    if (w->stopping || w->lane.lease != NULL || main_len >= main_cap(w) || slots <= queued)
        return 0;
    size_t want = slots - queued;
    if (want > main_cap(w) - main_len)
        want = main_cap(w) - main_len;
    if (w->claim_failures > 0)
        want = queued + w->claims_len == 0 ? 1 : 0;
    return (uint32_t)want;
}

bool worker_poll_want(struct worker_machine *w, struct worker_out *ret)
{
    uint32_t const want = want_now(w);
    if (want == w->wanted)
        return false;
    w->wanted = want;
    *ret = (struct worker_out){.kind = WORKER_OUT_WANT, .count = want};
    return true;
}

uint64_t worker_claim_due_ms(const struct worker_machine *w)
{
    if (w->claim_in_flight || w->slots_used >= w->options.slots || w->lane.untold > 0)
        return UINT64_MAX;
    uint64_t const due_ms = w->lane.lease != NULL ? lane_due_ms(w) : w->queued.len > 0 ? 0 : UINT64_MAX;
    return due_ms > w->claim_gate_ms ? due_ms : w->claim_gate_ms;
}

/* Messages of two tries of one activity: one statement must not name a row twice. */
static bool is_in_claim(const struct worker_machine *w, const struct lease *lease)
{
    const struct lease *same = lease_table_find_key(&w->table, &lease->key);
    while (same != NULL && same->state != LEASE_CLAIMING)
        same = lease_next_same(same);
    return same != NULL;
}

static void add_claim(struct worker_machine *w, struct lease *lease, size_t n)
{
    lease->state = LEASE_CLAIMING;
    w->rows[n] = (struct worker_row){.id = lease->id, .key = lease->key, .apart = lane_has(w, lease)};
    w->claims[n] = lease;
    w->slots_used++;
}

static size_t add_claims(struct worker_machine *w)
{
    size_t n = 0;
    struct lease *next;
    for (struct lease *l = w->queued.first; l != NULL; l = next) {
        next = l->next;
        if (w->slots_used == w->options.slots || n == WORKER_CLAIM_MAX)
            break;
        if (is_in_claim(w, l))
            continue;
        lease_list_remove(&w->queued, l);
        add_claim(w, l, n++);
    }
    return n;
}

bool worker_poll_claim(struct worker_machine *w, struct worker_out *ret)
{
    size_t n = 1;
    if (w->now_ms < worker_claim_due_ms(w))
        return false;
    if (w->lane.lease != NULL)
        add_claim(w, w->lane.lease, 0);
    else
        n = add_claims(w);
    assert(n > 0);
    w->claims_len = n;
    w->claim_in_flight = true;
    w->claim_sent_ms = w->now_ms;
    *ret = (struct worker_out){.kind = WORKER_OUT_CLAIM, .rows = w->rows, .rows_len = n};
    return true;
}

static void claim_failed(struct worker_machine *w, struct lease *lease)
{
    lease->state = LEASE_QUEUED;
    if (w->stopping) {
        lease_end(w, lease, WORKER_OUT_NAK, WORKER_END_HANDED_BACK);
        return;
    }
    if (lane_has(w, lease))
        lease->state = LEASE_APART;
    else
        lease_list_prepend(&w->queued, lease); /* walked from the answer's end, so that the order stays */
    lease_refresh(w, lease);
}

static void claim_won(struct worker_machine *w, struct lease *lease, const struct worker_row *row)
{
    uint64_t const most_ms = UINT64_MAX - w->now_ms;
    w->counters.claimed++;
    lease->attempt = row->attempt;
    lease->renewed_ms = w->claim_sent_ms;
    lease->deadline_ms = row->left_ms == 0 || row->left_ms > most_ms ? UINT64_MAX : w->now_ms + row->left_ms;
    if (w->now_ms >= lease_fence_ms(w, lease)) { /* the answer came too late: the next delivery takes over */
        lease_end(w, lease, WORKER_OUT_DROP, WORKER_END_UNCLAIMED);
        return;
    }
    worker_renew_arm(w, lease);
    if (lease->pushed) { /* the push is no proof: the row says whether it is cancelled */
        lease->state = LEASE_CONFIRMING;
        lease_confirm(w, lease, CONFIRM_WANTED);
        lease_refresh(w, lease);
        lane_leave(w, lease);
    } else if (w->stopping) {
        lease_hand_back(w, lease);
    } else if (row->expired) {
        lease_expire(w, lease);
    } else if (row->poisoned) {
        lease_poison(w, lease);
    } else {
        w->slots_used++;
        lane_started(w, lease, row->lost);
        lease_run(w, lease);
    }
}

/* Nobody may say that it is gone: another engine may have to write the row again first. */
static bool any_unknown(const struct worker_in *in)
{
    bool unknown = in->unknown;
    for (size_t i = 0; i < in->rows_len && !unknown; i++)
        unknown = in->rows[i].state == WORKER_ROW_UNKNOWN;
    return unknown;
}

static void claim_answered(struct worker_machine *w, struct lease *lease, const struct worker_row *row)
{
    switch (row->state) {
    case WORKER_ROW_MINE: claim_won(w, lease, row); break;
    case WORKER_ROW_MISSING: lease_end(w, lease, WORKER_OUT_ACK, WORKER_END_GONE); break;
    case WORKER_ROW_SUSPECT: lane_offer(w, lease); break;
    case WORKER_ROW_HELD: lease_put_back(w, lease, row->left_ms, WORKER_END_HELD); break;
    case WORKER_ROW_UNKNOWN: lease_put_back(w, lease, worker_ask_again_ms(w), WORKER_END_UNCLAIMED); break;
    case WORKER_ROW_STOLEN: break; /* queued again by now */
    }
}

void worker_claimed(struct worker_machine *w, const struct worker_in *in)
{
    size_t const n = w->claims_len;
    bool const failed = any_unknown(in);
    assert(w->claim_in_flight && (in->unknown || in->rows_len == n));
    w->claim_in_flight = false;
    w->claim_failures = failed ? w->claim_failures + 1 : 0;
    w->claim_gate_ms = failed ? w->now_ms + worker_backoff_ms(w, w->claim_failures) : 0;
    w->claims_len = 0;
    assert(w->slots_used >= n);
    w->slots_used -= (uint32_t)n;
    for (size_t i = n; i > 0; i--)
        if (in->unknown ||
            in->rows[i - 1].state == WORKER_ROW_STOLEN) /* appeared, or became free, just now */
            claim_failed(w, w->claims[i - 1]);
    for (struct lease *l = failed ? w->queued.first : NULL; l != NULL; l = l->next)
        lease_refresh(w, l); /* those behind them wait no longer than they do */
    for (size_t i = 0; i < n && !in->unknown; i++) {
        assert(in->rows[i].id == w->claims[i]->id);
        claim_answered(w, w->claims[i], &in->rows[i]);
    }
}
