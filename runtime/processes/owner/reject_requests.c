/*
 * Stores messages that a partition cannot take in the REJECTED stream and logs them (engine_lines.h).
 * The partition does not wait: until such a message is stored it is only not incorporated. If the stream
 * accepts nothing although NATS is reachable, rejected messages are dropped after a while, so that others
 * need not wait.
 */
#include "shard_parts.h"
#include "subject.h"

enum {
    REJECT_RETRY_MS = 200,
    REJECT_PATIENCE_MS = 3000, /* for a stream that accepts nothing */
    REJECT_AWAY_MS = 30000,    /* for that time it gets one try for each message */
};

/* ---- the log ---- */

/* Without subject and payload, which are data of users. */
static void reject_requests_notify(struct shard *shard, const struct owned *owned,
                                   const struct out_reject *out)
{
    log_limits_line(shard->engine->lines, clock_monotonic_ms(), LINE_REJECTED + (size_t)out->code,
                    LOG_PARTITION(owned->p), "inbox message %llu rejected (%s): %s; thole rejected lists it",
                    (unsigned long long)out->sequence, reject_code_name(out->code), out->text);
}

/* The subject for an instance of the partition; other subjects are in the request. */
static thole_slice subject_of(struct shard *shard, const struct owned *owned, const struct out_reject *out)
{
    if (out->instance.len == 0 ||
        subject_inbox(&shard->subject, shard->engine->topology.ns, owned->p, out->route, out->instance,
                      NULL) != THOLE_OK ||
        subject_add_actor(&shard->subject, out->actor, NULL) != THOLE_OK)
        return out->subject;
    return buf_bytes(&shard->subject);
}

void shard_reject(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_REJECT, shard, owned, out);
    const struct out_reject *const asked = &out->reject;
    request->rejection.until_ms = clock_monotonic_ms() + REJECT_PATIENCE_MS;
    request->rejection.item =
        (struct rejected_item){.partition = owned->p,
                               .sequence = asked->sequence,
                               .part = asked->part,
                               .stored_ns = asked->stored_ns,
                               .bytes = asked->message_bytes,
                               .code = thole_slice_from(reject_code_name(asked->code)),
                               .reason = request_keep(request, thole_slice_from(asked->text)),
                               .subject = request_keep(request, subject_of(shard, owned, asked)),
                               .payload = request_keep(request, asked->bytes)};
    reject_requests_notify(shard, owned, asked);
    request_submit(request);
}

thole_status rejection_send(struct request *request, thole_error *reterr)
{
    struct shard *const shard = request->shard;
    return rejected_publish(shard->windows[WINDOW_REJECTS].requests, shard->engine->topology.ns,
                            &request->rejection.item, request_token(request), reterr);
}

static void reject_requests_give_up(const struct request *request, uint64_t now_ms)
{
    struct shard *const shard = request->shard;
    if (now_ms >= shard->rejects_away_ms)
        log_limits_line(
            shard->engine->lines, now_ms, LINE_NOT_KEPT, LOG_PARTITION(request->mail.p),
            "rejected inbox message %llu cannot be kept, nor others for now: stream THOLE_%s_REJECTED "
            "takes nothing. Is it there, and has it a leader? They are dropped",
            (unsigned long long)request->rejection.item.sequence, shard->engine->topology.ns);
    shard->rejects_away_ms = now_ms + REJECT_AWAY_MS;
}

void rejection_answered(struct owned *owned, struct request *request)
{
    struct shard *const shard = request->shard;
    uint64_t const now = clock_monotonic_ms();
    if (request->status == THOLE_OK) {
        shard->rejects_away_ms = 0;
    } else if (!request_is_current(owned, request)) {
        return; /* of an older generation: the message is read again */
    } else if (now < request->rejection.until_ms && now >= shard->rejects_away_ms) {
        request_again(request, REJECT_RETRY_MS);
        return;
    } else {
        reject_requests_give_up(request, now);
    }
    request_input(owned, request);
}
