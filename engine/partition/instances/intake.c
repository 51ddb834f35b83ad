/*
 * Intake of messages and timers for instances. They wait at the entry until a turn takes them; an inbox
 * message is incorporated with the record of that turn.
 */
#include "instances_state.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void intake_arrived(struct instances *p, struct entry *entry, struct pending *pending)
{
    entry_push(&p->entries, entry, pending);
    executions_hear(p, entry);
    if (!entry_waits_for_history(entry->state))
        entries_ready(&p->entries, entry);
}

static enum reject_code intake_code_of(thole_status decoded)
{
    if (decoded == THOLE_UNSUPPORTED)
        return REJECT_UNSUPPORTED;
    return decoded == THOLE_LIMIT ? REJECT_TOO_LARGE : REJECT_MALFORMED;
}

static thole_status take_trace(struct arena *arena, const struct trace *from, struct trace *to)
{
    if (to->parent.len > 0 || from->parent.len == 0)
        return THOLE_OK;
    THOLE_TRY(arena_dup(arena, from->parent, &to->parent));
    return arena_dup(arena, from->list, &to->list);
}

/* The headers say what the body does not. A name that the subject has wins over both: NATS vouches for it. */
static thole_status take_sender(struct pending *pending, const struct actor *sender)
{
    struct message *const m = &pending->message;
    struct actor *const to = &m->source.actor;
    bool const start = m->kind == MESSAGE_START;
    if (to->name.len == 0 || sender->authenticated)
        THOLE_TRY(arena_dup(&pending->arena, sender->name, &to->name));
    to->authenticated = sender->authenticated;
    if (to->client.len == 0)
        THOLE_TRY(arena_dup(&pending->arena, sender->client, &to->client));
    if (start) /* the message's trace becomes the execution's */
        to->trace = (struct trace){{NULL, 0}, {NULL, 0}};
    return take_trace(&pending->arena, &sender->trace, start ? &m->trace : &to->trace);
}

static const char *why_refused(enum reject_code code)
{
    switch (code) {
    case REJECT_PARTITION: return "the instance's CRC-32 says that another partition has it";
    case REJECT_HELD: return "the instance is under legal hold";
    case REJECT_HOLD_UNKNOWN: return "whether the instance is under legal hold could not be found out";
    case REJECT_MALFORMED: return "it is no list of results, has too many, or one without a valid instance";
    case REJECT_UNSUPPORTED: return "it is a list of results in a newer format";
    default:
        return "the subject's last token is not an instance id or, behind \"by\", an actor, percent-encoded";
    }
}

/* Decodes the message and checks whether the partition can take it. */
static enum reject_code intake_examine(struct instances *p, const struct in_message *in,
                                       struct pending *pending, thole_error *ret)
{
    if (in->refused != REJECT_NONE) {
        (void)thole_fail(ret, THOLE_INVALID, "%s", why_refused(in->refused));
        return in->refused;
    }
    thole_status status = message_decode(in->bytes, &pending->arena, &pending->message, ret);
    if (status == THOLE_OK)
        status = take_sender(pending, &in->sender);
    if (status == THOLE_NOMEM)
        env_no_memory(p->env);
    if (status != THOLE_OK)
        return intake_code_of(status);
    if (!thole_slice_equal(pending->message.instance, in->instance)) {
        (void)thole_fail(ret, THOLE_CORRUPT, "the subject and the message name different instances");
        return REJECT_INSTANCE;
    }
    if (message_route_check(&pending->message, in->route, ret) != THOLE_OK)
        return REJECT_ROUTE;
    pending->sender = message_route_sender(in->route);
    if (pending->sender != SENDER_CLIENT) /* no client asks for messages of executions and workers */
        pending->message.source.actor = (struct actor){.authenticated = false};
    if (nonce_check(p->env->options.nonce_key, &pending->message, pending->sender, ret) != THOLE_OK)
        return REJECT_NONCE;
    return rejections_check(p, &pending->message, ret);
}

bool instances_message(struct instances *p, const struct in_message *in)
{
    if (!progress_receive(&p->progress, in))
        return false;
    if (progress_has(&p->progress, in->sequence))
        return true;
    struct pending *pending = pending_create();
    thole_error err = {0};
    enum reject_code const code = intake_examine(p, in, pending, &err);
    if (code != REJECT_NONE) {
        if (!p->env->nomem)
            rejections_refuse(p, in, code, err.text);
        if (code == REJECT_TOO_LARGE)
            answers_refuse(p, &pending->message, code, err.text);
        pending_destroy(pending);
        return true;
    }
    pending->inbox_sequence = in->sequence;
    pending->stored_ns = in->stored_ns;
    pending->part = in->part;
    bool const starts = pending->message.kind == MESSAGE_START;
    intake_arrived(p, starts ? intake_entry_to_start(p, in->instance) : intake_entry(p, in->instance),
                   pending);
    return true;
}

void instances_timer(struct instances *p, thole_slice instance, uint64_t execution, uint64_t timer_id)
{
    struct pending *pending = pending_create();
    pending->execution = execution;
    pending->timer_id = timer_id;
    intake_arrived(p, intake_entry(p, instance), pending);
}

/* ---- the event of a message ---- */

static struct event result_event(const struct message *m, enum event_kind completed, enum event_kind failed)
{
    return (struct event){.kind = m->status == THOLE_OK ? completed : failed,
                          .ref = m->task,
                          .code = m->status,
                          .data = m->data,
                          .error_type = m->error_type,
                          .details = m->details,
                          .final = m->final,
                          .try_number = m->try_number,
                          .lost = m->lost,
                          .worker = m->lost_worker,
                          .queue = m->queue,
                          .input = m->input};
}

static struct event asked_event(const struct message *m, enum event_kind kind)
{
    return (struct event){.kind = kind, .data = m->data, .request_id = m->request_id};
}

static struct event raised_event(const struct message *m)
{
    return (struct event){.kind = EVENT_EVENT_RECEIVED,
                          .name = m->event_name,
                          .data = m->event_data,
                          .request_id = m->request_id};
}

static struct event started_event(const struct message *m)
{
    return (struct event){.kind = EVENT_STARTED,
                          .name = m->orchestration,
                          .data = m->data,
                          .code = SEMANTICS_VERSION,
                          .version = m->version,
                          .request_id = m->request_id,
                          .parent = m->parent,
                          .traceparent = m->trace.parent,
                          .tracestate = m->trace.list};
}

static struct event message_event(const struct message *m)
{
    switch (m->kind) {
    case MESSAGE_START: break; /* more than one event: see below */
    case MESSAGE_ACTIVITY_RESULT: {
        struct event event = result_event(m, EVENT_ACTIVITY_COMPLETED, EVENT_ACTIVITY_FAILED);
        event.try_number += event.try_number == 0;
        return event;
    }
    case MESSAGE_CHILD_RESULT: return result_event(m, EVENT_CHILD_COMPLETED, EVENT_CHILD_FAILED);
    case MESSAGE_CANCEL: return asked_event(m, EVENT_CANCEL_REQUESTED);
    case MESSAGE_TERMINATE: return asked_event(m, EVENT_TERMINATE_REQUESTED);
    case MESSAGE_PAUSE: return asked_event(m, EVENT_PAUSED);
    case MESSAGE_RESUME: return asked_event(m, EVENT_RESUMED);
    case MESSAGE_EVENT: return raised_event(m);
    case MESSAGE_RELEASE:
        if (m->timer)
            return (struct event){.kind = EVENT_TIMER_FIRED, .ref = m->task, .due_ms = TIMER_ASKED_MS};
        return (struct event){.kind = m->fail ? EVENT_ACTIVITY_FAILED : EVENT_ACTIVITY_TRY_STARTED,
                              .ref = m->task,
                              .try_number = m->try_number,
                              .quarantined = true};
    case MESSAGE_PRUNE: return asked_event(m, EVENT_HISTORY_PRUNED); /* see pruned_event() */
    case MESSAGE_RETRY:
    case MESSAGE_DELETE: break; /* no event: see turns.c, deletion.c */
    }
    return (struct event){0};
}

/* The execution that takes the waiting messages. */
static uint64_t intake_execution_of(const struct entry *entry)
{
    return entry->execution + (entry->state == ENTRY_CONTINUED);
}

/* Never includes the first execution nor the current one. */
static struct event pruned_event(const struct entry *entry, const struct message *m)
{
    struct event event = message_event(m);
    event.kept = entry->tombstone + 1;
    event.before = m->execution < intake_execution_of(entry) ? m->execution : intake_execution_of(entry);
    return event;
}

/* Whether a record can hold the event. A result that is too large is turned into a failure, since the
 * instance waits for it. */
static bool intake_fits(struct instances *p, const struct pending *pending, struct event *event)
{
    if (event_room_bytes(event) <= p->event_room)
        return true;
    bool const activity = event->kind == EVENT_ACTIVITY_COMPLETED || event->kind == EVENT_ACTIVITY_FAILED;
    if (activity || event->kind == EVENT_CHILD_COMPLETED || event->kind == EVENT_CHILD_FAILED) {
        event->kind = activity ? EVENT_ACTIVITY_FAILED : EVENT_CHILD_FAILED;
        event->code = THOLE_LIMIT;
        event->data = THOLE_STR("the result is larger than what a record can hold");
        event->details = event->error_type = (thole_slice){0};
        event->final = true;
        return true;
    }
    rejections_refuse_pending(p, pending, REJECT_TOO_LARGE, "it is larger than what a record can hold");
    return false;
}

/* --- starts under an id in use ------------------------------------------------------------------- */

/* True when the message must be held until the answer is stored. */
static bool start_collides(struct instances *p, struct entry *entry, struct pending *pending)
{
    const struct message *m = &pending->message;
    if (m->parent.instance.len > 0) {
        if (origins_same(&m->parent, &entry->parent))
            return false;
        refusals_add(p, entry, pending);
        return true;
    }
    struct event const raised = raised_event(m);
    answers_collide(p, entry, pending, &raised);
    return false;
}

/* --- taking -------------------------------------------------------------------------------------- */

enum taken {
    TAKEN,   /* the intake has its events */
    DROPPED, /* without any effect */
    HELD,    /* waits: its answer, or its rejection, must be stored first */
};

static enum taken intake_put(struct instances *p, const struct pending *pending, struct intake *in,
                             struct event event)
{
    if (pending->inbox_sequence != 0)
        event.source = pending_source(pending);
    if (!intake_fits(p, pending, &event))
        return HELD;
    in->events[in->len++] = event;
    return TAKEN;
}

/* Creates an instance, with the events that came before it. */
static enum taken take_first_start(struct instances *p, const struct entry *entry,
                                   const struct pending *pending, struct arena *arena, struct intake *in)
{
    size_t const early = entry->state == ENTRY_EARLY ? entry->early->len : 0;
    assert(in->len == 0);
    in->events = arena_array(arena, early + 2, sizeof *in->events);
    if (in->events == NULL) {
        env_no_memory(p->env);
        return DROPPED;
    }
    struct event started = started_event(&pending->message), raised = raised_event(&pending->message);
    started.before = entry->tombstone;
    started.source = raised.source = pending_source(pending);
    bool const signals = pending->message.event_name.len > 0;
    if (!intake_fits(p, pending, &started) || (signals && !intake_fits(p, pending, &raised)))
        return HELD;
    in->events[in->len++] = started;
    if (early > 0)
        memcpy(&in->events[in->len], entry->early->events, early * sizeof *in->events);
    in->len += early;
    if (signals)
        in->events[in->len++] = raised;
    return TAKEN;
}

static enum taken take_early(struct instances *p, struct entry *entry, const struct pending *pending,
                             struct intake *in)
{
    if (pending->inbox_sequence == 0) {
        if (entry->state == ENTRY_EARLY && pending->execution == 0)
            in->expired = in->len == 0 && early_is_over(p, entry);
        return DROPPED;
    }
    if (pending->message.kind != MESSAGE_EVENT)
        return DROPPED;
    struct event event = raised_event(&pending->message);
    event.source = pending_source(pending);
    if (!intake_fits(p, pending, &event))
        return HELD;
    switch (early_keep(entry->state == ENTRY_EARLY ? &entry->early : &in->early, &event)) {
    case THOLE_OK: return intake_put(p, pending, in, event);
    case THOLE_CONFLICT: break;
    case THOLE_LIMIT:
        rejections_refuse_pending(p, pending, REJECT_TOO_MANY,
                                  "too many events wait for this instance, which does not exist");
        return HELD;
    default: env_no_memory(p->env); break;
    }
    return DROPPED;
}

static bool for_this_execution(const struct entry *entry, const struct pending *pending)
{
    if (pending->inbox_sequence == 0)
        return pending->execution == intake_execution_of(entry);
    const struct message *m = &pending->message;
    bool const of_execution =
        m->kind == MESSAGE_ACTIVITY_RESULT || m->kind == MESSAGE_CHILD_RESULT || m->kind == MESSAGE_RELEASE;
    return !of_execution || m->execution == intake_execution_of(entry);
}

/* False: the instance keeps no more events, and the message is rejected. Those of this turn are not counted:
 * the code may take them all. An event that was taken before is not rejected, but dropped. */
static bool event_is_kept(struct instances *p, const struct entry *entry, const struct pending *pending)
{
    const struct message *m = &pending->message;
    const struct instance *instance = entry_instance(entry);
    char text[160];
    if (m->event_name.len == 0 || instance == NULL || instance_keeps_more(instance, m->event_name))
        return true;
    struct event const event = raised_event(m);
    if (entry->state != ENTRY_CONTINUED && !instance_accepts(instance, &event))
        return true;
    (void)snprintf(
        text, sizeof text,
        "%zu events wait for this instance, which does not take them; it keeps %d, or %d MiB of their data",
        instance_kept(instance), EVENTS_KEPT_MAX, EVENTS_KEPT_BYTES_MAX >> 20);
    rejections_refuse_pending(p, pending, REJECT_TOO_MANY, text);
    return false;
}

static enum taken take_existing(struct instances *p, struct entry *entry, struct pending *pending,
                                struct intake *in)
{
    const struct message *m = &pending->message;
    bool const timer = pending->inbox_sequence == 0, start = !timer && m->kind == MESSAGE_START;
    if (!timer && !event_is_kept(p, entry, pending))
        return HELD;
    if (start && start_collides(p, entry, pending))
        return HELD;
    if (!timer && m->kind == MESSAGE_EVENT && entry->state == ENTRY_ENDED)
        answers_drop(p, entry, m);
    if (entry->state == ENTRY_ENDED || (start && m->event_name.len == 0) ||
        (!timer && m->kind == MESSAGE_RETRY) || /* CONTINUED: its next execution runs anyway */
        !for_this_execution(entry, pending) || (!timer && !origins_mean(entry, pending)))
        return DROPPED;
    if (!timer && m->kind == MESSAGE_RELEASE && entry->state == ENTRY_UNREADABLE) {
        rejections_refuse_pending(p, pending, REJECT_UNREADABLE,
                                  "the instance cannot be read here, so nobody knows what is in quarantine");
        return HELD;
    }
    if (timer)
        return intake_put(
            p, pending, in,
            (struct event){.kind = EVENT_TIMER_FIRED, .ref = pending->timer_id, .due_ms = p->env->now_ms});
    if (m->kind == MESSAGE_PRUNE && entry->state == ENTRY_UNREADABLE) {
        rejections_refuse_pending(p, pending, REJECT_UNREADABLE,
                                  "the instance's history cannot be read here, so it is not pruned");
        return HELD;
    }
    if (m->kind == MESSAGE_PRUNE) {
        struct event const event = pruned_event(entry, m);
        return executions_pruned(&event).upto == 0 ? DROPPED : intake_put(p, pending, in, event);
    }
    return intake_put(p, pending, in, start ? raised_event(m) : message_event(m));
}

/* A repeated start of a deleted incarnation: it must not begin a new one. */
static bool start_is_over(const struct entry *entry, const struct message *m)
{
    if (entry->tombstone == 0)
        return false;
    if (m->parent.instance.len > 0)
        return origins_same(&m->parent, &entry->parent);
    return m->request_id.len > 0 && thole_slice_equal(m->request_id, entry->request_id);
}

static enum taken intake_take_one(struct instances *p, struct entry *entry, struct pending *pending,
                                  struct arena *arena, struct intake *in)
{
    if (entry_exists(entry))
        return take_existing(p, entry, pending, in);
    if (pending->inbox_sequence != 0 && pending->message.kind == MESSAGE_START)
        return start_is_over(entry, &pending->message) ? DROPPED
                                                       : take_first_start(p, entry, pending, arena, in);
    return take_early(p, entry, pending, in);
}

/* Whether the instance accepts any of the events. Whether it accepts the later ones is decided in the turn,
 * after the first ones. */
static bool any_accepted(const struct entry *entry, const struct intake *in)
{
    const struct instance *instance = entry_instance(entry);
    if (instance == NULL || in->len == 0 || in->deletes || in->retries || entry->state == ENTRY_CONTINUED)
        return true;
    for (size_t i = 0; i < in->len; i++)
        if (instance_accepts(instance, &in->events[i]))
            return true;
    return false;
}

static bool intake_starts(const struct entry *entry)
{
    return !entry_exists(entry) && entry->first->inbox_sequence != 0 &&
           entry->first->message.kind == MESSAGE_START;
}

static bool retry_is_next(const struct entry *entry)
{
    return entry->first != NULL && entry->first->inbox_sequence != 0 &&
           entry->first->message.kind == MESSAGE_RETRY;
}

/* A start of an instance that does not exist has a turn of its own, a deletion a record of its own; after a
 * retry request the instance is loaded before anything else. */
static bool intake_is_alone(const struct entry *entry)
{
    return intake_starts(entry) || deletion_is_next(entry) || retry_is_next(entry);
}

/* Number of things that wait for the entry, but at most as many as one turn takes. */
static size_t intake_waiting(const struct entry *entry)
{
    size_t n = 0;
    for (const struct pending *pending = entry->first; pending != NULL && n < TURN_RECEIVED_MAX;
         pending = pending->next)
        n++;
    return n;
}

struct intake intake_take(struct instances *p, struct entry *entry, struct arena *arena)
{
    size_t const room = intake_waiting(entry) + 2;
    struct intake in = {.events = arena_array(arena, room, sizeof *in.events)};
    size_t bytes = 0;
    bool over = in.events == NULL;
    if (over)
        env_no_memory(p->env);
    while (!over && !p->env->nomem && in.len < TURN_RECEIVED_MAX && bytes < TURN_RECEIVED_BYTES_MAX &&
           intake_waits(entry) && !(intake_is_alone(entry) && in.len > 0)) {
        if (deletion_is_next(entry)) {
            over = deletion_take(p, entry, &in);
            continue;
        }
        bool const first = intake_starts(entry);
        in.retries = over = retry_is_next(entry) && entry->state != ENTRY_CONTINUED;
        struct pending *pending = entry_take(&p->entries, entry);
        if (in.retries) {
            pending->next = NULL;
            in.taken = pending;
            continue;
        }
        enum taken const taken = intake_take_one(p, entry, pending, arena, &in);
        assert(first || in.expired || in.len < room);
        over = in.expired || (first && taken == TAKEN);
        if (taken == TAKEN) {
            bytes += pending->message.data.len + pending->message.event_data.len;
            pending->next = in.taken;
            in.taken = pending;
            continue;
        }
        if (taken == DROPPED)
            intake_incorporate(p, pending->inbox_sequence, pending->part);
        pending_destroy(pending);
    }
    if (!any_accepted(entry, &in)) {
        intake_done(p, &in);
        intake_release(&in);
        in.len = 0;
    }
    return in;
}

void intake_done(struct instances *p, const struct intake *in)
{
    for (const struct pending *pending = in->taken; pending != NULL; pending = pending->next)
        intake_incorporate(p, pending->inbox_sequence, pending->part);
}

void intake_give_back(struct instances *p, struct entry *entry, struct intake *in)
{
    for (struct pending *next; in->taken != NULL; in->taken = next) {
        next = in->taken->next;
        entry_give_back(&p->entries, entry, in->taken);
    }
}

void intake_release(struct intake *in)
{
    for (struct pending *next; in->taken != NULL; in->taken = next) {
        next = in->taken->next;
        pending_destroy(in->taken);
    }
    early_destroy(in->early);
    in->early = NULL;
}
