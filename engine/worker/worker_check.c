/* Invariants that hold between two calls of the machine. Tests check them after every step. */
#include "worker_machine.h"

#define HOLDS(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            return #condition;                                                                               \
    } while (0)

static bool is_claimed(enum lease_state state)
{
    return state >= LEASE_STARTING && state <= LEASE_RELEASING;
}

/* ---- the table ---- */

static const char *worker_check_check_list(const struct lease_list *list, enum lease_state state)
{
    const struct lease *previous = NULL;
    size_t len = 0;
    for (const struct lease *l = list->first; l != NULL && len <= list->len; l = l->next, len++) {
        HOLDS(l->state == state);
        HOLDS(l->prev == previous);
        HOLDS((l->id == 0) == (state == LEASE_FREE));
        previous = l;
    }
    HOLDS(list->last == previous);
    HOLDS(list->len == len);
    return NULL;
}

static const char *check_table(const struct lease_table *table)
{
    size_t listed = 0;
    const char *broken = NULL;
    for (unsigned s = 0; s < LEASE_STATES && broken == NULL; s++) {
        broken = worker_check_check_list(&table->lists[s], (enum lease_state)s);
        listed += table->lists[s].len;
    }
    if (broken != NULL)
        return broken;
    HOLDS(listed == table->cap);
    HOLDS(table->len == table->cap - table->lists[LEASE_FREE].len);
    HOLDS(table->lists[LEASE_NEW].len == 0);
    return NULL;
}

/* ---- one lease ---- */

static const char *check_push(const struct lease *lease)
{
    switch (lease->state) {
    case LEASE_PARKED: /* the claim returned that it is a poison candidate */
    case LEASE_QUEUED:
    case LEASE_QUICK:
    case LEASE_ISOLATED:
    case LEASE_CLAIMING: HOLDS(lease->push <= PUSH_HEARD); break;
    case LEASE_CANCELLING: HOLDS(lease->push != PUSH_HEARD); break;
    case LEASE_CONFIRMING: HOLDS(lease->push >= PUSH_EARLY && lease->push <= PUSH_ASKED); break;
    default: HOLDS(lease->push == PUSH_NONE); break;
    }
    return NULL;
}

/* The reason for which the token fired is consistent with the row. */
static const char *check_cancelling(const struct lease *lease)
{
    const struct lease_cancelling *const c = &lease->cancelling;
    HOLDS(c->path != WORKER_PATH_RENEWAL || c->claim == CLAIM_GONE);
    HOLDS(c->path != WORKER_PATH_LEASE_LOST || lease_is_lost(lease));
    HOLDS(c->path != WORKER_PATH_PUSH || !lease_has_row(lease) || lease->push != PUSH_NONE);
    HOLDS(lease_has_row(lease) || lease->push == PUSH_NONE);
    return NULL;
}

/* Of each try only one lease is claimed, and only one of those whose messages say the same is held: the one
 * of worker_holds(). Ended ones may exist beside them. */
static bool has_twin(const struct lease *lease, const struct lease_table *table)
{
    for (const struct lease *l = lease_table_find_key(table, &lease->key); l != NULL; l = lease_next_same(l))
        if (l != lease && l->key.try_number == lease->key.try_number && l->state != LEASE_ENDED &&
            (work_digest_equal(&l->digest, &lease->digest) ||
             (is_claimed(l->state) && is_claimed(lease->state))))
            return true;
    return false;
}

static const char *worker_check_check_lease(const struct worker_machine *w, const struct lease *lease)
{
    bool const ended = lease->state == LEASE_ENDED;
    const char *broken = check_push(lease);
    if (broken == NULL && lease->state == LEASE_CANCELLING)
        broken = check_cancelling(lease);
    if (broken != NULL)
        return broken;
    HOLDS(lease_table_find(&w->table, lease->id) == lease);
    HOLDS(lease->key.instance.ptr == lease->instance_bytes);
    HOLDS(ended || !has_twin(lease, &w->table));
    HOLDS(ended || is_claimed(lease->state) == (lease->renewed_ms != UINT64_MAX));
    HOLDS(lease->renewed_ms == UINT64_MAX || lease->renewed_ms <= w->now_ms);
    HOLDS(lease->arrived_ms <= w->now_ms && lease->signal_ms <= w->now_ms);
    HOLDS(w->wake_ms <= lease_due_ms(w, lease));
    return NULL;
}

/* ---- counters ---- */

static const char *check_calls(const struct worker_machine *w)
{
    bool const in_batch = w->step != BATCH_IDLE && w->step != BATCH_TO_ROLL_BACK;
    bool const runs = w->step == BATCH_TO_RUN || w->step == BATCH_RUNNING;
    size_t unrun = 0;
    for (const struct lease *l = leases_in(w, LEASE_COMPLETING)->first; l != NULL; l = l->next)
        unrun += l->result.unrun;
    HOLDS(w->batch_unrun == unrun);
    HOLDS(!runs || unrun > 0);
    HOLDS(unrun == 0 || runs || w->step == BATCH_BEGINNING || w->step == BATCH_TO_ROLL_BACK);
    HOLDS(leases_in(w, LEASE_CLAIMING)->len <= WORKER_CLAIM_MAX);
    HOLDS(leases_in(w, LEASE_COMPLETING)->len <= WORKER_CLAIM_MAX);
    HOLDS(leases_in(w, LEASE_RELEASING)->len <= WORKER_CLAIM_MAX);
    HOLDS(leases_in(w, LEASE_LEAVING)->len <= WORKER_CLAIM_MAX);
    HOLDS(worker_shelf_len(w) <= WORKER_SHELVED_MAX);
    HOLDS(!in_batch || leases_in(w, LEASE_COMPLETING)->len > 0);
    HOLDS(w->step != BATCH_IDLE || leases_in(w, LEASE_COMPLETING)->len == 0);
    HOLDS((w->step == BATCH_PUBLISHING) == (w->batch_open > 0));
    HOLDS(w->batch_open <= leases_in(w, LEASE_COMPLETING)->len);
    HOLDS(!w->renew_in_flight || w->renew_len > 0);
    return NULL;
}

static const char *check_slots(const struct worker_machine *w)
{
    size_t const room = (size_t)w->options.slots + w->options.completions_max + w->options.resumed_max;
    HOLDS(worker_slots_used(w) <= w->options.slots + w->options.resumed_max);
    HOLDS(leases_in(w, LEASE_PARKED)->len <= WORKER_PARKED_MAX);
    HOLDS(w->table.len - leases_in(w, LEASE_PARKED)->len - worker_shelf_len(w) -
              leases_in(w, LEASE_ENDED)->len <=
          room);
    return NULL;
}

/* Every lease that must be renewed, asked about or kept has a due time for that. */
static const char *check_times(const struct worker_machine *w)
{
    size_t wanted = 0;
    bool renewed = false, kept = false;
    for (size_t i = 0; i < w->table.cap; i++) {
        const struct lease *const lease = &w->table.leases[i];
        wanted += lease->id != 0 && lease->push == PUSH_WANTED;
        renewed |= lease_takes_part(lease);
        kept |= lease_needs_progress(w, lease);
    }
    HOLDS(w->pushes_wanted == wanted);
    HOLDS(!renewed || w->renew_in_flight || w->renew_due_ms != UINT64_MAX);
    HOLDS(!kept || w->progress_due_ms != UINT64_MAX);
    return NULL;
}

/* ---- poison candidates ---- */

static const char *check_isolation(const struct worker_machine *w)
{
    const struct lease *const lease = w->isolation.lease;
    size_t untold = 0;
    for (size_t i = 0; i < w->not_lost_len; i++)
        untold += w->not_lost[(w->not_lost_at + i) % w->table.cap].isolated;
    HOLDS(w->isolation.untold == untold);
    HOLDS(w->not_lost_len <= w->table.cap);
    HOLDS(!w->not_lost_in_flight || w->not_lost_sent <= w->not_lost_len);
    HOLDS(leases_in(w, LEASE_ISOLATED)->len == (lease != NULL && lease->state == LEASE_ISOLATED));
    if (lease == NULL)
        return NULL;
    HOLDS(lease->id != 0 && lease->state != LEASE_ENDED);
    HOLDS(lease->state != LEASE_CLAIMING || leases_in(w, LEASE_CLAIMING)->len == 1);
    HOLDS(leases_in(w, LEASE_QUEUED)->len + leases_in(w, LEASE_QUICK)->len == 0);
    return NULL;
}

/* ---- outputs that wait, and the stop ---- */

static bool is_last(enum worker_out_kind kind)
{
    return kind == WORKER_OUT_ACK || kind == WORKER_OUT_NAK || kind == WORKER_OUT_TERM ||
           kind == WORKER_OUT_DROP;
}

/* An ended lease has its last output waiting, a starting one its RUN; nothing follows a last output. */
static const char *check_events(const struct worker_machine *w)
{
    size_t const cap = w->table.cap * LEASE_EVENTS_MAX;
    size_t last = 0, starting = 0;
    HOLDS(w->events_len <= cap);
    for (size_t i = 0; i < w->events_len; i++) {
        const struct worker_event *const event = &w->events[(w->events_at + i) % cap];
        HOLDS(event->lease->id != 0);
        HOLDS(!is_last(event->kind) || event->lease->state == LEASE_ENDED);
        last += is_last(event->kind);
        starting += event->kind == WORKER_OUT_RUN && event->lease->state == LEASE_STARTING;
    }
    HOLDS(last == leases_in(w, LEASE_ENDED)->len);
    HOLDS(starting == leases_in(w, LEASE_STARTING)->len);
    return NULL;
}

static const char *check_stop(const struct worker_machine *w)
{
    HOLDS(!w->stopping || leases_in(w, LEASE_QUEUED)->len + leases_in(w, LEASE_QUICK)->len == 0);
    HOLDS(!w->stopping || leases_in(w, LEASE_PARKED)->len + leases_in(w, LEASE_UNSERVED)->len == 0);
    HOLDS(!w->stopping || leases_in(w, LEASE_ISOLATED)->len == 0);
    HOLDS(!w->stop_fired || leases_in(w, LEASE_STARTING)->len + leases_in(w, LEASE_RUNNING)->len == 0);
    HOLDS(!w->killed || leases_in(w, LEASE_READY)->len + leases_in(w, LEASE_TO_LEAVE)->len == 0);
    HOLDS(!w->killed || leases_in(w, LEASE_RETRYING)->len == 0);
    HOLDS(!w->stopped || w->table.len == 0);
    return NULL;
}

const char *worker_check(const struct worker_machine *w)
{
    static const char *(*const checks[])(const struct worker_machine *) = {
        check_calls, check_slots, check_times, check_isolation, check_events, check_stop};
    const char *broken = check_table(&w->table);
    for (size_t i = 0; i < w->table.cap && broken == NULL; i++)
        if (w->table.leases[i].id != 0)
            broken = worker_check_check_lease(w, &w->table.leases[i]);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && broken == NULL; i++)
        broken = checks[i](w);
    return broken;
}
