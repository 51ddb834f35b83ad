/* Turns records that count into the rows and messages of a projection batch. */
#include "projection_state.h"
#include "range.h"
#include "standstill.h"
#include "thole/client.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct turn_rows { /* one turn, or a part of it */
    struct projection *p;
    struct projection_batch *batch;
    const struct turn *turn;
    const struct projection_facts *facts; /* live: of the instance */
    bool live;
    uint64_t running_ms; /* the value in the instance's row: see struct projection_turns */
    uint64_t sequence;   /* of the record that it ends with */
    uint64_t first;      /* of the record that it begins with */
    bool published;      /* a former owner has sent its messages to other instances, and its CloudEvents */
};

/* Numbers of an older history may be larger than a row's: it has the largest that it can. */
static uint32_t row_try(uint32_t try_number)
{
    return (uint32_t)range_nearest(RANGE_TRY, try_number);
}

static uint32_t row_version(uint32_t version)
{
    return (uint32_t)range_nearest(RANGE_VERSION, version);
}

/* --- activities ---------------------------------------------------------------------------------- */

static struct projected_activity *activity_row(const struct turn_rows *t, uint64_t id, bool *ret_new)
{
    return projection_batch_activity(t->batch, t->turn->instance, t->turn->execution, id, ret_new);
}

/* Adds the row of a try. */
static void activity_queued(const struct turn_rows *t, const struct event *event, uint64_t id)
{
    struct batch_activity const queued = {
        .instance = t->turn->instance,
        .execution = t->turn->execution,
        .activity_id = id,
        .queue = event->queue,
        .activity = event->name,
        .try_number = row_try(event->try_number == 0 ? 1 : event->try_number),
        .try_timeout_ms = event->retry == NULL ? 0 : event->retry->try_timeout_ms,
        .details = event->details};
    if (!t->live) {
        redo_queued(t->p, &queued, event->data, &t->turn->trace);
        return;
    }
    struct projected_activity *row = activity_row(t, id, NULL);
    row->gone = false;
    row->row = queued;
    row->input = event->data;
    row->trace = t->turn->trace;
}

/* Deletes the row of that try, or of any try (0). True when there may be one: its worker must be told. */
static bool activity_gone(const struct turn_rows *t, uint64_t id, uint32_t try_number)
{
    bool fresh = false;
    struct projected_activity *row = activity_row(t, id, &fresh);
    if (!t->live)
        redo_gone(t->p, t->turn->instance, t->turn->execution, id);
    row->before |= fresh || !t->live; /* a former owner may have inserted it */
    row->gone = true;
    row->row = (struct batch_activity){.instance = row->row.instance,
                                       .execution = row->row.execution,
                                       .activity_id = id,
                                       .try_number = row_try(try_number)};
    return row->before;
}

/* A worker took its message, so there is nothing to withdraw. */
static void forget_queued(const struct turn_rows *t, uint64_t id)
{
    (void)work_refs_take(&t->p->projector.work_refs, key_hash(t->turn->instance, t->turn->execution, id));
}

/* Pushes the cancellation of that try, or of any (0). */
static void push_cancel(const struct turn_rows *t, uint64_t id, uint32_t try_number, enum cancel_kind kind,
                        thole_slice reason)
{
    if (t->published)
        return;
    *projection_batch_push(t->batch) = (struct projected_push){.instance = t->turn->instance,
                                                               .execution = t->turn->execution,
                                                               .activity_id = id,
                                                               .try_number = try_number,
                                                               .kind = kind,
                                                               .decided_ms = t->turn->time_ms,
                                                               .early = t->live && kind != CANCEL_TIMEOUT,
                                                               .reason = reason};
}

/* --- timers -------------------------------------------------------------------------------------- */

static struct projected_timer *record_rows_timer_row(const struct turn_rows *t, uint64_t execution,
                                                     uint64_t id, bool *ret_new)
{
    return projection_batch_timer(t->batch, t->turn->instance, execution, id, ret_new);
}

/* first: no row with this key was inserted before, except by a former owner. */
static void timer_set(const struct turn_rows *t, uint64_t id, uint64_t due_ms, bool first)
{
    struct projected_timer *row = record_rows_timer_row(t, t->turn->execution, id, NULL);
    row->gone = false;
    row->before |= !first || !t->live;
    row->row.due_ms = due_ms == 0 ? 1 : due_ms;
    if (t->live)
        timer_book_created(t->p, &row->row);
}

static void timer_gone(const struct turn_rows *t, uint64_t execution, uint64_t id)
{
    bool fresh = false;
    struct projected_timer *row = record_rows_timer_row(t, execution, id, &fresh);
    row->before |= fresh || !t->live;
    row->gone = true;
    row->row.due_ms = 0;
}

/* --- quarantine ---------------------------------------------------------------------------------- */

static struct projected_quarantine *record_rows_quarantine_row(const struct turn_rows *t, uint64_t id,
                                                               bool *ret_new)
{
    return projection_batch_quarantine(t->batch, t->turn->instance, t->turn->execution, id, ret_new);
}

static void quarantine_set(const struct turn_rows *t, const struct event *event)
{
    struct projected_quarantine *row = record_rows_quarantine_row(t, event->ref, NULL);
    row->gone = false;
    row->row = (struct batch_quarantine){.instance = row->row.instance,
                                         .execution = row->row.execution,
                                         .activity_id = event->ref,
                                         .queue = event->queue,
                                         .activity = event->name,
                                         .try_number = row_try(event->try_number),
                                         .lost = (uint32_t)range_nearest(RANGE_LOST, event->lost),
                                         .worker = event->worker,
                                         .reason = text_cut(event->data, DETAIL_BYTES_MAX),
                                         .since_ms = t->turn->time_ms,
                                         .until_ms = event->due_ms};
}

static void quarantine_gone(const struct turn_rows *t, uint64_t id)
{
    bool fresh = false;
    struct projected_quarantine *row = record_rows_quarantine_row(t, id, &fresh);
    row->before |= fresh || !t->live;
    row->gone = true;
}

/* --- activities with their timers ---------------------------------------------------------------- */

static void activity_scheduled(const struct turn_rows *t, const struct event *event)
{
    activity_queued(t, event, event->id);
    if (event->retry != NULL && event->retry->total_timeout_ms > 0)
        timer_set(t, event->id, range_sum(t->turn->time_ms, event->retry->total_timeout_ms), true);
}

static void try_failed(const struct turn_rows *t, const struct event *event)
{
    bool const told = activity_gone(t, event->ref, event->try_number);
    if (told && event->code == THOLE_TIMEOUT)
        push_cancel(t, event->ref, event->try_number, CANCEL_TIMEOUT, event->data);
    else
        forget_queued(t, event->ref);
    timer_set(t, event->ref, event->due_ms, false);
}

/* A deadline of all tries is part of its due time. */
static void record_rows_quarantined(const struct turn_rows *t, const struct event *event)
{
    (void)activity_gone(t, event->ref, event->try_number);
    if (event->due_ms != 0)
        timer_set(t, event->ref, event->due_ms, false);
    quarantine_set(t, event);
}

static void record_rows_try_started(const struct turn_rows *t, const struct event *event)
{
    activity_queued(t, event, event->ref);
    if (event->quarantined)
        quarantine_gone(t, event->ref);
    if (event->due_ms != 0)
        timer_set(t, event->ref, event->due_ms, false);
    else
        timer_gone(t, t->turn->execution, event->ref);
}

static void record_rows_activity_ended(const struct turn_rows *t, const struct event *event)
{
    bool const told = activity_gone(t, event->ref, 0);
    if (event->quarantined)
        quarantine_gone(t, event->ref);
    if (event->timed)
        timer_gone(t, t->turn->execution, event->ref);
    if (told && event->kind == EVENT_ACTIVITY_CANCELLED)
        push_cancel(t, event->ref, 0, (enum cancel_kind)event->code, event->data);
    else if (told && event->kind == EVENT_ACTIVITY_FAILED && event->code == THOLE_TIMEOUT)
        push_cancel(t, event->ref, 0, CANCEL_TIMEOUT, event->data);
    else
        forget_queued(t, event->ref);
}

/* --- pruned executions --------------------------------------------------------------------------- */

/* When the log is read again, an activity or a timer may appear whose end is removed already. */
static void prune_left(const struct turn_rows *t, struct executions executions)
{
    redo_deleted(t->p, t->turn->instance, executions.upto);
    projection_batch_prune_left(t->batch, t->turn->instance, executions);
}

/* These executions have ended: their rows are in earlier batches, or in this one, where they are left out. */
static void record_rows_pruned(const struct turn_rows *t, const struct event *event)
{
    struct executions const executions = executions_pruned(event);
    if (executions.upto == 0)
        return;
    if (!t->live && t->sequence > t->p->projector.published)
        prune_left(t, executions);
    else
        projection_batch_prune(t->batch, t->turn->instance, executions);
    struct projected_deletion *row =
        t->batch->deletions_len == 0 ? NULL : &t->batch->deletions[t->batch->deletions_len - 1];
    if (row != NULL && row->sequence == t->sequence) { /* pruned twice in one turn */
        if (executions.upto > row->row.pruned.upto)
            row->row.execution = row->row.pruned.upto = executions.upto;
        return;
    }
    *projection_batch_deletion(t->batch) = (struct projected_deletion){
        .row = {.instance = t->turn->instance, .execution = executions.upto, .pruned = executions},
        .sequence = t->sequence,
        .removed = t->sequence <= t->p->projector.published};
}

/* --- the instance -------------------------------------------------------------------------------- */

static uint32_t status_of_turn(const struct turn *turn)
{
    if (turn->ran)
        return THOLE_INSTANCE_RUNNING;
    bool const reason = turn->blocked != BLOCKED_NOT; /* records of earlier versions have none */
    return reason ? standstill_of(turn->blocked).status : THOLE_INSTANCE_STUCK;
}

static uint32_t status_of_end(enum event_kind kind)
{
    switch (kind) {
    case EVENT_COMPLETED: return THOLE_INSTANCE_COMPLETED;
    case EVENT_FAILED: return THOLE_INSTANCE_FAILED;
    case EVENT_TERMINATED: return THOLE_INSTANCE_TERMINATED;
    case EVENT_CONTINUED_AS_NEW: return THOLE_INSTANCE_CONTINUED_AS_NEW;
    default: break;
    }
    return THOLE_INSTANCE_CANCELLED;
}

/* Whether the turn creates the instance; other EVENT_STARTEDs continue it. */
static bool record_rows_begins(const struct turn *turn, const struct event *started)
{
    return turn->execution == started->before + 1;
}

static void instance_started_row(const struct turn_rows *t, struct projected_instance *to,
                                 const struct event *event)
{
    struct batch_instance *row = &to->row;
    row->orchestration = event->name;
    row->version = row_version(event->version);
    row->created_ms = record_rows_begins(t->turn, event) ? t->turn->time_ms : 0;
    row->began_ms = t->turn->time_ms;
    row->parent = event->parent.instance;
    to->parent = event->parent;
    to->parent_known = true;
}

static void instance_ended_row(struct batch_instance *row, const struct event *event)
{
    bool const says_why =
        event->kind == EVENT_FAILED || event->kind == EVENT_CANCELLED || event->kind == EVENT_TERMINATED;
    row->status = status_of_end(event->kind);
    row->blocked = BLOCKED_NOT;
    row->detail = says_why ? text_cut(event->data, DETAIL_BYTES_MAX) : (thole_slice){0};
}

static void add_instance_event(const struct turn_rows *t, struct projected_instance *to,
                               const struct event *event)
{
    struct batch_instance *row = &to->row;
    if (event->kind == EVENT_STARTED) {
        instance_started_row(t, to, event);
    } else if (event->kind == EVENT_VERSION_CHOSEN) {
        row->version = row_version(event->version);
    } else if (event->kind == EVENT_CUSTOM_STATUS_SET ||
               (event->kind == EVENT_STATE_CARRIED && event->name.len == 0)) {
        row->custom_status_set = true;
        row->custom_status = text_cut(event->data, DETAIL_BYTES_MAX);
    } else if (event->kind == EVENT_DISCARDED) {
        row->removed = true;
    } else if (event_is_terminal(event->kind)) {
        instance_ended_row(row, event);
    }
}

/* Whether the event changes more in the row than the time and the number of the last turn. */
static bool is_in_row(const struct event *event)
{
    switch (event->kind) {
    case EVENT_STARTED:
    case EVENT_VERSION_CHOSEN:
    case EVENT_CUSTOM_STATUS_SET:
    case EVENT_STATE_CARRIED:
    case EVENT_DISCARDED: return true;
    default: return event_is_terminal(event->kind);
    }
}

/* The row already has all that the turn changes, except the time and the number of the last turn, which are
 * not too old. Known only to this owner, for instances in its memory: the next owner writes the row with the
 * next turn. */
static bool record_rows_is_said(const struct turn_rows *t)
{
    const struct turn *turn = t->turn;
    if (t->running_ms == 0 || !turn->ran || turn->time_ms - t->running_ms >= t->p->env->options.row_age_ms)
        return false;
    for (size_t i = 0; i < turn->events_len; i++)
        if (is_in_row(&turn->events[i]))
            return false;
    return true;
}

/* The batch has the instance even if its row is not written: deletion_batch() asks for it. */
static void record_rows_add_instance(struct turn_rows *t, uint64_t sequence)
{
    const struct turn *turn = t->turn;
    bool added = false;
    struct projected_instance *to =
        projection_batch_instance(t->batch, turn->instance, turn->execution, &added);
    struct batch_instance *row = &to->row;
    to->said = record_rows_is_said(t) && (added || to->said);
    row->updated_ms = turn->time_ms;
    row->turns = turn->number;
    row->history_seq = sequence;
    row->removed = false;
    row->status = status_of_turn(turn);
    row->blocked = turn->ran ? BLOCKED_NOT : turn->blocked;
    row->detail = turn->ran ? (thole_slice){0} : text_cut(turn->blocked_text, DETAIL_BYTES_MAX);
    for (size_t i = 0; i < turn->events_len; i++)
        add_instance_event(t, to, &turn->events[i]);
    if (!to->said)
        t->running_ms = row->status == THOLE_INSTANCE_RUNNING ? turn->time_ms : 0;
}

/* --- notices ------------------------------------------------------------------------------------- */

static bool is_of_a_client(thole_slice request_id)
{
    return request_id.len > 0 && request_id.ptr[0] != '<';
}

static void record_rows_notice(const struct turn_rows *t, const struct event *event)
{
    struct projection *p = t->p;
    const char *kind = life_kind(t->turn, event);
    if (kind == NULL)
        return;
    bool const started = event->kind == EVENT_STARTED;
    bool const asked = is_of_a_client(event->request_id);
    struct event_notice *out = &env_emit(p->env, PARTITION_OUT_NOTICE)->notice;
    out->kind = kind;
    out->instance = env_copy(p->env, t->turn->instance);
    out->execution = t->turn->execution;
    out->orchestration = env_copy(p->env, started ? event->name : t->facts->orchestration);
    struct trace const began = {event->traceparent, event->tracestate};
    const struct trace *const trace = started ? &began : &t->facts->trace;
    out->trace = (struct trace){env_copy(p->env, trace->parent), env_copy(p->env, trace->list)};
    out->request_id = asked ? env_copy(p->env, event->request_id) : (thole_slice){0};
    bool const quiet = started || event->kind == EVENT_CONTINUED_AS_NEW;
    out->data = quiet ? (thole_slice){0} : env_copy(p->env, event->data);
}

/* --- a turn -------------------------------------------------------------------------------------- */

/* Events of execution 0 wait for their instance for at least early_event_ms. */
static void add_early(const struct turn_rows *t)
{
    const struct turn *turn = t->turn;
    for (size_t i = 0; i < turn->events_len; i++) {
        if (turn->events[i].kind == EVENT_EVENT_RECEIVED)
            timer_set(t, EARLY_TIMER, range_sum(turn->time_ms, t->p->env->options.early_event_ms), false);
        else if (turn->events[i].kind == EVENT_DISCARDED)
            timer_gone(t, 0, EARLY_TIMER);
    }
}

static void record_rows_started(const struct turn_rows *t, const struct event *event)
{
    if (t->live)
        return;
    if (event->parent.instance.len == 0)
        redo_root(t->p, t->turn->instance);
    else
        redo_no_root(t->p, t->turn->instance);
}

static void record_rows_add_event(const struct turn_rows *t, const struct event *event)
{
    switch (event->kind) {
    case EVENT_ACTIVITY_SCHEDULED: activity_scheduled(t, event); break;
    case EVENT_ACTIVITY_TRY_FAILED: try_failed(t, event); break;
    case EVENT_ACTIVITY_QUARANTINED: record_rows_quarantined(t, event); break;
    case EVENT_ACTIVITY_TRY_STARTED: record_rows_try_started(t, event); break;
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_ACTIVITY_FAILED:
    case EVENT_ACTIVITY_CANCELLED: record_rows_activity_ended(t, event); break;
    case EVENT_TIMER_CREATED: timer_set(t, event->id, event->due_ms, true); break;
    case EVENT_TIMER_FIRED:
    case EVENT_TIMER_CANCELLED: timer_gone(t, t->turn->execution, event->ref); break;
    case EVENT_EVENT_RECEIVED: /* events that came before the instance are part of its first turn */
        if (t->turn->number == 1)
            timer_gone(t, 0, EARLY_TIMER);
        break;
    case EVENT_STARTED: record_rows_started(t, event); break;
    case EVENT_HISTORY_PRUNED: record_rows_pruned(t, event); break;
    default: break;
    }
    if (!t->published)
        outbox_add(t->p, t->batch, t->turn, event, t->facts);
    if (!t->published)
        emissions_add(t->p, t->batch, t->turn, event, t->first);
    if (t->live)
        record_rows_notice(t, event);
}

/* Keeps the turn for projection_turns: the caller counts it. */
static void keep_turn(struct projection *p, const struct turn *turn)
{
    struct turn *kept = row_add((void **)&p->turns, &p->turns_len, &p->turns_cap, sizeof *p->turns);
    *kept = *turn;
}

static void add_turn(struct turn_rows *t, uint64_t sequence)
{
    const struct turn *turn = t->turn;
    if (t->live)
        keep_turn(t->p, turn);
    record_rows_add_instance(t, sequence);
    if (turn->execution == 0) {
        add_early(t);
        return;
    }
    for (size_t i = 0; i < turn->events_len && !t->p->env->nomem; i++)
        record_rows_add_event(t, &turn->events[i]);
}

/* --- parts --------------------------------------------------------------------------------------- */

static bool record_rows_continues(const struct projector *projector, const struct record *record)
{
    if (projector->parts_len == 0)
        return false;
    const struct record *last = &projector->parts[projector->parts_len - 1];
    return record->kind == RECORD_TURN && record->epoch == last->epoch && record->n == last->n + 1 &&
           record->turn.number == last->turn.number && record->turn.execution == last->turn.execution &&
           thole_slice_equal(record->turn.instance, last->turn.instance);
}

static void keep_part(struct projection *p, const struct record *record, uint64_t sequence)
{
    struct projector *projector = &p->projector;
    if (projector->parts_len == 0)
        projector->parts_seq = sequence;
    struct record *part = row_add((void **)&projector->parts, &projector->parts_len, &projector->parts_cap,
                                  sizeof *projector->parts);
    *part = *record;
}

/* --- deletions ----------------------------------------------------------------------------------- */

/* Terminated while its history could not be read: what was outstanding is not known. Otherwise it is
 * cancelled by events between the request and the end. */
static bool record_rows_ends_unread(const struct record *record)
{
    const struct turn *turn = &record->turn;
    size_t const n = turn->events_len;
    return record->kind == RECORD_TURN && !turn->more && n >= 2 &&
           turn->events[n - 1].kind == EVENT_TERMINATED &&
           turn->events[n - 2].kind == EVENT_TERMINATE_REQUESTED;
}

/* A batch writes its rows after its deletions, so rows from before the deletion must be in an earlier batch.
 */
static struct projection_batch *deletion_batch(struct projection *p, struct projection_batch *b,
                                               thole_slice bytes, struct record *record)
{
    bool const deleted = record->kind == RECORD_DELETED;
    thole_slice const instance = deleted ? record->deletion.instance : record->turn.instance;
    uint64_t const execution = deleted ? record->deletion.execution : record->turn.execution;
    p->projector.parts_len = 0;
    if (!projection_batch_has_instance(b, instance, execution))
        return b;
    b = project_apart(p);
    if (record_decode(bytes, &b->arena, record, NULL) != THOLE_OK)
        env_no_memory(p->env);
    return b;
}

/* True: it may delete rows of the instance that were not counted. */
static bool add_deletion(struct projection *p, struct projection_batch *b, const struct deletion *d,
                         uint64_t sequence, bool live)
{
    struct projected_deletion *row = projection_batch_deletion(b);
    *row = (struct projected_deletion){
        .row = {.instance = d->instance, .execution = d->execution, .history_seq = sequence},
        .sequence = sequence,
        .removed = sequence <= p->projector.published};
    if (live || !row->removed)
        emissions_add_deletion(p, b, d, sequence);
    if (!live) {
        if (!row->removed)
            redo_deleted(p, d->instance, d->execution);
        return false;
    }
    env_notice_deletion(p->env, d, "deleted");
    return true; /* an instance whose history could not be read may have left rows */
}

/* Deletes the instance's timers and activities and keeps its row. True: as above. */
static bool add_unread_end(struct projection *p, struct projection_batch *b, const struct turn *turn,
                           bool live)
{
    *projection_batch_deletion(b) = (struct projected_deletion){
        .row = {.instance = turn->instance, .execution = turn->execution}, .removed = true};
    if (!live)
        redo_deleted(p, turn->instance, turn->execution);
    return live;
}

/* --- records ------------------------------------------------------------------------------------- */

/* Decodes the record into the batch that it belongs to. NULL: it has no effect. */
static struct projection_batch *record_rows_take_record(struct projection *p, thole_slice bytes,
                                                        struct record *ret, bool live)
{
    struct projection_batch *b = project_filling(p);
    thole_status const status = record_decode(bytes, &b->arena, ret, NULL);
    if (status == THOLE_NOMEM) {
        env_no_memory(p->env);
        return NULL;
    }
    bool const good = status == THOLE_OK && record_has_rows(ret);
    if (live && !good) { /* stays in the log; its instance is marked when it is loaded */
        p->step_down = "a record does not decode as it was written";
        return NULL;
    }
    /* Damaged and from another owner: it has no effect. A newer owner's whole log is refused when it is
     * opened. */
    if (!good)
        *ret = (struct record){.kind = RECORD_UNKNOWN};
    bool const unread = record_rows_ends_unread(ret) && !record_rows_continues(&p->projector, ret);
    return ret->kind == RECORD_DELETED || unread ? deletion_batch(p, b, bytes, ret) : b;
}

static void add_parts(struct projection *p, struct turn_rows *t, const struct record *record,
                      uint64_t sequence)
{
    assert(!record->turn.more);
    for (size_t i = 0; i < p->projector.parts_len; i++) {
        t->turn = &p->projector.parts[i].turn;
        add_turn(t, sequence);
    }
    p->projector.parts_len = 0;
    t->turn = &record->turn;
    add_turn(t, sequence);
}

/* Returns the batch that it joins; NULL: none. */
static struct projection_batch *add_record(struct projection *p, thole_slice bytes, uint64_t sequence,
                                           const struct projection_facts *facts, bool live,
                                           struct projection_turns *ret)
{
    *ret = (struct projection_turns){.running_ms = 0};
    p->turns_len = 0;
    struct record record = {.kind = RECORD_UNKNOWN};
    struct projection_batch *b = record_rows_take_record(p, bytes, &record, live);
    if (b == NULL || p->env->nomem)
        return NULL;
    assert(!live || sequence > b->last.seq); /* in log order */
    b->last = (struct projected){sequence, projected_mark(bytes)};
    b->records++;
    p->projector.unprojected++;
    if (record.kind == RECORD_DELETED)
        ret->rows_uncertain = add_deletion(p, b, &record.deletion, sequence, live);
    if (record.kind == RECORD_POSITION && record.folded.len > 0 && sequence > p->projector.published)
        removals_owe_listed(p, &record.folded, sequence);
    if (!record_rows_continues(&p->projector, &record))
        p->projector.parts_len = 0; /* a turn whose last part was never written does not count */
    if (record.kind != RECORD_TURN)
        return b;
    if (record_rows_ends_unread(&record) && p->projector.parts_len == 0)
        ret->rows_uncertain = add_unread_end(p, b, &record.turn, live);
    if (record.turn.more) {
        keep_part(p, &record, sequence);
        ret->running_ms = facts == NULL ? 0 : facts->running_ms;
        return b;
    }
    size_t const pushes = b->pushes_len;
    struct turn_rows t = {.p = p,
                          .batch = b,
                          .sequence = sequence,
                          .first = p->projector.parts_len > 0 ? p->projector.parts_seq : sequence,
                          .facts = facts,
                          .live = live,
                          .running_ms = facts == NULL ? 0 : facts->running_ms,
                          .published = !live && sequence <= p->projector.published};
    add_parts(p, &t, &record, sequence);
    project_push_early(p, b, pushes);
    ret->running_ms = t.running_ms;
    return b;
}

void projection_add_record(struct projection *p, thole_slice bytes, uint64_t sequence,
                           const struct projection_facts *facts, bool live, struct projection_turns *ret)
{
    struct projection_batch *b = add_record(p, bytes, sequence, facts, live, ret);
    if (b == NULL)
        return;
    assert(b->arena.held >= b->bytes);
    p->projector.unprojected_bytes += b->arena.held - b->bytes;
    b->bytes = b->arena.held;
}

void projection_record(struct projection *p, thole_slice bytes, uint64_t sequence,
                       const struct projection_facts *facts, struct projection_turns *ret)
{
    assert(p->state == PROJECTION_CURRENT && sequence > p->start.base);
    projection_add_record(p, bytes, sequence, facts, true, ret);
    ret->turns = p->turns;
    ret->len = p->turns_len;
}
