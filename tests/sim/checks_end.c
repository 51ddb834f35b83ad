/* The store's promises at each opening of a partition, and the invariants at the end. */
#include "checks.h"
#include "clock_fake.h"
#include "engine_node.h"
#include "store_fake.h"
#include "thole/client.h"
#include "work_fake.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- projected_seq never promises more than the rows hold ---- */

static void check_gone(struct world *w, size_t i, uint64_t projected_seq)
{
    const struct model_instance *m = model_of(w, i);
    const struct row *row = store_find(w->store, ROW_INSTANCE, instance_partition(w, i), i, 0, 0);
    if (m->deleted_seq <= projected_seq && row != NULL && row->execution_now > 0 &&
        row->execution_now <= m->gone)
        broken(w,
               "projected up to %" PRIu64 ", but the row of %.*s, which was deleted at %" PRIu64 ", is there",
               projected_seq, THOLE_FMT(w->instances[i]), m->deleted_seq);
}

/* A row of turn @p row may stand for turn @p turn: the turns between have nothing for it but their time, and
 * that is not too old. */
static bool row_is_fresh(const struct world *w, const struct model_execution *x, uint64_t row, uint64_t turn)
{
    if (row >= turn)
        return true;
    if (row == 0 || !x->turn_rows[row - 1].running)
        return false;
    for (uint64_t n = row + 1; n <= turn; n++)
        if (!x->turn_rows[n - 1].plain)
            return false;
    return x->turn_rows[turn - 1].time_ms - x->turn_rows[row - 1].time_ms < w->row_age_ms;
}

static void check_instance_promise(struct world *w, size_t i, uint64_t projected_seq)
{
    const struct model_instance *m = model_of(w, i);
    for (size_t n = m->executions_len; n > 0; n--) {
        const struct model_execution *x = &m->executions[n - 1];
        uint64_t turn = x->turn_seqs_len;
        while (turn > 0 && x->turn_seqs[turn - 1] > projected_seq)
            turn--;
        if (turn == 0)
            continue;
        if (n <= m->gone) { /* a deletion may be ahead of what is promised */
            check_gone(w, i, projected_seq);
            return;
        }
        if (model_is_unsaid(w, i, n, x->turn_seqs[turn - 1], projected_seq))
            return;
        const struct row *row = store_find(w->store, ROW_INSTANCE, instance_partition(w, i), i, 0, 0);
        if (row == NULL || row->execution_now < n ||
            (row->execution_now == n && !row_is_fresh(w, x, row->turns, turn)))
            broken(w, "projected up to %" PRIu64 ", but the row of %.*s lacks turn %zu/%" PRIu64,
                   projected_seq, THOLE_FMT(w->instances[i]), n, turn);
        return;
    }
}

static void check_row_promise(struct world *w, size_t i, uint64_t execution, uint64_t id, enum row_kind kind,
                              const struct model_row *says, uint64_t projected_seq)
{
    const char *what = kind == ROW_TIMER ? "timer" : kind == ROW_ACTIVITY ? "activity" : "quarantine of";
    if (says->sequence == 0 || says->sequence > projected_seq ||
        model_is_unsaid(w, i, execution, says->sequence, projected_seq))
        return;
    const struct row *row = store_find(w->store, kind, instance_partition(w, i), i, execution, id);
    if (row != NULL && !says->there)
        broken(w,
               "projected up to %" PRIu64 ", but the row of %s %.*s/%" PRIu64 "#%" PRIu64 " is still there",
               projected_seq, what, THOLE_FMT(w->instances[i]), execution, id);
    if (kind == ROW_QUARANTINE && says->there &&
        (row == NULL || row->due_ms != says->due_ms || row->try_number != says->try_number))
        broken(w,
               "projected up to %" PRIu64 ", but %.*s/%" PRIu64 "#%" PRIu64
               " has no row in quarantine, or another",
               projected_seq, THOLE_FMT(w->instances[i]), execution, id);
    if (kind == ROW_ACTIVITY && row != NULL && row->try_number != says->try_number)
        broken(w,
               "projected up to %" PRIu64 ", but the row of %.*s/%" PRIu64 "#%" PRIu64 " has try %u, not %u",
               projected_seq, THOLE_FMT(w->instances[i]), execution, id, row->try_number, says->try_number);
    if (kind == ROW_TIMER && says->there && (row == NULL || row->due_ms != says->due_ms))
        broken(w,
               "projected up to %" PRIu64 ", but timer %.*s/%" PRIu64 "#%" PRIu64 " has no row, or another",
               projected_seq, THOLE_FMT(w->instances[i]), execution, id);
}

static void check_promise(struct world *w, size_t i, uint64_t projected_seq)
{
    const struct model_instance *m = model_of(w, i);
    check_instance_promise(w, i, projected_seq);
    check_row_promise(w, i, 0, 1, ROW_TIMER, &m->early_timer, projected_seq);
    for (size_t n = 1; n <= m->executions_len; n++) {
        const struct model_execution *x = &m->executions[n - 1];
        for (size_t k = 0; k < x->events_len; k++) {
            check_row_promise(w, i, n, k + 1, ROW_ACTIVITY, &x->events[k].work, projected_seq);
            check_row_promise(w, i, n, k + 1, ROW_QUARANTINE, &x->events[k].held, projected_seq);
            check_row_promise(w, i, n, k + 1, ROW_TIMER, &x->events[k].timer, projected_seq);
        }
    }
}

void checks_on_store_open(struct world *w, uint32_t partition, const struct row *row)
{
    w->model->partitions[partition].store_epoch = row->epoch;
    for (size_t i = 0; i < w->instances_len && !row->foreign; i++)
        if (instance_partition(w, i) == partition && !model_of(w, i)->damaged)
            check_promise(w, i, row->state.projected.seq);
}

void checks_on_apply(struct world *w, const struct batch *batch, const struct row *row)
{
    uint64_t const newest = w->model->partitions[batch->partition].store_epoch;
    if (row->foreign)
        broken(w, "partition %u: rows of another time are kept", batch->partition);
    if (batch->epoch < newest)
        broken(w, "partition %u: rows of epoch %" PRIu64 " are written, the store knows epoch %" PRIu64,
               batch->partition, batch->epoch, newest);
}

/* The store may have lost the newest epochs too. */
void checks_on_store_crash(struct world *w)
{
    for (uint32_t p = 0; p < w->partitions; p++) {
        const struct row *row = store_find(w->store, ROW_PARTITION, p, 0, 0, 0);
        w->model->partitions[p].store_epoch = row == NULL ? 0 : row->epoch;
    }
}

/* ---- everything ends ---- */

THOLE_PRINTF(3, 4)
static bool not_yet(char *why, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, size, fmt, args);
    va_end(args);
    return false;
}

static void first_start(const struct inbox_entry *entries, size_t len, size_t instance,
                        const struct inbox_entry **first)
{
    for (size_t s = 0; s < len; s++) {
        const struct inbox_entry *e = &entries[s];
        if (e->valid && e->instance == instance && e->message.kind == MESSAGE_START &&
            (*first == NULL || e->stored_ns < (*first)->stored_ns))
            *first = e;
    }
}

/* The first start that was ever stored, and only that one, made the instance. */
static bool start_is_in(struct world *w, size_t i, char *why, size_t size)
{
    const struct inbox_stream *inbox = w->inboxes[instance_partition(w, i)];
    const struct model_instance *m = model_of(w, i);
    const struct inbox_entry *e = NULL;
    first_start(inbox->entries, inbox->len, i, &e);
    first_start(inbox->lost, inbox->lost_len, i, &e);
    if (m->kept_len > 0 && !clock_is_wrong_time(w, m->kept_ms))
        return not_yet(why, size, "%zu events wait for %.*s", m->kept_len, THOLE_FMT(w->instances[i]));
    if (m->deletions > 0)
        return true; /* which start made it depends on when it was deleted: see model_turn.c */
    if (e != NULL && m->executions_len == 0)
        return not_yet(why, size, "%.*s was started by inbox message %" PRIu64 " and is not there",
                       THOLE_FMT(w->instances[i]), e->sequence);
    if (e != NULL && (!thole_slice_equal(m->request_id, e->message.request_id) ||
                      !thole_slice_equal(m->parent.instance, e->message.parent.instance)))
        broken(w, "%.*s was started by another request than its first", THOLE_FMT(w->instances[i]));
    if (e == NULL && m->executions_len > 0)
        broken(w, "%.*s was never started, but it runs", THOLE_FMT(w->instances[i]));
    return true;
}

static bool waits_for_work(struct world *w, size_t i, uint64_t execution, size_t k)
{
    for (size_t n = 0; n < w->work->len; n++)
        if (!w->work->items[n].gone && w->work->items[n].instance == i &&
            w->work->items[n].execution == execution && w->work->items[n].activity_id == k + 1)
            return true;
    return false;
}

/* Whether an instance that has not ended waits for something. */
static bool waits_for(struct world *w, size_t i, const struct model_execution *x, char *why, size_t size)
{
    const struct model_instance *m = model_of(w, i);
    uint64_t const execution = m->executions_len;
    for (size_t k = 0; k < x->events_len; k++) {
        const struct model_event *e = &x->events[k];
        bool const timer = e->kind == EVENT_TIMER_CREATED;
        if ((e->kind != EVENT_ACTIVITY_SCHEDULED && !timer && e->kind != EVENT_CHILD_SCHEDULED) ||
            e->resolved_by != EVENT_UNKNOWN)
            continue;
        const struct row *row = store_find(w->store, timer ? ROW_TIMER : ROW_ACTIVITY,
                                           instance_partition(w, i), i, execution, k + 1);
        return not_yet(why, size,
                       "%.*s/%" PRIu64 " (%.*s) waits for its %s #%zu %.*s: %s, %s%s; partition %u, turn "
                       "%" PRIu64 ", blocked %d",
                       THOLE_FMT(w->instances[i]), execution, THOLE_FMT(m->orchestration),
                       event_kind_name(e->kind), k + 1, THOLE_FMT(e->target),
                       row == NULL ? "no row" : "a row",
                       waits_for_work(w, i, execution, k) ? "queued" : "not queued",
                       e->quarantined ? ", in quarantine"
                       : e->waiting   ? ", next try"
                                      : "",
                       instance_partition(w, i), x->turns, (int)x->blocked);
    }
    return not_yet(
        why, size,
        "%.*s/%" PRIu64 " (%.*s) has not ended and waits for nothing; turn %" PRIu64 ", blocked %d",
        THOLE_FMT(w->instances[i]), execution, THOLE_FMT(m->orchestration), x->turns, (int)x->blocked);
}

bool checks_all_ended(struct world *w, char *why, size_t size)
{
    for (size_t i = 0; i < w->instances_len; i++) {
        const struct model_execution *x = model_current(model_of(w, i));
        if (model_of(w, i)->damaged && !model_of(w, i)->over)
            return not_yet(why, size, "%.*s is damaged and has not ended", THOLE_FMT(w->instances[i]));
        if (model_of(w, i)->damaged)
            continue;
        if (!start_is_in(w, i, why, size))
            return false;
        if (x != NULL && !x->ended)
            return waits_for(w, i, x, why, size);
        if (x != NULL && x->terminal == EVENT_CONTINUED_AS_NEW)
            return not_yet(why, size, "%.*s does not continue", THOLE_FMT(w->instances[i]));
    }
    for (uint32_t p = 0; p < w->partitions; p++) {
        const struct model_partition *part = &w->model->partitions[p];
        uint64_t const floor = part->position.floor;
        if (part->stale || floor > w->inboxes[p]->len || inbox_next(w->inboxes[p], floor + 1) != NULL)
            return not_yet(why, size, "partition %u: inbox position %" PRIu64 " of %zu%s", p, floor,
                           w->inboxes[p]->len, part->stale ? ", which went back" : "");
    }
    return true;
}

static bool same_row(const struct world *w, const struct model_instance *m, const struct model_execution *x,
                     const struct row *row)
{
    return row->execution_now == m->executions_len && row->turns > 0 && row->turns <= x->turns &&
           row_is_fresh(w, x, row->turns, x->turns) && row->history_seq == x->turn_seqs[row->turns - 1] &&
           row->status == checks_status(m) && row->created_ms == m->created_ms &&
           row->updated_ms == x->turn_rows[row->turns - 1].time_ms && row->version == x->version &&
           thole_slice_equal(row->orchestration, m->orchestration) &&
           thole_slice_equal(row->parent, m->parent.instance) &&
           thole_slice_equal(row->custom_status, m->custom_status);
}

static bool check_executions(struct world *w, size_t i, char *why, size_t size)
{
    const struct model_instance *m = model_of(w, i);
    for (size_t n = 1; n <= m->executions_len; n++) {
        const struct model_execution *x = &m->executions[n - 1];
        const struct row *row = store_find(w->store, ROW_EXECUTION, instance_partition(w, i), i, n, 0);
        if (n <= m->gone && row != NULL)
            return not_yet(why, size, "execution %zu of %.*s has a row, it was deleted", n,
                           THOLE_FMT(w->instances[i]));
        if (n <= m->gone)
            continue;
        if (model_pruned(m, n) != NULL && row != NULL)
            return not_yet(why, size, "execution %zu of %.*s has a row, it was pruned", n,
                           THOLE_FMT(w->instances[i]));
        if (model_pruned(m, n) != NULL)
            continue;
        if (row == NULL || row->turns != x->turns || row->history_seq != x->history_seq)
            return not_yet(why, size, "execution %zu of %.*s has no row, or another", n,
                           THOLE_FMT(w->instances[i]));
    }
    return true;
}

static bool check_instance_rows(struct world *w, char *why, size_t size)
{
    for (size_t i = 0; i < w->instances_len; i++) {
        const struct model_instance *m = model_of(w, i);
        const struct row *row = store_find(w->store, ROW_INSTANCE, instance_partition(w, i), i, 0, 0);
        if (m->damaged)
            continue;
        bool const none = m->executions_len == m->gone;
        if (!check_executions(w, i, why, size))
            return false;
        bool const early = m->kept_len > 0 && clock_is_wrong_time(w, m->kept_ms);
        if (none && (row == NULL || early))
            continue;
        if (none || row == NULL)
            return not_yet(why, size, "%.*s has %s", THOLE_FMT(w->instances[i]),
                           row == NULL ? "no row" : "a row, and is not there");
        const struct model_execution *x = &m->executions[m->executions_len - 1];
        if (!same_row(w, m, x, row))
            return not_yet(
                why, size,
                "the row of %.*s (%.*s) says turn %" PRIu64 "/%" PRIu64 " at %" PRIu64
                ", status %u, version %u, %.*s; history: turn %zu/%" PRIu64 " at %" PRIu64
                ", status %u, version %u, %.*s; times %" PRIu64 "..%" PRIu64 ", %" PRIu64 "..%" PRIu64,
                THOLE_FMT(w->instances[i]), THOLE_FMT(row->orchestration), row->execution_now, row->turns,
                row->history_seq, row->status, row->version, THOLE_FMT(row->custom_status), m->executions_len,
                x->turns, x->history_seq, checks_status(m), x->version, THOLE_FMT(m->custom_status),
                row->created_ms, row->updated_ms, m->created_ms, x->time_ms);
    }
    return true;
}

/* The largest commit count that any existing record of the epoch has: all of a closed epoch. */
static uint64_t known_of(const struct log_stream *log, uint64_t epoch)
{
    uint64_t known = log->entries[log_last_epoch_opened(log) - 1].epoch > epoch ? UINT64_MAX : 0;
    for (size_t i = 0; i < log->len; i++)
        if (!log->entries[i].deleted && log->entries[i].epoch == epoch && log->entries[i].committed > known)
            known = log->entries[i].committed;
    return known;
}

/* A reader that comes now, by the log rule over what is still there, finds what counted when it was written.
 */
static void check_readback(struct world *w, const struct log_stream *log)
{
    uint64_t epoch = 0, n = 0, known = 0;
    bool first = true;
    for (size_t i = 0; i < log->len; i++) {
        const struct log_entry *e = &log->entries[i];
        if (e->deleted)
            continue;
        bool const opens = e->kind == RECORD_EPOCH_OPENED;
        bool const counts = opens || (!first && e->epoch == epoch && (e->n == n + 1 || e->n <= known));
        if (opens)
            known = known_of(log, epoch = e->epoch);
        n = opens ? 0 : counts ? e->n : n;
        first = first && !opens;
        if (counts != e->counts)
            broken(w,
                   "partition %u: record %" PRIu64
                   " counted when it was written and does not now, or the reverse",
                   log->partition, e->sequence);
    }
}

/* Events that came before their instance, by a wrong clock. */
static bool waits_for_years(const struct world *w, const struct row *row)
{
    return row->kind == ROW_TIMER && row->execution == 0 && clock_is_wrong_time(w, row->due_ms);
}

void checks_at_the_end(struct world *w, char *why, size_t size)
{
    const struct row *row;
    why[0] = '\0';
    for (size_t i = 0; (row = store_row(w->store, i)) != NULL; i++)
        if (row->present &&
            (row->kind == ROW_ACTIVITY || row->kind == ROW_TIMER || row->kind == ROW_QUARANTINE) &&
            !waits_for_years(w, row) &&
            (!model_of(w, row->instance)->damaged || model_of(w, row->instance)->swept)) {
            not_yet(why, size, "a row is left: %s %.*s/%" PRIu64 "#%" PRIu64,
                    row->kind == ROW_TIMER      ? "timer"
                    : row->kind == ROW_ACTIVITY ? "activity"
                                                : "quarantine of",
                    THOLE_FMT(w->instances[row->instance]), row->execution, row->id);
            return;
        }
    if (!check_instance_rows(w, why, size) || !checks_mail(w, why, size) || !checks_events(w, why, size) ||
        !checks_deletions(w, why, size))
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
