/*
 * CloudEvents of instances. Where the namespace has the stream THOLE_<ns>_EVENTS each is sent until it is
 * stored there, and the stream drops repetitions by their id; elsewhere it is sent once, to those who listen.
 */
#include "emitted_event.h"
#include "shard_parts.h"
#include <assert.h>

enum {
    EMIT_RETRY_MS = 250,
    EMIT_SAID_MS = 10000, /* how long it is tried before it is said, and from then on */
    EMIT_BYTES_MAX = 16 * 1024,
};

static void keep(struct request *request, thole_slice *text)
{
    *text = request_keep(request, *text);
}

void event_emit(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *const request = request_of(REQ_EMIT, shard, owned, out);
    struct emission *const emission = &request->emission.of;
    *emission = out->emit;
    keep(request, &emission->instance);
    keep(request, &emission->orchestration);
    keep(request, &emission->type);
    keep(request, &emission->data);
    keep(request, &emission->error_type);
    keep(request, &emission->trace.parent);
    keep(request, &emission->trace.list);
    request->emission.said_ms = clock_monotonic_ms() + EMIT_SAID_MS;
    request_submit(request);
}

/* Nobody answers: the request comes back as if it had been answered. */
static thole_status send_once(struct request *request, const struct emitted_event *event, thole_error *reterr)
{
    THOLE_TRY(connection_publish(request->shard->engine->connection, event->subject, event->headers,
                                 event->headers_len, event->body, reterr));
    request_finish(request);
    return THOLE_OK;
}

static thole_status send(struct request *request, const struct emitted_event *event, thole_error *reterr)
{
    struct shard *const shard = request->shard;
    struct publish const publish = {.subject = event->subject,
                                    .body = event->body,
                                    .message_id = event->message_id,
                                    .headers = event->headers,
                                    .headers_len = event->headers_len};
    if (!shard->engine->topology.events_stored)
        return send_once(request, event, reterr);
    return requests_publish(shard->windows[WINDOW_MESSAGES].requests, &publish, request_token(request),
                            reterr);
}

thole_status emission_send(struct request *request, thole_error *reterr)
{
    struct emitted_event event;
    struct arena arena;
    arena_init(&arena, EMIT_BYTES_MAX);
    thole_status status = emitted_event_make(request->shard->engine->topology.ns, &request->emission.of,
                                             &arena, &event, reterr);
    assert(status == THOLE_OK || status == THOLE_NOMEM); /* what it says was checked before it was recorded */
    if (status == THOLE_OK)
        status = send(request, &event, reterr);
    arena_release(&arena);
    return status;
}

static void say_not_stored(const struct request *request)
{
    struct shard *const shard = request->shard;
    log_limits_line(
        shard->engine->lines, clock_monotonic_ms(), LINE_EVENT_NOT_STORED,
        LOG_INSTANCE(request->mail.p, request->emission.of.instance, request->emission.of.execution),
        "event %llu, a CloudEvent, is not stored (error %u) and is tried again: is stream THOLE_%s_EVENTS "
        "there, has it a leader, is it full? When too many wait, the partition's turns do",
        (unsigned long long)request->emission.of.event, request->reply.err_code, shard->engine->topology.ns);
}

void emission_answered(struct owned *owned, struct request *request)
{
    uint64_t const now = clock_monotonic_ms();
    if (request->status == THOLE_OK) {
        request_input(owned, request);
        return;
    }
    if (!request_is_current(owned, request))
        return; /* the next owner, or the next epoch, sends it */
    if (now >= request->emission.said_ms) {
        say_not_stored(request);
        request->emission.said_ms = now + EMIT_SAID_MS;
    }
    request_again(request, EMIT_RETRY_MS);
}
