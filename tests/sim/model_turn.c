/* The events that a counted turn may have, and their effects: written from the text, not from the machine. */
#include "checks.h"
#include "clock_fake.h"
#include "orchestrations.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct reading { /* of one turn */
    struct world *w;
    uint32_t partition;
    size_t instance; /* SIZE_MAX: none, only a position */
    struct model_instance *m;
    struct model_execution *x; /* NULL: it has not begun */
    const struct turn *turn;
    size_t next;                     /* event */
    const struct deletion *deletion; /* instead of a turn */
    bool deleted;
};

THOLE_PRINTF(2, 3)
static void wrong(struct reading *r, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    broken(r->w, "%.*s/%" PRIu64 " turn %" PRIu64 ": %s", THOLE_FMT(r->w->instances[r->instance]),
           r->turn->execution, r->turn->number, text);
}

/* ---- events ---- */

static struct model_event *resolve(struct reading *r, const struct event *e, enum event_kind what)
{
    struct model_event *target = model_event_at(r->x, e->ref);
    if (target == NULL || target->kind != what) {
        wrong(r, "#%" PRIu64 " %s: there is no %s with id %" PRIu64, e->id, event_kind_name(e->kind),
              event_kind_name(what), e->ref);
        return NULL;
    }
    if (target->resolved_by != EVENT_UNKNOWN)
        wrong(r, "#%" PRIu64 " %s: #%" PRIu64 " was resolved by %s already", e->id, event_kind_name(e->kind),
              e->ref, event_kind_name(target->resolved_by));
    return target;
}

static struct model_row row_now(const struct reading *r, bool there, uint32_t try_number, uint64_t due_ms)
{
    return (struct model_row){there, try_number, due_ms, r->w->model->partitions[r->partition].sequence};
}

static void on_scheduled(struct reading *r, struct model_event *own, const struct event *e)
{
    own->try_number = 1;
    own->work = row_now(r, true, 1, 0);
    if (e->retry == NULL)
        return;
    own->retry = *e->retry;
    if (own->retry.total_timeout_ms == 0)
        return;
    own->deadline_ms = r->turn->time_ms + own->retry.total_timeout_ms;
    own->timer = row_now(r, true, 0, own->deadline_ms);
}

static void on_try_failed(struct reading *r, const struct event *e)
{
    struct model_event *target = resolve(r, e, EVENT_ACTIVITY_SCHEDULED);
    if (target == NULL)
        return;
    if (target->waiting || e->try_number != target->try_number)
        wrong(r, "#%" PRIu64 ": try %u failed, try %u is under way", e->id, e->try_number,
              target->try_number);
    r->w->stats.tries++;
    target->waiting = true;
    target->next_due_ms = e->due_ms;
    target->work = row_now(r, false, e->try_number, 0);
    target->timer = row_now(r, true, 0, e->due_ms == 0 ? 1 : e->due_ms);
}

static void on_quarantined(struct reading *r, const struct event *e)
{
    struct model_event *target = resolve(r, e, EVENT_ACTIVITY_SCHEDULED);
    if (target == NULL)
        return;
    if (target->waiting || e->try_number != target->try_number)
        wrong(r, "#%" PRIu64 ": try %u is in quarantine, try %u is %s", e->id, e->try_number,
              target->try_number, target->waiting ? "over" : "under way");
    r->w->stats.quarantined++;
    target->waiting = target->quarantined = true;
    target->next_due_ms = e->due_ms;
    target->why = e->data;
    target->work = row_now(r, false, e->try_number, 0);
    target->held = row_now(r, true, e->try_number, e->due_ms);
    if (e->due_ms != 0)
        target->timer = row_now(r, true, 0, e->due_ms);
}

static void leaves_quarantine(const struct reading *r, struct model_event *target)
{
    if (target->quarantined)
        target->held = row_now(r, false, 0, 0);
    target->left_quarantine = target->left_quarantine || target->quarantined;
    target->quarantined = false;
}

static void on_try_started(struct reading *r, const struct event *e)
{
    struct model_event *target = resolve(r, e, EVENT_ACTIVITY_SCHEDULED);
    if (target == NULL)
        return;
    bool const early = !e->quarantined && r->turn->time_ms < target->next_due_ms && !target->fire_asked;
    if (!target->waiting || e->try_number != target->try_number + 1 || early ||
        e->quarantined != target->quarantined)
        wrong(r, "#%" PRIu64 ": try %u starts after try %u, %s, before its time", e->id, e->try_number,
              target->try_number, target->waiting ? "which failed" : "which is under way");
    if (!thole_slice_equal(e->name, target->name) || !thole_slice_equal(e->queue, target->queue) ||
        !thole_slice_equal(e->data, target->data) || e->due_ms != target->deadline_ms)
        wrong(r, "#%" PRIu64 ": the next try is of something else", e->id);
    leaves_quarantine(r, target);
    r->x->released = r->x->released || e->quarantined;
    target->waiting = false;
    target->try_number = e->try_number;
    target->work = row_now(r, true, e->try_number, 0);
    target->timer = row_now(r, target->deadline_ms != 0, 0, target->deadline_ms);
}

static void on_activity_end(struct reading *r, const struct event *e)
{
    struct model_event *target = resolve(r, e, EVENT_ACTIVITY_SCHEDULED);
    if (target == NULL)
        return;
    if (e->timed != target->timer.there)
        wrong(r, "#%" PRIu64 " %s says that there is %s timer", e->id, event_kind_name(e->kind),
              e->timed ? "a" : "no");
    if (e->quarantined != target->quarantined)
        wrong(r, "#%" PRIu64 " %s says that it is %s quarantine", e->id, event_kind_name(e->kind),
              e->quarantined ? "in" : "not in");
    leaves_quarantine(r, target);
    target->resolved_by = e->kind;
    target->work = row_now(r, false, 0, 0);
    if (target->timer.there)
        target->timer = row_now(r, false, 0, 0);
}

static void on_timer_end(struct reading *r, const struct event *e)
{
    struct model_event *target = resolve(r, e, EVENT_TIMER_CREATED);
    if (target == NULL)
        return;
    if (e->kind == EVENT_TIMER_FIRED && r->turn->time_ms < target->due_ms && !target->fire_asked)
        wrong(r, "#%" PRIu64 ": fired %" PRIu64 " ms early", e->id, target->due_ms - r->turn->time_ms);
    target->resolved_by = e->kind;
    target->timer = row_now(r, false, 0, 0);
}

/* One that was asked to cancel may run on: the end terminates it, once. */
static bool is_terminated_too(struct reading *r, const struct event *e)
{
    struct model_event *target = model_event_at(r->x, e->ref);
    if (e->kind != EVENT_CHILD_CANCELLED || !e->flag || target == NULL ||
        target->kind != EVENT_CHILD_SCHEDULED || target->code != CLOSE_TERMINATE ||
        target->resolved_by != EVENT_CHILD_CANCELLED || target->terminated)
        return false;
    return target->terminated = true;
}

static void on_child_end(struct reading *r, const struct event *e)
{
    if (is_terminated_too(r, e))
        return;
    struct model_event *target = resolve(r, e, EVENT_CHILD_SCHEDULED);
    if (target == NULL)
        return;
    target->resolved_by = e->kind;
    target->terminated = e->kind == EVENT_CHILD_CANCELLED && e->flag;
    if (e->kind != EVENT_CHILD_CANCELLED)
        model_check_child(r->w, r->instance, r->turn->execution, e);
}

static void on_started(struct reading *r, const struct event *e)
{
    struct model_instance *m = r->m;
    r->x->version = e->version;
    if (e->before != m->gone)
        wrong(r, "it begins after %" PRIu64 " executions, %zu are gone", e->before, m->gone);
    if (r->turn->execution > m->gone + 1) {
        if (!thole_slice_equal(m->orchestration, e->name) ||
            !thole_slice_equal(m->request_id, e->request_id) ||
            !thole_slice_equal(m->parent.instance, e->parent.instance) ||
            m->parent.execution != e->parent.execution || m->parent.event != e->parent.event)
            wrong(r, "it continues as somebody else");
        r->x->parent = e->parent;
        return;
    }
    r->x->parent = e->parent;
    m->orchestration = keep_slice(r->w, e->name);
    m->request_id = keep_slice(r->w, e->request_id);
    m->parent = e->parent;
    m->created_ms = r->turn->time_ms;
    if (m->parent.instance.len > 0)
        r->w->stats.children++;
}

static bool begins(thole_slice text, const char *with)
{
    return text.len >= strlen(with) && memcmp(text.ptr, with, strlen(with)) == 0;
}

static void on_end(struct reading *r, const struct event *e)
{
    struct model_execution *x = r->x;
    x->ended = true;
    x->terminal = e->kind;
    x->end_code = e->code;
    x->end_data = e->data;
    x->end_type = e->error_type;
    r->w->stats.continued += e->kind == EVENT_CONTINUED_AS_NEW;
    r->w->stats.terminated += e->kind == EVENT_TERMINATED;
    for (size_t i = 0; i < x->events_len; i++) {
        const struct model_event *open = &x->events[i];
        bool const child = open->kind == EVENT_CHILD_SCHEDULED && open->code != CLOSE_ABANDON;
        if ((child || open->kind == EVENT_ACTIVITY_SCHEDULED || open->kind == EVENT_TIMER_CREATED) &&
            open->resolved_by == EVENT_UNKNOWN)
            wrong(r, "it ends with #%zu outstanding", i + 1);
        if (open->kind == EVENT_CHILD_SCHEDULED && open->code == CLOSE_TERMINATE && !open->terminated &&
            open->resolved_by == EVENT_CHILD_CANCELLED)
            wrong(r, "it ends, and its child #%zu may run on", i + 1);
    }
    if (e->kind == EVENT_FAILED && begins(e->data, WRONG) && !(x->released && begins(e->data, TRIES_WRONG)) &&
        !(x->fired && begins(e->data, TIMERS_WRONG)))
        wrong(r, "%.*s", THOLE_FMT(e->data));
    if (e->kind == EVENT_CONTINUED_AS_NEW)
        return;
    model_check_output(r->w, r->instance, e);
    model_expect_result(r->w, r->instance, r->turn->execution, e);
}

static void on_event_received(struct reading *r, const struct event *e)
{
    r->w->stats.events++;
    if (r->turn->execution > r->m->gone + 1 && r->turn->number == 1 && e->request_id.len == 0)
        return; /* carried over */
    if (thole_slice_equal(e->name, THOLE_STR("item")))
        model_check_items(r->w, r->instance, e->data);
}

static void on_asked(struct reading *r, const struct event *e)
{
    struct model_execution *x = r->x;
    switch (e->kind) {
    case EVENT_CANCEL_REQUESTED:
        if (x->cancel_requested)
            wrong(r, "cancelled twice");
        x->cancel_requested = true;
        x->paused = false;
        break;
    case EVENT_TERMINATE_REQUESTED:
        x->terminate_requested = true;
        x->paused = false;
        break;
    case EVENT_PAUSED:
        r->w->stats.paused++;
        x->paused = true;
        break;
    case EVENT_RESUMED: x->paused = false; break;
    default: break;
    }
}

static void on_pruned(struct reading *r, const struct event *e)
{
    uint64_t const sequence = r->w->model->partitions[r->partition].sequence;
    if (e->kept != r->m->gone + 1 || e->before > r->turn->execution || e->before < e->kept + 2)
        wrong(r, "the executions between %" PRIu64 " and %" PRIu64 " are pruned", e->kept, e->before);
    if (e->before > r->x->pruned_before)
        r->x->pruned_before = e->before;
    model_prune(r->w, r->instance, sequence, (struct executions){e->kept, e->before - 1});
}

static void set_custom_status(struct reading *r, const struct event *e)
{
    if (e->kind == EVENT_CUSTOM_STATUS_SET || e->name.len == 0)
        r->m->custom_status = e->data;
}

static void dispatch(struct reading *r, struct model_event *own, const struct event *e)
{
    switch (e->kind) {
    case EVENT_UNKNOWN: wrong(r, "an unknown event kind was written"); break;
    case EVENT_STARTED: on_started(r, e); break;
    case EVENT_VERSION_CHOSEN: r->x->version = e->version; break;
    case EVENT_ACTIVITY_SCHEDULED: on_scheduled(r, own, e); break;
    case EVENT_ACTIVITY_TRY_FAILED: on_try_failed(r, e); break;
    case EVENT_ACTIVITY_TRY_STARTED: on_try_started(r, e); break;
    case EVENT_ACTIVITY_QUARANTINED: on_quarantined(r, e); break;
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_ACTIVITY_FAILED:
    case EVENT_ACTIVITY_CANCELLED: on_activity_end(r, e); break;
    case EVENT_TIMER_CREATED: own->timer = row_now(r, true, 0, e->due_ms); break;
    case EVENT_TIMER_FIRED:
    case EVENT_TIMER_CANCELLED: on_timer_end(r, e); break;
    case EVENT_CHILD_COMPLETED:
    case EVENT_CHILD_FAILED: on_child_end(r, e); break;
    case EVENT_CHILD_CANCELLED:
        on_child_end(r, e);
        model_expect_letter(r->w, r->instance, r->turn->execution, e);
        break;
    case EVENT_CHILD_SCHEDULED:
    case EVENT_DETACHED_STARTED:
    case EVENT_EVENT_SENT: model_expect_letter(r->w, r->instance, r->turn->execution, e); break;
    case EVENT_EVENT_RECEIVED: on_event_received(r, e); break;
    case EVENT_CANCEL_REQUESTED:
    case EVENT_TERMINATE_REQUESTED:
    case EVENT_PAUSED:
    case EVENT_RESUMED: on_asked(r, e); break;
    case EVENT_HISTORY_PRUNED: on_pruned(r, e); break;
    case EVENT_CUSTOM_STATUS_SET:
    case EVENT_STATE_CARRIED: set_custom_status(r, e); break;
    case EVENT_COMPLETED:
    case EVENT_FAILED:
    case EVENT_CANCELLED:
    case EVENT_TERMINATED:
    case EVENT_CONTINUED_AS_NEW: on_end(r, e); break;
    case EVENT_DISCARDED: wrong(r, "discarded, but it has started"); break;
    case EVENT_EVENT_AWAITED:
    case EVENT_EVENT_AWAIT_CANCELLED:
    case EVENT_SIDE_EFFECT_RECORDED:
    case EVENT_STATE_SET:
    case EVENT_PATCHED:
    case EVENT_EVENT_EMITTED:
    case EVENT_ORIGINS_CARRIED: break;
    }
}

static void apply_event(struct reading *r)
{
    const struct event *e = &r->turn->events[r->next++];
    struct model_execution *x = r->x;
    if (x == NULL || e->id != x->events_len + 1 || x->ended ||
        (e->kind == EVENT_STARTED) != (x->events_len == 0)) {
        wrong(r, "event #%" PRIu64 " %s after %zu events", e->id, event_kind_name(e->kind),
              x == NULL ? 0 : x->events_len);
        return;
    }
    x->events = grown(r->w, x->events, x->events_len, &x->events_cap, sizeof *x->events);
    struct model_event *own = &x->events[x->events_len++];
    *own = (struct model_event){.kind = e->kind,
                                .ref = e->ref,
                                .due_ms = e->due_ms,
                                .code = e->code,
                                .sequence = r->w->model->partitions[r->partition].sequence,
                                .name = e->name,
                                .queue = e->queue,
                                .data = e->data,
                                .target = e->target};
    if (event_is_received(e->kind) && e->kind != EVENT_STARTED)
        model_note_request(r->w, r->m, e->kind, e->request_id);
    dispatch(r, own, e);
}

/* ---- turns ---- */

static bool begins_with(thole_slice text, thole_slice head)
{
    return text.len >= head.len && memcmp(text.ptr, head.ptr, head.len) == 0;
}

/* Received events without a message: timers, wakes of activities, the choice of a version. */
static void apply_unasked(struct reading *r)
{
    while (r->next < r->turn->events_len && r->x != NULL && !is_broken(r->w)) {
        const struct event *e = &r->turn->events[r->next];
        const struct model_event *target = model_event_at(r->x, e->ref);
        bool const over = e->kind == EVENT_ACTIVITY_FAILED && target != NULL && e->code == THOLE_TIMEOUT &&
                          target->deadline_ms != 0 && target->deadline_ms <= r->turn->time_ms &&
                          begins_with(e->data, THOLE_STR("the total timeout of "));
        bool const given_up = target != NULL && target->next_due_ms != 0 &&
                              target->next_due_ms <= r->turn->time_ms && model_is_given_up(target, e);
        bool const next_try = e->kind == EVENT_ACTIVITY_TRY_STARTED && !e->quarantined;
        if (!over && !given_up && !next_try && e->kind != EVENT_TIMER_FIRED &&
            e->kind != EVENT_VERSION_CHOSEN && !model_is_forced(r->w, r->instance, e))
            return;
        apply_event(r);
    }
}

static struct model_execution *begin_execution(struct reading *r)
{
    struct model_instance *m = r->m;
    m->executions = grown(r->w, m->executions, m->executions_len, &m->executions_cap, sizeof *m->executions);
    m->executions[m->executions_len] = (struct model_execution){0};
    return &m->executions[m->executions_len++];
}

static bool same_event(const struct event *a, const struct event *b)
{
    return a->kind == b->kind && thole_slice_equal(a->name, b->name) && thole_slice_equal(a->data, b->data) &&
           thole_slice_equal(a->request_id, b->request_id);
}

/* [Started, what came before it in order, the event that came with the start]. */
static void apply_start(struct reading *r, const struct message *message)
{
    struct model_instance *m = r->m;
    const struct turn *turn = r->turn;
    struct event const started = {.kind = EVENT_STARTED,
                                  .name = message->orchestration,
                                  .data = message->data,
                                  .request_id = message->request_id};
    if (turn->execution != m->gone + 1 || turn->number != 1 || turn->events_len < 1 + m->kept_len ||
        !same_event(&turn->events[0], &started)) {
        wrong(r, "a start was taken in without its effect");
        return;
    }
    r->x = begin_execution(r);
    apply_event(r);
    for (size_t i = 0; i < m->kept_len && !is_broken(r->w); i++) {
        if (!same_event(&turn->events[r->next], &m->kept[i]))
            wrong(r, "it does not begin with what came before it");
        else
            apply_event(r);
    }
    r->w->stats.early += m->kept_len;
    if (m->early_timer.there)
        m->early_timer = row_now(r, false, 0, 0);
    bool const again = model_is_kept(m, message->request_id);
    m->kept_len = 0;
    if (message->event_name.len == 0 || again)
        return;
    if (r->next == turn->events_len || !model_is_raised(&turn->events[r->next], message))
        wrong(r, "the event that came with the start is missing");
    else
        apply_event(r);
}

static void apply_early_event(struct reading *r, const struct message *message)
{
    struct model_instance *m = r->m;
    const struct event *e = &r->turn->events[r->next];
    if (r->turn->execution != 0 || r->next == r->turn->events_len || !model_is_raised(e, message)) {
        wrong(r, "an event that came early was taken in without its effect");
        return;
    }
    m->kept = grown(r->w, m->kept, m->kept_len, &m->kept_cap, sizeof *m->kept);
    m->kept[m->kept_len++] = *e;
    m->kept_ms = r->turn->time_ms;
    r->next++;
}

static bool is_effect_of(const struct reading *r, const struct message *message)
{
    return r->next < r->turn->events_len &&
           model_is_effect(r->w, r->x, r->turn->time_ms, &r->turn->events[r->next], message);
}

static void apply_message(struct reading *r, const struct inbox_entry *entry)
{
    const struct message *message = &entry->message;
    bool const mine = entry->instance == r->instance;
    if (mine)
        apply_unasked(r);
    if (message->kind == MESSAGE_START && message->parent.instance.len > 0)
        model_check_refused(r->w, message);
    if (is_broken(r->w) || model_of(r->w, entry->instance)->damaged ||
        !model_accepts(r->w, entry->instance, message))
        return;
    if (!mine) {
        broken(r->w,
               "inbox message %u/%" PRIu64 " (kind %d #%" PRIu64
               ") for %.*s was taken in without its effect by %.*s/%" PRIu64 " turn %" PRIu64,
               r->partition, entry->sequence, (int)message->kind, message->task,
               THOLE_FMT(r->w->instances[entry->instance]), THOLE_FMT(r->turn->instance), r->turn->execution,
               r->turn->number);
        return;
    }
    if (message->kind == MESSAGE_DELETE) {
        if (r->deletion == NULL || r->deleted)
            wrong(r, "a deletion was taken in without its effect");
        else
            model_check_deletion(r->w, r->instance, r->deletion, message);
        r->deleted = true;
    } else if (r->x == NULL && message->kind == MESSAGE_START) {
        apply_start(r, message);
    } else if (r->x == NULL) {
        apply_early_event(r, message);
    } else if (!is_effect_of(r, message)) {
        wrong(r, "inbox message %" PRIu64 " (kind %d #%" PRIu64 ") was taken in, but the next event is %s",
              entry->sequence, (int)message->kind, message->task,
              r->next == r->turn->events_len ? "none" : event_kind_name(r->turn->events[r->next].kind));
    } else {
        apply_event(r);
    }
}

/* All its parts: those that had their effect in turns before this one are not accepted any more. */
static void apply_incorporated(struct reading *r, const struct inbox_entry *entry)
{
    for (const struct inbox_entry *part = entry; part != NULL && !is_broken(r->w); part = part->more) {
        if (part->valid)
            apply_message(r, part);
        else if (!part->rejected)
            broken(r->w, "inbox message %u/%" PRIu64 " was dropped: it is not kept as rejected (%s)",
                   r->partition, part->sequence, reject_code_name(part->why));
    }
}

/* Of several results in one message the turn may have those of its instance before the others are taken in.
 */
static void apply_own_parts(struct reading *r, const struct inbox_entry *entry)
{
    for (const struct inbox_entry *part = entry; part != NULL && !is_broken(r->w); part = part->more) {
        if (!part->valid || part->instance != r->instance || r->x == NULL || r->m->damaged)
            continue;
        apply_unasked(r);
        if (model_accepts(r->w, r->instance, &part->message) && is_effect_of(r, &part->message))
            apply_event(r);
    }
}

/* Every message that this record's position newly takes in has exactly the effect that it must have. */
static void apply_messages(struct reading *r, const struct position *position)
{
    const struct position *before = &r->w->model->partitions[r->partition].position;
    const struct inbox_stream *inbox = r->w->inboxes[r->partition];
    uint64_t const last =
        position->ranges_len > 0 ? position->ranges[position->ranges_len - 1].last : position->floor;
    if (last > inbox->len && !r->w->model->partitions[r->partition].stale)
        broken(r->w, "partition %u: position %" PRIu64 ", the inbox ends at %zu", r->partition, last,
               inbox->len);
    uint64_t const most = r->w->lists ? inbox->len : last;
    for (uint64_t s = before->floor + 1; s <= most && s <= inbox->len && !is_broken(r->w); s++) {
        const struct inbox_entry *entry = &inbox->entries[s - 1];
        if (entry->purged || model_incorporated(before, s))
            continue;
        if (model_incorporated(position, s))
            apply_incorporated(r, entry);
        else if (entry->parts > 0)
            apply_own_parts(r, entry);
    }
}

size_t model_messages(struct world *w, uint32_t partition, size_t instance, const struct turn *turn,
                      const struct position *position)
{
    struct reading r = {.w = w, .partition = partition, .instance = instance, .turn = turn};
    apply_messages(&r, position);
    return r.next;
}

/* The next execution begins with what the last one hands on, and with nothing else. */
static void apply_carried(struct reading *r)
{
    struct model_execution *last = model_current(r->m);
    struct arena arena;
    struct event *events = NULL;
    size_t n = 0;
    if (last == NULL || last->terminal != EVENT_CONTINUED_AS_NEW || last->replay == NULL) {
        wrong(r, "nothing has continued as new");
        return;
    }
    arena_init(&arena, WORLD_MEMORY_MAX);
    if (instance_carry(last->replay, &arena, &events, &n) != THOLE_OK)
        wrong(r, "out of memory");
    instance_destroy(last->replay);
    last->replay = NULL;
    r->x = begin_execution(r); /* moves the others */
    if (n > r->turn->events_len)
        wrong(r, "it takes over %zu events, %zu are there", n, r->turn->events_len);
    for (size_t i = 0; i < n && !is_broken(r->w); i++) {
        if (!same_event(&r->turn->events[r->next], &events[i]))
            wrong(r, "#%zu is not what the last execution hands on", i + 1);
        else
            apply_event(r);
    }
    arena_release(&arena);
}

static void replay_turn(struct reading *r, const struct turn *turn)
{
    thole_error err = {0};
    thole_status const status = instance_replay(r->x->replay, turn, &err);
    if (status != THOLE_OK)
        wrong(r, "the counted history does not replay: %s: %s", thole_status_name(status), err.text);
}

/* Replays as soon as it is known which version of the code it was. */
static void replay(struct reading *r)
{
    struct model_execution *x = r->x;
    const thole_orchestration_entry *entry =
        x->version == 0 ? NULL : orchestration_entry(r->m->orchestration, x->version);
    if (x->replay == NULL) {
        x->history = grown(r->w, x->history, x->history_len, &x->history_cap, sizeof *x->history);
        x->history[x->history_len++] = *r->turn;
        if (entry == NULL)
            return;
        struct instance_options const options = {.code = entry->run,
                                                 .id = r->w->instances[r->instance],
                                                 .execution = r->turn->execution,
                                                 .version = x->version,
                                                 .memory_max = (size_t)64 << 20,
                                                 .payload_max = SIM_PAYLOAD_MAX,
                                                 .stacks = r->w->stacks};
        x->replay = instance_create(&options);
        for (size_t i = 0; i < x->history_len && !is_broken(r->w); i++)
            replay_turn(r, &x->history[i]);
    } else {
        replay_turn(r, r->turn);
    }
    if (is_broken(r->w))
        return;
    if (x->ended != instance_ended(x->replay))
        wrong(r, "replay and history differ on whether it has ended");
    if (x->ended && x->terminal != EVENT_CONTINUED_AS_NEW) { /* the stack is not needed any more */
        instance_destroy(x->replay);
        x->replay = NULL;
    }
}

static bool in_order(struct reading *r)
{
    const struct turn *turn = r->turn;
    if (turn->time_ms > r->w->now_ms + CLOCK_MAY_ERR_MS && !r->w->years_believed)
        wrong(r, "its time has not come: %" PRIu64 " ms ahead", turn->time_ms - r->w->now_ms);
    const struct model_execution *x = r->x;
    uint64_t const turns = x == NULL ? 0 : x->turns, time_ms = x == NULL ? 0 : x->time_ms;
    if (turn->number == turns + 1 && turn->time_ms >= time_ms && (x == NULL || !x->ended))
        return true;
    wrong(r, "it comes after turn %" PRIu64 "%s", turns, x != NULL && x->ended ? ", which ended it" : "");
    return false;
}

/* Said again, apart from what the projection does. */
static struct model_turn_row turn_row(const struct turn *turn)
{
    struct model_turn_row row = {.time_ms = turn->time_ms, .running = turn->ran, .plain = turn->ran};
    for (size_t i = 0; i < turn->events_len; i++) {
        enum event_kind const kind = turn->events[i].kind;
        bool const ends = event_is_terminal(kind);
        row.running = row.running && !ends;
        row.plain = row.plain && !ends && kind != EVENT_STARTED && kind != EVENT_VERSION_CHOSEN &&
                    kind != EVENT_CUSTOM_STATUS_SET && kind != EVENT_STATE_CARRIED && kind != EVENT_DISCARDED;
    }
    return row;
}

static void note_turn(struct reading *r, struct model_execution *x, uint64_t sequence)
{
    x->turns = r->turn->number;
    x->time_ms = r->turn->time_ms;
    x->history_seq = sequence;
    x->blocked = r->turn->ran ? BLOCKED_NOT : r->turn->blocked;
    x->turn_seqs = grown(r->w, x->turn_seqs, x->turn_seqs_len, &x->turn_seqs_cap, sizeof *x->turn_seqs);
    x->turn_rows = grown(r->w, x->turn_rows, x->turn_seqs_len, &x->turn_rows_cap, sizeof *x->turn_rows);
    x->turn_rows[x->turn_seqs_len] = turn_row(r->turn);
    x->turn_seqs[x->turn_seqs_len++] = sequence;
    r->w->stats.turns++;
    r->w->stats.blocked +=
        x->blocked != BLOCKED_NOT && x->blocked != BLOCKED_PAUSED && x->blocked != BLOCKED_NOT_STARTED;
}

static void give_up_kept(struct world *w, struct model_instance *m)
{
    for (; m->kept_len > 0; m->kept_len--) {
        m->given_up = grown(w, m->given_up, m->given_up_len, &m->given_up_cap, sizeof *m->given_up);
        m->given_up[m->given_up_len++] = m->kept[m->kept_len - 1].data;
    }
}

/* Execution 0: events that came before the instance, or the end of their patience. */
static void early_turn(struct reading *r, const struct position *position, uint64_t sequence)
{
    struct model_instance *m = r->m;
    const struct turn *turn = r->turn;
    r->x = &m->early;
    if (model_current(m) != NULL)
        wrong(r, "events come before an instance that exists");
    if (is_broken(r->w) || !in_order(r))
        return;
    if (turn->ran || turn->blocked != BLOCKED_NOT_STARTED)
        wrong(r, "who ran it?");
    r->x = NULL;
    size_t const kept = m->kept_len;
    apply_messages(r, position);
    if (r->next < turn->events_len && turn->events[r->next].kind == EVENT_DISCARDED) {
        if (m->kept_len == 0 || r->next > 0 || turn->time_ms < m->kept_ms + r->w->early_event_ms)
            wrong(r, "what came early is given up too early");
        r->next++;
        give_up_kept(r->w, m);
        m->early_timer = row_now(r, false, 0, 0);
        r->w->stats.discarded++;
    }
    if (m->kept_len > kept)
        m->early_timer = row_now(r, true, 0, m->kept_ms + r->w->early_event_ms);
    if (r->next != turn->events_len)
        wrong(r, "#%" PRIu64 " %s: no message says so", turn->events[r->next].id,
              event_kind_name(turn->events[r->next].kind));
    note_turn(r, &m->early, sequence);
}

static void check_ran(struct reading *r)
{
    const struct turn *turn = r->turn;
    if (turn->ran == (turn->blocked != BLOCKED_NOT))
        wrong(r, "it %s, and is blocked by %d", turn->ran ? "ran" : "did not run", (int)turn->blocked);
    if (turn->ran && r->x->paused)
        wrong(r, "it ran while it was paused");
    if (!turn->ran && r->x->paused != (turn->blocked == BLOCKED_PAUSED))
        wrong(r, "it is %s, and blocked by %d", r->x->paused ? "paused" : "not paused", (int)turn->blocked);
    r->x->cancel_delivered = r->x->cancel_delivered || (turn->ran && r->x->cancel_requested);
}

static void damaged_turn(struct reading *r, const struct position *position)
{
    apply_messages(r, position);
    const struct event *const first = r->turn->events;
    for (const struct event *e = first; e < first + r->turn->events_len; e++) {
        bool const ends = event_is_terminal(e->kind) && e->kind != EVENT_CONTINUED_AS_NEW;
        r->m->over = ends || (r->m->over && e->kind != EVENT_STARTED); /* the id may be used again */
        r->m->swept = e->kind == EVENT_TERMINATED && e > first && e[-1].kind == EVENT_TERMINATE_REQUESTED;
    }
}

void model_turn(struct world *w, uint32_t partition, size_t instance, const struct turn *turn,
                const struct position *position, uint64_t sequence)
{
    struct reading r = {
        .w = w, .partition = partition, .instance = instance, .m = model_of(w, instance), .turn = turn};
    if (r.m->damaged) {
        damaged_turn(&r, position);
        return;
    }
    if (turn->execution == 0) {
        early_turn(&r, position, sequence);
        return;
    }
    bool const first = turn->execution == r.m->executions_len + 1;
    if (first && model_current(r.m) != NULL)
        apply_carried(&r);
    else if (!first)
        r.x = model_execution(r.m, turn->execution);
    if (!first && turn->execution != r.m->executions_len)
        wrong(&r, "there are %zu executions", r.m->executions_len);
    if (is_broken(w) || !in_order(&r))
        return;
    apply_messages(&r, position);
    apply_unasked(&r);
    if (r.x == NULL && !is_broken(w))
        wrong(&r, "nobody started it");
    while (r.next < turn->events_len && !is_broken(w)) {
        const struct event *e = &turn->events[r.next];
        if (event_is_received(e->kind))
            wrong(&r, "#%" PRIu64 " %s: no message says so", e->id, event_kind_name(e->kind));
        else if (!turn->ran)
            wrong(&r, "#%" PRIu64 ": the code did not run, who asked for it?", e->id);
        else
            apply_event(&r);
    }
    if (is_broken(w))
        return;
    check_ran(&r);
    note_turn(&r, r.x, sequence);
    replay(&r);
}

void model_deletion(struct world *w, uint32_t partition, size_t instance, const struct deletion *deletion,
                    const struct position *position, uint64_t sequence)
{
    struct turn const none = {.instance = w->instances[instance], .execution = deletion->execution};
    struct reading r = {.w = w,
                        .partition = partition,
                        .instance = instance,
                        .m = model_of(w, instance),
                        .turn = &none,
                        .deletion = deletion};
    r.x = model_current(r.m);
    apply_messages(&r, position);
    if (r.m->damaged)
        return;
    if (!r.deleted && !is_broken(w))
        wrong(&r, "it is deleted, and no message says so");
    if (!is_broken(w))
        model_forget(w, instance, sequence);
}
