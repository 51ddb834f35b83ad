/* The arguments of a caller: checked, named in errors, and encoded as a message. */
#include "client_internal.h"
#include "message.h"
#include "trace.h"
#include "utf8.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

const char *thole_instance_status_name(thole_instance_status status)
{
    switch (status) {
    case THOLE_INSTANCE_UNKNOWN: return "Unknown";
    case THOLE_INSTANCE_RUNNING: return "Running";
    case THOLE_INSTANCE_WAITING: return "Waiting";
    case THOLE_INSTANCE_STUCK: return "Stuck";
    case THOLE_INSTANCE_COMPLETED: return "Completed";
    case THOLE_INSTANCE_FAILED: return "Failed";
    case THOLE_INSTANCE_CANCELLED: return "Cancelled";
    case THOLE_INSTANCE_TERMINATED: return "Terminated";
    case THOLE_INSTANCE_PAUSED: return "Paused";
    case THOLE_INSTANCE_CONTINUED_AS_NEW: return "ContinuedAsNew";
    case THOLE_INSTANCE_PENDING: return "Pending";
    }
    return "Unknown";
}

thole_status client_check_payload(const struct thole_client *client, const char *what, size_t bytes,
                                  thole_error *reterr)
{
    size_t const room = connection_max_payload(client->connection);
    if (bytes > client->payload_max)
        return thole_fail(reterr, THOLE_LIMIT, "the %s has %zu bytes, at most %zu are allowed", what, bytes,
                          client->payload_max);
    if (bytes + MESSAGE_OVERHEAD > room)
        return thole_fail(reterr, THOLE_LIMIT,
                          "the %s has %zu bytes; with its envelope that is more than the NATS server's "
                          "max_payload of %zu",
                          what, bytes, room);
    return THOLE_OK;
}

thole_status client_check_id(thole_slice instance, thole_error *reterr)
{
    enum { SHOWN = 24 };
    char shown[SHOWN * 4 + 1] = "";
    size_t len = 0;
    thole_error rule = {.status = THOLE_OK};
    if (id_check(instance, &rule) == THOLE_OK)
        return THOLE_OK;
    for (size_t i = 0; i < instance.len && i < SHOWN; i++) {
        uint8_t const c = instance.ptr[i];
        bool const plain = c >= ' ' && c < 0x7f && c != '"' && c != '\\';
        len += (size_t)snprintf(shown + len, sizeof shown - len, plain ? "%c" : "\\x%02x", c);
        assert(len < sizeof shown);
    }
    return thole_fail(reterr, rule.status, "\"%s%s\" is no instance id: %s", shown,
                      instance.len > SHOWN ? "..." : "", rule.text);
}

thole_status client_check_reason(thole_slice reason, thole_error *reterr)
{
    if (reason.len <= REASON_BYTES_MAX)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "the reason has %zu bytes, at most %d are allowed", reason.len,
                      REASON_BYTES_MAX);
}

thole_status request_id_make(struct request_id *ret, thole_error *reterr)
{
    uint8_t bytes[REQUEST_ID_BYTES / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(ret->text + 2 * i, 3, "%02x", bytes[i]);
    return THOLE_OK;
}

static thole_status check_name_of_sender(const char *what, thole_slice text, size_t bytes_max,
                                         thole_error *reterr)
{
    if (text.len <= bytes_max && utf8_is_valid(text))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "%s must be UTF-8 of at most %zu bytes", what, bytes_max);
}

/* The name becomes a token of the subject, as ids do. */
static thole_status check_vouched(const char *what, thole_slice actor, thole_error *reterr)
{
    if (id_check(actor, NULL) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID,
                      "%s that is vouched for must be UTF-8 of 1 to %d bytes without NUL", what,
                      ACTOR_NAME_BYTES_MAX);
}

thole_status client_sender(const thole_sender *given, struct actor *ret, thole_error *reterr)
{
    struct trace const trace = {given->traceparent, given->tracestate};
    THOLE_TRY(check_name_of_sender("sender.actor", given->actor, ACTOR_NAME_BYTES_MAX, reterr));
    THOLE_TRY(check_name_of_sender("sender.client_name", given->client_name, ACTOR_CLIENT_BYTES_MAX, reterr));
    if (given->vouched)
        THOLE_TRY(check_vouched("sender.actor", given->actor, reterr));
    *ret = (struct actor){.name = given->actor,
                          .client = given->client_name,
                          .trace = trace_valid(&trace),
                          .authenticated = given->vouched};
    return THOLE_OK;
}

thole_status client_choose_id(thole_slice orchestration, char ret[CHOSEN_ID_BYTES], thole_error *reterr)
{
    size_t const len = orchestration.len < THOLE_NAME_BYTES_MAX ? orchestration.len : THOLE_NAME_BYTES_MAX;
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no random bytes for an id: %s", strerror(errno));
    (void)snprintf(ret, CHOSEN_ID_BYTES, "%.*s-%016" PRIx64, (int)len, (const char *)orchestration.ptr,
                   random);
    return THOLE_OK;
}

thole_status letter_advise(const struct letter *letter, thole_status status, thole_error *reterr)
{
    if (letter->actor.len == 0 || reterr == NULL || (status != THOLE_DENIED && status != THOLE_UNAVAILABLE))
        return status;
    thole_error const why = *reterr;
    return thole_fail(
        reterr, status, "%.300s: %s", why.text,
        status == THOLE_DENIED
            ? "is that the name that this user's permissions have? Give that one as vouched actor, or none"
            : "engines of an earlier version take no vouched actors");
}

thole_status client_encode(const struct thole_client *client, const struct message *message,
                           struct letter *to, thole_error *reterr)
{
    struct message said = *message;
    struct actor *const actor = &said.source.actor;
    if (actor->name.len == 0 && (actor->client.len == 0 || client->vouched)) {
        actor->name = thole_slice_from(client->actor);
        actor->authenticated = client->vouched;
        if (actor->client.len == 0)
            actor->client = thole_slice_from(client->name);
    }
    to->actor = actor->authenticated ? actor->name : (thole_slice){NULL, 0};
    thole_error why = {.status = THOLE_OK};
    thole_status const status = message_encode_said(&said, &to->body, &why);
    to->route = message_route(message, SENDER_CLIENT);
    if (status == THOLE_INVALID)
        return thole_fail(reterr, status, "%s", why.text);
    return status == THOLE_OK
               ? THOLE_OK
               : thole_fail(reterr, status, "the message cannot be encoded: %s", thole_status_text(status));
}

thole_status client_check_start(const struct thole_client *client, const struct message *start,
                                thole_error *reterr)
{
    THOLE_TRY(client_check_id(start->instance, reterr));
    THOLE_TRY(name_check(start->orchestration, "orchestration", reterr));
    THOLE_TRY(range_check_as(RANGE_VERSION, "the orchestration's version", start->version, reterr));
    if (start->event_name.len > 0)
        THOLE_TRY(name_check(start->event_name, "event", reterr));
    else if (start->event_data.len > 0)
        return thole_fail(reterr, THOLE_INVALID, "the event has data but no name");
    THOLE_TRY(client_check_payload(client, "input", start->data.len, reterr));
    THOLE_TRY(client_check_payload(client, "event's data", start->event_data.len, reterr));
    size_t const both = start->data.len + start->event_data.len,
                 room = connection_max_payload(client->connection);
    if (both + MESSAGE_OVERHEAD > room)
        return thole_fail(reterr, THOLE_LIMIT,
                          "the input and the event have %zu bytes; with their envelope that is more than the "
                          "NATS server's max_payload of %zu",
                          both, room);
    return THOLE_OK;
}

thole_status client_check_request_id(thole_slice request_id, thole_error *reterr)
{
    if (request_id.len == 0)
        return THOLE_OK;
    if (id_check(request_id, NULL) != THOLE_OK)
        return thole_fail(reterr, THOLE_INVALID,
                          "a request id is at most %d bytes of UTF-8 without NUL, like an instance id",
                          THOLE_ID_BYTES_MAX);
    if (request_id.ptr[0] == '<')
        return thole_fail(reterr, THOLE_INVALID,
                          "a request id must not begin with '<': those are the engine's own");
    return THOLE_OK;
}
