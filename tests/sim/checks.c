/* What must hold between the counted history and everything that is derived from it. */
#include "checks.h"
#include "engine_node.h"
#include "store_fake.h"
#include "thole/client.h"
#include "work_fake.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void checks_on_delete(struct world *w, struct log_stream *log, const struct log_entry *entry)
{
    if (entry->counts && !entry->part_dropped)
        broken(w, "partition %u: record %" PRIu64 " (%" PRIu64 "/%" PRIu64 ") counts and was deleted",
               log->partition, entry->sequence, entry->epoch, entry->n);
}

void checks_on_purge(struct world *w, const struct inbox_stream *inbox, uint64_t below)
{
    uint64_t const floor = w->model->partitions[inbox->partition].position.floor;
    if (below > floor + 1)
        broken(w, "partition %u: inbox purged below %" PRIu64 ", the counted history has only %" PRIu64,
               inbox->partition, below, floor);
}

void checks_writer(struct world *w, uint32_t partition, uint64_t epoch, uint64_t committed_n, const char *who)
{
    const struct model_partition *p = &w->model->partitions[partition];
    uint64_t const counted = epoch < p->counted_len ? p->counted[epoch] : 0;
    if (committed_n > counted)
        broken(w,
               "partition %u: %s holds %" PRIu64 " records of epoch %" PRIu64 " for committed, %" PRIu64
               " count",
               partition, who, committed_n, epoch, counted);
}

/* ---- what the writer gives away --------------------------------------------------------------------------
 */

static const struct model_event *find(const struct world *w, thole_slice instance, uint64_t execution,
                                      uint64_t id, enum event_kind kind)
{
    const struct model_event *event = execution == 1 ? model_find(w, instance_index(w, instance), id) : NULL;
    return event != NULL && event->kind == kind ? event : NULL;
}

static void check_rows(struct world *w, const struct batch *b, const char *who)
{
    for (size_t i = 0; i < b->activities_added_len; i++) {
        const struct batch_activity *a = &b->activities_added[i];
        const struct model_event *e =
            find(w, a->instance, a->execution, a->activity_id, EVENT_ACTIVITY_SCHEDULED);
        if (e == NULL || !thole_slice_equal(a->activity, e->name) || !thole_slice_equal(a->queue, e->queue))
            broken(w, "%s writes a row for %.*s#%" PRIu64 ", which is not committed", who,
                   THOLE_FMT(a->instance), a->activity_id);
    }
    for (size_t i = 0; i < b->activities_removed_len; i++) {
        const struct batch_activity *a = &b->activities_removed[i];
        const struct model_event *e =
            find(w, a->instance, a->execution, a->activity_id, EVENT_ACTIVITY_SCHEDULED);
        if (e == NULL || e->resolved_by == EVENT_UNKNOWN)
            broken(w, "%s removes the row of %.*s#%" PRIu64 ", which is open", who, THOLE_FMT(a->instance),
                   a->activity_id);
    }
    for (size_t i = 0; i < b->timers_added_len; i++) {
        const struct batch_timer *t = &b->timers_added[i];
        const struct model_event *e = find(w, t->instance, t->execution, t->timer_id, EVENT_TIMER_CREATED);
        if (e == NULL || e->due_ms != t->due_ms)
            broken(w, "%s writes a timer %.*s#%" PRIu64 ", which is not committed", who,
                   THOLE_FMT(t->instance), t->timer_id);
    }
    for (size_t i = 0; i < b->timers_removed_len; i++) {
        const struct batch_timer *t = &b->timers_removed[i];
        const struct model_event *e = find(w, t->instance, t->execution, t->timer_id, EVENT_TIMER_CREATED);
        if (e == NULL || e->resolved_by == EVENT_UNKNOWN)
            broken(w, "%s removes timer %.*s#%" PRIu64 ", which is open", who, THOLE_FMT(t->instance),
                   t->timer_id);
    }
}

static uint32_t status_of(const struct model_instance *m)
{
    switch (m->terminal) {
    case EVENT_COMPLETED: return THOLE_INSTANCE_COMPLETED;
    case EVENT_FAILED: return THOLE_INSTANCE_FAILED;
    case EVENT_CANCELLED: return THOLE_INSTANCE_CANCELLED;
    default: break;
    }
    if (m->blocked == BLOCKED_NOT)
        return THOLE_INSTANCE_RUNNING;
    return m->blocked == BLOCKED_NO_CODE || m->blocked == BLOCKED_TOO_NEW ? THOLE_INSTANCE_WAITING
                                                                          : THOLE_INSTANCE_STUCK;
}

void checks_batch(struct world *w, const struct batch *batch, const char *who)
{
    check_rows(w, batch, who);
    for (size_t i = 0; i < batch->instances_len; i++) {
        const struct batch_instance *b = &batch->instances[i];
        size_t const k = instance_index(w, b->instance);
        const struct model_instance *m = k == SIZE_MAX ? NULL : &w->model->instances[k];
        if (m == NULL || b->turns > m->turns || b->history_seq > m->history_seq) {
            broken(w, "%s writes turn %" PRIu64 " of %.*s, which is not committed", who, b->turns,
                   THOLE_FMT(b->instance));
            return;
        }
        if (b->turns == m->turns && b->status != status_of(m))
            broken(w, "%s writes status %u of %.*s, it is %u", who, b->status, THOLE_FMT(b->instance),
                   status_of(m));
    }
    if (batch->projected_seq > w->model->partitions[batch->partition].last_counted_seq)
        broken(w, "%s moves projected_seq beyond what counts", who);
}

void checks_work(struct world *w, const struct partition_out *out, const char *who)
{
    const struct model_event *e =
        find(w, out->instance, out->execution, out->activity_id, EVENT_ACTIVITY_SCHEDULED);
    if (e == NULL || !thole_slice_equal(out->activity, e->name) || !thole_slice_equal(out->queue, e->queue) ||
        !thole_slice_equal(out->data, e->data))
        broken(w, "%s publishes the work of %.*s#%" PRIu64 ", which is not committed so", who,
               THOLE_FMT(out->instance), out->activity_id);
}

void checks_push(struct world *w, const struct partition_out *out, const char *who)
{
    for (size_t i = 0; i < out->sequences_len; i++) {
        const struct model_event *e =
            find(w, out->instance, out->execution, out->sequences[i], EVENT_ACTIVITY_SCHEDULED);
        if (e == NULL || e->resolved_by != EVENT_ACTIVITY_CANCELLED)
            broken(w, "%s pushes the cancellation of %.*s#%" PRIu64 ", which is not committed", who,
                   THOLE_FMT(out->instance), out->sequences[i]);
    }
}

void checks_notice(struct world *w, const struct partition_out *out, const char *who)
{
    size_t const k = instance_index(w, out->instance);
    const struct model_instance *m = k == SIZE_MAX ? NULL : &w->model->instances[k];
    if (m == NULL || !m->started)
        broken(w, "%s gives notice \"%s\" of %.*s, which is not committed", who, out->event_kind,
               THOLE_FMT(out->instance));
    else if ((strcmp(out->event_kind, "completed") == 0 && m->terminal != EVENT_COMPLETED) ||
             (strcmp(out->event_kind, "failed") == 0 && m->terminal != EVENT_FAILED) ||
             (strcmp(out->event_kind, "cancelled") == 0 && m->terminal != EVENT_CANCELLED))
        broken(w, "%s gives notice \"%s\" of %.*s, which did not end so", who, out->event_kind,
               THOLE_FMT(out->instance));
}

/* ---- the store -------------------------------------------------------------------------------------------
 */

static void check_promise(struct world *w, size_t i, uint64_t projected_seq)
{
    const struct model_instance *m = &w->model->instances[i];
    uint32_t const p = instance_partition(w, i);
    uint64_t turn = m->turn_seqs_len;
    while (turn > 0 && m->turn_seqs[turn - 1] > projected_seq)
        turn--;
    const struct row *row = store_find(w->store, ROW_INSTANCE, p, i, 0, 0);
    if (turn > 0 && (row == NULL || row->turns < turn))
        broken(w, "projected up to %" PRIu64 ", but the row of %.*s lacks turn %" PRIu64, projected_seq,
               THOLE_FMT(w->instances[i]), turn);
    for (size_t k = 0; k < m->events_len; k++) {
        const struct model_event *e = &m->events[k];
        bool const timer = e->kind == EVENT_TIMER_CREATED;
        if ((!timer && e->kind != EVENT_ACTIVITY_SCHEDULED) || e->sequence > projected_seq)
            continue;
        row = store_find(w->store, timer ? ROW_TIMER : ROW_ACTIVITY, p, i, 1, k + 1);
        if (row != NULL && e->resolved_by != EVENT_UNKNOWN && e->resolved_sequence <= projected_seq)
            broken(w, "projected up to %" PRIu64 ", but the row of %.*s#%zu is still there", projected_seq,
                   THOLE_FMT(w->instances[i]), k + 1);
        if (row == NULL && e->resolved_by == EVENT_UNKNOWN && timer)
            broken(w, "projected up to %" PRIu64 ", but timer %.*s#%zu has no row", projected_seq,
                   THOLE_FMT(w->instances[i]), k + 1);
    }
}

/* projected_seq never promises more than the rows hold. */
void checks_on_store_open(struct world *w, uint32_t partition, uint64_t epoch, uint64_t projected_seq)
{
    w->model->partitions[partition].store_epoch = epoch;
    if (projected_seq > w->logs[partition]->len)
        return; /* a copy of another time: it will be rebuilt */
    for (size_t i = 0; i < w->instances_len; i++)
        if (instance_partition(w, i) == partition)
            check_promise(w, i, projected_seq);
}

void checks_on_apply(struct world *w, const struct batch *batch)
{
    uint64_t const newest = w->model->partitions[batch->partition].store_epoch;
    if (batch->epoch < newest)
        broken(w, "partition %u: rows of epoch %" PRIu64 " are written, the store knows epoch %" PRIu64,
               batch->partition, batch->epoch, newest);
}

/* It may have lost the newest epochs too. */
void checks_on_store_crash(struct world *w)
{
    for (uint32_t p = 0; p < w->partitions; p++) {
        const struct row *row = store_find(w->store, ROW_PARTITION, p, 0, 0, 0);
        w->model->partitions[p].store_epoch = row == NULL ? 0 : row->epoch;
    }
}

/* ---- the end ---------------------------------------------------------------------------------------------
 */

THOLE_PRINTF(3, 4)
static bool not_yet(char *why, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, size, fmt, args);
    va_end(args);
    return false;
}

/* The first start in inbox order, and only that one, made the instance. */
static bool start_is_in(struct world *w, size_t i, char *why, size_t size)
{
    const struct inbox_stream *inbox = w->inboxes[instance_partition(w, i)];
    const struct model_instance *m = &w->model->instances[i];
    for (size_t s = 0; s < inbox->len; s++) {
        const struct inbox_entry *e = &inbox->entries[s];
        if (!e->valid || e->instance != i || e->message.kind != MESSAGE_START)
            continue;
        if (!m->started)
            return not_yet(why, size, "%.*s was started by inbox message %zu and is not there",
                           THOLE_FMT(w->instances[i]), s + 1);
        if (!thole_slice_equal(m->request_id, e->message.request_id))
            broken(w, "%.*s was started by another request than its first", THOLE_FMT(w->instances[i]));
        return true;
    }
    if (m->started)
        broken(w, "%.*s was never started, but it runs", THOLE_FMT(w->instances[i]));
    return true;
}

/* What an instance that has not ended waits for. */
static bool waits_for(struct world *w, size_t i, char *why, size_t size)
{
    const struct model_instance *m = &w->model->instances[i];
    for (size_t k = 0; k < m->events_len; k++) {
        const struct model_event *e = &m->events[k];
        if ((e->kind != EVENT_ACTIVITY_SCHEDULED && e->kind != EVENT_TIMER_CREATED) ||
            e->resolved_by != EVENT_UNKNOWN)
            continue;
        bool const timer = e->kind == EVENT_TIMER_CREATED;
        const struct row *row =
            store_find(w->store, timer ? ROW_TIMER : ROW_ACTIVITY, instance_partition(w, i), i, 1, k + 1);
        bool queued = false;
        for (size_t n = 0; n < w->work->len; n++)
            queued = queued || (!w->work->items[n].gone && w->work->items[n].instance == i &&
                                w->work->items[n].activity_id == k + 1);
        return not_yet(why, size,
                       "%.*s (%.*s) waits for its %s #%zu: %s, %s; partition %u, turn %" PRIu64
                       ", blocked %d",
                       THOLE_FMT(w->instances[i]), THOLE_FMT(m->orchestration), timer ? "timer" : "activity",
                       k + 1, row == NULL ? "no row" : "a row", queued ? "queued" : "not queued",
                       instance_partition(w, i), m->turns, (int)m->blocked);
    }
    return not_yet(why, size, "%.*s (%.*s) has not ended and waits for nothing; turn %" PRIu64 ", blocked %d",
                   THOLE_FMT(w->instances[i]), THOLE_FMT(m->orchestration), m->turns, (int)m->blocked);
}

bool checks_all_ended(struct world *w, char *why, size_t size)
{
    for (size_t i = 0; i < w->instances_len; i++) {
        const struct model_instance *m = &w->model->instances[i];
        if (!start_is_in(w, i, why, size))
            return false;
        if (m->started && !m->ended)
            return waits_for(w, i, why, size);
    }
    for (uint32_t p = 0; p < w->partitions; p++)
        if (w->model->partitions[p].position.floor != w->inboxes[p]->len)
            return not_yet(why, size, "partition %u: inbox position %" PRIu64 " of %zu", p,
                           w->model->partitions[p].position.floor, w->inboxes[p]->len);
    return true;
}

static bool check_instance_rows(struct world *w, char *why, size_t size)
{
    for (size_t i = 0; i < w->instances_len; i++) {
        const struct model_instance *m = &w->model->instances[i];
        const struct row *row = store_find(w->store, ROW_INSTANCE, instance_partition(w, i), i, 0, 0);
        if (!m->started && row == NULL)
            continue;
        if (row == NULL)
            return not_yet(why, size, "%.*s has no row", THOLE_FMT(w->instances[i]));
        if (row->turns != m->turns || row->history_seq != m->history_seq || row->status != status_of(m) ||
            row->created_ms != m->created_ms || row->updated_ms != m->time_ms ||
            !thole_slice_equal(row->orchestration, m->orchestration))
            return not_yet(
                why, size,
                "the row of %.*s says turn %" PRIu64 " at %" PRIu64 ", status %u; history: turn %" PRIu64
                " at %" PRIu64 ", status %u; times %" PRIu64 "..%" PRIu64 ", %" PRIu64 "..%" PRIu64,
                THOLE_FMT(w->instances[i]), row->turns, row->history_seq, row->status, m->turns,
                m->history_seq, status_of(m), row->created_ms, row->updated_ms, m->created_ms, m->time_ms);
    }
    return true;
}

/* A reader that comes now, by the log rule over what is still there, finds what counted when it was written.
 */
static void check_readback(struct world *w, const struct log_stream *log)
{
    uint64_t epoch = 0, n = 0;
    bool first = true;
    for (size_t i = 0; i < log->len; i++) {
        const struct log_entry *e = &log->entries[i];
        if (e->deleted)
            continue;
        bool const opens = e->kind == RECORD_EPOCH_OPENED;
        bool const counts = opens || (!first && e->epoch == epoch && e->n == n + 1);
        if (opens)
            epoch = e->epoch;
        n = opens ? 0 : counts ? e->n : n;
        first = first && !opens;
        if (counts != e->counts)
            broken(w,
                   "partition %u: record %" PRIu64
                   " counted when it was written and does not now, or the reverse",
                   log->partition, e->sequence);
    }
}

void checks_at_the_end(struct world *w, char *why, size_t size)
{
    const struct row *row;
    why[0] = '\0';
    for (size_t i = 0; (row = store_row(w->store, i)) != NULL; i++)
        if (row->present && (row->kind == ROW_ACTIVITY || row->kind == ROW_TIMER)) {
            not_yet(why, size, "a row is left: %s %.*s#%" PRIu64,
                    row->kind == ROW_TIMER ? "timer" : "activity", THOLE_FMT(w->instances[row->instance]),
                    row->id);
            return;
        }
    if (!check_instance_rows(w, why, size))
        return;
    for (uint32_t p = 0; p < w->partitions; p++) {
        check_readback(w, w->logs[p]);
        row = store_find(w->store, ROW_PARTITION, p, 0, 0, 0);
        if (row == NULL || row->epoch != w->model->partitions[p].epoch) {
            not_yet(why, size, "the store does not know the epoch of partition %u", p);
            return;
        }
    }
    if (work_left(w) > 0)
        not_yet(why, size, "%zu messages are left in WORK", work_left(w));
}
