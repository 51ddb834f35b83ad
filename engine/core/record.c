/* The codec of history records: struct record to and from thole.v1.Record. */
#include "codec.h"
#include "event.h"
#include "history.pb-c.h"
#include "message.h"
#include <assert.h>
#include <stdlib.h>

enum {
    EVENTS_ON_STACK = 8,
    EVENT_FRAME_BYTES_MAX = 96, /* all tags, lengths and numbers of one event: under 70 */
};

/* One event and its body side by side, so that a turn's events are one allocation at most. */
struct event_pb {
    Thole__V1__Event event;
    union {
        Thole__V1__Started started;
        Thole__V1__ActivityScheduled activity_scheduled;
        Thole__V1__ActivityCompleted activity_completed;
        Thole__V1__ActivityFailed activity_failed;
        Thole__V1__ActivityCancelled activity_cancelled;
        Thole__V1__TimerCreated timer_created;
        Thole__V1__TimerFired timer_fired;
        Thole__V1__TimerCancelled timer_cancelled;
        Thole__V1__CancelRequested cancel_requested;
        Thole__V1__Completed completed;
        Thole__V1__Failed failed;
        Thole__V1__Cancelled cancelled;
    } body;
};

size_t event_bytes_max(const struct event *event)
{
    return EVENT_FRAME_BYTES_MAX + event->name.len + event->queue.len + event->data.len +
           event->request_id.len;
}

/* ---- encoding ---- */

/* Activities and timers. Returns false for other kinds. */
static bool task_to_pb(const struct event *e, struct event_pb *pb)
{
    switch (e->kind) {
    case EVENT_ACTIVITY_SCHEDULED:
        thole__v1__activity_scheduled__init(&pb->body.activity_scheduled);
        pb->body.activity_scheduled.name = codec_bytes(e->name);
        pb->body.activity_scheduled.input = codec_bytes(e->data);
        pb->body.activity_scheduled.queue = codec_bytes(e->queue);
        pb->event.activity_scheduled = &pb->body.activity_scheduled;
        return true;
    case EVENT_ACTIVITY_COMPLETED:
        thole__v1__activity_completed__init(&pb->body.activity_completed);
        pb->body.activity_completed.output = codec_bytes(e->data);
        pb->event.activity_completed = &pb->body.activity_completed;
        return true;
    case EVENT_ACTIVITY_FAILED:
        thole__v1__activity_failed__init(&pb->body.activity_failed);
        pb->body.activity_failed.status = e->code;
        pb->body.activity_failed.text = codec_bytes(e->data);
        pb->event.activity_failed = &pb->body.activity_failed;
        return true;
    case EVENT_ACTIVITY_CANCELLED:
        thole__v1__activity_cancelled__init(&pb->body.activity_cancelled);
        pb->body.activity_cancelled.kind = e->code;
        pb->body.activity_cancelled.reason = codec_bytes(e->data);
        pb->event.activity_cancelled = &pb->body.activity_cancelled;
        return true;
    case EVENT_TIMER_CREATED:
        thole__v1__timer_created__init(&pb->body.timer_created);
        pb->body.timer_created.due_ms = e->due_ms;
        pb->event.timer_created = &pb->body.timer_created;
        return true;
    case EVENT_TIMER_FIRED:
        thole__v1__timer_fired__init(&pb->body.timer_fired);
        pb->event.timer_fired = &pb->body.timer_fired;
        return true;
    case EVENT_TIMER_CANCELLED:
        thole__v1__timer_cancelled__init(&pb->body.timer_cancelled);
        pb->body.timer_cancelled.kind = e->code;
        pb->body.timer_cancelled.reason = codec_bytes(e->data);
        pb->event.timer_cancelled = &pb->body.timer_cancelled;
        return true;
    default: return false;
    }
}

/* What concerns the whole execution. Returns false for other kinds. */
static bool execution_to_pb(const struct event *e, struct event_pb *pb)
{
    switch (e->kind) {
    case EVENT_STARTED:
        thole__v1__started__init(&pb->body.started);
        pb->body.started.orchestration = codec_bytes(e->name);
        pb->body.started.input = codec_bytes(e->data);
        pb->body.started.semantics = e->code;
        pb->body.started.request_id = codec_bytes(e->request_id);
        pb->event.started = &pb->body.started;
        return true;
    case EVENT_CANCEL_REQUESTED:
        thole__v1__cancel_requested__init(&pb->body.cancel_requested);
        pb->body.cancel_requested.reason = codec_bytes(e->data);
        pb->body.cancel_requested.request_id = codec_bytes(e->request_id);
        pb->event.cancel_requested = &pb->body.cancel_requested;
        return true;
    case EVENT_COMPLETED:
        thole__v1__completed__init(&pb->body.completed);
        pb->body.completed.output = codec_bytes(e->data);
        pb->event.completed = &pb->body.completed;
        return true;
    case EVENT_FAILED:
        thole__v1__failed__init(&pb->body.failed);
        pb->body.failed.status = e->code;
        pb->body.failed.text = codec_bytes(e->data);
        pb->event.failed = &pb->body.failed;
        return true;
    case EVENT_CANCELLED:
        thole__v1__cancelled__init(&pb->body.cancelled);
        pb->body.cancelled.reason = codec_bytes(e->data);
        pb->event.cancelled = &pb->body.cancelled;
        return true;
    default: return false;
    }
}

static void event_to_pb(const struct event *e, struct event_pb *pb)
{
    thole__v1__event__init(&pb->event);
    pb->event.id = e->id;
    pb->event.ref = e->ref;
    if (task_to_pb(e, pb) || execution_to_pb(e, pb))
        pb->event.body_case = (Thole__V1__Event__BodyCase)e->kind; /* the kinds are the field numbers */
}

static thole_status record_pack(Thole__V1__Record pb, const struct record *record, struct buf *to)
{
    Thole__V1__Position position = THOLE__V1__POSITION__INIT;
    position.floor = record->position.floor;
    position.above = (uint64_t *)record->position.above;
    position.n_above = record->position.above_len;
    pb.format = RECORD_FORMAT;
    pb.epoch = record->epoch;
    pb.n = record->n;
    pb.committed = record->committed;
    pb.position = &position;
    pb.body_case = (Thole__V1__Record__BodyCase)record->kind;
    return codec_pack(&pb.base, to);
}

static thole_status turn_pack(const struct record *record, Thole__V1__Event **events, struct buf *to)
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
    body.events = events;
    body.n_events = turn->events_len;
    pb.turn = &body;
    return record_pack(pb, record, to);
}

static thole_status turn_encode(const struct record *record, struct buf *to)
{
    struct event_pb few[EVENTS_ON_STACK], *pbs = few;
    Thole__V1__Event *few_pointers[EVENTS_ON_STACK], **pointers = few_pointers;
    size_t const n = record->turn.events_len;
    if (n > RECORD_EVENTS_MAX)
        return THOLE_LIMIT;
    if (n > EVENTS_ON_STACK) {
        pbs = malloc(n * (sizeof(struct event_pb) + sizeof(void *)));
        if (pbs == NULL)
            return THOLE_NOMEM;
        pointers = (Thole__V1__Event **)(void *)(pbs + n);
    }
    for (size_t i = 0; i < n; i++) {
        event_to_pb(&record->turn.events[i], &pbs[i]);
        pointers[i] = &pbs[i].event;
    }
    thole_status const status = turn_pack(record, pointers, to);
    if (pbs != few)
        free(pbs);
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
    pb.epoch_opened = &body;
    return record_pack(pb, record, to);
}

thole_status record_encode(const struct record *record, struct buf *to)
{
    Thole__V1__Record pb = THOLE__V1__RECORD__INIT;
    Thole__V1__PositionMoved moved = THOLE__V1__POSITION_MOVED__INIT;
    if (record->position.above_len > POSITION_ABOVE_MAX)
        return THOLE_LIMIT;
    switch (record->kind) {
    case RECORD_TURN: return turn_encode(record, to);
    case RECORD_EPOCH_OPENED: return epoch_opened_encode(record, to);
    case RECORD_POSITION: pb.position_moved = &moved; return record_pack(pb, record, to);
    case RECORD_UNKNOWN: break;
    }
    return THOLE_INVALID; /* what a newer thole wrote is never written again */
}

/* ---- decoding ---- */

struct decoding {
    struct arena *arena;
    thole_error *reterr;
};

static thole_status dup(const struct decoding *d, ProtobufCBinaryData from, thole_slice *ret)
{
    return codec_dup(d->arena, from, ret, d->reterr);
}

static thole_status dup_name(const struct decoding *d, ProtobufCBinaryData from, const char *what,
                             thole_slice *ret)
{
    THOLE_TRY(codec_corrupt(name_check(codec_slice(from), what, d->reterr), d->reterr));
    return dup(d, from, ret);
}

/* Of activities and timers; leaves ret alone for other kinds. */
static thole_status task_from_pb(const struct decoding *d, const Thole__V1__Event *pb, struct event *ret)
{
    switch (pb->body_case) {
    case THOLE__V1__EVENT__BODY_ACTIVITY_SCHEDULED:
        THOLE_TRY(dup_name(d, pb->activity_scheduled->name, "activity", &ret->name));
        THOLE_TRY(dup_name(d, pb->activity_scheduled->queue, "queue", &ret->queue));
        return dup(d, pb->activity_scheduled->input, &ret->data);
    case THOLE__V1__EVENT__BODY_ACTIVITY_COMPLETED: return dup(d, pb->activity_completed->output, &ret->data);
    case THOLE__V1__EVENT__BODY_ACTIVITY_FAILED:
        ret->code = pb->activity_failed->status;
        return dup(d, pb->activity_failed->text, &ret->data);
    case THOLE__V1__EVENT__BODY_ACTIVITY_CANCELLED:
        ret->code = pb->activity_cancelled->kind;
        return dup(d, pb->activity_cancelled->reason, &ret->data);
    case THOLE__V1__EVENT__BODY_TIMER_CREATED: ret->due_ms = pb->timer_created->due_ms; return THOLE_OK;
    case THOLE__V1__EVENT__BODY_TIMER_CANCELLED:
        ret->code = pb->timer_cancelled->kind;
        return dup(d, pb->timer_cancelled->reason, &ret->data);
    default: return THOLE_OK;
    }
}

/* Of the whole execution; leaves ret alone for other kinds. */
static thole_status execution_from_pb(const struct decoding *d, const Thole__V1__Event *pb, struct event *ret)
{
    switch (pb->body_case) {
    case THOLE__V1__EVENT__BODY_STARTED:
        ret->code = pb->started->semantics;
        THOLE_TRY(dup_name(d, pb->started->orchestration, "orchestration", &ret->name));
        THOLE_TRY(dup(d, pb->started->request_id, &ret->request_id));
        return dup(d, pb->started->input, &ret->data);
    case THOLE__V1__EVENT__BODY_CANCEL_REQUESTED:
        THOLE_TRY(dup(d, pb->cancel_requested->request_id, &ret->request_id));
        return dup(d, pb->cancel_requested->reason, &ret->data);
    case THOLE__V1__EVENT__BODY_COMPLETED: return dup(d, pb->completed->output, &ret->data);
    case THOLE__V1__EVENT__BODY_FAILED:
        ret->code = pb->failed->status;
        return dup(d, pb->failed->text, &ret->data);
    case THOLE__V1__EVENT__BODY_CANCELLED: return dup(d, pb->cancelled->reason, &ret->data);
    default: return THOLE_OK;
    }
}

/* Numbers only; slices have been checked while they were copied. */
static thole_status event_check(const struct event *e, thole_error *reterr)
{
    bool needs_ref = false, needs_code = false;
    switch (e->kind) {
    case EVENT_UNKNOWN: return THOLE_OK;
    case EVENT_STARTED:
    case EVENT_FAILED: needs_code = true; break;
    case EVENT_ACTIVITY_FAILED:
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_TIMER_CANCELLED:
        needs_code = true;
        needs_ref = true;
        break;
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_TIMER_FIRED: needs_ref = true; break;
    case EVENT_ACTIVITY_SCHEDULED:
    case EVENT_TIMER_CREATED:
    case EVENT_CANCEL_REQUESTED:
    case EVENT_COMPLETED:
    case EVENT_CANCELLED: break;
    default: break;
    }
    unsigned long long const id = e->id, ref = e->ref;
    const char *name = event_kind_name(e->kind);
    if (e->id == 0)
        return thole_fail(reterr, THOLE_CORRUPT, "%s without an event id", name);
    if (needs_ref != (e->ref != 0)) /* what it refers to is for the instance to judge */
        return thole_fail(reterr, THOLE_CORRUPT, "event %llu, %s, refers to event %llu", id, name, ref);
    if (needs_code && e->code == 0)
        return thole_fail(reterr, THOLE_CORRUPT, "event %llu, %s, has code 0", id, name);
    return THOLE_OK;
}

static thole_status events_decode(const struct decoding *d, const Thole__V1__Turn *pb, struct turn *ret)
{
    if (pb->n_events > RECORD_EVENTS_MAX)
        return thole_fail(d->reterr, THOLE_LIMIT, "record has %zu events, at most %d are allowed",
                          pb->n_events, RECORD_EVENTS_MAX);
    struct event *events = arena_array(d->arena, pb->n_events, sizeof *events);
    if (events == NULL)
        return codec_full(d->arena, d->reterr);
    for (size_t i = 0; i < pb->n_events; i++) {
        const Thole__V1__Event *from = pb->events[i];
        events[i].kind = (enum event_kind)from->body_case;
        events[i].id = from->id;
        events[i].ref = from->ref;
        THOLE_TRY(task_from_pb(d, from, &events[i]));
        THOLE_TRY(execution_from_pb(d, from, &events[i]));
        THOLE_TRY(event_check(&events[i], d->reterr));
    }
    ret->events = events;
    ret->events_len = pb->n_events;
    return THOLE_OK;
}

static enum blocked_kind blocked_from_pb(uint32_t kind)
{
    return kind >= BLOCKED_NO_CODE && kind <= BLOCKED_LIMIT ? (enum blocked_kind)kind : BLOCKED_TOO_NEW;
}

static thole_status turn_decode(const struct decoding *d, const Thole__V1__Turn *pb, struct turn *ret)
{
    THOLE_TRY(codec_corrupt(id_check(codec_slice(pb->instance), d->reterr), d->reterr));
    if (pb->execution == 0 || pb->turn == 0)
        return thole_fail(d->reterr, THOLE_CORRUPT, "turn without an execution or a number");
    if (pb->ran && pb->blocked != NULL)
        return thole_fail(d->reterr, THOLE_CORRUPT, "turn %llu ran and was blocked",
                          (unsigned long long)pb->turn);
    THOLE_TRY(dup(d, pb->instance, &ret->instance));
    ret->execution = pb->execution;
    ret->number = pb->turn;
    ret->time_ms = pb->time_ms;
    ret->more = pb->more != 0;
    ret->ran = pb->ran != 0;
    if (pb->blocked != NULL) {
        ret->blocked = blocked_from_pb(pb->blocked->kind);
        THOLE_TRY(dup(d, pb->blocked->text, &ret->blocked_text));
    }
    return events_decode(d, pb, ret);
}

static thole_status position_decode(const struct decoding *d, const Thole__V1__Position *pb,
                                    struct position *ret)
{
    if (pb == NULL)
        return THOLE_OK;
    if (pb->n_above > POSITION_ABOVE_MAX)
        return thole_fail(d->reterr, THOLE_LIMIT, "position lists %zu sequences, at most %d are allowed",
                          pb->n_above, POSITION_ABOVE_MAX);
    uint64_t *above = arena_array(d->arena, pb->n_above, sizeof *above);
    if (above == NULL)
        return codec_full(d->arena, d->reterr);
    uint64_t last = pb->floor == UINT64_MAX ? UINT64_MAX : pb->floor + 1;
    for (size_t i = 0; i < pb->n_above; i++) {
        if (pb->above[i] <= last)
            return thole_fail(d->reterr, THOLE_CORRUPT, "position lists %llu after %llu",
                              (unsigned long long)pb->above[i], (unsigned long long)last);
        above[i] = last = pb->above[i];
    }
    *ret = (struct position){.floor = pb->floor, .above = above, .above_len = pb->n_above};
    return THOLE_OK;
}

static thole_status epoch_opened_decode(const struct decoding *d, const Thole__V1__EpochOpened *pb,
                                        struct record *ret)
{
    if (pb->node.len > THOLE_ID_BYTES_MAX)
        return thole_fail(d->reterr, THOLE_CORRUPT, "node id has %zu bytes", pb->node.len);
    ret->time_ms = pb->time_ms;
    ret->previous_epoch = pb->previous_epoch;
    ret->previous_n = pb->previous_n;
    return dup(d, pb->node, &ret->node);
}

static thole_status header_check(const Thole__V1__Record *pb, thole_error *reterr)
{
    unsigned long long const epoch = pb->epoch, n = pb->n, committed = pb->committed;
    bool const opens = pb->body_case == THOLE__V1__RECORD__BODY_EPOCH_OPENED;
    /* Every format keeps the envelope: epoch and a body under one of the known numbers. Else it is garbage.
     */
    bool const envelope = pb->epoch > 0 && pb->body_case != THOLE__V1__RECORD__BODY__NOT_SET;
    if (pb->format > RECORD_FORMAT && envelope)
        return thole_fail(reterr, THOLE_UNSUPPORTED, "record format %u, this engine knows %d", pb->format,
                          RECORD_FORMAT);
    if (pb->format != RECORD_FORMAT)
        return thole_fail(reterr, THOLE_CORRUPT, "record of format %u", pb->format);
    if (pb->epoch == 0)
        return thole_fail(reterr, THOLE_CORRUPT, "record without an epoch");
    if (opens != (pb->n == 0) && pb->body_case != THOLE__V1__RECORD__BODY__NOT_SET)
        return thole_fail(reterr, THOLE_CORRUPT, "record number %llu in epoch %llu", n, epoch);
    if (pb->committed > pb->n)
        return thole_fail(reterr, THOLE_CORRUPT, "record %llu says that %llu are committed", n, committed);
    return THOLE_OK;
}

static thole_status record_from_pb(const struct decoding *d, const Thole__V1__Record *pb, struct record *ret)
{
    THOLE_TRY(header_check(pb, d->reterr));
    ret->kind = (enum record_kind)pb->body_case;
    ret->epoch = pb->epoch;
    ret->n = pb->n;
    ret->committed = pb->committed;
    THOLE_TRY(position_decode(d, pb->position, &ret->position));
    switch (ret->kind) {
    case RECORD_TURN: return turn_decode(d, pb->turn, &ret->turn);
    case RECORD_EPOCH_OPENED: return epoch_opened_decode(d, pb->epoch_opened, ret);
    case RECORD_POSITION:
    case RECORD_UNKNOWN: break;
    }
    return THOLE_OK;
}

thole_status record_decode(thole_slice bytes, struct arena *arena, struct record *ret, thole_error *reterr)
{
    struct decoding const d = {arena, reterr};
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
