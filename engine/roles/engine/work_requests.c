/* Messages for the workers, in the stream WORK: queued, looked for, withdrawn. */
#include "reader.h"
#include "shard_parts.h"
#include "subject.h"
#include <stdio.h>

void work_queue(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_create(REQ_PUBLISH_WORK, shard, owned, out->generation);
    request->work.token = out->token;
    request->work.unless_there = out->again;
    request->work.item = (struct work_item){.queue = request_keep(request, out->queue),
                                            .instance = request_keep(request, out->instance),
                                            .activity = request_keep(request, out->activity),
                                            .input = request_keep(request, out->data),
                                            .execution = out->execution,
                                            .activity_id = out->activity_id,
                                            .try_number = out->try_number == 0 ? 1 : out->try_number};
    if (request->work.unless_there)
        request_put_aside(request);
    else
        request_submit(request);
}

thole_status work_send(struct request *request, thole_error *reterr)
{
    struct shard *const shard = request->shard;
    struct requests *const window = shard->windows[WINDOW_MESSAGES].requests;
    const struct asked_work *const work = &request->work;
    if (work->unless_there)
        return work_look(window, shard->engine->topology.ns, &work->item, request_token(request), reterr);
    return work_publish(window, shard->engine->topology.ns, &work->item, request_token(request), reterr);
}

bool work_found(const struct request *request, uint64_t *ret_sequence)
{
    return request->reply.result == REQUEST_ANSWERED &&
           stream_get_answer(request->reply.body, ret_sequence, NULL, NULL) == THOLE_OK;
}

/* Stored, or an answer to the look for it. */
void work_answered(struct owned *owned, struct request *request)
{
    uint64_t sequence = request->reply.sequence;
    if (!request_is_current(owned, request))
        return; /* the next owner asks for it again */
    if (request->reply.result == REQUEST_ANSWERED && !work_found(request, &sequence)) {
        shard_step_down(owned, "a work message could not be looked for", false);
    } else if (request->reply.result == REQUEST_ANSWERED && sequence == 0) {
        request->work.unless_there = false;
        request_again(request, 0);
    } else {
        shard_input(owned, &(struct partition_in){.kind = PARTITION_IN_PUBLISHED,
                                                  .generation = request->mail.generation,
                                                  .token = request->work.token,
                                                  .sequence = sequence});
    }
}

void work_refused(const struct request *request)
{
    const struct work_item *const item = &request->work.item;
    log_line(LOG_LEVEL_WARN, "partition",
             "p=%u the message of activity %llu of %.*s is refused with error %u; it is tried again",
             request->mail.p, (unsigned long long)item->activity_id, THOLE_FMT(item->instance),
             request->reply.err_code);
}

/* ---- withdrawn ---- */

void work_withdraw(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_create(REQ_WITHDRAW_WORK, shard, owned, out->generation);
    request->withdrawal.sequence = out->sequence;
    request_put_aside(request);
}

/* Gone, or a worker has it: either is fine. */
thole_status withdrawal_send(struct request *request, thole_error *reterr)
{
    struct shard *const shard = request->shard;
    char api[STREAM_NAME_BYTES_MAX + 40], body[64];
    snprintf(api, sizeof api, "$JS.API.STREAM.MSG.DELETE.THOLE_%s_WORK", shard->engine->topology.ns);
    snprintf(body, sizeof body, "{\"seq\":%llu,\"no_erase\":true}",
             (unsigned long long)request->withdrawal.sequence);
    return requests_send(shard->windows[WINDOW_MESSAGES].requests, api, thole_slice_from(body),
                         request_token(request), reterr);
}
