/* The codec of inbox messages. */
#include "message.h"
#include "codec.h"
#include "messages.pb-c.h"

/* ---- encoding ---- */

static thole_status start_encode(Thole__V1__InboxMessage pb, const struct message *m, struct buf *to)
{
    Thole__V1__Start body = THOLE__V1__START__INIT;
    body.orchestration = codec_bytes(m->orchestration);
    body.input = codec_bytes(m->data);
    body.request_id = codec_bytes(m->request_id);
    pb.start = &body;
    return codec_pack(&pb.base, to);
}

static thole_status activity_result_encode(Thole__V1__InboxMessage pb, const struct message *m,
                                           struct buf *to)
{
    Thole__V1__ActivityResult body = THOLE__V1__ACTIVITY_RESULT__INIT;
    body.execution = m->execution;
    body.activity_id = m->task;
    body.status = m->status;
    body.data = codec_bytes(m->data);
    body.attempt = m->attempt;
    body.worker = codec_bytes(m->worker);
    pb.activity_result = &body;
    return codec_pack(&pb.base, to);
}

static thole_status cancel_encode(Thole__V1__InboxMessage pb, const struct message *m, struct buf *to)
{
    Thole__V1__CancelInstance body = THOLE__V1__CANCEL_INSTANCE__INIT;
    body.reason = codec_bytes(m->data);
    body.request_id = codec_bytes(m->request_id);
    pb.cancel = &body;
    return codec_pack(&pb.base, to);
}

thole_status message_encode(const struct message *message, struct buf *to)
{
    Thole__V1__InboxMessage pb = THOLE__V1__INBOX_MESSAGE__INIT;
    pb.format = MESSAGE_FORMAT;
    pb.instance = codec_bytes(message->instance);
    pb.body_case = (Thole__V1__InboxMessage__BodyCase)message->kind;
    switch (message->kind) {
    case MESSAGE_START: return start_encode(pb, message, to);
    case MESSAGE_ACTIVITY_RESULT: return activity_result_encode(pb, message, to);
    case MESSAGE_CANCEL: return cancel_encode(pb, message, to);
    default: break;
    }
    return THOLE_INVALID;
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

static thole_status dup_limited(const struct decoding *d, ProtobufCBinaryData from, size_t bytes_max,
                                const char *what, thole_slice *ret)
{
    if (from.len > bytes_max)
        return thole_fail(d->reterr, THOLE_CORRUPT, "%s has %zu bytes, at most %zu are allowed", what,
                          from.len, bytes_max);
    return dup(d, from, ret);
}

static thole_status start_decode(const struct decoding *d, const Thole__V1__Start *pb, struct message *ret)
{
    thole_slice const name = codec_slice(pb->orchestration);
    THOLE_TRY(codec_corrupt(name_check(name, "orchestration", d->reterr), d->reterr));
    THOLE_TRY(dup(d, pb->orchestration, &ret->orchestration));
    THOLE_TRY(dup_limited(d, pb->request_id, REQUEST_ID_BYTES_MAX, "request id", &ret->request_id));
    return dup(d, pb->input, &ret->data);
}

static thole_status activity_result_decode(const struct decoding *d, const Thole__V1__ActivityResult *pb,
                                           struct message *ret)
{
    if (pb->execution == 0 || pb->activity_id == 0)
        return thole_fail(d->reterr, THOLE_CORRUPT, "activity result without an execution or an activity");
    ret->execution = pb->execution;
    ret->task = pb->activity_id;
    ret->status = pb->status;
    ret->attempt = pb->attempt;
    THOLE_TRY(dup_limited(d, pb->worker, THOLE_ID_BYTES_MAX, "worker id", &ret->worker));
    return dup(d, pb->data, &ret->data);
}

static thole_status cancel_decode(const struct decoding *d, const Thole__V1__CancelInstance *pb,
                                  struct message *ret)
{
    THOLE_TRY(dup_limited(d, pb->request_id, REQUEST_ID_BYTES_MAX, "request id", &ret->request_id));
    return dup_limited(d, pb->reason, REASON_BYTES_MAX, "cancel reason", &ret->data);
}

static thole_status message_from_pb(const struct decoding *d, const Thole__V1__InboxMessage *pb,
                                    struct message *ret)
{
    if (pb->format > MESSAGE_FORMAT)
        return thole_fail(d->reterr, THOLE_UNSUPPORTED, "message format %u, this engine knows %d", pb->format,
                          MESSAGE_FORMAT);
    if (pb->format == 0)
        return thole_fail(d->reterr, THOLE_CORRUPT, "message without a format");
    THOLE_TRY(codec_corrupt(id_check(codec_slice(pb->instance), d->reterr), d->reterr));
    THOLE_TRY(dup(d, pb->instance, &ret->instance));
    switch (pb->body_case) {
    case THOLE__V1__INBOX_MESSAGE__BODY_START:
        ret->kind = MESSAGE_START;
        return start_decode(d, pb->start, ret);
    case THOLE__V1__INBOX_MESSAGE__BODY_ACTIVITY_RESULT:
        ret->kind = MESSAGE_ACTIVITY_RESULT;
        return activity_result_decode(d, pb->activity_result, ret);
    case THOLE__V1__INBOX_MESSAGE__BODY_CANCEL:
        ret->kind = MESSAGE_CANCEL;
        return cancel_decode(d, pb->cancel, ret);
    default: break;
    }
    return thole_fail(d->reterr, THOLE_UNSUPPORTED, "message of an unknown kind");
}

thole_status message_decode(thole_slice bytes, struct arena *arena, struct message *ret, thole_error *reterr)
{
    struct decoding const d = {arena, reterr};
    struct message message = {.kind = MESSAGE_START};
    struct codec_scratch scratch;
    ProtobufCMessage *pb = NULL;
    codec_init(&scratch);
    thole_status status = codec_unpack(&thole__v1__inbox_message__descriptor, bytes, MESSAGE_BYTES_MAX,
                                       &scratch, "message", &pb, reterr);
    if (status == THOLE_OK)
        status = message_from_pb(&d, (const Thole__V1__InboxMessage *)pb, &message);
    codec_release(&scratch);
    if (status == THOLE_OK)
        *ret = message;
    return status;
}
