/* Invariants between the counted history and everything that writers give away. */
#include "checks.h"
#include "record_fields.h"
#include "store_fake.h"
#include "thole/client.h"
#include <string.h>

void checks_on_delete(struct world *w, struct log_stream *log, const struct log_entry *entry)
{
    if (entry->counts && !entry->part_dropped)
        broken(w, "partition %u: record %" PRIu64 " (%" PRIu64 "/%" PRIu64 ") counts and was deleted",
               log->partition, entry->sequence, entry->epoch, entry->n);
}

/* All inbox messages up to here are incorporated, also where the position that said so is given up. */
static uint64_t incorporated(const struct model_partition *part)
{
    uint64_t const floor = part->stale ? 0 : part->position.floor;
    return floor > part->incorporated ? floor : part->incorporated;
}

/* A purge may have been on its way for long: what it takes must be what was meant. */
void checks_on_purge(struct world *w, const struct inbox_stream *inbox, uint64_t below)
{
    const struct model_partition *part = &w->model->partitions[inbox->partition];
    uint64_t const most = incorporated(part); /* the one there shows that the stream is what it was */
    if (below > most)
        broken(w, "partition %u: inbox purged below %" PRIu64 ", the counted history has only %" PRIu64 "%s",
               inbox->partition, below, most, part->stale ? "; the inbox went back" : "");
}

void checks_on_back(struct world *w, const struct inbox_stream *inbox)
{
    struct model_partition *part = &w->model->partitions[inbox->partition];
    uint64_t const known = incorporated(part);
    part->incorporated = known < inbox->len ? known : inbox->len;
    part->stale = true;
}

void checks_writer(struct world *w, uint32_t partition, uint64_t epoch, uint64_t committed_n, const char *who)
{
    const struct model_partition *p = &w->model->partitions[partition];
    uint64_t const counted = epoch < p->epochs_len ? p->epochs[epoch].counted : 0;
    if (committed_n > counted)
        broken(w,
               "partition %u: %s holds %" PRIu64 " records of epoch %" PRIu64 " for committed, %" PRIu64
               " count",
               partition, who, committed_n, epoch, counted);
}

enum {
    LISTED_MIN = 5, /* no engine of the worlds reads less far ahead of its floor */
    RANGES_MOST = 3 * PARTITION_WAITING_MAX,
};

/* The bytes of a record are its turn's: what waits for other instances adds no more than a few ranges, and
 * those only where every engine reads them. */
static void check_position(struct world *w, const struct position *position, bool ranges_read,
                           const char *who)
{
    if (position->ranges_len > RANGES_MOST)
        broken(w, "%s writes a position of %zu ranges", who, position->ranges_len);
    if (position->ranges_len > 0 && !position->listed && !ranges_read &&
        position_sequences(position) <= LISTED_MIN)
        broken(w, "%s writes ranges, which some engine does not read", who);
}

static bool same_long_payload(const struct event *a, const struct event *b)
{
    return a->data.len >= LONG_PAYLOAD && thole_slice_equal(a->data, b->data) &&
           a->kind != EVENT_ORIGINS_CARRIED && b->kind != EVENT_ORIGINS_CARRIED;
}

/* Whether the payload of event @p i stands in another one, by the words of docs/wire.md. */
static bool stands_elsewhere(const struct turn *turn, size_t i)
{
    const struct event *const e = &turn->events[i], *const last = &turn->events[turn->events_len - 1];
    bool const sends = e->kind == EVENT_CHILD_SCHEDULED || e->kind == EVENT_DETACHED_STARTED ||
                       e->kind == EVENT_EVENT_SENT || e->kind == EVENT_EVENT_EMITTED;
    bool const fails = e->kind == EVENT_ACTIVITY_FAILED || e->kind == EVENT_ACTIVITY_TRY_FAILED ||
                       e->kind == EVENT_ACTIVITY_QUARANTINED || e->kind == EVENT_CHILD_FAILED;
    bool const keeps = sends || fails || event_is_terminal(e->kind) || e->kind == EVENT_STARTED ||
                       e->kind == EVENT_EVENT_RECEIVED;
    bool found = event_is_terminal(last->kind) && same_long_payload(e, last);
    for (size_t k = 0; k < i && !keeps; k++)
        found |= same_long_payload(e, &turn->events[k]);
    return found && !keeps;
}

static size_t references_in(thole_slice bytes, uint32_t inside)
{
    struct wire_message message = wire_message_of(bytes);
    struct wire_field field;
    size_t n = 0;
    while (wire_take(&message, &field)) {
        n += inside == 0 && field.number == FIELD_EVENT_PAYLOAD_OF;
        if (inside != 0 && field.number == inside)
            n += references_in(field.bytes, inside == FIELD_RECORD_TURN ? FIELD_TURN_EVENTS : 0);
    }
    return n;
}

/* A long payload that a turn's record has twice stands there once, but where some engine does not read that.
 */
static void check_references(struct world *w, const struct record *record, thole_slice bytes,
                             bool references_read, const char *who)
{
    size_t const n = references_in(bytes, FIELD_RECORD_TURN);
    size_t wanted = 0;
    for (size_t i = 0; i < record->turn.events_len; i++)
        wanted += stands_elsewhere(&record->turn, i);
    if (n != (references_read ? wanted : 0))
        broken(w, "%s writes %zu references in place of %zu payloads, which every engine reads: %d", who, n,
               wanted, references_read);
    w->stats.references += n;
    w->stats.repeated += wanted - n;
}

void checks_append(struct world *w, const struct out_append *out, struct record_forms read, const char *who)
{
    struct arena arena;
    struct record record;
    arena_init(&arena, SIZE_MAX / 2);
    if (record_decode(out->bytes, &arena, &record, NULL) != THOLE_OK) {
        broken(w, "%s writes a record that does not decode", who);
    } else {
        check_position(w, &record.position, read.ranges, who);
        if (record.folded.len > 0 && !read.lists)
            broken(w, "%s lists what is dispensable, which some engine does not read", who);
        if (record.kind == RECORD_TURN)
            check_references(w, &record, out->bytes, read.references, who);
    }
    arena_release(&arena);
}

static const struct model_event *find(const struct world *w, thole_slice instance, uint64_t execution,
                                      uint64_t id, enum event_kind kind)
{
    size_t const i = instance_index(w, instance);
    const struct model_event *event = i == SIZE_MAX ? NULL : model_find(w, i, execution, id);
    return event != NULL && event->kind == kind ? event : NULL;
}

/* ---- rows ---- */

/* Whoever opens a partition reads all of its log before it writes a row of an activity that is open. */
static bool is_gone_before(struct world *w, const struct batch *b, const struct batch_activity *a)
{
    const struct model_instance *const m = model_of(w, instance_index(w, a->instance));
    const struct model_prune *const prune = model_pruned(m, a->execution);
    uint64_t const by = a->execution <= m->gone ? m->deleted_seq : prune != NULL ? prune->sequence : 0;
    return by > 0 && w->logs[b->partition]->entries[by - 1].epoch < b->epoch;
}

static void check_activities(struct world *w, const struct batch *b, const char *who)
{
    for (size_t i = 0; i < b->activities_added_len; i++) {
        const struct batch_activity *a = &b->activities_added[i];
        if (model_damaged(w, a->instance))
            continue;
        const struct model_event *e =
            find(w, a->instance, a->execution, a->activity_id, EVENT_ACTIVITY_SCHEDULED);
        if (e == NULL || a->try_number == 0 || a->try_number > e->try_number ||
            !thole_slice_equal(a->activity, e->name) || !thole_slice_equal(a->queue, e->queue) ||
            a->try_timeout_ms != e->retry.try_timeout_ms)
            broken(w, "%s writes a row for %.*s#%" PRIu64 ", which is not committed so", who,
                   THOLE_FMT(a->instance), a->activity_id);
        else if (is_gone_before(w, b, a))
            broken(w, "%s writes a row for %.*s#%" PRIu64 " of execution %" PRIu64 ", which is gone", who,
                   THOLE_FMT(a->instance), a->activity_id, a->execution);
    }
    for (size_t i = 0; i < b->activities_removed_len; i++) {
        const struct batch_activity *a = &b->activities_removed[i];
        if (model_damaged(w, a->instance))
            continue;
        const struct model_event *e =
            find(w, a->instance, a->execution, a->activity_id, EVENT_ACTIVITY_SCHEDULED);
        bool const over =
            e != NULL && (e->resolved_by != EVENT_UNKNOWN ||
                          (a->try_number != 0 && (a->try_number < e->try_number || e->waiting)));
        if (!over)
            broken(w, "%s removes the row of %.*s#%" PRIu64 ", which is open", who, THOLE_FMT(a->instance),
                   a->activity_id);
    }
}

/* Does what the row of the timer stands for exist? */
static bool timer_is_known(const struct world *w, const struct batch_timer *t, bool *ret_open)
{
    size_t const i = instance_index(w, t->instance);
    *ret_open = false;
    if (i == SIZE_MAX)
        return false;
    if (t->execution == 0) {
        *ret_open = model_of(w, i)->early_timer.there;
        return t->timer_id == 1 && (model_of(w, i)->early.turns > 0 || model_of(w, i)->deletions > 0);
    }
    const struct model_event *e = model_find(w, i, t->execution, t->timer_id);
    if (e == NULL)
        return false;
    *ret_open = e->timer.there;
    return e->kind == EVENT_ACTIVITY_SCHEDULED ||
           (e->kind == EVENT_TIMER_CREATED && (t->due_ms == 0 || t->due_ms == e->due_ms));
}

static void check_timers(struct world *w, const struct batch *b, const char *who)
{
    bool open;
    for (size_t i = 0; i < b->timers_added_len; i++)
        if (!model_damaged(w, b->timers_added[i].instance) && !timer_is_known(w, &b->timers_added[i], &open))
            broken(w, "%s writes a timer %.*s#%" PRIu64 ", which is not committed", who,
                   THOLE_FMT(b->timers_added[i].instance), b->timers_added[i].timer_id);
    for (size_t i = 0; i < b->timers_removed_len; i++) {
        const struct batch_timer *t = &b->timers_removed[i];
        if (model_damaged(w, t->instance))
            continue;
        /* Execution 0: every first turn with an event removes it, also where there is none. */
        bool const early = t->execution == 0 && find(w, t->instance, 1, 1, EVENT_STARTED) != NULL;
        bool const known = timer_is_known(w, t, &open);
        if (!early &&
            (!known || (open && find(w, t->instance, t->execution, t->timer_id, EVENT_TIMER_CREATED))))
            broken(w, "%s removes timer %.*s#%" PRIu64 ", which is open", who, THOLE_FMT(t->instance),
                   t->timer_id);
    }
}

static uint32_t status_of_execution(const struct model_execution *x)
{
    switch (x->terminal) {
    case EVENT_COMPLETED: return THOLE_INSTANCE_COMPLETED;
    case EVENT_FAILED: return THOLE_INSTANCE_FAILED;
    case EVENT_CANCELLED: return THOLE_INSTANCE_CANCELLED;
    case EVENT_TERMINATED: return THOLE_INSTANCE_TERMINATED;
    case EVENT_CONTINUED_AS_NEW: return THOLE_INSTANCE_CONTINUED_AS_NEW;
    default: break;
    }
    switch (x->blocked) {
    case BLOCKED_NOT: return THOLE_INSTANCE_RUNNING;
    case BLOCKED_PAUSED: return THOLE_INSTANCE_PAUSED;
    case BLOCKED_NO_CODE:
    case BLOCKED_NOT_STARTED: return THOLE_INSTANCE_WAITING;
    default: return THOLE_INSTANCE_STUCK;
    }
}

uint32_t checks_status(const struct model_instance *m)
{
    bool const none = m->executions_len == m->gone;
    return status_of_execution(none ? &m->early : &m->executions[m->executions_len - 1]);
}

/* Only the timers and activities of what was terminated. */
static bool is_terminated(struct world *w, size_t k, uint64_t execution)
{
    const struct model_instance *m = model_of(w, k);
    return m->damaged || (execution > 0 && execution <= m->executions_len &&
                          m->executions[execution - 1].terminal == EVENT_TERMINATED);
}

static void check_deletions(struct world *w, const struct batch *b, const char *who)
{
    for (size_t i = 0; i < b->deletions_len; i++) {
        const struct batch_deletion *d = &b->deletions[i];
        size_t const k = instance_index(w, d->instance);
        if (d->pruned.upto > 0) {
            const struct model_prune *prune = model_pruned(model_of(w, k), d->pruned.upto);
            if (model_of(w, k)->damaged)
                continue;
            if (prune == NULL || prune->executions.above != d->pruned.above || d->history_seq != 0)
                broken(w, "%s removes the executions of %.*s up to %" PRIu64 ", which were not pruned", who,
                       THOLE_FMT(d->instance), d->pruned.upto);
            continue;
        }
        if (d->history_seq == 0) {
            if (!is_terminated(w, k, d->execution))
                broken(w, "%s removes the timers and activities of %.*s, which was not terminated", who,
                       THOLE_FMT(d->instance));
            continue;
        }
        const struct log_stream *log = w->logs[b->partition];
        const struct log_entry *e = d->history_seq <= log->len ? &log->entries[d->history_seq - 1] : NULL;
        if (e == NULL || !e->counts || e->kind != RECORD_DELETED || e->instance != k ||
            e->execution != d->execution)
            broken(w, "%s removes the rows of %.*s up to %" PRIu64 ", which was not deleted so", who,
                   THOLE_FMT(d->instance), d->execution);
        for (size_t n = 0; n < b->instances_len; n++)
            if (thole_slice_equal(b->instances[n].instance, d->instance) &&
                b->instances[n].history_seq < d->history_seq)
                broken(w, "%s brings back a row of %.*s with its deletion", who, THOLE_FMT(d->instance));
    }
}

/* A redo of what is left of events that came before an instance that has been deleted since. */
static bool is_left(const struct model_instance *m, const struct batch_instance *b)
{
    return b->execution == 0 && b->history_seq < m->deleted_seq;
}

void checks_batch(struct world *w, const struct batch *batch, const char *who)
{
    check_activities(w, batch, who);
    check_timers(w, batch, who);
    checks_quarantine(w, batch, who);
    check_deletions(w, batch, who);
    for (size_t i = 0; i < batch->instances_len; i++) {
        const struct batch_instance *b = &batch->instances[i];
        if (model_damaged(w, b->instance))
            continue;
        size_t const k = instance_index(w, b->instance);
        const struct model_execution *x =
            k == SIZE_MAX ? NULL : model_execution(model_of(w, k), b->execution);
        if (x != NULL && is_left(model_of(w, k), b))
            continue;
        if (x == NULL || b->turns > x->turns || b->history_seq > x->history_seq) {
            broken(w, "%s writes turn %" PRIu64 " of %.*s/%" PRIu64 ", which is not committed", who, b->turns,
                   THOLE_FMT(b->instance), b->execution);
            return;
        }
        if (b->turns == x->turns && !b->removed && b->status != status_of_execution(x))
            broken(w, "%s writes status %u of %.*s/%" PRIu64 ", it is %u", who, b->status,
                   THOLE_FMT(b->instance), b->execution, status_of_execution(x));
    }
    if (batch->projected.seq > w->model->partitions[batch->partition].last_counted_seq)
        broken(w, "%s moves projected_seq beyond what counts", who);
}

/* ---- outputs ---- */

void checks_work(struct world *w, const struct out_publish_work *out, const char *who)
{
    const struct model_event *e =
        find(w, out->instance, out->execution, out->activity_id, EVENT_ACTIVITY_SCHEDULED);
    if (model_damaged(w, out->instance))
        return;
    if (e == NULL || out->try_number == 0 || out->try_number > e->try_number ||
        !thole_slice_equal(out->activity, e->name) || !thole_slice_equal(out->queue, e->queue) ||
        !thole_slice_equal(out->input, e->data))
        broken(w, "%s publishes the work of %.*s#%" PRIu64 ", which is not committed so", who,
               THOLE_FMT(out->instance), out->activity_id);
}

/* A push when its rows are deleted. A crash of the store, or a restored backup, may have brought the row back
 * since then. */
static void check_row_is_gone(struct world *w, const struct cancel_notice *out, uint64_t id, const char *who)
{
    size_t const instance = instance_index(w, out->instance);
    uint32_t const partition = instance_partition(w, instance);
    const struct row *row = store_find(w->store, ROW_ACTIVITY, partition, instance, out->execution, id);
    if (row != NULL && (out->try_number == 0 || row->try_number <= out->try_number))
        broken(w, "%s pushes the cancellation of %.*s#%" PRIu64 " as if its row were deleted", who,
               THOLE_FMT(out->instance), id);
}

void checks_push(struct world *w, const struct cancel_notice *out, bool as_left, const char *who)
{
    bool const timeout = thole_slice_equal(out->kind, THOLE_STR("timeout"));
    for (size_t i = 0; i < out->activity_ids_len && !model_damaged(w, out->instance); i++) {
        const struct model_event *e =
            find(w, out->instance, out->execution, out->activity_ids[i], EVENT_ACTIVITY_SCHEDULED);
        bool const over =
            e != NULL && (e->resolved_by == EVENT_ACTIVITY_CANCELLED ||
                          (timeout && (e->resolved_by != EVENT_UNKNOWN || e->try_number > 1 || e->waiting)));
        if (!over)
            broken(w, "%s pushes the cancellation of %.*s#%" PRIu64 ", which is not committed", who,
                   THOLE_FMT(out->instance), out->activity_ids[i]);
        if (as_left && !out->early)
            check_row_is_gone(w, out, out->activity_ids[i], who);
    }
}

/* Whoever was told so before the database forgot it has no message any more: the sweep finds the row. */
void checks_on_left(struct world *w, const struct row *row)
{
    struct model_event *e =
        (struct model_event *)(uintptr_t)model_find(w, row->instance, row->execution, row->id);
    if (e != NULL)
        e->left_try = row->try_number;
}

bool checks_try_is_over(struct world *w, size_t instance, uint64_t execution, uint64_t id,
                        uint32_t try_number)
{
    const struct inbox_stream *inbox = w->inboxes[instance_partition(w, instance)];
    const struct model_event *e = model_find(w, instance, execution, id);
    const struct row *row =
        store_find(w->store, ROW_ACTIVITY, instance_partition(w, instance), instance, execution, id);
    if (row != NULL && row->try_number == try_number && row->later)
        return true;
    if (e != NULL && e->left_try == try_number)
        return true;
    if (model_of(w, instance)->damaged || e == NULL || e->resolved_by != EVENT_UNKNOWN || e->waiting ||
        e->quarantined || e->try_number > try_number)
        return true;
    for (size_t i = inbox->len; i > 0; i--)
        if (inbox_result(&inbox->entries[i - 1], instance, execution, id, try_number) != NULL)
            return true;
    for (size_t i = inbox->lost_len; i > 0; i--)
        if (inbox_result(&inbox->lost[i - 1], instance, execution, id, try_number) != NULL)
            return true;
    return false;
}

static enum event_kind end_of_notice(const char *kind)
{
    static const struct {
        const char *kind;
        enum event_kind end;
    } ends[] = {{"completed", EVENT_COMPLETED},
                {"failed", EVENT_FAILED},
                {"cancelled", EVENT_CANCELLED},
                {"terminated", EVENT_TERMINATED},
                {"continued_as_new", EVENT_CONTINUED_AS_NEW}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(ends[i].kind, kind) == 0)
            return ends[i].end;
    return EVENT_UNKNOWN;
}

/* The answer to a start with an event must be true: the event was taken, or it will never be. For a
 * repetition to an instance that has ended meanwhile the history knows more. */
static void check_start_answer(struct world *w, const struct model_instance *m,
                               const struct event_notice *out, const char *who)
{
    bool const started = strcmp(out->kind, "started") == 0;
    bool const taken = thole_slice_equal(m->request_id, out->request_id) ||
                       model_has_seen(m, EVENT_EVENT_RECEIVED, out->request_id);
    const struct model_execution *x = model_current(model_of(w, instance_index(w, out->instance)));
    bool const over = x == NULL || (x->ended && x->terminal != EVENT_CONTINUED_AS_NEW);
    if (out->request_id.len == 0 || out->request_id.ptr[0] == '<' || m->deletions > 0 || started == taken ||
        (!started && over))
        return;
    broken(w, "%s says \"%s\" of request %.*s of %.*s, which it is not", who, out->kind,
           THOLE_FMT(out->request_id), THOLE_FMT(out->instance));
}

void checks_notice(struct world *w, const struct event_notice *out, const char *who)
{
    size_t const k = instance_index(w, out->instance);
    const struct model_execution *x = k == SIZE_MAX ? NULL : model_execution(model_of(w, k), out->execution);
    enum event_kind const end = end_of_notice(out->kind);
    if (model_damaged(w, out->instance))
        return;
    if (strcmp(out->kind, "deleted") == 0 && k != SIZE_MAX && model_of(w, k)->deletions == 0)
        broken(w, "%s says that %.*s is deleted, which is not committed", who, THOLE_FMT(out->instance));
    else if (k != SIZE_MAX && (strcmp(out->kind, "started") == 0 || strcmp(out->kind, "rejected") == 0))
        check_start_answer(w, model_of(w, k), out, who);
    if (strcmp(out->kind, "deleted") == 0 || strcmp(out->kind, "rejected") == 0)
        return;
    if (x == NULL || out->execution == 0)
        broken(w, "%s gives notice \"%s\" of %.*s, which is not committed", who, out->kind,
               THOLE_FMT(out->instance));
    else if (end != EVENT_UNKNOWN && x->terminal != end)
        broken(w, "%s gives notice \"%s\" of %.*s, which did not end so", who, out->kind,
               THOLE_FMT(out->instance));
}

void checks_line(struct world *w, const struct out_line *out, const char *who)
{
    struct model *model = w->model;
    size_t const k = instance_index(w, out->instance);
    if (model_damaged(w, out->instance))
        return;
    if (k == SIZE_MAX || model_execution(model_of(w, k), out->execution) == NULL) {
        broken(w, "%s gives a line of %.*s/%" PRIu64 ", which is not committed", who,
               THOLE_FMT(out->instance), out->execution);
        return;
    }
    for (size_t i = 0; i < model->lines_len; i++)
        if (model->lines[i].instance == k && model->lines[i].execution == out->execution &&
            thole_slice_equal(model->lines[i].text, out->text))
            broken(w, "%s gives a line of %.*s/%" PRIu64 " a second time: %.*s", who,
                   THOLE_FMT(out->instance), out->execution, THOLE_FMT(out->text));
    w->stats.lines++;
    model->lines = grown(w, model->lines, model->lines_len, &model->lines_cap, sizeof *model->lines);
    model->lines[model->lines_len++] = (struct model_line){k, out->execution, keep_slice(w, out->text)};
}

/* An answer may be ahead of the committed history by the turns in flight: a query sees the instance as its
 * owner has it. */
void checks_answer(struct world *w, size_t instance, const struct out_query_answer *out, const char *who)
{
    static const char text[] = "execution ";
    const struct model_instance *m = model_of(w, instance);
    uint64_t execution = 0;
    for (size_t i = sizeof text - 1; i < out->data.len; i++)
        execution = execution * 10 + (uint64_t)(out->data.ptr[i] - '0');
    w->stats.queries++;
    if (m->damaged)
        return;
    if (out->status == THOLE_OK && (execution == 0 || execution > m->executions_len + 3))
        broken(w, "%s says that %.*s is in %.*s, it has %zu", who, THOLE_FMT(w->instances[instance]),
               THOLE_FMT(out->data), m->executions_len);
    if (out->status != THOLE_OK && out->status != THOLE_NOT_FOUND && out->status != THOLE_INVALID &&
        out->status != THOLE_UNAVAILABLE)
        broken(w, "%s answers a query of %.*s with %s: %.*s", who, THOLE_FMT(w->instances[instance]),
               thole_status_name(out->status), THOLE_FMT(out->data));
}
