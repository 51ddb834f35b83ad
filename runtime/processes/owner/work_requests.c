/* Work messages in the stream WORK: publish, look up, withdraw. */
#include "log_work.h"
#include "reader.h"
#include "shard_parts.h"
#include "subject.h"
#include <stdio.h>

thole_slice work_nonce(struct request *request, thole_slice instance, uint64_t execution,
                       uint64_t activity_id)
{
    struct nonce const nonce =
        nonce_make(&request->shard->engine->topology.nonce_key, instance, execution, activity_id);
    return request_keep(request, thole_slice_from(nonce.text));
}

void work_queue(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_PUBLISH_WORK, shard, owned, out);
    const struct out_publish_work *const asked = &out->publish_work;
    request->work.unless_there = asked->again;
    request->work.item = (struct work_item){
        .queue = request_keep(request, asked->queue),
        .instance = request_keep(request, asked->instance),
        .activity = request_keep(request, asked->activity),
        .input = request_keep(request, asked->input),
        .nonce = request_keep(request, asked->nonce),
        .trace = {request_keep(request, asked->trace.parent), request_keep(request, asked->trace.list)},
        .execution = asked->execution,
        .activity_id = asked->activity_id,
        .try_number = asked->try_number == 0 ? 1 : asked->try_number};
    if (request->work.unless_there)
        request_put_aside(request);
    else
        request_submit(request);
}

thole_status work_send(struct request *request, thole_error *reterr)
{
    struct shard *const shard = request->shard;
    struct requests *const window = shard->windows[WINDOW_MESSAGES].requests;
    struct asked_work *const work = &request->work;
    work->item.lists = atomic_load_explicit(&shard->engine->lists, memory_order_relaxed);
    if (work->unless_there)
        return work_look(window, shard->engine->topology.ns, &work->item, request_token(request), reterr);
    return work_publish(window, shard->engine->topology.ns, &work->item, request_token(request), reterr);
}

static void work_requests_withdraw(struct shard *shard, struct owned *owned, uint64_t sequence)
{
    struct request *const request = request_create(REQ_WITHDRAW_WORK, shard, owned);
    request->withdrawal.sequence = sequence;
    request_put_aside(request);
}

enum work_seen work_look_reply(struct owned *owned, const struct request *request, thole_slice digest,
                               uint64_t *ret_sequence)
{
    const struct work_item *const item = &request->work.item;
    bool read = false;
    struct work_digest seen;
    if (request->reply.result != REQUEST_ANSWERED ||
        work_look_answer(request->reply.body, item->queue, ret_sequence, &read, &seen, NULL) != THOLE_OK)
        return WORK_UNKNOWN;
    if (*ret_sequence == 0)
        return WORK_MISSING;
    if (digest.len == 0 || (read && thole_slice_equal(digest, work_digest_slice(&seen))))
        return WORK_THERE;
    struct log_fields const fields = log_work_of(owned->p, item);
    log_limits_line(
        request->shard->engine->lines, clock_monotonic_ms(), LINE_WORK_FORGED, &fields,
        "message %llu in queue %.*s, which no engine has written with the key of nonces, is removed: it was "
        "to be taken for this activity",
        (unsigned long long)*ret_sequence, THOLE_FMT(item->queue));
    work_requests_withdraw(request->shard, owned, *ret_sequence);
    return WORK_FORGED;
}

/* Answer to the look-up before a publish. */
static void work_requests_looked(struct owned *owned, struct request *request)
{
    const struct work_item *const item = &request->work.item;
    struct work_digest const own = work_digest_make(item->queue, item->activity, item->nonce, item->input);
    uint64_t sequence = 0;
    switch (work_look_reply(owned, request, work_digest_slice(&own), &sequence)) {
    case WORK_UNKNOWN: shard_step_down(owned, "a work message could not be looked for"); break;
    case WORK_MISSING:
    case WORK_FORGED:
        request->work.unless_there = false;
        request_again(request, 0);
        break;
    case WORK_THERE:
        request->in.published.sequence = sequence;
        request_input(owned, request);
        break;
    }
}

/* Answer to a publish or to the look-up before it. */
void work_answered(struct owned *owned, struct request *request)
{
    if (!request_is_current(owned, request))
        return; /* the next owner publishes it again */
    if (request->reply.result == REQUEST_ANSWERED) {
        work_requests_looked(owned, request);
    } else {
        request->in.published.sequence = request->reply.sequence;
        request_input(owned, request);
    }
}

void work_refused(const struct request *request)
{
    struct log_fields const fields = log_work_of(request->mail.p, &request->work.item);
    log_limits_line(request->shard->engine->lines, clock_monotonic_ms(), LINE_WORK_REFUSED, &fields,
                    "the message of the activity is refused with error %u; it is tried again: %s",
                    request->reply.err_code, request_reason(request->reply.result, request->reply.err_code));
}

/* ---- withdrawn ---- */

void work_withdraw(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_WITHDRAW_WORK, shard, owned, out);
    request->withdrawal = out->withdraw;
    request_put_aside(request);
}

/* Already removed, or held by a worker: both are fine. */
thole_status withdrawal_send(struct request *request, thole_error *reterr)
{
    struct shard *const shard = request->shard;
    char stream[STREAM_NAME_BYTES_MAX];
    snprintf(stream, sizeof stream, "THOLE_%s_WORK", shard->engine->topology.ns);
    return stream_delete_send(shard->windows[WINDOW_MESSAGES].requests, stream, request->withdrawal.sequence,
                              request_token(request), reterr);
}
