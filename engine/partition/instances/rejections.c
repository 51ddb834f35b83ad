/*
 * Messages that cannot be taken. Their sender was told that they are stored, so they are not dropped: each is
 * stored in the stream REJECTED with the reason. The message is incorporated when that is done; after a crash
 * before that, the next owner rejects it again.
 */
#include "instances_state.h"
#include <assert.h>

/* The token says which part of the message it is. */
enum { TOKEN_PART_BITS = 8 };
_Static_assert(RESULT_LIST_MAX == 1 << TOKEN_PART_BITS, "each has its tokens");

static struct out_reject *rejections_reject(struct instances *p, uint64_t sequence, uint32_t part,
                                            enum reject_code code, const char *text)
{
    struct partition_out *out = env_emit(p->env, PARTITION_OUT_REJECT);
    assert(code != REJECT_NONE && part < RESULT_LIST_MAX);
    out->token = sequence << TOKEN_PART_BITS | part;
    out->reject.sequence = sequence;
    out->reject.part = part;
    out->reject.code = code;
    thole_slice const copy = env_copy(p->env, thole_slice_from(text));
    out->reject.text = copy.ptr == NULL ? "" : (const char *)copy.ptr;
    p->rejecting++;
    return &out->reject;
}

static void keep_bytes(struct instances *p, struct out_reject *out, thole_slice bytes)
{
    out->message_bytes = bytes.len;
    bytes.len = bytes.len < REJECTED_PAYLOAD_MAX ? bytes.len : REJECTED_PAYLOAD_MAX;
    out->bytes = env_copy(p->env, bytes);
}

void rejections_refuse(struct instances *p, const struct in_message *in, enum reject_code code,
                       const char *text)
{
    struct out_reject *out = rejections_reject(p, in->sequence, in->part, code, text);
    out->stored_ns = in->stored_ns;
    out->instance = env_copy(p->env, in->instance);
    out->route = env_copy(p->env, in->route);
    out->subject = env_copy(p->env, in->subject);
    if (in->sender.authenticated)
        out->actor = env_copy(p->env, in->sender.name);
    keep_bytes(p, out, in->bytes);
}

void rejections_refuse_pending(struct instances *p, const struct pending *pending, enum reject_code code,
                               const char *text)
{
    struct buf bytes;
    struct out_reject *out = rejections_reject(p, pending->inbox_sequence, pending->part, code, text);
    out->stored_ns = pending->stored_ns;
    struct message_route const route = message_route(&pending->message, pending->sender);
    out->instance = env_copy(p->env, pending->message.instance);
    out->route = env_copy(p->env, thole_slice_from(route.text));
    if (pending->message.source.actor.authenticated)
        out->actor = env_copy(p->env, pending->message.source.actor.name);
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    if (message_encode(&pending->message, &bytes) == THOLE_OK)
        keep_bytes(p, out, buf_bytes(&bytes));
    else
        env_no_memory(p->env);
    buf_release(&bytes);
    answers_refuse(p, &pending->message, code, text);
}

void instances_rejected(struct instances *p, uint64_t token)
{
    if (p->rejecting > 0)
        p->rejecting--;
    intake_incorporate(p, token >> TOKEN_PART_BITS, (uint32_t)(token % RESULT_LIST_MAX));
}

static enum reject_code rejections_check_payload(const struct instances *p, const char *what,
                                                 thole_slice bytes, thole_error *ret)
{
    if (bytes.len <= p->env->options.payload_max)
        return REJECT_NONE;
    (void)thole_fail(ret, THOLE_LIMIT, "the %s has %zu bytes, the namespace allows %zu", what, bytes.len,
                     p->env->options.payload_max);
    return REJECT_TOO_LARGE;
}

enum reject_code rejections_check(const struct instances *p, const struct message *message, thole_error *ret)
{
    thole_slice const request = message->request_id;
    bool const engines = request.len > 0 && request.ptr[0] == '<';
    thole_error err = {0};
    if (request.len > 0 && !engines && id_check(request, &err) != THOLE_OK) {
        (void)thole_fail(ret, THOLE_INVALID,
                         "a request id is like an instance id: at most %d bytes of UTF-8 without NUL",
                         THOLE_ID_BYTES_MAX);
        return REJECT_REQUEST_ID;
    }
    if (message->kind != MESSAGE_START && message->kind != MESSAGE_EVENT)
        return REJECT_NONE;
    enum reject_code const code = rejections_check_payload(p, "event's data", message->event_data, ret);
    return code != REJECT_NONE ? code : rejections_check_payload(p, "input", message->data, ret);
}
