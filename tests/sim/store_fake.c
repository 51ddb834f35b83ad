#include "store_fake.h"
#include "checks.h"
#include "engine_node.h"
#include "hostile_fake.h"
#include "losses.h"
#include "store_rows.h"
#include "thole/client.h"
#include "worker_node.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOST_MAX = 6 };

struct store *store_create(struct world *w)
{
    return keep(w, sizeof(struct store));
}

uint64_t store_down_until_ms(const struct store *store)
{
    return store->down_until_ms;
}

uint64_t store_life(const struct store *store)
{
    return store->life;
}

/* ---- rows ------------------------------------------------------------------------------------------------
 */

static size_t slot_of(const struct store *store, enum row_kind kind, uint32_t partition, size_t instance,
                      uint64_t execution, uint64_t id)
{
    uint64_t hash = ((uint64_t)kind * 31 + partition) * 1000003 + instance;
    hash = (hash * 1000003 + execution) * 1000003 + id;
    hash ^= hash >> 29;
    for (size_t slot = hash % STORE_INDEX_SIZE;; slot = (slot + 1) % STORE_INDEX_SIZE) {
        if (store->index[slot] == 0)
            return slot;
        const struct row *row = &store->rows[store->index[slot] - 1];
        if (row->kind == kind && row->partition == partition && row->instance == instance &&
            row->execution == execution && row->id == id)
            return slot;
    }
}

const struct row *store_find(const struct store *store, enum row_kind kind, uint32_t partition,
                             size_t instance, uint64_t execution, uint64_t id)
{
    uint32_t const found = store->index[slot_of(store, kind, partition, instance, execution, id)];
    return found != 0 && store->rows[found - 1].present ? &store->rows[found - 1] : NULL;
}

const struct row *store_row(const struct store *store, size_t i)
{
    return i < store->rows_len ? &store->rows[i] : NULL;
}

struct row *store_row_at(struct world *w, enum row_kind kind, uint32_t partition, size_t instance,
                         uint64_t execution, uint64_t id)
{
    struct store *store = w->store;
    size_t const slot = slot_of(store, kind, partition, instance, execution, id);
    if (store->index[slot] != 0)
        return &store->rows[store->index[slot] - 1];
    if (store->rows_len >= STORE_INDEX_SIZE / 2)
        abort();
    store->rows = grown(w, store->rows, store->rows_len, &store->rows_cap, sizeof *store->rows);
    store->rows[store->rows_len] = (struct row){
        .kind = kind, .partition = partition, .instance = instance, .execution = execution, .id = id};
    store->index[slot] = (uint32_t)++store->rows_len;
    return &store->rows[store->rows_len - 1];
}

static struct row *activity_at(struct world *w, size_t instance, uint64_t execution, uint64_t id)
{
    return store_row_at(w, ROW_ACTIVITY, instance_partition(w, instance), instance, execution, id);
}

/* ---- transactions ----------------------------------------------------------------------------------------
 */

void store_commit_begin(struct world *w)
{
    struct store *store = w->store;
    if (store->commits_len > 4 * LOST_MAX) { /* older ones cannot be lost any more */
        size_t const drop = store->commits_len - LOST_MAX;
        size_t const from = store->commits[drop].undo_from;
        memmove(store->undo, store->undo + from, (store->undo_len - from) * sizeof *store->undo);
        store->undo_len -= from;
        memmove(store->commits, store->commits + drop, LOST_MAX * sizeof *store->commits);
        store->commits_len = LOST_MAX;
        for (size_t i = 0; i < LOST_MAX; i++)
            store->commits[i].undo_from -= from;
    }
    store->commits =
        grown(w, store->commits, store->commits_len, &store->commits_cap, sizeof *store->commits);
    store->commits[store->commits_len++] = (struct commit){w->now_ms, store->undo_len};
}

/* Nothing of what is committed can be lost any more. */
static void make_durable(struct world *w)
{
    struct store *store = w->store;
    store->commits_len = store->undo_len = 0;
    for (size_t i = 0; i < store->rows_len; i++)
        if (store->rows[i].kind == ROW_PARTITION && store->rows[i].present)
            checks_on_durable(w, &store->rows[i]);
}

void store_remember(struct world *w, const struct row *row)
{
    struct store *store = w->store;
    store->undo = grown(w, store->undo, store->undo_len, &store->undo_cap, sizeof *store->undo);
    store->undo[store->undo_len++] = (struct undo){(size_t)(row - store->rows), *row};
}

void store_unlock_rows(struct world *w, struct store_tx *tx)
{
    for (size_t i = 0; i < tx->rows_len; i++)
        w->store->rows[tx->rows[i]].locked_by = NULL;
    for (size_t i = 0; i < w->store->open_len; i++)
        if (w->store->open[i] == tx)
            w->store->open[i--] = w->store->open[--w->store->open_len];
    tx->open = false;
    tx->rows_len = 0;
}

void store_goes_down(struct world *w, uint64_t outage_ms)
{
    w->store->down_until_ms = w->now_ms + outage_ms;
    for (size_t i = 0; i < w->engines_len; i++)
        engine_loses_link(w, w->engines[i], SERVER_STORE);
    for (size_t i = 0; i < w->workers_len; i++)
        worker_node_loses_link(w, w->workers[i], SERVER_STORE);
}

/* Ahead of the log, far or near (so that the log overtakes it before anybody looks), or beyond its end. */
static void of_another_time(struct world *w, struct row *row)
{
    size_t const len = w->logs[row->partition]->len;
    bool const ahead = len == 0 || rnd(w, 3) != 0;
    row->state.projected.seq =
        ahead ? len + between(w, 1, rnd(w, 2) == 0 ? 12 : 1000000) : between(w, 1, len);
    row->state.projected.mark = between(w, 1, INT64_MAX);
    row->epoch += rnd(w, 2) == 0 ? rnd(w, 200) : 0;
    row->foreign = true;
}

/* A row that was only looked for, or whose first transaction was lost, has no columns that could come
 * back. */
static bool was_there(const struct row *row)
{
    return row->try_number > 0 || row->due_ms > 0 || row->history_seq > 0;
}

/* Another copy was restored: rows are missing, others come from nowhere. */
static void comes_back_ahead(struct world *w)
{
    struct store *store = w->store;
    trace(w, "the store comes back ahead of the log");
    for (size_t i = 0; i < store->rows_len; i++) {
        struct row *row = &store->rows[i];
        if (row->kind == ROW_PARTITION && row->present)
            of_another_time(w, row);
        else if (row->kind == ROW_PARTITION)
            continue;
        else if (row->present && rnd(w, 3) == 0)
            row->present = false;
        else if (!row->present && rnd(w, 3) == 0)
            row->present = was_there(row);
    }
    store->commits_len = store->undo_len = 0;
}

void store_crashes(struct world *w)
{
    struct store *store = w->store;
    while (store->open_len > 0)
        store_tx_dies(w, store->open[0]);
    size_t lose = (size_t)rnd(w, LOST_MAX), lost = 0;
    for (; lose > 0 && store->commits_len > 0; lose--, lost++) {
        struct commit const last = store->commits[store->commits_len - 1];
        if (last.time_ms + STORE_LOST_WINDOW_MS < w->now_ms)
            break;
        store->commits_len--;
        while (store->undo_len > last.undo_from) {
            const struct undo *undo = &store->undo[--store->undo_len];
            if (w->mutation == MUTATION_POSITION_STAYS && undo->before.kind == ROW_PARTITION)
                continue;
            store->rows[undo->row] = undo->before;
            store->rows[undo->row].locked_by = NULL;
        }
    }
    if (strikes(w, FAULT_STORE_AHEAD, 200))
        comes_back_ahead(w);
    losses_forget(w);
    store->life++;
    store->incarnation = 0;
    checks_on_store_forgets(w);
    checks_on_store_crash(w);
    trace(w, "the store crashes and loses %zu transactions", lost);
    store_goes_down(w, between(w, 50, 3000));
}

/* ---- the projector ---------------------------------------------------------------------------------------
 */

static bool fenced(const struct world *w, uint32_t partition, uint64_t epoch)
{
    const struct row *row = store_find(w->store, ROW_PARTITION, partition, 0, 0, 0);
    return row == NULL || row->epoch != epoch;
}

enum executed store_open(struct world *w, uint32_t partition, uint64_t epoch, struct rows_state *ret_rows,
                         uint64_t *ret_epoch)
{
    struct row *row = store_row_at(w, ROW_PARTITION, partition, 0, 0, 0);
    *ret_epoch = row->present && row->epoch > epoch ? row->epoch : epoch;
    *ret_rows = row->state;
    if (*ret_epoch != epoch)
        return EXECUTED;
    if (w->store->incarnation == 0)
        w->store->incarnation = ++w->store->incarnations;
    store_commit_begin(w);
    store_remember(w, row);
    row->present = true;
    row->epoch = epoch;
    row->incarnation = 0;
    row->written = w->store->claimed;
    make_durable(w);
    checks_on_store_open(w, partition, row);
    trace(w, "store: partition %u belongs to epoch %" PRIu64 ", projected %" PRIu64 "%s", partition, epoch,
          row->state.projected.seq, row->foreign ? " of another time" : "");
    return EXECUTED;
}

static bool locked(const struct world *w, thole_slice instance, uint64_t execution, uint64_t id)
{
    size_t const i = instance_index(w, instance);
    const struct row *row =
        i == SIZE_MAX ? NULL : store_find(w->store, ROW_ACTIVITY, instance_partition(w, i), i, execution, id);
    return row != NULL && row->locked_by != NULL;
}

static bool any_locked(const struct world *w, const struct batch_deletion *d)
{
    size_t const i = instance_index(w, d->instance);
    for (size_t k = 0; k < w->store->rows_len; k++) {
        const struct row *row = &w->store->rows[k];
        if (row->kind == ROW_ACTIVITY && row->instance == i && row->execution <= d->execution &&
            row->present && row->locked_by != NULL)
            return true;
    }
    return false;
}

static bool batch_locked(const struct world *w, const struct batch *batch)
{
    for (size_t i = 0; i < batch->deletions_len; i++)
        if (any_locked(w, &batch->deletions[i]))
            return true;
    for (size_t i = 0; i < batch->activities_added_len; i++) {
        const struct batch_activity *a = &batch->activities_added[i];
        if (locked(w, a->instance, a->execution, a->activity_id))
            return true;
    }
    for (size_t i = 0; i < batch->activities_removed_len; i++) {
        const struct batch_activity *a = &batch->activities_removed[i];
        if (locked(w, a->instance, a->execution, a->activity_id))
            return true;
    }
    return false;
}

static void add_activity(struct world *w, const struct batch_activity *a)
{
    struct row *row = activity_at(w, instance_index(w, a->instance), a->execution, a->activity_id);
    if (row->present && row->try_number >= a->try_number)
        return;
    store_remember(w, row);
    row->present = true;
    row->queue = keep_slice(w, a->queue);
    row->activity = keep_slice(w, a->activity);
    if (a->digest.len != sizeof row->digest.bytes)
        abort();
    memcpy(row->digest.bytes, a->digest.ptr, a->digest.len);
    row->try_number = a->try_number;
    row->try_timeout_ms = a->try_timeout_ms;
    row->deadline_ms = 0;
    row->attempt = 0;
    row->later = row->shelved = false;
    row->touched_ms = w->now_ms;
    row->worker = row->lost_worker = (thole_slice){NULL, 0};
    row->lost = row->strikes = (struct attempts){NULL, 0};
    row->isolated = false;
    row->lease_until_ms = row->claimed = 0;
    row->made = ++w->store->made;
    row->back = false;
    hostile_sees_row(w, row);
}

static void add_timer(struct world *w, const struct batch_timer *t)
{
    size_t const i = instance_index(w, t->instance);
    struct row *row = store_row_at(w, ROW_TIMER, instance_partition(w, i), i, t->execution, t->timer_id);
    if (row->present && row->due_ms == t->due_ms)
        return;
    store_remember(w, row);
    row->present = true;
    row->due_ms = t->due_ms;
}

static void remove_row(struct world *w, struct row *row)
{
    if (!row->present)
        return;
    store_remember(w, row);
    row->present = false;
}

static void remove_activity(struct world *w, struct batch_activity *a)
{
    struct row *row = activity_at(w, instance_index(w, a->instance), a->execution, a->activity_id);
    if (a->try_number != 0 && row->try_number > a->try_number)
        return;
    a->held = row->present && row->worker.len > 0;
    remove_row(w, row);
}

static void remove_timer(struct world *w, const struct batch_timer *t)
{
    size_t const i = instance_index(w, t->instance);
    remove_row(w, store_row_at(w, ROW_TIMER, instance_partition(w, i), i, t->execution, t->timer_id));
}

static struct row *quarantine_at(struct world *w, const struct batch_quarantine *q)
{
    size_t const i = instance_index(w, q->instance);
    return store_row_at(w, ROW_QUARANTINE, instance_partition(w, i), i, q->execution, q->activity_id);
}

static void add_quarantine(struct world *w, const struct batch_quarantine *q)
{
    struct row *row = quarantine_at(w, q);
    store_remember(w, row);
    row->present = true;
    row->queue = keep_slice(w, q->queue);
    row->activity = keep_slice(w, q->activity);
    row->lost_worker = keep_slice(w, q->worker);
    row->try_number = q->try_number;
    row->lost_len = q->lost;
    row->due_ms = q->until_ms;
}

/* Rows that go, but never what is newer than their removal. */
static void remove_instance(struct world *w, const struct batch_instance *b)
{
    size_t const i = instance_index(w, b->instance);
    struct row *row = store_row_at(w, ROW_INSTANCE, instance_partition(w, i), i, 0, 0);
    if (row->history_seq <= b->history_seq)
        remove_row(w, row);
}

/* All of a life; what is of a later one stays. */
static void delete_rows(struct world *w, const struct batch_deletion *d)
{
    size_t const i = instance_index(w, d->instance);
    for (size_t k = 0; k < w->store->rows_len; k++) {
        struct row *row = &w->store->rows[k];
        bool const keyed = row->kind == ROW_ACTIVITY || row->kind == ROW_TIMER || row->kind == ROW_QUARANTINE;
        if (row->kind == ROW_PARTITION || row->instance != i)
            continue;
        if (row->kind == ROW_EXECUTION && row->execution > d->pruned.above &&
            row->execution <= d->pruned.upto)
            remove_row(w, row);
        if (keyed ? row->execution <= d->execution : row->history_seq <= d->history_seq)
            remove_row(w, row);
    }
}

static void put_execution(struct world *w, size_t i, const struct batch_instance *b)
{
    struct row *row = store_row_at(w, ROW_EXECUTION, instance_partition(w, i), i, b->execution, 0);
    if (b->execution == 0 || (row->present && row->history_seq > b->history_seq))
        return;
    store_remember(w, row);
    row->present = true;
    row->status = b->status;
    row->turns = b->turns;
    row->history_seq = b->history_seq;
}

static void put_instance(struct world *w, const struct batch_instance *b)
{
    size_t const i = instance_index(w, b->instance);
    put_execution(w, i, b);
    struct row *row = store_row_at(w, ROW_INSTANCE, instance_partition(w, i), i, 0, 0);
    uint64_t const created_ms = b->created_ms != 0 ? b->created_ms : b->updated_ms;
    if (row->present && row->history_seq > b->history_seq)
        return;
    store_remember(w, row);
    if (!row->present) {
        row->created_ms = UINT64_MAX;
        row->version = 0;
        row->orchestration = row->custom_status = row->parent = (thole_slice){NULL, 0};
    }
    bool const starts = !row->present || (row->execution_now == 0 && b->execution > 0);
    if (starts || created_ms < row->created_ms)
        row->created_ms = created_ms;
    row->present = true;
    if (b->orchestration.len > 0)
        row->orchestration = keep_slice(w, b->orchestration);
    if (b->version != 0)
        row->version = b->version;
    if (b->custom_status_set)
        row->custom_status = keep_slice(w, b->custom_status);
    if (b->parent.len > 0)
        row->parent = keep_slice(w, b->parent);
    row->execution_now = b->execution;
    row->status = b->status;
    row->updated_ms = b->updated_ms;
    row->detail = keep_slice(w, b->detail);
    row->turns = b->turns;
    row->history_seq = b->history_seq;
}

static bool same_state(const struct rows_state *a, const struct rows_state *b)
{
    return a->batches == b->batches && a->projected.seq == b->projected.seq &&
           a->projected.mark == b->projected.mark;
}

static bool follows(const struct world *w, const struct batch *batch)
{
    return same_state(&store_find(w->store, ROW_PARTITION, batch->partition, 0, 0, 0)->state,
                      &batch->follows);
}

bool store_is_as_left(const struct world *w, uint32_t partition, uint64_t epoch,
                      const struct rows_state *rows)
{
    const struct row *row = store_find(w->store, ROW_PARTITION, partition, 0, 0, 0);
    return row != NULL && row->epoch == epoch && same_state(&row->state, rows) &&
           store_is_complete(w, partition);
}

bool store_is_not_older(const struct world *w, uint32_t partition, uint64_t epoch, uint64_t batches)
{
    const struct row *row = store_find(w->store, ROW_PARTITION, partition, 0, 0, 0);
    return row != NULL && row->epoch == epoch && row->state.batches >= batches;
}

enum executed store_apply(struct world *w, const struct batch *batch, thole_status *ret_status)
{
    bool const torn = w->mutation == MUTATION_TORN_BATCH && rnd(w, 20) == 0;
    if (fenced(w, batch->partition, batch->epoch) && w->mutation != MUTATION_STORE_UNFENCED) {
        *ret_status = THOLE_FENCED;
        w->stats.fenced++;
        return EXECUTED;
    }
    if (batch_locked(w, batch))
        return EXECUTE_LATER;
    if (!follows(w, batch) && w->mutation != MUTATION_ROWS_UNFOLLOWED) {
        *ret_status = THOLE_CONFLICT;
        w->stats.unfollowed++;
        if (!w->restores)
            broken(w, "partition %u: a batch follows what was never there", batch->partition);
        return EXECUTED;
    }
    *ret_status = THOLE_OK;
    w->stats.batches++;
    checks_on_apply(w, batch, store_row_at(w, ROW_PARTITION, batch->partition, 0, 0, 0));
    store_commit_begin(w);
    for (size_t i = 0; i < batch->deletions_len && !torn; i++)
        delete_rows(w, &batch->deletions[i]);
    for (size_t i = 0; i < batch->activities_removed_len && !torn; i++)
        remove_activity(w, &batch->activities_removed[i]);
    for (size_t i = 0; i < batch->activities_added_len; i++)
        add_activity(w, &batch->activities_added[i]);
    for (size_t i = 0; i < batch->timers_removed_len && !torn; i++)
        remove_timer(w, &batch->timers_removed[i]);
    for (size_t i = 0; i < batch->timers_added_len; i++)
        add_timer(w, &batch->timers_added[i]);
    for (size_t i = 0; i < batch->quarantine_removed_len && !torn; i++)
        remove_row(w, quarantine_at(w, &batch->quarantine_removed[i]));
    for (size_t i = 0; i < batch->quarantine_added_len; i++)
        add_quarantine(w, &batch->quarantine_added[i]);
    for (size_t i = 0; i < batch->instances_len; i++)
        if (batch->instances[i].removed)
            remove_instance(w, &batch->instances[i]);
    for (size_t i = 0; i < batch->instances_len; i++)
        if (!batch->instances[i].removed)
            put_instance(w, &batch->instances[i]);
    struct row *row = store_row_at(w, ROW_PARTITION, batch->partition, 0, 0, 0);
    store_remember(w, row);
    if (batch->projected.seq >= row->state.projected.seq)
        row->state.projected = batch->projected;
    row->state.batches = batch->follows.batches + 1;
    row->written = w->store->claimed;
    if (batch->durable)
        make_durable(w);
    trace(w,
          "store: partition %u epoch %" PRIu64
          ": +%zu -%zu activities, +%zu -%zu timers, %zu instances, projected %" PRIu64,
          batch->partition, batch->epoch, batch->activities_added_len, batch->activities_removed_len,
          batch->timers_added_len, batch->timers_removed_len, batch->instances_len, row->state.projected.seq);
    return EXECUTED;
}

enum executed store_reset(struct world *w, uint32_t partition, uint64_t epoch, struct rows_state *ret_rows,
                          thole_status *ret_status)
{
    *ret_status = fenced(w, partition, epoch) ? THOLE_FENCED : THOLE_OK;
    if (*ret_status != THOLE_OK)
        return EXECUTED;
    for (size_t i = 0; i < w->store->rows_len; i++)
        if (w->store->rows[i].partition == partition && w->store->rows[i].locked_by != NULL)
            return EXECUTE_LATER;
    w->stats.resets++;
    store_commit_begin(w);
    for (size_t i = 0; i < w->store->rows_len; i++) {
        struct row *row = &w->store->rows[i];
        if (row->partition != partition || !row->present)
            continue;
        store_remember(w, row);
        row->present = row->kind == ROW_PARTITION;
        row->state = (struct rows_state){.batches = row->state.batches + 1};
        row->written = w->store->claimed;
        row->incarnation = 0;
        row->foreign = false;
        if (row->present)
            *ret_rows = row->state;
    }
    return EXECUTED;
}

bool store_is_complete(const struct world *w, uint32_t partition)
{
    const struct row *row = store_find(w->store, ROW_PARTITION, partition, 0, 0, 0);
    return row != NULL && row->incarnation != 0 && row->incarnation == w->store->incarnation;
}

void store_complete(struct world *w, uint32_t partition, uint64_t epoch, uint64_t batches)
{
    struct row *row = store_row_at(w, ROW_PARTITION, partition, 0, 0, 0);
    if (!store_is_not_older(w, partition, epoch, batches) || row->incarnation == w->store->incarnation)
        return;
    store_commit_begin(w);
    store_remember(w, row);
    row->incarnation = w->store->incarnation;
    for (size_t i = 0; i < w->store->rows_len; i++)
        if (w->store->rows[i].partition == partition)
            w->store->rows[i].back = false;
}

static int by_due(const void *a, const void *b)
{
    const struct batch_timer *left = a, *right = b;
    if (left->due_ms != right->due_ms)
        return left->due_ms < right->due_ms ? -1 : 1;
    return left->timer_id < right->timer_id ? -1 : left->timer_id > right->timer_id;
}

struct store_timers store_timers(struct world *w, uint32_t partition, uint64_t before_ms)
{
    struct store_timers timers = {NULL, 0, 0};
    size_t cap = 0;
    for (size_t i = 0; i < w->store->rows_len; i++) {
        const struct row *row = &w->store->rows[i];
        if (!row->present || row->kind != ROW_TIMER || row->partition != partition)
            continue;
        if (row->due_ms >= before_ms) {
            if (timers.next_due_ms == 0 || row->due_ms < timers.next_due_ms)
                timers.next_due_ms = row->due_ms;
            continue;
        }
        timers.items = grown(w, timers.items, timers.len, &cap, sizeof *timers.items);
        timers.items[timers.len++] =
            (struct batch_timer){w->instances[row->instance], row->execution, row->id, row->due_ms};
    }
    if (timers.len > 0)
        qsort(timers.items, timers.len, sizeof *timers.items, by_due);
    return timers;
}

static void count_name(struct world *w, struct store_live *live, const struct row *row)
{
    thole_slice name = row->orchestration;
    char text[96];
    if (row->version > 1) {
        int const n = snprintf(text, sizeof text, "%.*s@%u", THOLE_FMT(name), row->version);
        name = keep_slice(w, (thole_slice){(const uint8_t *)text, (size_t)n});
    }
    for (size_t i = 0; i < live->names_len; i++)
        if (thole_slice_equal(live->names[i], name)) {
            live->counts[i]++;
            return;
        }
    if (live->names == NULL) {
        live->names = keep(w, w->instances_len * sizeof *live->names);
        live->counts = keep(w, w->instances_len * sizeof *live->counts);
    }
    live->names[live->names_len] = name;
    live->counts[live->names_len++] = 1;
}

static bool has_ended(uint32_t status)
{
    return status >= THOLE_INSTANCE_COMPLETED && status <= THOLE_INSTANCE_TERMINATED;
}

struct store_live store_live(struct world *w, uint32_t partition)
{
    struct store_live live = {0};
    live.blocked = keep(w, (w->instances_len + 1) * sizeof *live.blocked);
    for (size_t i = 0; i < w->store->rows_len; i++) {
        const struct row *row = &w->store->rows[i];
        if (!row->present || row->partition != partition)
            continue;
        live.activities += row->kind == ROW_ACTIVITY;
        if (row->kind != ROW_INSTANCE || has_ended(row->status) || row->execution_now == 0)
            continue;
        count_name(w, &live, row);
        if (row->status == THOLE_INSTANCE_WAITING || row->status == THOLE_INSTANCE_STUCK ||
            row->status == THOLE_INSTANCE_CONTINUED_AS_NEW)
            live.blocked[live.blocked_len++] =
                (struct batch_instance){.instance = w->instances[row->instance],
                                        .orchestration = row->orchestration,
                                        .execution = row->execution_now,
                                        .status = row->status,
                                        .history_seq = row->history_seq};
    }
    return live;
}

const struct row *store_orphan(struct world *w, uint32_t partition, uint64_t older_than_ms)
{
    for (size_t i = 0; i < w->store->rows_len; i++) {
        struct row *row = &w->store->rows[i];
        if (!row->present || row->kind != ROW_ACTIVITY || row->partition != partition || row->later ||
            row->shelved || row->locked_by != NULL || row->touched_ms + older_than_ms > w->now_ms)
            continue;
        store_commit_begin(w);
        store_remember(w, row);
        row->touched_ms = w->now_ms;
        return row;
    }
    return NULL;
}

const struct row *store_unshelve(struct world *w, uint32_t partition)
{
    for (size_t i = 0; i < w->store->rows_len; i++) {
        struct row *row = &w->store->rows[i];
        if (!row->present || row->kind != ROW_ACTIVITY || row->partition != partition || row->later ||
            !row->shelved || row->locked_by != NULL)
            continue;
        store_commit_begin(w);
        store_remember(w, row);
        row->shelved = false;
        row->touched_ms = w->now_ms;
        return row;
    }
    return NULL;
}

const struct row *store_expired(struct world *w, uint32_t partition)
{
    for (size_t i = 0; i < w->store->rows_len; i++) {
        const struct row *row = &w->store->rows[i];
        if (row->present && row->kind == ROW_ACTIVITY && row->partition == partition &&
            row->locked_by == NULL && row->deadline_ms != 0 && row->deadline_ms < w->now_ms)
            return row;
    }
    return NULL;
}

void store_expire(struct world *w, const struct row *expired)
{
    store_commit_begin(w);
    remove_row(w, &w->store->rows[expired - w->store->rows]);
}
