/*
 * CloudEvents of instances. Where the namespace has the stream THOLE_<ns>_EVENTS each is sent until it is
 * stored there, and the stream drops repetitions by their id; elsewhere it is sent once, to those who listen.
 * One that is too large for the stream or the server is stored among the rejected messages instead.
 */
#include "emitted_event.h"
#include "rejected.h"
#include "shard_parts.h"
#include <assert.h>
#include <string.h>

#define NANOS_IN_MS UINT64_C(1000000)
enum {
    EMIT_RETRY_MS = 250,
    EMIT_SAID_MS = 10000,  /* how long it is tried before it is said, and from then on */
    EMIT_REJECT_MS = 3000, /* for a stream of rejected messages that takes nothing */
};

static void emit_requests_keep(struct request *request, thole_slice *text)
{
    *text = request_keep(request, *text);
}

void event_emit(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *const request = request_of(REQ_EMIT, shard, owned, out);
    struct emission *const emission = &request->emission.of;
    *emission = out->emit;
    emit_requests_keep(request, &emission->instance);
    emit_requests_keep(request, &emission->orchestration);
    emit_requests_keep(request, &emission->type);
    emit_requests_keep(request, &emission->data);
    emit_requests_keep(request, &emission->error_type);
    emit_requests_keep(request, &emission->trace.parent);
    emit_requests_keep(request, &emission->trace.list);
    request->emission.said_ms = clock_monotonic_ms() + EMIT_SAID_MS;
    request_submit(request);
}

/* Nobody answers: the request comes back as if it had been answered. Another stream that has the
 * subject drops repetitions, too. */
static thole_status emit_requests_send_once(struct request *request, const struct emitted_event *event,
                                            thole_error *reterr)
{
    struct header headers[EMITTED_HEADERS_MAX + 1];
    memcpy(headers, event->headers, event->headers_len * sizeof *headers);
    headers[event->headers_len] = (struct header){"Nats-Msg-Id", thole_slice_from(event->message_id)};
    THOLE_TRY(connection_publish(request->shard->connection, event->subject, headers, event->headers_len + 1,
                                 event->body, reterr));
    request_finish(request);
    return THOLE_OK;
}

/* ---- events that are never taken ---- */

static void emit_requests_refuse(struct request *request, const char *why)
{
    struct shard *const shard = request->shard;
    uint64_t const now = clock_monotonic_ms();
    request->emission.refused = why;
    request->emission.until_ms = now + EMIT_REJECT_MS;
    log_limits_line(
        shard->engine->lines, now, LINE_REJECTED + REJECT_EVENT,
        LOG_INSTANCE(request->mail.p, request->emission.of.instance, request->emission.of.execution),
        "event %llu, a CloudEvent, is rejected: %s; thole rejected lists it",
        (unsigned long long)request->emission.of.event, why);
}

static thole_status emit_requests_reject(struct request *request, const struct emitted_event *event,
                                         thole_error *reterr)
{
    struct shard *const shard = request->shard;
    const struct emission *const of = &request->emission.of;
    thole_slice const kept = {of->data.ptr,
                              of->data.len < REJECTED_PAYLOAD_MAX ? of->data.len : REJECTED_PAYLOAD_MAX};
    struct rejected_item const item = {.partition = request->mail.p,
                                       .event = event->message_id,
                                       .sequence = of->event,
                                       .stored_ns = of->time_ms * NANOS_IN_MS,
                                       .code = thole_slice_from(reject_code_name(REJECT_EVENT)),
                                       .reason = thole_slice_from(request->emission.refused),
                                       .subject = thole_slice_from(event->subject),
                                       .payload = kept,
                                       .bytes = of->data.len};
    return rejected_publish(shard->windows[WINDOW_EVENTS].requests, shard->engine->topology.ns, &item,
                            request_token(request), reterr);
}

/* ---- sending ---- */

static thole_status emit_requests_publish(struct request *request, const struct emitted_event *event,
                                          thole_error *reterr)
{
    struct publish const publish = {.subject = event->subject,
                                    .body = event->body,
                                    .message_id = event->message_id,
                                    .headers = event->headers,
                                    .headers_len = event->headers_len};
    return requests_publish(request->shard->windows[WINDOW_EVENTS].requests, &publish, request_token(request),
                            reterr);
}

static bool window_has_room(const struct shard *shard)
{
    return requests_in_flight(shard->windows[WINDOW_EVENTS].requests) < shard->windows[WINDOW_EVENTS].limit;
}

static thole_status emit_requests_send(struct request *request, const struct emitted_event *event,
                                       thole_error *reterr)
{
    struct shard *const shard = request->shard;
    bool const room = window_has_room(shard); /* only this thread takes of it: it stays until it is used */
    thole_status status = THOLE_LIMIT;
    if (request->emission.refused == NULL)
        status = shard->engine->topology.events_stored ? emit_requests_publish(request, event, reterr)
                                                       : emit_requests_send_once(request, event, reterr);
    if (request->emission.refused == NULL && status == THOLE_LIMIT &&
        (room || !shard->engine->topology.events_stored))
        emit_requests_refuse(request, "it is larger than the max_payload of nats-server");
    return request->emission.refused == NULL ? status : emit_requests_reject(request, event, reterr);
}

thole_status emission_send(struct request *request, thole_error *reterr)
{
    const struct engine_host *const engine = request->shard->engine;
    enum events_mode const mode = (enum events_mode)engine->options.events_mode;
    struct emitted_event event;
    struct arena arena;
    arena_init(&arena, emitted_event_room(mode, &request->emission.of));
    thole_status status =
        emitted_event_make(engine->topology.ns, mode, &request->emission.of, &arena, &event, reterr);
    assert(status == THOLE_OK || status == THOLE_NOMEM); /* the contents were checked before they were
                                                            recorded */
    if (status == THOLE_OK)
        status = emit_requests_send(request, &event, reterr);
    arena_release(&arena);
    return status;
}

/* ---- answers ---- */

static void say_not_stored(struct request *request, uint64_t now)
{
    struct shard *const shard = request->shard;
    if (now < request->emission.said_ms)
        return;
    request->emission.said_ms = now + EMIT_SAID_MS;
    log_limits_line(
        shard->engine->lines, now, LINE_EVENT_NOT_STORED,
        LOG_INSTANCE(request->mail.p, request->emission.of.instance, request->emission.of.execution),
        "event %llu, a CloudEvent, is not stored (error %u) and is tried again: is stream THOLE_%s_EVENTS "
        "there, has it a leader, is it full? When too many wait, the partition's turns do",
        (unsigned long long)request->emission.of.event, request->reply.err_code, shard->engine->topology.ns);
}

static void say_not_kept(const struct request *request, uint64_t now)
{
    struct shard *const shard = request->shard;
    log_limits_line(
        shard->engine->lines, now, LINE_NOT_KEPT,
        LOG_INSTANCE(request->mail.p, request->emission.of.instance, request->emission.of.execution),
        "the rejected event %llu, a CloudEvent, cannot be kept (error %u): is stream THOLE_%s_REJECTED "
        "there, and has it a leader? It is dropped",
        (unsigned long long)request->emission.of.event, request->reply.err_code, shard->engine->topology.ns);
}

void emission_answered(struct owned *owned, struct request *request)
{
    uint64_t const now = clock_monotonic_ms();
    struct asked_emission *const emission = &request->emission;
    bool const rejected = emission->refused != NULL;
    if (request->status == THOLE_OK) {
        request_input(owned, request);
        return;
    }
    if (!request_is_current(owned, request))
        return; /* the next owner, or the next epoch, sends it */
    if (rejected && request->reply.result != REQUEST_UNKNOWN && now >= emission->until_ms) {
        say_not_kept(request, now);
        request_input(owned, request);
        return;
    }
    if (!rejected && request->reply.err_code == REQUEST_TOO_LARGE)
        emit_requests_refuse(request,
                             "it is larger than the max_msg_size of the stream of events (error 10054)");
    else if (!rejected)
        say_not_stored(request, now);
    request_again(request, emission->refused != NULL && !rejected ? 0 : EMIT_RETRY_MS);
}
