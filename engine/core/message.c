/* The codec of inbox messages. */
#include "message.h"
#include "codec.h"
#include "messages.pb-c.h"
#include <assert.h>
#include <string.h>

/* ---- the table ---- */

#define CODEC_PLAIN struct message

static const struct codec_message parent_table = {&thole__v1__parent__descriptor,
                                                  PB_FIELDS(PB_ID(Parent, instance, parent.instance),
                                                            PB_U64(Parent, execution, parent.execution),
                                                            PB_U64(Parent, event, parent.event))};
/* An event that comes with a start has the start's request id. */
static const struct codec_message start_event_table = {
    &thole__v1__raise_event__descriptor,
    PB_FIELDS(PB_NAME(RaiseEvent, name, event_name, "event"), PB_BYTES(RaiseEvent, data, event_data))};

static const struct codec_message sender_table = {
    &thole__v1__sender__descriptor,
    PB_FIELDS(PB_UPTO(Sender, actor, source.actor.name, ACTOR_NAME_BYTES_MAX, "name of an actor"),
              PB_UPTO(Sender, client, source.actor.client, ACTOR_CLIENT_BYTES_MAX, "name of a client"),
              PB_BYTES(Sender, traceparent, source.actor.trace.parent),
              PB_BYTES(Sender, tracestate, source.actor.trace.list))};

#define KIND(kind, message, ...)                                                                             \
    [MESSAGE_##kind - MESSAGE_START] = {&thole__v1__##message##__descriptor, PB_FIELDS(__VA_ARGS__)}
static const struct codec_message kinds[] = {
    KIND(START, start, PB_NAME(Start, orchestration, orchestration, "orchestration"),
         PB_UPTO(Start, request_id, request_id, REQUEST_ID_BYTES_MAX, "request id"),
         PB_BYTES(Start, input, data), PB_U32(Start, version, version),
         PB_PART(Start, parent, Parent, parent_table), PB_PART(Start, event, RaiseEvent, start_event_table),
         PB_BYTES(Start, traceparent, trace.parent), PB_BYTES(Start, tracestate, trace.list)),
    KIND(ACTIVITY_RESULT, activity_result, PB_U64(ActivityResult, execution, execution),
         PB_U64(ActivityResult, activity_id, task), PB_U32(ActivityResult, status, status),
         PB_BYTES(ActivityResult, data, data), PB_U64(ActivityResult, attempt, source.place.attempt),
         PB_UPTO(ActivityResult, worker, source.place.worker, THOLE_ID_BYTES_MAX, "worker id"),
         PB_UPTO(ActivityResult, host, source.place.host, RUN_HOST_BYTES_MAX, "name of a host"),
         PB_U64(ActivityResult, started_ms, source.place.started_ms),
         PB_U64(ActivityResult, ended_ms, source.place.ended_ms),
         PB_TRY(ActivityResult, try_number, try_number), PB_TYPE(ActivityResult, error_type, error_type),
         PB_BOOL(ActivityResult, final, final),
         PB_UPTO(ActivityResult, details, details, DETAILS_BYTES_MAX, "details"),
         PB_U32(ActivityResult, lost, lost),
         PB_UPTO(ActivityResult, lost_worker, lost_worker, THOLE_ID_BYTES_MAX, "worker id"),
         PB_UPTO(ActivityResult, queue, queue, THOLE_NAME_BYTES_MAX, "queue"),
         PB_BYTES(ActivityResult, input, input),
         PB_UPTO(ActivityResult, nonce, nonce, NONCE_BYTES_MAX, "nonce")),
    KIND(CANCEL, cancel_instance,
         PB_UPTO(CancelInstance, request_id, request_id, REQUEST_ID_BYTES_MAX, "request id"),
         PB_UPTO(CancelInstance, reason, data, REASON_BYTES_MAX, "cancel reason"),
         PB_PART(CancelInstance, parent, Parent, parent_table)),
    KIND(EVENT, raise_event, PB_NAME(RaiseEvent, name, event_name, "event"),
         PB_BYTES(RaiseEvent, data, event_data),
         PB_UPTO(RaiseEvent, request_id, request_id, REQUEST_ID_BYTES_MAX, "request id")),
    KIND(CHILD_RESULT, child_result, PB_U64(ChildResult, execution, execution),
         PB_U64(ChildResult, event, task), PB_U32(ChildResult, status, status),
         PB_BYTES(ChildResult, data, data), PB_TYPE(ChildResult, error_type, error_type),
         PB_ID(ChildResult, child, child)),
    KIND(TERMINATE, terminate_instance,
         PB_UPTO(TerminateInstance, request_id, request_id, REQUEST_ID_BYTES_MAX, "request id"),
         PB_UPTO(TerminateInstance, reason, data, REASON_BYTES_MAX, "terminate reason"),
         PB_PART(TerminateInstance, parent, Parent, parent_table)),
    KIND(PAUSE, pause_instance,
         PB_UPTO(PauseInstance, request_id, request_id, REQUEST_ID_BYTES_MAX, "request id"),
         PB_UPTO(PauseInstance, reason, data, REASON_BYTES_MAX, "pause reason")),
    KIND(RESUME, resume_instance,
         PB_UPTO(ResumeInstance, request_id, request_id, REQUEST_ID_BYTES_MAX, "request id"),
         PB_UPTO(ResumeInstance, reason, data, REASON_BYTES_MAX, "resume reason")),
    KIND(DELETE, delete_instance,
         PB_UPTO(DeleteInstance, request_id, request_id, REQUEST_ID_BYTES_MAX, "request id"),
         PB_UPTO(DeleteInstance, reason, data, REASON_BYTES_MAX, "reason of a deletion"),
         PB_U64(DeleteInstance, execution, execution), PB_BOOL(DeleteInstance, force, force)),
    KIND(RELEASE, release_activity, PB_U64(ReleaseActivity, execution, execution),
         PB_U64(ReleaseActivity, activity_id, task), PB_U32(ReleaseActivity, try_number, try_number),
         PB_BOOL(ReleaseActivity, fail, fail), PB_BOOL(ReleaseActivity, timer, timer)),
    KIND(PRUNE, prune_instance,
         PB_UPTO(PruneInstance, request_id, request_id, REQUEST_ID_BYTES_MAX, "request id"),
         PB_UPTO(PruneInstance, reason, data, REASON_BYTES_MAX, "reason of a prune"),
         PB_U64(PruneInstance, before, execution)),
    KIND(RETRY, retry_instance,
         PB_UPTO(RetryInstance, request_id, request_id, REQUEST_ID_BYTES_MAX, "request id"),
         PB_UPTO(RetryInstance, reason, data, REASON_BYTES_MAX, "retry reason")),
};
enum { KINDS_LEN = sizeof kinds / sizeof kinds[0] };
_Static_assert(KINDS_LEN == MESSAGE_LAST - MESSAGE_START + 1, "a row for each kind");

static bool is_kind(enum message_kind kind)
{
    return kind >= MESSAGE_START && kind <= MESSAGE_LAST;
}

/* ---- encoding ---- */

static thole_status message_pack(const struct message *message, struct arena *arena, struct buf *to,
                                 thole_error *reterr)
{
    Thole__V1__InboxMessage pb = THOLE__V1__INBOX_MESSAGE__INIT;
    ProtobufCMessage *body, *sender = NULL;
    THOLE_TRY(codec_to_pb(&kinds[message->kind - MESSAGE_START], message, arena, &body, reterr));
    if (actor_known(&message->source.actor))
        THOLE_TRY(codec_to_pb(&sender_table, message, arena, &sender, reterr));
    pb.sender = (Thole__V1__Sender *)sender;
    pb.format = MESSAGE_FORMAT;
    pb.instance = codec_bytes(message->instance);
    memcpy(&pb.start, &body, sizeof body); /* all bodies are pointers in one union */
    pb.body_case = (Thole__V1__InboxMessage__BodyCase)message->kind; /* the kinds are the field numbers */
    return codec_pack(&pb.base, to);
}

thole_status message_encode_said(const struct message *message, struct buf *to, thole_error *reterr)
{
    struct arena arena;
    if (!is_kind(message->kind))
        return thole_fail(reterr, THOLE_INVALID, "there is no message of kind %d", (int)message->kind);
    arena_init(&arena, CODEC_SCRATCH_MAX);
    thole_status const status = message_pack(message, &arena, to, reterr);
    arena_release(&arena);
    return status;
}

thole_status message_encode(const struct message *message, struct buf *to)
{
    return message_encode_said(message, to, NULL);
}

void message_into_range(struct message *message)
{
    if (is_kind(message->kind))
        codec_into_range(&kinds[message->kind - MESSAGE_START], message);
}

/* ---- decoding ---- */

/* Checks that the table cannot express. */
static thole_status numbers_check(const struct message *m, thole_error *reterr)
{
    bool const placed = m->execution != 0 && m->task != 0;
    if (m->kind == MESSAGE_ACTIVITY_RESULT && !placed)
        return thole_fail(reterr, THOLE_CORRUPT, "activity result without an execution or an activity");
    if (m->kind == MESSAGE_RELEASE && !placed)
        return thole_fail(reterr, THOLE_CORRUPT,
                          "release of an activity without an execution or an activity");
    if (m->kind == MESSAGE_ACTIVITY_RESULT && m->lost > 0) {
        THOLE_TRY(codec_corrupt(name_check(m->queue, "queue", reterr), reterr));
        if (m->status == THOLE_OK)
            return thole_fail(reterr, THOLE_CORRUPT, "result of an activity that was not run");
    }
    if (m->kind == MESSAGE_CHILD_RESULT && !placed)
        return thole_fail(reterr, THOLE_CORRUPT, "child result without an execution or an event");
    if (m->parent.instance.len > 0 && (m->parent.execution == 0 || m->parent.event == 0))
        return thole_fail(reterr, THOLE_CORRUPT, "parent without an execution or an event");
    return THOLE_OK;
}

static thole_status message_from_pb(const Thole__V1__InboxMessage *pb, struct arena *arena,
                                    struct message *ret, thole_error *reterr)
{
    if (pb->format > MESSAGE_FORMAT)
        return thole_fail(reterr, THOLE_UNSUPPORTED, "message format %u, this engine knows %d", pb->format,
                          MESSAGE_FORMAT);
    if (pb->format == 0)
        return thole_fail(reterr, THOLE_CORRUPT, "message without a format");
    THOLE_TRY(codec_corrupt(id_check(codec_slice(pb->instance), reterr), reterr));
    THOLE_TRY(codec_dup(arena, pb->instance, &ret->instance, reterr));
    if (pb->body_case == THOLE__V1__INBOX_MESSAGE__BODY__NOT_SET)
        return thole_fail(reterr, THOLE_UNSUPPORTED, "message of an unknown kind");
    if (pb->body_case == THOLE__V1__INBOX_MESSAGE__BODY_RESULTS)
        return thole_fail(reterr, THOLE_CORRUPT, "several results, on the subject of one instance");
    ret->kind = (enum message_kind)pb->body_case;
    assert(is_kind(ret->kind));
    const ProtobufCMessage *body;
    memcpy(&body, &pb->start, sizeof body);
    THOLE_TRY(codec_from_pb(&kinds[ret->kind - MESSAGE_START], body, arena, ret, reterr));
    if (pb->sender != NULL)
        THOLE_TRY(codec_from_pb(&sender_table, &pb->sender->base, arena, ret, reterr));
    ret->trace = trace_valid(&ret->trace);
    ret->source.actor.trace = trace_valid(&ret->source.actor.trace);
    return numbers_check(ret, reterr);
}

thole_status message_decode(thole_slice bytes, struct arena *arena, struct message *ret, thole_error *reterr)
{
    struct message message = {.kind = MESSAGE_START};
    struct codec_scratch scratch;
    ProtobufCMessage *pb = NULL;
    codec_init(&scratch);
    thole_status status = codec_unpack(&thole__v1__inbox_message__descriptor, bytes, MESSAGE_BYTES_MAX,
                                       &scratch, "message", &pb, reterr);
    if (status == THOLE_OK)
        status = message_from_pb((const Thole__V1__InboxMessage *)pb, arena, &message, reterr);
    codec_release(&scratch);
    if (status == THOLE_OK)
        *ret = message;
    return status;
}
