/*
 * Completion in batches: delete the rows that are mine, publish the results of exactly those, commit,
 * acknowledge. The deleted rows stay locked until the commit, so whoever cancels or claims one of them waits
 * for it; and whatever is unknown on the way rolls all back and is tried again until the row says whose it
 * is.
 */
#include "worker_machine.h"
#include <assert.h>

struct lease_list *lease_ready_list(struct worker_machine *w, const struct lease *lease)
{
    return lease->later ? &w->leaving : &w->ready;
}

void lease_ready(struct worker_machine *w, struct lease *lease)
{
    lease->state = LEASE_READY;
    if (w->killed) {
        lease_hand_back(w, lease);
        return;
    }
    lease->retry_ms = 0;
    lease_list_append(lease_ready_list(w, lease), lease);
    lease_refresh(w, lease);
}

static void retry(struct worker_machine *w, struct lease *lease, bool at_once)
{
    assert(lease->state == LEASE_IN_BATCH || lease->state == LEASE_LEAVING);
    lease->state = LEASE_READY;
    worker_renew_arm(w, lease);
    if (at_once || w->killed) {
        lease_ready(w, lease);
        return;
    }
    lease->retry_ms = w->now_ms + worker_backoff_ms(w, ++lease->retries);
    lease_refresh(w, lease);
}

static void retry_all(struct worker_machine *w)
{
    for (size_t i = 0; i < w->batch_len; i++)
        retry(w, w->batch[i], false);
    w->batch_len = 0;
    w->step = BATCH_IDLE;
}

/* Those that failed wait; the others go again at once, without them. */
static void rolled_back(struct worker_machine *w)
{
    for (size_t i = 0; i < w->batch_len; i++)
        retry(w, w->batch[i], !w->batch[i]->failed);
    w->batch_len = 0;
    w->step = BATCH_IDLE;
}

/* An older claim of the same activity: its row's state is told only when this batch has been committed. */
static bool is_in_batch(const struct worker_machine *w, const struct lease *lease)
{
    const struct lease *same = lease_table_find_key(&w->table, &lease->key);
    while (same != NULL && same->state != LEASE_IN_BATCH)
        same = lease_next_same(same);
    return same != NULL;
}

static bool begin_batch(struct worker_machine *w, struct worker_out *ret)
{
    struct lease *next;
    for (struct lease *l = w->ready.first; l != NULL && w->batch_len < WORKER_CLAIM_MAX; l = next) {
        next = l->next;
        if (is_in_batch(w, l))
            continue;
        lease_list_remove(&w->ready, l);
        l->state = LEASE_IN_BATCH;
        l->failed = false;
        w->rows[w->batch_len] = (struct worker_row){.id = l->id, .key = l->key, .attempt = l->attempt};
        w->batch[w->batch_len++] = l;
    }
    if (w->batch_len == 0)
        return false;
    w->step = BATCH_BEGINNING;
    w->batch_sent_ms = w->now_ms;
    *ret = (struct worker_out){.kind = WORKER_OUT_COMPLETE_BEGIN, .rows = w->rows, .rows_len = w->batch_len};
    return true;
}

static bool publish_batch(struct worker_machine *w, struct worker_out *ret)
{
    for (size_t i = 0; i < w->batch_len; i++)
        w->ids[i] = w->batch[i]->id;
    w->batch_open = w->batch_len;
    w->step = BATCH_PUBLISHING;
    *ret = (struct worker_out){.kind = WORKER_OUT_COMPLETE_PUBLISH, .ids = w->ids, .ids_len = w->batch_len};
    return true;
}

bool worker_poll_complete(struct worker_machine *w, struct worker_out *ret)
{
    switch (w->step) {
    case BATCH_IDLE: return begin_batch(w, ret);
    case BATCH_TO_PUBLISH: return publish_batch(w, ret);
    case BATCH_TO_COMMIT:
        w->step = BATCH_COMMITTING;
        *ret = (struct worker_out){.kind = WORKER_OUT_COMPLETE_COMMIT};
        return true;
    case BATCH_TO_ROLL_BACK:
        rolled_back(w);
        *ret = (struct worker_out){.kind = WORKER_OUT_COMPLETE_ROLLBACK};
        return true;
    case BATCH_BEGINNING:
    case BATCH_PUBLISHING:
    case BATCH_COMMITTING: return false;
    }
    return false;
}

/* The row is not mine: nothing is published for it. A result that was published before, by an attempt whose
 * commit was not answered, is where it belongs: then that commit is what took the row. */
static void not_mine(struct worker_machine *w, struct lease *lease, enum worker_row_state state)
{
    if (state == WORKER_ROW_UNKNOWN) {
        retry(w, lease, false);
        return;
    }
    lease->state = LEASE_READY;
    if (state == WORKER_ROW_STOLEN)
        lease_lose(w, lease, true);
    else
        lease_end(w, lease, WORKER_OUT_ACK, lease->published ? WORKER_END_COMPLETED : WORKER_END_REFUSED);
}

/* A worker that slept since it asked may be without the transaction that it asked for: past a lease nothing
 * is published, even if the row was mine. */
void worker_begun(struct worker_machine *w, const struct worker_in *in)
{
    size_t mine = 0;
    bool const late = w->now_ms >= w->batch_sent_ms + w->options.lease_ms - worker_margin_ms(w);
    assert(w->step == BATCH_BEGINNING && (in->unknown || in->rows_len == w->batch_len));
    if (in->unknown) {
        retry_all(w);
        return;
    }
    for (size_t i = 0; i < w->batch_len; i++) {
        struct lease *const lease = w->batch[i];
        assert(in->rows[i].id == lease->id);
        if (in->rows[i].state != WORKER_ROW_MINE) {
            not_mine(w, lease, in->rows[i].state);
            continue;
        }
        w->batch[mine++] = lease;
    }
    w->batch_len = mine;
    w->step = mine > 0 && !late ? BATCH_TO_PUBLISH : BATCH_TO_ROLL_BACK;
}

void worker_published(struct worker_machine *w, const struct worker_in *in)
{
    struct lease *const lease = lease_table_find(&w->table, in->id);
    bool any_failed = false;
    assert(w->step == BATCH_PUBLISHING && w->batch_open > 0);
    assert(lease != NULL && lease->state == LEASE_IN_BATCH);
    if (in->ok)
        lease->published = true;
    else
        lease->failed = true;
    if (--w->batch_open > 0)
        return;
    for (size_t i = 0; i < w->batch_len; i++)
        any_failed |= w->batch[i]->failed;
    w->step = any_failed ? BATCH_TO_ROLL_BACK : BATCH_TO_COMMIT;
}

void worker_committed(struct worker_machine *w, const struct worker_in *in)
{
    assert(w->step == BATCH_COMMITTING);
    if (in->unknown) { /* perhaps it did: then the next begin finds the rows missing, and that is fine */
        retry_all(w);
        return;
    }
    for (size_t i = 0; i < w->batch_len; i++)
        lease_end(w, w->batch[i], WORKER_OUT_ACK, WORKER_END_COMPLETED);
    w->batch_len = 0;
    w->step = BATCH_IDLE;
}

/* ---- giving back ---- */

void lease_hand_back(struct worker_machine *w, struct lease *lease)
{
    assert(!lease->listed);
    lease_confirm(w, lease, CONFIRM_NONE);
    lane_leave(w, lease);
    lease->state = LEASE_RELEASING;
    lease_list_append(&w->releasing, lease);
}

bool worker_poll_release(struct worker_machine *w, struct worker_out *ret)
{
    size_t n = 0;
    if (w->release_in_flight || w->releasing.len == 0)
        return false;
    while (w->releasing.first != NULL && n < WORKER_CLAIM_MAX) {
        struct lease *const lease = w->releasing.first;
        lease_list_remove(&w->releasing, lease);
        w->rows[n] = (struct worker_row){.id = lease->id, .key = lease->key, .attempt = lease->attempt};
        w->released[n++] = lease;
    }
    w->released_len = n;
    w->release_in_flight = true;
    *ret = (struct worker_out){.kind = WORKER_OUT_RELEASE, .rows = w->rows, .rows_len = n};
    return true;
}

/* Whatever became of the rows: whoever gets the messages next takes the rows over. */
void worker_released(struct worker_machine *w)
{
    assert(w->release_in_flight);
    w->release_in_flight = false;
    for (size_t i = 0; i < w->released_len; i++)
        lease_end(w, w->released[i], WORKER_OUT_NAK, WORKER_END_HANDED_BACK);
    w->released_len = 0;
}

/* ---- leaving to others ---- */

bool worker_poll_leave(struct worker_machine *w, struct worker_out *ret)
{
    size_t n = 0;
    if (w->leave_in_flight || w->leaving.len == 0)
        return false;
    while (w->leaving.first != NULL && n < WORKER_CLAIM_MAX) {
        struct lease *const lease = w->leaving.first;
        lease_list_remove(&w->leaving, lease);
        lease->state = LEASE_LEAVING;
        w->rows[n] = (struct worker_row){.id = lease->id, .key = lease->key, .attempt = lease->attempt};
        w->left[n++] = lease;
    }
    w->left_len = n;
    w->leave_in_flight = true;
    *ret = (struct worker_out){.kind = WORKER_OUT_LEAVE, .rows = w->rows, .rows_len = n};
    return true;
}

/* A row that is missing has been completed already, by whoever got the token. */
void worker_left(struct worker_machine *w, const struct worker_in *in)
{
    assert(w->leave_in_flight && (in->unknown || in->rows_len == w->left_len));
    w->leave_in_flight = false;
    for (size_t i = 0; i < w->left_len; i++) {
        struct lease *const lease = w->left[i];
        assert(in->unknown || in->rows[i].id == lease->id);
        if (in->unknown || in->rows[i].state == WORKER_ROW_UNKNOWN) {
            retry(w, lease, false);
        } else if (in->rows[i].state == WORKER_ROW_STOLEN) {
            lease->state = LEASE_READY;
            lease_lose(w, lease, true);
        } else {
            lease_end(w, lease, WORKER_OUT_ACK, WORKER_END_LATER);
        }
    }
    w->left_len = 0;
}
