/* Messages to instances in any partition; notices, which may be lost. */
#include "notice.h"
#include "shard_parts.h"
#include "subject.h"

/* Sends a message to another instance, in any partition. Its receiver recognises a repetition. */
void message_send_to(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_SEND_MESSAGE, shard, owned, out);
    request->message = (struct out_send){.route = request_keep(request, out->send.route),
                                         .instance = request_keep(request, out->send.instance),
                                         .bytes = request_keep(request, out->send.bytes)};
    request_submit(request);
}

thole_status message_send(struct request *request, thole_error *reterr)
{
    struct shard *const shard = request->shard;
    const struct topology *const topology = &shard->engine->topology;
    uint32_t const p = subject_partition(request->message.instance, topology->partitions);
    THOLE_TRY(subject_inbox(&shard->subject, topology->ns, p, request->message.route,
                            request->message.instance, reterr));
    struct publish const publish = {.subject = buf_cstr(&shard->subject), .body = request->message.bytes};
    return requests_publish(shard->windows[WINDOW_MESSAGES].requests, &publish, request_token(request),
                            reterr);
}

void message_refused(const struct request *request)
{
    log_limits_line(request->shard->engine->lines, clock_monotonic_ms(), LINE_MESSAGE_REFUSED,
                    LOG_INSTANCE(request->mail.p, request->message.instance, 0),
                    "a message to the instance is refused with error %u; it is tried again: %s",
                    request->reply.err_code, request_reason(request->reply.result, request->reply.err_code));
}

/* ---- notices ---- */

void notice_cancel(struct shard *shard, const struct cancel_notice *notice)
{
    thole_error err = {0};
    const struct topology *const topology = &shard->engine->topology;
    if (cancel_notice_publish(shard->connection, topology->ns, &topology->nonce_key, notice, &err) !=
        THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "partition", "a cancel push was not sent: %s", err.text);
    else
        shard_count_push(shard, notice);
}

void notice_event(struct shard *shard, const struct event_notice *notice)
{
    thole_error err = {0};
    if (event_notice_publish(shard->connection, shard->engine->topology.ns, notice, &err) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "partition", "a live event was not sent: %s", err.text);
}
