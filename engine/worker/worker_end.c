/* From the running handler to the end of its message: tokens, pushes, grace, the last signal. */
#include "cancel_proof.h"
#include "worker_machine.h"
#include <assert.h>
#include <string.h>

static void worker_end_add_event(struct worker_machine *w, struct worker_event event)
{
    size_t const cap = w->table.cap * LEASE_EVENTS_MAX;
    assert(w->events_len < cap);
    w->events[(w->events_at + w->events_len++) % cap] = event;
}

/* Keeps kind and reason of a push until the token fires. */
static void worker_end_remember(struct lease *lease, thole_slice kind, thole_slice reason)
{
    lease->cancel_kind_len = kind.len < WORKER_KIND_BYTES_MAX ? kind.len : WORKER_KIND_BYTES_MAX;
    lease->reason_len = reason.len < WORKER_REASON_BYTES_MAX ? reason.len : WORKER_REASON_BYTES_MAX;
    if (lease->cancel_kind_len > 0)
        memcpy(lease->cancel_kind, kind.ptr, lease->cancel_kind_len);
    if (lease->reason_len > 0)
        memcpy(lease->reason, reason.ptr, lease->reason_len);
}

static void count_end(struct worker_machine *w, enum worker_end end)
{
    switch (end) {
    case WORKER_END_COMPLETED: w->counters.completed++; break;
    case WORKER_END_GONE: w->counters.gone++; break;
    case WORKER_END_REFUSED: w->counters.refused++; break;
    case WORKER_END_UNCLAIMED: w->counters.unclaimed++; break;
    case WORKER_END_HANDED_BACK: w->counters.handed_back++; break;
    case WORKER_END_LATER: w->counters.left++; break;
    case WORKER_END_DEFERRED: w->counters.deferred++; break;
    case WORKER_END_HELD: w->counters.held++; break;
    case WORKER_END_FORGED: w->counters.forged++; break;
    case WORKER_END_UNSERVED: w->counters.shelved++; break;
    case WORKER_END_CANCELLED:  /* was counted when the token fired, */
    case WORKER_END_LEASE_LOST: /* when the lease was lost, */
    case WORKER_END_STOLEN:
    case WORKER_END_UNKNOWN: break; /* when the message came */
    }
}

void lease_set_push(struct worker_machine *w, struct lease *lease, enum lease_push push)
{
    w->pushes_wanted -= lease->push == PUSH_WANTED;
    w->pushes_wanted += push == PUSH_WANTED;
    lease->push = push;
}

static bool ends_message(enum worker_out_kind kind)
{
    return kind == WORKER_OUT_ACK || kind == WORKER_OUT_NAK || kind == WORKER_OUT_TERM ||
           kind == WORKER_OUT_DROP;
}

static void end_lease(struct worker_machine *w, struct lease *lease, enum worker_out_kind kind,
                      uint64_t delay_ms, enum worker_end end)
{
    assert(ends_message(kind));
    lease_set_push(w, lease, PUSH_NONE);
    if (kind == WORKER_OUT_DROP && (end == WORKER_END_CANCELLED || end == WORKER_END_UNCLAIMED))
        lease_not_lost(w, lease);
    isolation_leave(w, lease);
    lease_enter(&w->table, lease, LEASE_ENDED);
    count_end(w, end);
    worker_end_add_event(
        w, (struct worker_event){.kind = kind, .end = end, .delay_ms = delay_ms, .lease = lease});
}

void lease_end(struct worker_machine *w, struct lease *lease, enum worker_out_kind kind, enum worker_end end)
{
    end_lease(w, lease, kind, 0, end);
}

void lease_put_back(struct worker_machine *w, struct lease *lease, uint64_t delay_ms, enum worker_end end)
{
    uint64_t const most_ms = w->options.lease_ms;
    end_lease(w, lease, WORKER_OUT_NAK, delay_ms < most_ms ? delay_ms : most_ms, end);
}

void lease_run(struct worker_machine *w, struct lease *lease)
{
    lease_enter(&w->table, lease, LEASE_STARTING);
    lease_refresh(w, lease);
    worker_end_add_event(w, (struct worker_event){.kind = WORKER_OUT_RUN,
                                                  .attempt = lease->attempt,
                                                  .deadline_ms = lease->deadline_ms,
                                                  .lease = lease});
}

static void count_path(struct worker_machine *w, enum worker_path path)
{
    switch (path) {
    case WORKER_PATH_PUSH: w->counters.cancelled_by_push++; break;
    case WORKER_PATH_RENEWAL: w->counters.cancelled_by_renewal++; break;
    case WORKER_PATH_TIMEOUT: w->counters.timed_out++; break;
    case WORKER_PATH_LEASE_LOST: /* counted by lease_lose() */
    case WORKER_PATH_SHUTDOWN: break;
    }
}

/* Not cancelled, or only by a timeout or a stop: its result counts. */
static bool has_result(const struct lease *lease)
{
    return lease_has_row(lease) && lease->push == PUSH_NONE;
}

void lease_hand_back(struct worker_machine *w, struct lease *lease)
{
    assert(lease->push == PUSH_NONE);
    isolation_leave(w, lease);
    lease_enter(&w->table, lease, LEASE_TO_RELEASE);
}

void lease_ready(struct worker_machine *w, struct lease *lease, bool later)
{
    assert(lease->push == PUSH_NONE);
    if (w->killed) {
        lease_hand_back(w, lease);
        return;
    }
    lease_enter(&w->table, lease, later ? LEASE_TO_LEAVE : LEASE_READY);
    lease->result.later = later;
}

void lease_expire(struct worker_machine *w, struct lease *lease)
{
    w->counters.timed_out++;
    isolation_leave(w, lease);
    worker_end_add_event(
        w, (struct worker_event){.kind = WORKER_OUT_EXPIRED, .attempt = lease->attempt, .lease = lease});
    lease_ready(w, lease, false);
}

void lease_poison(struct worker_machine *w, struct lease *lease)
{
    w->counters.poisoned++;
    isolation_leave(w, lease);
    worker_end_add_event(
        w, (struct worker_event){.kind = WORKER_OUT_POISONED, .attempt = lease->attempt, .lease = lease});
    lease_ready(w, lease, false);
}

/* No handler runs any more, and its result, if any, does not count. */
static void without_result(struct worker_machine *w, struct lease *lease, enum lease_claim claim)
{
    switch (claim) {
    case CLAIM_EXPIRED: lease_end(w, lease, WORKER_OUT_DROP, WORKER_END_LEASE_LOST); return;
    case CLAIM_STOLEN: lease_end(w, lease, WORKER_OUT_DROP, WORKER_END_STOLEN); return;
    case CLAIM_GONE: lease_end(w, lease, WORKER_OUT_ACK, WORKER_END_CANCELLED); return;
    case CLAIM_HELD: break;
    }
    if (lease->push == PUSH_NONE) { /* fired by a stop */
        lease_hand_back(w, lease);
    } else if (lease->push == PUSH_DENIED || w->killed) {
        lease_end(w, lease, WORKER_OUT_DROP, WORKER_END_CANCELLED);
    } else {
        lease_enter(&w->table, lease, LEASE_CONFIRMING);
        lease_refresh(w, lease);
    }
}

/* Ends a lease between claim and start: it is not run and has no token. Its RUN, which waits to be taken, is
 * ignored. */
static void never_start(struct worker_machine *w, struct lease *lease, enum worker_path path,
                        enum lease_claim claim)
{
    isolation_leave(w, lease);
    if (path == WORKER_PATH_TIMEOUT)
        lease_expire(w, lease);
    else
        without_result(w, lease, claim);
}

static void worker_end_fire(struct worker_machine *w, struct lease *lease, enum worker_path path,
                            enum lease_claim claim)
{
    struct lease_cancelling cancelling = {path, claim, w->now_ms + w->options.grace_ms};
    if (lease->state == LEASE_CANCELLING) {
        assert(claim != CLAIM_HELD);
        lease->cancelling.claim = claim;
        return;
    }
    if (lease->state == LEASE_STARTING) {
        never_start(w, lease, path, claim);
        return;
    }
    assert(lease->state == LEASE_RUNNING);
    if (w->stopping && cancelling.grace_ms > w->kill_ms)
        cancelling.grace_ms = w->kill_ms;
    lease_enter(&w->table, lease, LEASE_CANCELLING);
    lease->cancelling = cancelling;
    if (path == WORKER_PATH_RENEWAL) {
        lease->since_ms = lease->renewed_ms;
        worker_end_remember(lease, THOLE_STR("cancelled"), THOLE_STR(""));
    } else if (path != WORKER_PATH_PUSH)
        worker_end_remember(lease, thole_slice_from(worker_path_name(path)), THOLE_STR(""));
    count_path(w, path);
    lease_refresh(w, lease);
    worker_end_add_event(
        w, (struct worker_event){
               .kind = WORKER_OUT_FIRE, .path = path, .deadline_ms = cancelling.grace_ms, .lease = lease});
}

void lease_fire(struct worker_machine *w, struct lease *lease, enum worker_path path)
{
    worker_end_fire(w, lease, path, CLAIM_HELD);
}

void lease_cancelled(struct worker_machine *w, struct lease *lease)
{
    lease_set_push(w, lease, PUSH_NONE);
    worker_end_fire(w, lease, WORKER_PATH_RENEWAL, CLAIM_GONE);
    if (lease->state == LEASE_CANCELLING)
        worker_progress_arm(w, lease); /* +WPI left it out if its row could not be renewed before */
}

void lease_hurry(struct worker_machine *w, struct lease *lease, uint64_t grace_ms)
{
    assert(lease->state == LEASE_CANCELLING);
    if (lease->cancelling.grace_ms <= grace_ms)
        return;
    lease->cancelling.grace_ms = grace_ms;
    lease_refresh(w, lease);
    worker_end_add_event(
        w, (struct worker_event){.kind = WORKER_OUT_HURRY, .deadline_ms = grace_ms, .lease = lease});
}

void lease_lose(struct worker_machine *w, struct lease *lease, enum lease_claim claim)
{
    bool const stolen = claim == CLAIM_STOLEN;
    assert(lease_has_row(lease) && (stolen || claim == CLAIM_EXPIRED));
    w->counters.stolen += stolen;
    w->counters.lease_lost += !stolen;
    lease_set_push(w, lease, PUSH_NONE);
    lease_not_lost(w, lease);
    if (lease->state == LEASE_STARTING || lease->state == LEASE_RUNNING || lease->state == LEASE_CANCELLING)
        worker_end_fire(w, lease, WORKER_PATH_LEASE_LOST, claim);
    else
        lease_end(w, lease, WORKER_OUT_DROP, stolen ? WORKER_END_STOLEN : WORKER_END_LEASE_LOST);
}

void worker_finished(struct worker_machine *w, const struct worker_in *in)
{
    struct lease *const lease = lease_table_find(&w->table, in->id);
    if (lease == NULL || (lease->state != LEASE_RUNNING && lease->state != LEASE_CANCELLING))
        return;
    bool const fired = lease->state == LEASE_CANCELLING;
    bool const timed_out = fired && lease->cancelling.path == WORKER_PATH_TIMEOUT;
    bool const shut_down = fired && lease->cancelling.path == WORKER_PATH_SHUTDOWN;
    /* Cancelled because the worker stops: only a success is a result, after any other status it runs
     * again. */
    bool const success = in->status == THOLE_OK || in->status == THOLE_LATER;
    bool const later = in->status == THOLE_LATER && !timed_out;
    bool const returned = timed_out || (!in->unknown && (!shut_down || success));
    if (has_result(lease) && returned) {
        lease_ready(w, lease, later); /* keeps the isolation slot until the result is stored */
        return;
    }
    isolation_leave(w, lease);
    without_result(w, lease, fired ? lease->cancelling.claim : CLAIM_HELD);
}

void lease_abandon(struct worker_machine *w, struct lease *lease)
{
    assert(lease->state == LEASE_CANCELLING);
    w->counters.abandoned++;
    w->slots_abandoned++;
    isolation_abandoned(w);
    isolation_leave(w, lease);
    worker_end_add_event(w, (struct worker_event){.kind = WORKER_OUT_ABANDON, .lease = lease});
    if (lease->cancelling.path == WORKER_PATH_TIMEOUT && has_result(lease))
        lease_ready(w, lease, false);
    else
        without_result(w, lease, lease->cancelling.claim);
}

/* Before the row is deleted. What does not run yet is told by the next push. */
static void pushed_early(struct worker_machine *w, struct lease *lease, const struct worker_in *in)
{
    if (lease->state != LEASE_STARTING && lease->state != LEASE_RUNNING)
        return;
    worker_end_remember(lease, in->cancel_kind, in->reason);
    lease->since_ms = in->since_ms;
    lease_set_push(w, lease, PUSH_EARLY);
    lease_fire(w, lease, WORKER_PATH_PUSH);
}

static void worker_end_pushed(struct worker_machine *w, struct lease *lease, const struct worker_in *in)
{
    switch (lease->state) {
    case LEASE_QUEUED:
    case LEASE_QUICK:
    case LEASE_ISOLATED:
    case LEASE_CLAIMING: lease_set_push(w, lease, PUSH_HEARD); break;
    case LEASE_STARTING:
    case LEASE_RUNNING:
        worker_end_remember(lease, in->cancel_kind, in->reason);
        lease->since_ms = in->since_ms;
        lease_set_push(w, lease, PUSH_WANTED);
        lease_fire(w, lease, WORKER_PATH_PUSH);
        break;
    case LEASE_CANCELLING: /* the first push counts */
        if (lease_has_row(lease))
            lease_set_push(w, lease, PUSH_WANTED);
        break;
    case LEASE_CONFIRMING: lease_set_push(w, lease, PUSH_WANTED); break;
    default: break; /* the completion asks the row; or it has ended */
    }
}

void worker_pushed(struct worker_machine *w, const struct worker_in *in)
{
    struct worker_key key = in->key;
    struct tagged_hash about = {.text = ""};
    for (size_t i = 0; i < in->activity_ids_len; i++) {
        key.activity_id = in->activity_ids[i];
        for (struct lease *l = lease_table_find_key(&w->table, &key); l != NULL; l = lease_next_same(l)) {
            if (in->key.try_number != 0 && in->key.try_number != l->key.try_number)
                continue;
            if (about.text[0] == '\0') /* most pushes are for other workers */
                about = cancel_about(in->key.try_number, in->cancel_kind, in->reason);
            if (cancel_proof(thole_slice_from(l->nonce), &about) != in->proofs[i])
                w->counters.unproven++;
            else if (in->early)
                pushed_early(w, l, in);
            else
                worker_end_pushed(w, l, in);
        }
    }
}

static struct worker_event worker_end_next_event(struct worker_machine *w)
{
    struct worker_event const event = w->events[w->events_at];
    w->events_at = (w->events_at + 1) % (w->table.cap * LEASE_EVENTS_MAX);
    w->events_len--;
    return event;
}

bool worker_poll_event(struct worker_machine *w, struct worker_out *ret)
{
    struct worker_event event = {.lease = NULL};
    while (w->events_len > 0 && event.lease == NULL) {
        event = worker_end_next_event(w);
        if (event.kind == WORKER_OUT_RUN &&
            event.lease->state != LEASE_STARTING) /* ended before it started */
            event.lease = NULL;
    }
    struct lease *const lease = event.lease;
    if (lease == NULL)
        return false;
    if (event.kind == WORKER_OUT_RUN) {
        lease_enter(&w->table, lease, LEASE_RUNNING);
        isolation_runs(w, lease);
    }
    *ret = (struct worker_out){.kind = event.kind,
                               .id = lease->id,
                               .attempt = event.attempt,
                               .path = event.path,
                               .end = event.end,
                               .delay_ms = event.delay_ms,
                               .deadline_ms = event.deadline_ms};
    if (event.end == WORKER_END_REFUSED && ends_message(event.kind))
        ret->since_ms = lease->renewed_ms;
    if (event.kind == WORKER_OUT_FIRE) {
        ret->since_ms = lease->since_ms;
        ret->cancel_kind = (thole_slice){lease->cancel_kind, lease->cancel_kind_len};
        ret->reason = (thole_slice){lease->reason, lease->reason_len};
    }
    if (ends_message(event.kind))
        lease_table_remove(&w->table, lease);
    return true;
}
