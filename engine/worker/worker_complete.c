/*
 * Completion in batches: delete the rows that are mine, run the quick handlers among them, publish the
 * results of exactly those, commit, acknowledge. The deleted rows stay locked until the commit, so a
 * statement that cancels or claims one of them waits for it. Any unknown answer rolls everything back; it is
 * tried again until the row says who holds it.
 */
#include "worker_machine.h"
#include <assert.h>

enum {
    QUICK_MS = 1000,       /* from the begin of a batch that runs handlers to its publishes */
    QUICK_PAUSE_MS = 5000, /* none is run that way for so long after a begin that took as long */
};

static void worker_complete_retry(struct worker_machine *w, struct lease *lease, bool at_once)
{
    assert(lease->state == LEASE_COMPLETING || lease->state == LEASE_LEAVING);
    worker_renew_arm(w, lease);
    if (at_once || w->killed) {
        lease_ready(w, lease, lease->result.later);
        return;
    }
    lease_enter(&w->table, lease, LEASE_RETRYING);
    lease->result.again_ms = w->now_ms + worker_backoff_ms(w, ++lease->result.retries);
    lease_refresh(w, lease);
}

/* A quick one that does not run in this batch is claimed like any other. */
static void claim_first(struct worker_machine *w, struct lease *lease)
{
    assert(lease->state == LEASE_COMPLETING && lease->result.unrun && w->batch_unrun > 0);
    w->batch_unrun--;
    lease->renewed_ms = UINT64_MAX;
    if (w->stopping) {
        lease_end(w, lease, WORKER_OUT_NAK, WORKER_END_HANDED_BACK);
    } else if (w->isolation.lease != NULL) {
        lease_end(w, lease, WORKER_OUT_NAK, WORKER_END_DEFERRED);
    } else {
        lease_enter(&w->table, lease, LEASE_QUEUED);
        if (lease_due_ms(w, lease) > w->now_ms)
            lease_refresh(w, lease);
        else
            lease_end(w, lease, WORKER_OUT_NAK, WORKER_END_UNCLAIMED);
    }
}

/* The batch has failed: it is not known that anything of it is stored. Those that failed wait; with `others`
 * the rest is tried again at once, without them. */
static void retry_batch(struct worker_machine *w, bool others)
{
    struct lease *next;
    for (struct lease *l = leases_in(w, LEASE_COMPLETING)->first; l != NULL; l = next) {
        next = l->next;
        if (l->result.unrun)
            claim_first(w, l);
        else
            worker_complete_retry(w, l, others && !l->result.failed);
    }
    w->step = BATCH_IDLE;
}

/* An older claim of the same activity: its row's state is known only when this batch is committed. */
static bool is_in_batch(const struct worker_machine *w, const struct lease *lease)
{
    const struct lease *same = lease_table_find_key(&w->table, &lease->key);
    while (same != NULL && same->state != LEASE_COMPLETING)
        same = lease_next_same(same);
    return same != NULL;
}

/* Quick ones, whose rows the batch is to claim as well. */
static size_t add_quick(struct worker_machine *w, size_t n)
{
    struct lease *next;
    for (struct lease *l = leases_in(w, LEASE_QUICK)->first; l != NULL; l = next) {
        next = l->next;
        if (n == WORKER_CLAIM_MAX || w->batch_unrun == WORKER_QUICK_MAX)
            break;
        lease_enter(&w->table, l, LEASE_COMPLETING);
        l->result.unrun = true;
        l->renewed_ms = w->now_ms;
        worker_progress_arm(w, l);
        w->batch_unrun++;
        w->rows[n++] = (struct worker_row){.id = l->id, .key = l->key, .digest = l->digest, .quick = true};
    }
    return n;
}

static struct worker_row held_row(const struct lease *lease)
{
    return (struct worker_row){.id = lease->id,
                               .key = lease->key,
                               .digest = lease->digest,
                               .attempt = lease->attempt,
                               .claimed_us = lease->claimed_us};
}

static bool begin_batch(struct worker_machine *w, struct worker_out *ret)
{
    size_t n = 0;
    struct lease *next;
    for (struct lease *l = leases_in(w, LEASE_READY)->first; l != NULL && n < WORKER_CLAIM_MAX; l = next) {
        next = l->next;
        if (is_in_batch(w, l))
            continue;
        lease_enter(&w->table, l, LEASE_COMPLETING);
        l->result.failed = false;
        w->rows[n++] = held_row(l);
    }
    n = add_quick(w, n);
    if (n == 0)
        return false;
    w->batch_quick = w->batch_unrun > 0;
    w->step = BATCH_BEGINNING;
    w->batch_sent_ms = w->now_ms;
    *ret = (struct worker_out){.kind = WORKER_OUT_COMPLETE_BEGIN, .rows = w->rows, .rows_len = n};
    return true;
}

static bool worker_complete_run_batch(struct worker_machine *w, struct worker_out *ret)
{
    size_t n = 0;
    for (const struct lease *l = leases_in(w, LEASE_COMPLETING)->first; l != NULL; l = l->next) {
        if (!l->result.unrun)
            continue;
        w->rows[n++] = (struct worker_row){
            .id = l->id, .key = l->key, .attempt = l->attempt, .left_ms = l->result.left_ms};
        w->counters.claimed++;
        w->counters.quick++;
        isolation_runs(w, l);
    }
    assert(n == w->batch_unrun);
    w->step = BATCH_RUNNING;
    *ret = (struct worker_out){.kind = WORKER_OUT_COMPLETE_RUN, .rows = w->rows, .rows_len = n};
    return true;
}

static bool publish_batch(struct worker_machine *w, struct worker_out *ret)
{
    size_t n = 0;
    for (const struct lease *l = leases_in(w, LEASE_COMPLETING)->first; l != NULL; l = l->next)
        w->ids[n++] = l->id;
    w->batch_open = n;
    w->step = BATCH_PUBLISHING;
    *ret = (struct worker_out){.kind = WORKER_OUT_COMPLETE_PUBLISH, .ids = w->ids, .ids_len = n};
    return true;
}

bool worker_poll_complete(struct worker_machine *w, struct worker_out *ret)
{
    switch (w->step) {
    case BATCH_IDLE: return begin_batch(w, ret);
    case BATCH_TO_RUN: return worker_complete_run_batch(w, ret);
    case BATCH_TO_PUBLISH: return publish_batch(w, ret);
    case BATCH_TO_COMMIT:
        w->step = BATCH_COMMITTING;
        *ret = (struct worker_out){.kind = WORKER_OUT_COMPLETE_COMMIT};
        return true;
    case BATCH_TO_ROLL_BACK:
        retry_batch(w, true);
        *ret = (struct worker_out){.kind = WORKER_OUT_COMPLETE_ROLLBACK};
        return true;
    case BATCH_BEGINNING:
    case BATCH_RUNNING:
    case BATCH_PUBLISHING:
    case BATCH_COMMITTING: return false;
    }
    return false;
}

/* The row is not this worker's: nothing is published for it. If the result was published before, in a batch
 * whose commit was not answered, that commit has deleted the row, and the completion is done. */
static void not_mine(struct worker_machine *w, struct lease *lease, enum worker_row_state state)
{
    if (state == WORKER_ROW_UNKNOWN) {
        worker_complete_retry(w, lease, false);
        return;
    }
    if (state == WORKER_ROW_STOLEN)
        lease_lose(w, lease, CLAIM_STOLEN);
    else
        lease_end(w, lease, WORKER_OUT_ACK,
                  lease->result.published ? WORKER_END_COMPLETED : WORKER_END_REFUSED);
}

/* A process that was frozen since it asked may have lost the transaction: after the lease has ended nothing
 * is published, even if the row was this worker's. */
static bool is_late(const struct worker_machine *w)
{
    uint64_t const lease_ms = w->options.lease_ms - worker_margin_ms(w);
    uint64_t const most_ms = w->batch_quick && lease_ms > QUICK_MS ? QUICK_MS : lease_ms;
    return w->now_ms >= w->batch_sent_ms + most_ms;
}

/* The row of a quick one is deleted: no other worker claims it while this transaction is open. */
static void quick_won(struct lease *lease, const struct worker_row *row)
{
    lease->attempt = row->attempt;
    lease->claimed_us = row->claimed_us;
    lease->unwritten = true;
    lease->compared = row->compared;
    lease->result.left_ms = row->left_ms;
}

static void worker_complete_begun(struct worker_machine *w, struct lease *lease, const struct worker_row *row)
{
    assert(row->id == lease->id);
    if (!lease->result.unrun && row->state != WORKER_ROW_MINE)
        not_mine(w, lease, row->state);
    else if (lease->result.unrun && row->state == WORKER_ROW_MINE)
        quick_won(lease, row);
    else if (lease->result.unrun)
        claim_first(w, lease);
}

/* When Postgres is so slow, quick ones would hold up the results of others. */
static enum batch_step after_begin(struct worker_machine *w)
{
    bool const late = is_late(w);
    if (late && w->batch_quick)
        w->quick_gate_ms = w->now_ms + QUICK_PAUSE_MS;
    if (leases_in(w, LEASE_COMPLETING)->len == 0 || late)
        return BATCH_TO_ROLL_BACK;
    return w->batch_unrun > 0 ? BATCH_TO_RUN : BATCH_TO_PUBLISH;
}

void worker_begun(struct worker_machine *w, const struct worker_in *in)
{
    const struct lease_list *const batch = leases_in(w, LEASE_COMPLETING);
    struct lease *next;
    size_t i = 0;
    assert(w->step == BATCH_BEGINNING && (in->unknown || in->rows_len == batch->len));
    if (in->unknown) {
        retry_batch(w, false);
        return;
    }
    for (struct lease *l = batch->first; l != NULL; l = next, i++) {
        next = l->next;
        worker_complete_begun(w, l, &in->rows[i]);
    }
    w->step = after_begin(w);
}

bool worker_quick_finished(struct worker_machine *w, const struct worker_in *in)
{
    struct lease *const lease = lease_table_find(&w->table, in->id);
    if (lease == NULL || lease->state != LEASE_COMPLETING || !lease->result.unrun)
        return false;
    assert(w->step == BATCH_RUNNING && w->batch_unrun > 0);
    if (in->unknown) { /* nor do the handlers after it run */
        w->step = BATCH_TO_ROLL_BACK;
        return true;
    }
    lease->result.unrun = false;
    if (--w->batch_unrun == 0)
        w->step = is_late(w) ? BATCH_TO_ROLL_BACK : BATCH_TO_PUBLISH;
    return true;
}

void worker_published(struct worker_machine *w, const struct worker_in *in)
{
    struct lease *const lease = lease_table_find(&w->table, in->id);
    bool any_failed = false;
    assert(w->step == BATCH_PUBLISHING && w->batch_open > 0);
    assert(lease != NULL && lease->state == LEASE_COMPLETING);
    if (in->ok)
        lease->result.published = true;
    else
        lease->result.failed = true;
    if (--w->batch_open > 0)
        return;
    for (const struct lease *l = leases_in(w, LEASE_COMPLETING)->first; l != NULL; l = l->next)
        any_failed |= l->result.failed;
    w->step = any_failed ? BATCH_TO_ROLL_BACK : BATCH_TO_COMMIT;
}

void worker_committed(struct worker_machine *w, const struct worker_in *in)
{
    assert(w->step == BATCH_COMMITTING);
    /* the batch may be committed: then the next begin finds the rows missing, which ends them as completed */
    if (in->unknown) {
        retry_batch(w, false);
        return;
    }
    while (leases_in(w, LEASE_COMPLETING)->len > 0)
        lease_end(w, leases_in(w, LEASE_COMPLETING)->first, WORKER_OUT_ACK, WORKER_END_COMPLETED);
    w->step = BATCH_IDLE;
}

/* ---- giving back ---- */

/* Leases in state `waiting` become the rows of a statement and enter state `sent`. */
static size_t send_rows(struct worker_machine *w, enum lease_state waiting, enum lease_state sent)
{
    size_t n = 0;
    for (struct lease *l; n < WORKER_CLAIM_MAX && (l = leases_in(w, waiting)->first) != NULL;) {
        lease_enter(&w->table, l, sent);
        w->rows[n++] = held_row(l);
    }
    return n;
}

bool worker_poll_release(struct worker_machine *w, struct worker_out *ret)
{
    if (leases_in(w, LEASE_RELEASING)->len > 0 || leases_in(w, LEASE_TO_RELEASE)->len == 0)
        return false;
    size_t const n = send_rows(w, LEASE_TO_RELEASE, LEASE_RELEASING);
    *ret = (struct worker_out){.kind = WORKER_OUT_RELEASE, .rows = w->rows, .rows_len = n};
    return true;
}

/* Whether the rows were released or not: the next worker that gets the messages claims the rows. */
void worker_released(struct worker_machine *w)
{
    assert(leases_in(w, LEASE_RELEASING)->len > 0);
    while (leases_in(w, LEASE_RELEASING)->len > 0)
        lease_end(w, leases_in(w, LEASE_RELEASING)->first, WORKER_OUT_NAK, WORKER_END_HANDED_BACK);
}

/* ---- completion from outside ---- */

bool worker_poll_leave(struct worker_machine *w, struct worker_out *ret)
{
    if (leases_in(w, LEASE_LEAVING)->len > 0 || leases_in(w, LEASE_TO_LEAVE)->len == 0)
        return false;
    size_t const n = send_rows(w, LEASE_TO_LEAVE, LEASE_LEAVING);
    *ret = (struct worker_out){.kind = WORKER_OUT_LEAVE, .rows = w->rows, .rows_len = n};
    return true;
}

/* A missing row: the activity has already been completed with its token. */
void worker_left(struct worker_machine *w, const struct worker_in *in)
{
    const struct lease_list *const leaving = leases_in(w, LEASE_LEAVING);
    struct lease *next;
    size_t i = 0;
    assert(leaving->len > 0 && (in->unknown || in->rows_len == leaving->len));
    for (struct lease *l = leaving->first; l != NULL; l = next, i++) {
        next = l->next;
        assert(in->unknown || in->rows[i].id == l->id);
        if (in->unknown || in->rows[i].state == WORKER_ROW_UNKNOWN)
            worker_complete_retry(w, l, false);
        else if (in->rows[i].state == WORKER_ROW_STOLEN)
            lease_lose(w, l, CLAIM_STOLEN);
        else
            lease_end(w, l, WORKER_OUT_ACK, WORKER_END_LATER);
    }
}
