/* The codec of history records: struct record to and from thole.v1.Record. */
#include "codec.h"
#include "event.h"
#include "history.pb-c.h"
#include "message.h"
#include "payload_hash.h"
#include "record_folded.h"
#include "record_header.h"
#include "record_outline.h"
#include "record_position.h"
#include "record_references.h"
#include "redaction.h"
#include <assert.h>
#include <string.h>

enum {
    EVENT_FRAME_BYTES_MAX = 160,
    SOURCE_FRAME_BYTES_MAX = 64, /* of an actor, of a place */
    SALTS_FRAME_BYTES_MAX = 96,  /* of the notes of an event's payloads, four at most */
    FINAL_TYPE_FRAME_BYTES_MAX = 6,
};

/* Replay-affecting: thole_should_continue_as_new() adds these up. */
size_t event_bytes_max(const struct event *event)
{
    size_t bytes = EVENT_FRAME_BYTES_MAX + event->name.len + event->queue.len + event->data.len +
                   event->request_id.len + event->error_type.len + event->details.len + event->target.len +
                   event->parent.instance.len + event->input.len + event->worker.len;
    for (size_t i = 0; event->retry != NULL && i < event->retry->final_types_len; i++)
        bytes += FINAL_TYPE_FRAME_BYTES_MAX + event->retry->final_types[i].len;
    return bytes;
}

size_t event_room_bytes(const struct event *event)
{
    size_t bytes = event_bytes_max(event) + SALTS_FRAME_BYTES_MAX;
    if (event->source == NULL)
        return bytes;
    const struct actor *const actor = &event->source->actor;
    const struct activity_place *const place = &event->source->place;
    if (actor_known(actor))
        bytes += SOURCE_FRAME_BYTES_MAX + actor->name.len + actor->client.len + actor->trace.parent.len +
                 actor->trace.list.len;
    if (activity_place_known(place))
        bytes += SOURCE_FRAME_BYTES_MAX + place->worker.len + place->host.len;
    return bytes;
}

/* ---- the table of events ---- */

/* An event with its retry beside it, so that a table reaches both. */
struct whole_event {
    struct event event;
    struct retry retry;
};

#define CODEC_PLAIN struct whole_event

static const struct codec_message origin_table = {&thole__v1__origin__descriptor,
                                                  PB_FIELDS(PB_ID(Origin, instance, event.parent.instance),
                                                            PB_U64(Origin, execution, event.parent.execution),
                                                            PB_U64(Origin, event, event.parent.event))};
static const struct codec_message retry_table = {
    &thole__v1__retry__descriptor,
    PB_FIELDS(PB_U32(Retry, tries_max, retry.tries_max), PB_U64(Retry, first_delay_ms, retry.first_delay_ms),
              PB_U32(Retry, factor_milli, retry.factor_milli),
              PB_U64(Retry, max_delay_ms, retry.max_delay_ms),
              PB_U32(Retry, jitter_milli, retry.jitter_milli),
              PB_LIST(Retry, final_types, retry.final_types, RETRY_FINAL_TYPES_MAX, "final error types"),
              PB_U32(Retry, poison, retry.poison))};

enum { REF = 1, CODE = 2 }; /* members that must not be 0; ref must be 0 in all other kinds */

#define KIND(kind, message, must, ...)                                                                       \
    [EVENT_##kind - EVENT_STARTED] = {{&thole__v1__##message##__descriptor, PB_FIELDS(__VA_ARGS__)}, must}
static const struct {
    struct codec_message body;
    unsigned must;
} kinds[] = {
    KIND(STARTED, started, CODE, PB_NAME(Started, orchestration, event.name, "orchestration"),
         PB_PAYLOAD(Started, input, event.data), PB_U32(Started, semantics, event.code),
         PB_BYTES(Started, request_id, event.request_id), PB_U32(Started, version, event.version),
         PB_PART(Started, parent, Origin, origin_table), PB_U64(Started, before, event.before),
         PB_BYTES(Started, traceparent, event.traceparent), PB_BYTES(Started, tracestate, event.tracestate)),
    KIND(ACTIVITY_SCHEDULED, activity_scheduled, 0, PB_NAME(ActivityScheduled, name, event.name, "activity"),
         PB_NAME(ActivityScheduled, queue, event.queue, "queue"),
         PB_PAYLOAD(ActivityScheduled, input, event.data),
         PB_U64(ActivityScheduled, try_timeout_ms, retry.try_timeout_ms),
         PB_U64(ActivityScheduled, total_timeout_ms, retry.total_timeout_ms),
         PB_PART(ActivityScheduled, retry, Retry, retry_table)),
    KIND(ACTIVITY_COMPLETED, activity_completed, REF, PB_PAYLOAD(ActivityCompleted, output, event.data),
         PB_TRY(ActivityCompleted, try_number, event.try_number),
         PB_BOOL(ActivityCompleted, timed, event.timed)),
    KIND(ACTIVITY_FAILED, activity_failed, REF | CODE, PB_U32(ActivityFailed, status, event.code),
         PB_PAYLOAD(ActivityFailed, text, event.data), PB_TRY(ActivityFailed, try_number, event.try_number),
         PB_BOOL(ActivityFailed, timed, event.timed), PB_TYPE(ActivityFailed, error_type, event.error_type),
         PB_BOOL(ActivityFailed, quarantined, event.quarantined)),
    KIND(ACTIVITY_CANCELLED, activity_cancelled, REF | CODE, PB_U32(ActivityCancelled, kind, event.code),
         PB_PAYLOAD(ActivityCancelled, reason, event.data), PB_BOOL(ActivityCancelled, timed, event.timed),
         PB_BOOL(ActivityCancelled, quarantined, event.quarantined)),
    KIND(TIMER_CREATED, timer_created, 0, PB_U64(TimerCreated, due_ms, event.due_ms)),
    KIND(TIMER_FIRED, timer_fired, REF, PB_END),
    KIND(TIMER_CANCELLED, timer_cancelled, REF | CODE, PB_U32(TimerCancelled, kind, event.code),
         PB_PAYLOAD(TimerCancelled, reason, event.data)),
    KIND(CANCEL_REQUESTED, cancel_requested, 0, PB_PAYLOAD(CancelRequested, reason, event.data),
         PB_BYTES(CancelRequested, request_id, event.request_id)),
    KIND(COMPLETED, completed, 0, PB_PAYLOAD(Completed, output, event.data)),
    KIND(FAILED, failed, CODE, PB_U32(Failed, status, event.code), PB_PAYLOAD(Failed, text, event.data),
         PB_TYPE(Failed, error_type, event.error_type)),
    KIND(CANCELLED, cancelled, 0, PB_PAYLOAD(Cancelled, reason, event.data)),
    KIND(ACTIVITY_TRY_FAILED, activity_try_failed, REF | CODE, PB_U32(ActivityTryFailed, status, event.code),
         PB_PAYLOAD(ActivityTryFailed, text, event.data),
         PB_TRY(ActivityTryFailed, try_number, event.try_number),
         PB_TYPE(ActivityTryFailed, error_type, event.error_type),
         PB_U64(ActivityTryFailed, due_ms, event.due_ms),
         PB_PAYLOAD(ActivityTryFailed, details, event.details)),
    KIND(ACTIVITY_TRY_STARTED, activity_try_started, REF,
         PB_TRY(ActivityTryStarted, try_number, event.try_number),
         PB_NAME(ActivityTryStarted, name, event.name, "activity"),
         PB_NAME(ActivityTryStarted, queue, event.queue, "queue"),
         PB_PAYLOAD(ActivityTryStarted, input, event.data),
         PB_U64(ActivityTryStarted, try_timeout_ms, retry.try_timeout_ms),
         PB_U64(ActivityTryStarted, due_ms, event.due_ms),
         PB_PAYLOAD(ActivityTryStarted, details, event.details),
         PB_BOOL(ActivityTryStarted, quarantined, event.quarantined)),
    KIND(EVENT_RECEIVED, event_received, 0, PB_NAME(EventReceived, name, event.name, "event"),
         PB_PAYLOAD(EventReceived, data, event.data), PB_BYTES(EventReceived, request_id, event.request_id)),
    KIND(EVENT_AWAITED, event_awaited, 0, PB_NAME(EventAwaited, name, event.name, "event")),
    KIND(EVENT_AWAIT_CANCELLED, event_await_cancelled, REF | CODE,
         PB_U32(EventAwaitCancelled, kind, event.code), PB_PAYLOAD(EventAwaitCancelled, reason, event.data)),
    KIND(CHILD_SCHEDULED, child_scheduled, 0,
         PB_NAME(ChildScheduled, orchestration, event.name, "orchestration"),
         PB_PAYLOAD(ChildScheduled, input, event.data), PB_ID(ChildScheduled, instance, event.target),
         PB_U32(ChildScheduled, version, event.version), PB_U32(ChildScheduled, close, event.code)),
    KIND(CHILD_COMPLETED, child_completed, REF, PB_PAYLOAD(ChildCompleted, output, event.data)),
    KIND(CHILD_FAILED, child_failed, REF | CODE, PB_U32(ChildFailed, status, event.code),
         PB_PAYLOAD(ChildFailed, text, event.data), PB_TYPE(ChildFailed, error_type, event.error_type)),
    KIND(CHILD_CANCELLED, child_cancelled, REF | CODE, PB_U32(ChildCancelled, kind, event.code),
         PB_PAYLOAD(ChildCancelled, reason, event.data), PB_ID(ChildCancelled, instance, event.target),
         PB_BOOL(ChildCancelled, terminate, event.flag)),
    KIND(DETACHED_STARTED, detached_started, 0,
         PB_NAME(DetachedStarted, orchestration, event.name, "orchestration"),
         PB_PAYLOAD(DetachedStarted, input, event.data), PB_ID(DetachedStarted, instance, event.target),
         PB_U32(DetachedStarted, version, event.version)),
    KIND(EVENT_SENT, event_sent, 0, PB_ID(EventSent, instance, event.target),
         PB_NAME(EventSent, name, event.name, "event"), PB_PAYLOAD(EventSent, data, event.data)),
    KIND(SIDE_EFFECT_RECORDED, side_effect_recorded, 0, PB_PAYLOAD(SideEffectRecorded, data, event.data),
         PB_U32(SideEffectRecorded, status, event.code)),
    KIND(CUSTOM_STATUS_SET, custom_status_set, 0, PB_PAYLOAD(CustomStatusSet, data, event.data)),
    KIND(STATE_SET, state_set, 0, PB_UPTO(StateSet, key, event.name, THOLE_NAME_BYTES_MAX, "key"),
         PB_PAYLOAD(StateSet, value, event.data), PB_BOOL(StateSet, removed, event.flag)),
    KIND(PATCHED, patched, 0, PB_NAME(Patched, change, event.name, "change")),
    KIND(CONTINUED_AS_NEW, continued_as_new, 0, PB_PAYLOAD(ContinuedAsNew, input, event.data),
         PB_U32(ContinuedAsNew, version, event.version)),
    KIND(TERMINATE_REQUESTED, terminate_requested, 0, PB_PAYLOAD(TerminateRequested, reason, event.data),
         PB_BYTES(TerminateRequested, request_id, event.request_id)),
    KIND(TERMINATED, terminated, 0, PB_PAYLOAD(Terminated, reason, event.data)),
    KIND(PAUSED, paused, 0, PB_PAYLOAD(Paused, reason, event.data),
         PB_BYTES(Paused, request_id, event.request_id)),
    KIND(RESUMED, resumed, 0, PB_PAYLOAD(Resumed, reason, event.data),
         PB_BYTES(Resumed, request_id, event.request_id)),
    KIND(STATE_CARRIED, state_carried, 0, PB_UPTO(StateCarried, key, event.name, THOLE_NAME_BYTES_MAX, "key"),
         PB_PAYLOAD(StateCarried, value, event.data)),
    KIND(ORIGINS_CARRIED, origins_carried, 0, PB_BYTES(OriginsCarried, hashes, event.data)),
    KIND(VERSION_CHOSEN, version_chosen, 0, PB_U32(VersionChosen, version, event.version)),
    KIND(DISCARDED, discarded, 0, PB_PAYLOAD(Discarded, reason, event.data)),
    KIND(HISTORY_PRUNED, history_pruned, 0, PB_U64(HistoryPruned, kept, event.kept),
         PB_U64(HistoryPruned, before, event.before), PB_PAYLOAD(HistoryPruned, reason, event.data),
         PB_BYTES(HistoryPruned, request_id, event.request_id)),
    KIND(ACTIVITY_QUARANTINED, activity_quarantined, REF, PB_PAYLOAD(ActivityQuarantined, text, event.data),
         PB_TRY(ActivityQuarantined, try_number, event.try_number),
         PB_U64(ActivityQuarantined, due_ms, event.due_ms), PB_U32(ActivityQuarantined, lost, event.lost),
         PB_UPTO(ActivityQuarantined, worker, event.worker, THOLE_ID_BYTES_MAX, "worker id"),
         PB_NAME(ActivityQuarantined, name, event.name, "activity"),
         PB_NAME(ActivityQuarantined, queue, event.queue, "queue"),
         PB_PAYLOAD(ActivityQuarantined, input, event.input),
         PB_PAYLOAD(ActivityQuarantined, details, event.details)),
    KIND(EVENT_EMITTED, event_emitted, 0,
         PB_UPTO(EventEmitted, type, event.name, EVENT_TYPE_BYTES_MAX, "event type"),
         PB_PAYLOAD(EventEmitted, data, event.data)),
};
enum { KINDS_LEN = sizeof kinds / sizeof kinds[0] };
_Static_assert(KINDS_LEN == EVENT_LAST - EVENT_STARTED + 1, "a row for each kind");

/* ---- actors and places ---- */

bool actor_known(const struct actor *actor)
{
    return actor->name.len > 0 || actor->client.len > 0 || actor->trace.parent.len > 0 ||
           actor->authenticated;
}

bool activity_place_known(const struct activity_place *place)
{
    return place->worker.len > 0 || place->host.len > 0 || place->attempt > 0 || place->started_ms > 0 ||
           place->ended_ms > 0;
}

#undef CODEC_PLAIN
#define CODEC_PLAIN struct actor

static const struct codec_message actor_table = {
    &thole__v1__actor__descriptor,
    PB_FIELDS(PB_UPTO(Actor, name, name, ACTOR_NAME_BYTES_MAX, "name of an actor"),
              PB_BOOL(Actor, authenticated, authenticated),
              PB_UPTO(Actor, client, client, ACTOR_CLIENT_BYTES_MAX, "name of a client"),
              PB_UPTO(Actor, traceparent, trace.parent, TRACEPARENT_BYTES, "traceparent"),
              PB_UPTO(Actor, tracestate, trace.list, TRACESTATE_BYTES_MAX, "tracestate"))};

#undef CODEC_PLAIN
#define CODEC_PLAIN struct activity_place

static const struct codec_message place_table = {
    &thole__v1__run__descriptor,
    PB_FIELDS(PB_UPTO(Run, worker, worker, THOLE_ID_BYTES_MAX, "worker id"),
              PB_UPTO(Run, host, host, RUN_HOST_BYTES_MAX, "name of a host"), PB_U64(Run, attempt, attempt),
              PB_U64(Run, started_ms, started_ms), PB_U64(Run, ended_ms, ended_ms))};

uint32_t event_data_field(enum event_kind kind)
{
    if (kind < EVENT_STARTED || kind > EVENT_LAST)
        return 0;
    const struct codec_message *const table = &kinds[kind - EVENT_STARTED].body;
    for (const struct codec_field *at = table->fields; at->form != CODEC_END; at++)
        if (at->payload && at->at == offsetof(struct whole_event, event.data))
            return codec_field_number(table, at);
    return 0;
}

const char *event_payload_name(uint32_t body, uint32_t field)
{
    enum event_kind const kind = event_kind_of_body(body);
    if (kind < EVENT_STARTED || kind > EVENT_LAST)
        return NULL;
    const struct codec_message *const table = &kinds[kind - EVENT_STARTED].body;
    for (const struct codec_field *at = table->fields; at->form != CODEC_END; at++)
        if (at->payload && codec_field_number(table, at) == field)
            return protobuf_c_message_descriptor_get_field(table->descriptor, field)->name;
    return NULL;
}

/* ---- encoding ---- */

static thole_status source_to_pb(const struct event *e, struct arena *arena, Thole__V1__Event *pb)
{
    ProtobufCMessage *actor = NULL, *place = NULL;
    if (e->source != NULL && actor_known(&e->source->actor))
        THOLE_TRY(codec_to_pb(&actor_table, &e->source->actor, arena, &actor, NULL));
    if (e->source != NULL && activity_place_known(&e->source->place))
        THOLE_TRY(codec_to_pb(&place_table, &e->source->place, arena, &place, NULL));
    pb->actor = (Thole__V1__Actor *)actor;
    pb->run = (Thole__V1__Run *)place;
    return THOLE_OK;
}

static thole_status note_to_pb(uint32_t field, struct record_salts *salts, struct arena *arena,
                               Thole__V1__Payload **ret)
{
    Thole__V1__Payload *const note = arena_alloc(arena, sizeof *note);
    uint8_t *const salt = arena_alloc(arena, SALT_BYTES);
    if (note == NULL || salt == NULL)
        return arena_status(arena);
    thole__v1__payload__init(note);
    note->field = field;
    note->salt = codec_bytes(record_salts_next(salts, salt));
    *ret = note;
    return THOLE_OK;
}

/* A salt for each payload that there is. */
static thole_status notes_to_pb(const struct codec_message *table, const struct whole_event *whole,
                                struct record_salts *salts, struct arena *arena, Thole__V1__Event *pb)
{
    Thole__V1__Payload **const notes = arena_array(arena, PAYLOADS_MAX, sizeof(Thole__V1__Payload *));
    size_t n = 0;
    if (notes == NULL)
        return arena_status(arena);
    for (const struct codec_field *field = table->fields; field->form != CODEC_END; field++) {
        const thole_slice *const payload = (const void *)((const uint8_t *)whole + field->at);
        if (!field->payload || payload->len == 0)
            continue;
        assert(n < PAYLOADS_MAX);
        THOLE_TRY(note_to_pb(codec_field_number(table, field), salts, arena, &notes[n]));
        n++;
    }
    pb->payloads = notes;
    pb->n_payloads = n;
    return THOLE_OK;
}

/* pb->payload_of is set. */
static thole_status body_to_pb(const struct event *e, struct record_salts *salts, struct arena *arena,
                               Thole__V1__Event *pb)
{
    const struct codec_message *const table = &kinds[e->kind - EVENT_STARTED].body;
    bool const refers = pb->payload_of != 0;
    struct whole_event whole = {.event = *e};
    if (refers)
        whole.event.data = (thole_slice){0};
    if (e->retry != NULL)
        whole.retry = *e->retry;
    ProtobufCMessage *body;
    THOLE_TRY(codec_to_pb(table, &whole, arena, &body, NULL));
    if (salts->source != NULL)
        THOLE_TRY(notes_to_pb(table, &whole, salts, arena, pb));
    memcpy(&pb->started, &body, sizeof body); /* all bodies are pointers in one union */
    pb->body_case =
        (Thole__V1__Event__BodyCase)(e->kind + (refers ? REFERENCE_KINDS : 0)); /* the field numbers */
    return THOLE_OK;
}

/* @p payload_of: the id of the event that has its payload; 0: itself. */
static thole_status event_to_pb(const struct event *e, uint64_t payload_of, struct record_salts *salts,
                                struct arena *arena, Thole__V1__Event **ret)
{
    Thole__V1__Event *pb = arena_alloc(arena, sizeof *pb);
    if (pb == NULL)
        return arena_status(arena);
    thole__v1__event__init(pb);
    pb->id = e->id;
    pb->ref = e->ref;
    pb->payload_of = payload_of;
    THOLE_TRY(source_to_pb(e, arena, pb));
    *ret = pb;
    return e->kind < EVENT_STARTED || e->kind > EVENT_LAST ? THOLE_OK : body_to_pb(e, salts, arena, pb);
}

static thole_status record_pack(Thole__V1__Record pb, const struct record *record, struct buf *to)
{
    Thole__V1__Position position;
    struct arena arena;
    arena_init(&arena, 2 * POSITION_ABOVE_MAX * sizeof(uint64_t) + 4096);
    thole_status status = position_to_pb(&record->position, &arena, &position);
    pb.format = record->kind == RECORD_DELETED ? RECORD_FORMAT_DELETED : RECORD_FORMAT_FIRST;
    pb.epoch = record->epoch;
    pb.n = record->n;
    pb.committed = record->committed;
    pb.published = record->published;
    pb.position = &position;
    pb.previous = codec_bytes(record_hash_slice(&record->previous));
    pb.previous_of_instance = codec_bytes(record_hash_slice(&record->previous_of_instance.hash));
    pb.previous_of_instance_at = record->previous_of_instance.sequence;
    pb.body_case = (Thole__V1__Record__BodyCase)record->kind;
    if (status == THOLE_OK)
        status = codec_pack(&pb.base, to);
    arena_release(&arena);
    return status;
}

static thole_status turn_pack(const struct record *record, Thole__V1__Event **events, size_t events_len,
                              bool salted, struct buf *to)
{
    const struct turn *turn = &record->turn;
    Thole__V1__Record pb = THOLE__V1__RECORD__INIT;
    Thole__V1__Turn body = THOLE__V1__TURN__INIT;
    Thole__V1__Blocked blocked = THOLE__V1__BLOCKED__INIT;
    body.instance = codec_bytes(turn->instance);
    body.execution = turn->execution;
    body.turn = turn->number;
    body.time_ms = turn->time_ms;
    body.more = turn->more;
    body.ran = turn->ran;
    if (turn->blocked != BLOCKED_NOT) {
        blocked.kind = (uint32_t)turn->blocked;
        blocked.text = codec_bytes(turn->blocked_text);
        body.blocked = &blocked;
    }
    pb.hashed = salted ? RECORD_HASHED_OUTLINE : 0;
    body.events = events;
    body.n_events = events_len;
    body.traceparent = codec_bytes(turn->trace.parent);
    body.tracestate = codec_bytes(turn->trace.list);
    body.orchestration = codec_bytes(turn->orchestration);
    pb.turn = &body;
    return record_pack(pb, record, to);
}

static thole_status events_to_pb(const struct record *record, const uint32_t *references,
                                 struct record_salts *salts, struct arena *arena, Thole__V1__Event **to)
{
    const struct event *const events = record->turn.events;
    for (size_t i = 0; i < record->turn.events_len; i++) {
        size_t const at = references != NULL && i >= REFERENCE_MARK ? i + 1 : i;
        uint64_t const payload_of =
            references == NULL || references[i] == 0 ? 0 : events[references[i] - 1].id;
        THOLE_TRY(event_to_pb(&events[i], payload_of, salts, arena, &to[at]));
    }
    return THOLE_OK;
}

static thole_status events_pack(const struct record *record, struct arena *arena, struct buf *to)
{
    Thole__V1__Event mark = THOLE__V1__EVENT__INIT;
    size_t const n = record->turn.events_len;
    Thole__V1__Event **events = arena_array(arena, n + 1, sizeof(Thole__V1__Event *));
    if (events == NULL)
        return arena_status(arena);
    struct record_salts salts = {.source = record->salts, .epoch = record->epoch, .n = record->n};
    const uint32_t *references = NULL;
    if (record->refers)
        THOLE_TRY(references_find(&record->turn, arena, &references));
    events[references != NULL ? REFERENCE_MARK : n] = &mark;
    THOLE_TRY(events_to_pb(record, references, &salts, arena, events));
    size_t const before = to->len, more = references_bytes(&record->turn, references);
    THOLE_TRY(turn_pack(record, events, n + (references != NULL), salts.used > 0, to));
    if (more == 0 || to->len - before + more <= RECORD_BYTES_MAX)
        return THOLE_OK;
    to->len = before; /* nobody would decode it */
    return THOLE_LIMIT;
}

static thole_status turn_encode(const struct record *record, struct buf *to)
{
    struct arena arena;
    if (record->turn.events_len > RECORD_EVENTS_MAX)
        return THOLE_LIMIT;
    arena_init(&arena, SIZE_MAX); /* the buffer bounds the size */
    thole_status const status = events_pack(record, &arena, to);
    arena_release(&arena);
    return status;
}

static thole_status epoch_opened_encode(const struct record *record, struct buf *to)
{
    Thole__V1__Record pb = THOLE__V1__RECORD__INIT;
    Thole__V1__EpochOpened body = THOLE__V1__EPOCH_OPENED__INIT;
    body.node = codec_bytes(record->node);
    body.time_ms = record->time_ms;
    body.previous_epoch = record->previous_epoch;
    body.previous_n = record->previous_n;
    body.counted = record->counted;
    pb.epoch_opened = &body;
    return record_pack(pb, record, to);
}

#undef CODEC_PLAIN
#define CODEC_PLAIN struct deletion

static const struct codec_message deleted_origin_table = {
    &thole__v1__origin__descriptor,
    PB_FIELDS(PB_ID(Origin, instance, parent.instance), PB_U64(Origin, execution, parent.execution),
              PB_U64(Origin, event, parent.event))};
static const struct codec_message deleted_table = {
    &thole__v1__deleted__descriptor,
    PB_FIELDS(PB_ID(Deleted, instance, instance), PB_U64(Deleted, execution, execution),
              PB_U64(Deleted, time_ms, time_ms), PB_BYTES(Deleted, orchestration, orchestration),
              PB_UPTO(Deleted, reason, reason, REASON_BYTES_MAX, "reason of a deletion"),
              PB_UPTO(Deleted, request_id, request_id, REQUEST_ID_BYTES_MAX, "request id"),
              PB_UPTO(Deleted, started_by, started_by, REQUEST_ID_BYTES_MAX, "request id"),
              PB_PART(Deleted, parent, Origin, deleted_origin_table))};

static thole_status deleted_encode(const struct record *record, struct buf *to)
{
    Thole__V1__Record pb = THOLE__V1__RECORD__INIT;
    ProtobufCMessage *body = NULL;
    struct arena arena;
    arena_init(&arena, CODEC_SCRATCH_MAX);
    ProtobufCMessage *actor = NULL;
    thole_status status = codec_to_pb(&deleted_table, &record->deletion, &arena, &body, NULL);
    pb.deleted = (Thole__V1__Deleted *)body;
    if (status == THOLE_OK && actor_known(&record->deletion.actor))
        status = codec_to_pb(&actor_table, &record->deletion.actor, &arena, &actor, NULL);
    if (status == THOLE_OK)
        pb.deleted->actor = (Thole__V1__Actor *)actor;
    if (status == THOLE_OK)
        status = record_pack(pb, record, to);
    arena_release(&arena);
    return status;
}

static thole_status position_moved_encode(const struct record *record, struct buf *to)
{
    Thole__V1__Record pb = THOLE__V1__RECORD__INIT;
    Thole__V1__PositionMoved moved = THOLE__V1__POSITION_MOVED__INIT;
    Thole__V1__Folded folded;
    struct arena arena;
    thole_status status = THOLE_OK;
    arena_init(&arena, CODEC_SCRATCH_MAX);
    if (record->folded.len > 0) {
        status = folded_to_pb(&record->folded, &arena, &folded);
        moved.folded = &folded;
    }
    pb.position_moved = &moved;
    if (status == THOLE_OK)
        status = record_pack(pb, record, to);
    arena_release(&arena);
    return status;
}

thole_status record_encode(const struct record *record, struct buf *to)
{
    switch (record->kind) {
    case RECORD_TURN: return turn_encode(record, to);
    case RECORD_EPOCH_OPENED: return epoch_opened_encode(record, to);
    case RECORD_POSITION: return position_moved_encode(record, to);
    case RECORD_DELETED: return deleted_encode(record, to);
    case RECORD_UNKNOWN: break;
    }
    return THOLE_INVALID; /* unknown kinds are never written again */
}

/* ---- decoding ---- */

struct decoding {
    struct arena *arena;
    thole_error *reterr;
    size_t bytes; /* of the record */
};

static thole_status record_dup(const struct decoding *d, ProtobufCBinaryData from, thole_slice *ret)
{
    return codec_dup(d->arena, from, ret, d->reterr);
}

/* Checks that the table cannot express. What a ref refers to is checked by the instance. */
static thole_status event_check(const struct event *e, unsigned must, thole_error *reterr)
{
    unsigned long long const id = e->id, ref = e->ref;
    const char *name = event_kind_name(e->kind);
    if (e->id == 0)
        return thole_fail(reterr, THOLE_CORRUPT, "%s without an event id", name);
    if (((must & REF) != 0) != (e->ref != 0))
        return thole_fail(reterr, THOLE_CORRUPT, "event %llu, %s, refers to event %llu", id, name, ref);
    if ((must & CODE) != 0 && e->code == 0)
        return thole_fail(reterr, THOLE_CORRUPT, "event %llu, %s, has code 0", id, name);
    if (e->parent.instance.len > 0 && (e->parent.execution == 0 || e->parent.event == 0))
        return thole_fail(reterr, THOLE_CORRUPT, "event %llu, %s, has a parent without a number", id, name);
    if (e->kind == EVENT_STATE_SET && e->name.len == 0)
        return thole_fail(reterr, THOLE_CORRUPT, "event %llu, %s, has no key", id, name);
    if (e->kind == EVENT_EVENT_EMITTED)
        THOLE_TRY(codec_corrupt(event_type_check(e->name, reterr), reterr));
    if (e->kind == EVENT_ORIGINS_CARRIED && e->data.len % sizeof(uint64_t) != 0)
        return thole_fail(reterr, THOLE_CORRUPT, "event %llu, %s, has %zu bytes", id, name, e->data.len);
    return THOLE_OK;
}

static bool retry_is_empty(const struct retry *r)
{
    return r->try_timeout_ms == 0 && r->total_timeout_ms == 0 && r->tries_max == 0 &&
           r->first_delay_ms == 0 && r->max_delay_ms == 0 && r->factor_milli == 0 && r->jitter_milli == 0 &&
           r->final_types_len == 0 && r->poison == 0;
}

static thole_status actor_decode(const struct decoding *d, const Thole__V1__Actor *pb, struct actor *ret)
{
    THOLE_TRY(codec_from_pb(&actor_table, &pb->base, d->arena, ret, d->reterr));
    ret->trace = trace_valid(&ret->trace);
    return THOLE_OK;
}

static thole_status source_decode(const struct decoding *d, const Thole__V1__Event *pb, struct event *ret)
{
    if (pb->actor == NULL && pb->run == NULL)
        return THOLE_OK;
    struct event_source *const source = arena_alloc(d->arena, sizeof *source);
    if (source == NULL)
        return codec_full(d->arena, d->reterr);
    *source = (struct event_source){.place.attempt = 0};
    if (pb->actor != NULL)
        THOLE_TRY(actor_decode(d, pb->actor, &source->actor));
    if (pb->run != NULL)
        THOLE_TRY(codec_from_pb(&place_table, &pb->run->base, d->arena, &source->place, d->reterr));
    ret->source = source;
    return THOLE_OK;
}

/* Notes that are not as they must be are for `thole audit verify` to find. */
static void erased_decode(const struct codec_message *table, const Thole__V1__Event *pb, struct event *ret)
{
    for (size_t i = 0; i < pb->n_payloads; i++) {
        const struct codec_field *field = table->fields;
        if (pb->payloads[i]->hash.len == 0)
            continue;
        while (field->form != CODEC_END &&
               !(field->payload && codec_field_number(table, field) == pb->payloads[i]->field))
            field++;
        if (field->form == CODEC_END)
            continue;
        ret->data_erased |= field->at == offsetof(struct whole_event, event.data);
        ret->details_erased |= field->at == offsetof(struct whole_event, event.details);
        ret->input_erased |= field->at == offsetof(struct whole_event, event.input);
    }
}

static bool event_refers(const Thole__V1__Event *pb)
{
    return (enum event_kind)pb->body_case != event_kind_of_body((uint32_t)pb->body_case);
}

static thole_status refers_check(const Thole__V1__Event *pb, const struct event *e, thole_error *reterr)
{
    bool const refers = event_refers(pb);
    if (refers == (pb->payload_of != 0) && (!refers || (e->data.len == 0 && !e->data_erased)))
        return THOLE_OK;
    return thole_fail(
        reterr, THOLE_CORRUPT, "event %llu, %s: its body does not go with a payload of event %llu",
        (unsigned long long)e->id, event_kind_name(e->kind), (unsigned long long)pb->payload_of);
}

static thole_status event_decode(const struct decoding *d, const Thole__V1__Event *pb, struct event *ret)
{
    struct whole_event whole = {
        .event = {.kind = event_kind_of_body((uint32_t)pb->body_case), .id = pb->id, .ref = pb->ref}};
    if (whole.event.kind == EVENT_UNKNOWN) {
        *ret = whole.event;
        return THOLE_OK;
    }
    assert(whole.event.kind >= EVENT_STARTED && whole.event.kind <= EVENT_LAST);
    size_t const row = (size_t)(whole.event.kind - EVENT_STARTED);
    const ProtobufCMessage *body;
    memcpy(&body, &pb->started, sizeof body);
    THOLE_TRY(codec_from_pb(&kinds[row].body, body, d->arena, &whole, d->reterr));
    THOLE_TRY(event_check(&whole.event, kinds[row].must, d->reterr));
    THOLE_TRY(source_decode(d, pb, &whole.event));
    erased_decode(&kinds[row].body, pb, &whole.event);
    THOLE_TRY(refers_check(pb, &whole.event, d->reterr));
    if (!retry_is_empty(&whole.retry)) {
        struct retry *retry = arena_alloc(d->arena, sizeof *retry);
        if (retry == NULL)
            return codec_full(d->arena, d->reterr);
        *retry = whole.retry;
        whole.event.retry = retry;
    }
    *ret = whole.event;
    return THOLE_OK;
}

static bool event_is_mark(const Thole__V1__Event *pb)
{
    return pb->body_case == THOLE__V1__EVENT__BODY__NOT_SET && pb->id == 0 && pb->base.n_unknown_fields == 0;
}

static size_t references_count(const Thole__V1__Turn *pb)
{
    size_t n = 0;
    for (size_t i = 0; i < pb->n_events; i++)
        n += event_refers(pb->events[i]);
    return n;
}

/* Takes the mark out. */
static thole_status references_decode(const struct decoding *d, const Thole__V1__Turn *pb, struct turn *turn,
                                      struct event *events, size_t len)
{
    struct reference *const references = arena_array(d->arena, len, sizeof *references);
    size_t n = 0;
    if (references == NULL)
        return codec_full(d->arena, d->reterr);
    if (pb->n_events <= REFERENCE_MARK || !event_is_mark(pb->events[REFERENCE_MARK]))
        return thole_fail(d->reterr, THOLE_CORRUPT, "turn %llu has references without their mark",
                          (unsigned long long)pb->turn);
    turn->events_len--;
    memmove(&events[REFERENCE_MARK], &events[REFERENCE_MARK + 1],
            (turn->events_len - REFERENCE_MARK) * sizeof *events);
    for (size_t i = 0; i < pb->n_events; i++)
        if (event_refers(pb->events[i]))
            references[n++] = (struct reference){i > REFERENCE_MARK ? i - 1 : i, pb->events[i]->payload_of};
    assert(n == len);
    return references_resolve(events, turn->events_len, references, len, d->bytes, d->reterr);
}

static thole_status events_decode(const struct decoding *d, const Thole__V1__Turn *pb, struct turn *ret)
{
    size_t const references = references_count(pb);
    if (pb->n_events > RECORD_EVENTS_MAX + (size_t)(references > 0))
        return thole_fail(d->reterr, THOLE_LIMIT, "record has %zu events, at most %d are allowed",
                          pb->n_events, RECORD_EVENTS_MAX);
    struct event *events = arena_array(d->arena, pb->n_events, sizeof *events);
    if (events == NULL)
        return codec_full(d->arena, d->reterr);
    for (size_t i = 0; i < pb->n_events; i++)
        THOLE_TRY(event_decode(d, pb->events[i], &events[i]));
    ret->events = events;
    ret->events_len = pb->n_events;
    return references == 0 ? THOLE_OK : references_decode(d, pb, ret, events, references);
}

static enum blocked_kind blocked_from_pb(uint32_t kind)
{
    return kind >= BLOCKED_NO_CODE && kind <= BLOCKED_CRASHED ? (enum blocked_kind)kind : BLOCKED_TOO_NEW;
}

static thole_status turn_decode(const struct decoding *d, const Thole__V1__Turn *pb, struct turn *ret)
{
    THOLE_TRY(codec_corrupt(id_check(codec_slice(pb->instance), d->reterr), d->reterr));
    bool const early = pb->execution == 0 && !pb->ran; /* nothing runs in execution 0 */
    if ((pb->execution == 0 && !early) || pb->turn == 0)
        return thole_fail(d->reterr, THOLE_CORRUPT, "turn without an execution or a number");
    if (pb->ran && pb->blocked != NULL)
        return thole_fail(d->reterr, THOLE_CORRUPT, "turn %llu ran and was blocked",
                          (unsigned long long)pb->turn);
    THOLE_TRY(record_dup(d, pb->instance, &ret->instance));
    ret->execution = pb->execution;
    ret->number = pb->turn;
    ret->time_ms = pb->time_ms;
    ret->more = pb->more != 0;
    ret->ran = pb->ran != 0;
    THOLE_TRY(record_dup(d, pb->traceparent, &ret->trace.parent));
    THOLE_TRY(record_dup(d, pb->tracestate, &ret->trace.list));
    if (pb->orchestration.len > 0)
        THOLE_TRY(
            codec_corrupt(name_check(codec_slice(pb->orchestration), "orchestration", d->reterr), d->reterr));
    THOLE_TRY(record_dup(d, pb->orchestration, &ret->orchestration));
    if (pb->blocked != NULL) {
        ret->blocked = blocked_from_pb(pb->blocked->kind);
        THOLE_TRY(record_dup(d, pb->blocked->text, &ret->blocked_text));
    }
    return events_decode(d, pb, ret);
}

static thole_status epoch_opened_decode(const struct decoding *d, const Thole__V1__EpochOpened *pb,
                                        struct record *ret)
{
    if (pb->node.len > THOLE_ID_BYTES_MAX)
        return thole_fail(d->reterr, THOLE_CORRUPT, "node id has %zu bytes", pb->node.len);
    ret->time_ms = pb->time_ms;
    ret->previous_epoch = pb->previous_epoch;
    ret->previous_n = pb->previous_n;
    ret->counted = pb->counted;
    return record_dup(d, pb->node, &ret->node);
}

static thole_status deleted_decode(const struct decoding *d, const Thole__V1__Deleted *pb,
                                   struct deletion *ret)
{
    THOLE_TRY(codec_corrupt(id_check(codec_slice(pb->instance), d->reterr), d->reterr));
    THOLE_TRY(codec_from_pb(&deleted_table, &pb->base, d->arena, ret, d->reterr));
    if (pb->actor != NULL)
        THOLE_TRY(actor_decode(d, pb->actor, &ret->actor));
    if (ret->parent.instance.len > 0 && (ret->parent.execution == 0 || ret->parent.event == 0))
        return thole_fail(d->reterr, THOLE_CORRUPT, "a deletion has a parent without a number");
    return THOLE_OK;
}

/* Readers other than `thole audit verify` do not use it, so a wrong length is no damage. */
static struct record_hash hash_decode(ProtobufCBinaryData bytes)
{
    return record_hash_said(bytes.len == RECORD_HASH_BYTES ? codec_slice(bytes) : (thole_slice){0});
}

static thole_status record_from_pb(const struct decoding *d, const Thole__V1__Record *pb, struct record *ret)
{
    THOLE_TRY(record_header_check(pb, d->reterr));
    ret->kind = (enum record_kind)pb->body_case;
    ret->epoch = pb->epoch;
    ret->n = pb->n;
    ret->committed = pb->committed;
    ret->published = pb->published;
    ret->previous = hash_decode(pb->previous);
    ret->previous_of_instance =
        (struct record_link){hash_decode(pb->previous_of_instance), pb->previous_of_instance_at};
    THOLE_TRY(position_from_pb(pb->position, d->arena, &ret->position, d->reterr));
    switch (ret->kind) {
    case RECORD_TURN: return turn_decode(d, pb->turn, &ret->turn);
    case RECORD_EPOCH_OPENED: return epoch_opened_decode(d, pb->epoch_opened, ret);
    case RECORD_DELETED: return deleted_decode(d, pb->deleted, &ret->deletion);
    case RECORD_POSITION:
        return folded_from_pb(pb->position_moved->folded, d->arena, &ret->folded, d->reterr);
    case RECORD_UNKNOWN: break;
    }
    return THOLE_OK;
}

thole_status record_decode(thole_slice bytes, struct arena *arena, struct record *ret, thole_error *reterr)
{
    struct decoding const d = {arena, reterr, bytes.len};
    struct record record = {.kind = RECORD_UNKNOWN};
    struct codec_scratch scratch;
    ProtobufCMessage *pb = NULL;
    codec_init(&scratch);
    thole_status status = codec_unpack(&thole__v1__record__descriptor, bytes, RECORD_BYTES_MAX, &scratch,
                                       "record", &pb, reterr);
    if (status == THOLE_OK)
        status = record_from_pb(&d, (const Thole__V1__Record *)pb, &record);
    codec_release(&scratch);
    if (status == THOLE_OK)
        *ret = record;
    return status;
}
