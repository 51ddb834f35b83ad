/* From the delivery of a message to the claim of its row. */
#include "worker_machine.h"
#include <assert.h>
#include <stdio.h>

enum { PARK_MS_MIN = 100, PARK_DOUBLINGS_MAX = 20 };

static size_t main_cap(const struct worker_machine *w)
{
    return (size_t)w->options.slots + w->options.completions_max + w->options.resumed_max;
}

/* Number of leases held, without those that this program does not know. */
static size_t main_len(const struct worker_machine *w)
{
    return w->table.len - leases_in(w, LEASE_PARKED)->len - worker_shelf_len(w);
}

/* Parks it until it is handed back: longer with every delivery, so that a message that this program does not
 * know is not redelivered too often. */
static void worker_claim_park(struct worker_machine *w, struct lease *lease, bool candidate)
{
    uint64_t const doublings = lease->deliveries > 0 ? lease->deliveries - 1 : 0;
    uint64_t const most_ms = w->options.lease_ms / 3;
    uint64_t delay_ms = (uint64_t)PARK_MS_MIN
                        << (doublings < PARK_DOUBLINGS_MAX ? doublings : PARK_DOUBLINGS_MAX);
    if (delay_ms > most_ms)
        delay_ms = most_ms;
    if (!candidate && !w->stopping && leases_in(w, LEASE_PARKED)->len >= WORKER_PARKED_MAX) {
        lease_put_back(w, lease, delay_ms, WORKER_END_UNKNOWN);
        return;
    }
    lease_enter(&w->table, lease, LEASE_PARKED);
    lease->parked = (struct lease_parked){.until_ms = w->now_ms + delay_ms, .candidate = candidate};
    if (leases_in(w, LEASE_PARKED)->len > WORKER_PARKED_MAX)
        lease_end(w, lease, WORKER_OUT_DROP, WORKER_END_DEFERRED);
    else if (w->stopping)
        lease_end(w, lease, WORKER_OUT_NAK, WORKER_END_HANDED_BACK);
    else
        lease_refresh(w, lease);
}

/* The first lease of the same try from this one on; ended ones do not count. There is more than one only
 * while messages that say different things are on the same subject. */
static struct lease *of_try(struct lease *same, const struct worker_key *key)
{
    while (same != NULL && (same->key.try_number != key->try_number || same->state == LEASE_ENDED))
        same = lease_next_same(same);
    return same;
}

static struct lease *held_here(const struct worker_machine *w, const struct worker_key *key,
                               const struct work_digest *digest)
{
    struct lease *same = of_try(lease_table_find_key(&w->table, key), key);
    while (same != NULL && (lease_is_lost(same) || !work_digest_equal(&same->digest, digest)))
        same = of_try(lease_next_same(same), key);
    return same;
}

uint64_t worker_next_held(const struct worker_machine *w, size_t *at)
{
    while (*at < w->table.cap) {
        uint64_t const id = w->table.leases[(*at)++].id;
        if (id != 0)
            return id;
    }
    return 0;
}

uint64_t worker_holds(const struct worker_machine *w, const struct worker_key *key,
                      const struct work_digest *digest)
{
    const struct lease *same = held_here(w, key, digest);
    return same != NULL ? same->id : 0;
}

/* The one that was stored last stays, not the one that came last: the one that is acknowledged may be on its
 * way here once more, and would then have the other acknowledged as well. */
bool worker_takes_again(uint64_t held, uint64_t again)
{
    return again >= held;
}

/* The lease of the same try that was claimed here: its row is held, or its handler has grace; NULL: none. */
static const struct lease *in_the_way(const struct worker_machine *w, const struct lease *lease)
{
    const struct lease *same = of_try(lease_table_find_key(&w->table, &lease->key), &lease->key);
    while (same != NULL && same->renewed_ms == UINT64_MAX)
        same = of_try(lease_next_same(same), &lease->key);
    return same;
}

/* Ends the lease, which waits for its claim, if another one of its try has been claimed: a message that says
 * something else than the claimed one, or the same again while a handler that lost its lease has grace. */
static bool make_way(struct worker_machine *w, struct lease *lease)
{
    const struct lease *const other = in_the_way(w, lease);
    if (other == NULL)
        return false;
    if (lease_is_lost(other)) {
        uint64_t const grace_ms = other->cancelling.grace_ms;
        lease_put_back(w, lease, grace_ms > w->now_ms ? grace_ms - w->now_ms : 0, WORKER_END_HELD);
    } else if (other->compared) {
        lease_end(w, lease, WORKER_OUT_TERM, WORKER_END_FORGED);
    } else { /* a row of an older engine: which one is the engine's is not known */
        lease_put_back(w, lease, worker_ask_again_ms(w), WORKER_END_HELD);
    }
    return true;
}

/* Takes the facts that the message has. */
static void take_words(struct lease *lease, const struct worker_in *in)
{
    assert(in->nonce.len <= NONCE_TEXT_LEN);
    lease->digest = in->digest;
    (void)snprintf(lease->nonce, sizeof lease->nonce, "%.*s", THOLE_FMT(in->nonce));
}

/* When a deadline is over that is so far away; 0: there is none. */
static uint64_t deadline_in(const struct worker_machine *w, uint64_t left_ms)
{
    return left_ms == 0 || left_ms > UINT64_MAX - w->now_ms ? UINT64_MAX : w->now_ms + left_ms;
}

/* The handler runs already: it has a slot, also when there are more of these than slots. */
thole_status worker_resumed(struct worker_machine *w, const struct worker_in *in)
{
    const struct worker_row *const row = in->rows;
    assert(in->rows_len == 1 && !w->stopping);
    if (of_try(lease_table_find_key(&w->table, &in->key), &in->key) != NULL)
        return THOLE_CONFLICT;
    struct lease *const lease =
        main_len(w) < main_cap(w) ? lease_table_add(&w->table, in->id, &in->key) : NULL;
    if (lease == NULL)
        return THOLE_LIMIT;
    w->counters.resumed++;
    take_words(lease, in);
    lease->arrived_ms = lease->signal_ms = lease->renewed_ms =
        in->arrived_ms < w->now_ms ? in->arrived_ms : w->now_ms;
    lease->attempt = row->attempt;
    lease->claimed_us = row->claimed_us;
    lease->compared = true;
    lease->deadline_ms = row->expired ? w->now_ms : deadline_in(w, row->left_ms);
    lease_enter(&w->table, lease, LEASE_RUNNING);
    isolation_runs(w, lease);
    worker_renew_arm(w, lease);
    lease_refresh(w, lease);
    if (row->state == WORKER_ROW_MISSING)
        lease_cancelled(w, lease);
    return THOLE_OK;
}

thole_status worker_delivered(struct worker_machine *w, const struct worker_in *in)
{
    struct lease *lease = NULL;
    if (w->wanted > 0)
        w->wanted--;
    if (held_here(w, &in->key, &in->digest) != NULL) {
        w->counters.adopted++;
        return THOLE_CONFLICT;
    }
    if (main_len(w) < main_cap(w) || !in->known)
        lease = lease_table_add(&w->table, in->id, &in->key);
    if (lease == NULL)
        return THOLE_LIMIT;
    w->counters.delivered++;
    take_words(lease, in);
    lease->deliveries = in->deliveries;
    lease->arrived_ms = in->arrived_ms != 0 && in->arrived_ms < w->now_ms ? in->arrived_ms : w->now_ms;
    lease->signal_ms = lease->arrived_ms;
    if (make_way(w, lease))
        return THOLE_OK;
    if (!in->known) {
        w->counters.unknown++;
        if (in->unserved && worker_may_shelve(w)) {
            lease_enter(&w->table, lease, LEASE_UNSERVED);
            lease_refresh(w, lease);
        } else {
            worker_claim_park(w, lease, false);
        }
        return THOLE_OK;
    }
    if (w->stopping || w->isolation.lease != NULL) {
        lease_end(w, lease, WORKER_OUT_NAK, w->stopping ? WORKER_END_HANDED_BACK : WORKER_END_DEFERRED);
        return THOLE_OK;
    }
    lease_enter(&w->table, lease, in->quick && in->deliveries == 1 ? LEASE_QUICK : LEASE_QUEUED);
    lease_refresh(w, lease);
    return THOLE_OK;
}

/* While claims fail only one message is fetched, to try a claim with: other workers may reach the
 * database. */
static uint32_t want_now(const struct worker_machine *w)
{
    size_t const held = main_len(w);
    size_t const queued = leases_in(w, LEASE_QUEUED)->len + leases_in(w, LEASE_QUICK)->len;
    size_t const used = worker_slots_used(w);
    size_t const slots = w->options.slots > used ? w->options.slots - used : 0;
    if (w->stopping || w->isolation.lease != NULL || held >= main_cap(w) || slots <= queued)
        return 0;
    size_t want = slots - queued;
    if (want > main_cap(w) - held)
        want = main_cap(w) - held;
    if (w->claim_failures > 0)
        want = queued + leases_in(w, LEASE_CLAIMING)->len == 0 ? 1 : 0;
    if (worker_shelf_len(w) > 0 && want > WORKER_SHELVED_MAX - worker_shelf_len(w))
        want = WORKER_SHELVED_MAX - worker_shelf_len(w);
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
    bool const in_flight = leases_in(w, LEASE_CLAIMING)->len > 0;
    if (in_flight || worker_slots_used(w) >= w->options.slots || w->isolation.untold > 0)
        return UINT64_MAX;
    uint64_t const queue_ms = leases_in(w, LEASE_QUEUED)->len > 0 ? 0 : UINT64_MAX;
    uint64_t const due_ms = w->isolation.lease != NULL ? isolation_due_ms(w) : queue_ms;
    return due_ms > w->claim_gate_ms ? due_ms : w->claim_gate_ms;
}

/* Nothing else here is about its activity. */
static bool worker_claim_is_alone(const struct worker_machine *w, const struct lease *lease)
{
    return lease_table_find_key(&w->table, &lease->key) == lease && lease_next_same(lease) == NULL;
}

/* Another try of the same activity may be in the claim: one statement must not name a row twice. */
static bool is_in_claim(const struct worker_machine *w, const struct lease *lease)
{
    const struct lease *same = lease_table_find_key(&w->table, &lease->key);
    while (same != NULL && same->state != LEASE_CLAIMING)
        same = lease_next_same(same);
    return same != NULL;
}

static void add_claim(struct worker_machine *w, struct lease *lease, size_t n)
{
    lease_enter(&w->table, lease, LEASE_CLAIMING);
    w->rows[n] = (struct worker_row){
        .id = lease->id, .key = lease->key, .digest = lease->digest, .isolated = isolation_has(w, lease)};
}

static size_t add_claims(struct worker_machine *w)
{
    size_t n = 0;
    struct lease *next;
    for (struct lease *l = leases_in(w, LEASE_QUEUED)->first; l != NULL; l = next) {
        next = l->next;
        if (worker_slots_used(w) >= w->options.slots || n == WORKER_CLAIM_MAX)
            break;
        if (!is_in_claim(w, l) && !make_way(w, l))
            add_claim(w, l, n++);
    }
    return n;
}

/* Quick ones that are to be claimed like others: pushed, not the only one of its activity any more, or none
 * may start without a claim now. */
static void queue_quick(struct worker_machine *w)
{
    bool const none = w->isolation.untold > 0 || w->claim_failures > 0 || w->now_ms < w->quick_gate_ms;
    struct lease *next;
    for (struct lease *l = leases_in(w, LEASE_QUICK)->first; l != NULL; l = next) {
        next = l->next;
        if (!none && l->push == PUSH_NONE && worker_claim_is_alone(w, l))
            continue;
        lease_enter(&w->table, l, LEASE_QUEUED);
        lease_refresh(w, l);
    }
}

bool worker_poll_claim(struct worker_machine *w, struct worker_out *ret)
{
    size_t n = 1;
    queue_quick(w);
    if (w->now_ms < worker_claim_due_ms(w))
        return false;
    if (w->isolation.lease != NULL)
        add_claim(w, w->isolation.lease, 0);
    else
        n = add_claims(w);
    if (n == 0) /* all of them have made way */
        return worker_poll_event(w, ret);
    w->claim_sent_ms = w->now_ms;
    *ret = (struct worker_out){.kind = WORKER_OUT_CLAIM, .rows = w->rows, .rows_len = n};
    return true;
}

static void claim_failed(struct worker_machine *w, struct lease *lease)
{
    if (w->stopping) {
        lease_end(w, lease, WORKER_OUT_NAK, WORKER_END_HANDED_BACK);
        return;
    }
    bool const isolated = isolation_has(w, lease);
    lease_enter(&w->table, lease, isolated ? LEASE_ISOLATED : LEASE_QUEUED);
    if (isolated)
        worker_progress_arm(w, lease); /* +WPI left it out while it was being claimed */
    lease_refresh(w, lease);
}

static void claim_won(struct worker_machine *w, struct lease *lease, const struct worker_row *row)
{
    w->counters.claimed++;
    lease->attempt = row->attempt;
    lease->claimed_us = row->claimed_us;
    lease->unwritten = false;
    lease->compared = row->compared;
    lease->renewed_ms = w->claim_sent_ms;
    lease->deadline_ms = deadline_in(w, row->left_ms);
    /* the answer came too late: the next delivery is claimed again */
    if (w->now_ms >= lease_fence_ms(w, lease)) {
        lease_end(w, lease, WORKER_OUT_DROP, WORKER_END_UNCLAIMED);
        return;
    }
    worker_renew_arm(w, lease);
    if (lease->push == PUSH_HEARD) { /* a push is no proof: the row says whether it is cancelled */
        lease_enter(&w->table, lease, LEASE_CONFIRMING);
        lease_set_push(w, lease, PUSH_WANTED);
        lease_refresh(w, lease);
        isolation_leave(w, lease);
    } else if (w->stopping) {
        lease_hand_back(w, lease);
    } else if (row->expired) {
        lease_expire(w, lease);
    } else if (row->poisoned) {
        lease_poison(w, lease);
    } else {
        isolation_started(w, lease, row->lost);
        lease_run(w, lease);
    }
}

/* Hands back what is queued, for other workers. */
static void hand_back_queued(struct worker_machine *w)
{
    while (leases_in(w, LEASE_QUEUED)->first != NULL)
        lease_end(w, leases_in(w, LEASE_QUEUED)->first, WORKER_OUT_NAK, WORKER_END_DEFERRED);
    while (leases_in(w, LEASE_QUICK)->first != NULL)
        lease_end(w, leases_in(w, LEASE_QUICK)->first, WORKER_OUT_NAK, WORKER_END_DEFERRED);
}

/* The row says that it is a poison candidate. */
static void offer_isolation(struct worker_machine *w, struct lease *lease)
{
    if (w->stopping) {
        lease_end(w, lease, WORKER_OUT_NAK, WORKER_END_HANDED_BACK);
    } else if (w->isolation.lease != NULL || w->now_ms < w->isolation.gate_ms) {
        worker_claim_park(w, lease, true);
    } else {
        isolation_take(w, lease);
        lease_enter(&w->table, lease, LEASE_ISOLATED);
        worker_progress_arm(w, lease);
        lease_refresh(w, lease);
        hand_back_queued(w);
    }
}

/* Rows may be missing only for now: another engine may have to write them again first. */
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
    case WORKER_ROW_CANDIDATE: offer_isolation(w, lease); break;
    case WORKER_ROW_HELD: lease_put_back(w, lease, row->left_ms, WORKER_END_HELD); break;
    case WORKER_ROW_UNKNOWN: lease_put_back(w, lease, worker_ask_again_ms(w), WORKER_END_UNCLAIMED); break;
    case WORKER_ROW_FORGED: lease_end(w, lease, WORKER_OUT_TERM, WORKER_END_FORGED); break;
    case WORKER_ROW_STOLEN: break; /* already queued again */
    }
}

void worker_claimed(struct worker_machine *w, const struct worker_in *in)
{
    const struct lease_list *const claiming = leases_in(w, LEASE_CLAIMING);
    bool const failed = any_unknown(in);
    struct lease *other;
    size_t i = claiming->len;
    assert(i > 0 && (in->unknown || in->rows_len == i));
    w->claim_failures = failed ? w->claim_failures + 1 : 0;
    w->claim_gate_ms = failed ? w->now_ms + worker_backoff_ms(w, w->claim_failures) : 0;
    /* backwards, since each goes to the front */
    for (struct lease *l = claiming->last; l != NULL; l = other) {
        other = l->prev;
        i--;
        assert(in->unknown || in->rows[i].id == l->id);
        if (in->unknown || in->rows[i].state == WORKER_ROW_STOLEN) /* appeared or became free just now */
            claim_failed(w, l);
    }
    for (struct lease *l = failed ? leases_in(w, LEASE_QUEUED)->first : NULL; l != NULL; l = l->next)
        lease_refresh(w, l); /* later ones wait no longer than this one */
    for (struct lease *l = failed ? leases_in(w, LEASE_QUICK)->first : NULL; l != NULL; l = l->next)
        lease_refresh(w, l);
    for (struct lease *l = claiming->first; l != NULL; l = other) {
        other = l->next;
        while (in->rows[i].id != l->id)
            i++;
        claim_answered(w, l, &in->rows[i]);
    }
}
