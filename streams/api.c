/* JetStream API calls. */
#include "api.h"
#include "clock.h"
#include "jscan.h"
#include "link.h"
#include "requests.h"
#include <assert.h>
#include <stdio.h>

enum { NO_LEADER_PAUSE_MS = 100 };

static thole_status api_status(uint64_t code, uint64_t http)
{
    switch (code) {
    case API_STREAM_NOT_FOUND:
    case API_CONSUMER_NOT_FOUND:
    case API_MESSAGE_NOT_FOUND:
    case API_SEQUENCE_NOT_FOUND: return THOLE_NOT_FOUND;
    case API_STREAM_EXISTS:
    case API_CONSUMER_EXISTS:
    case API_CONSUMER_EXISTS_OTHER:
    case API_WRONG_LAST: return THOLE_CONFLICT;
    case API_NOT_ENABLED:
    case API_NOT_ENABLED_FOR_ACCOUNT: return THOLE_UNSUPPORTED;
    case API_CONSUMER_CREATE_FAILED:
    case API_CONSUMER_STORE_FAILED:
    case API_STREAM_CREATE_FAILED:
    case API_CONSUMERS_MAX:
    case API_STREAMS_MAX:
    case API_NO_LEADER:
    case API_NOT_LEADER: return THOLE_UNAVAILABLE;
    default: return http == 503 ? THOLE_UNAVAILABLE : THOLE_INVALID;
    }
}

#define CANNOT CANNOT_STORE ": "

const char *api_full(uint32_t code)
{
    switch (code) {
    case API_ACCOUNT_FULL:
        return CANNOT "its account has reached its limits of JetStream (10002): raise them, or make room";
    case API_SERVER_FULL:
        return CANNOT "JetStream has reached max_file or max_mem (10023): raise them, or make room";
    case API_MEMORY_FULL: return CANNOT "JetStream has reached max_mem (10028): raise it, or make room";
    case API_STORAGE_FULL: return CANNOT "JetStream has reached max_file (10047): raise it, or make room";
    case API_CONSUMER_CREATE_FAILED:
    case API_CONSUMER_STORE_FAILED:
    case API_STREAM_CREATE_FAILED:
        return CANNOT "it could not make its files: its disk may be full; its log says why";
    case API_STORE_FAILED:
        return CANNOT "its disk is full, or a limit of the stream is reached (10077); its log says which";
    default: return NULL;
    }
}

/* Advice for cases that the server's text leaves open; NULL: none. */
static const char *api_remedy(uint32_t code)
{
    switch (code) {
    case API_CONSUMERS_MAX:
        return "the stream has as many consumers as the account allows: thole doctor says which names fill "
               "it";
    case API_STREAMS_MAX:
        return "its account has as many streams as it may have: thole doctor says which names fill it";
    default: return api_full(code);
    }
}

thole_status api_judge(thole_slice answer, const char *verb, const char *target, uint32_t *ret_error,
                       thole_error *reterr)
{
    thole_slice error, value;
    struct buf text;
    uint64_t code = 0, http = 0;
    if (ret_error != NULL)
        *ret_error = 0;
    if (!json_find(answer, "error", &error)) {
        if (!json_find(answer, "type", &value)) /* every answer of the API has one */
            return thole_fail(reterr, THOLE_CORRUPT, "%s %s: the answer is not one of JetStream's", verb,
                              target);
        return THOLE_OK;
    }
    if (json_find(error, "err_code", &value))
        (void)json_uint(value, &code);
    if (json_find(error, "code", &value))
        (void)json_uint(value, &http);
    if (ret_error != NULL)
        *ret_error = (uint32_t)code;
    buf_init(&text, 300);
    if (!json_find(error, "description", &value) || !json_text(value, &text))
        buf_clear(&text);
    const char *const remedy = api_remedy((uint32_t)code);
    thole_status const status = thole_fail(
        reterr, api_status(code, http), "%s %s: the server says: %s (%llu)%s%s", verb, target,
        buf_cstr(&text), (unsigned long long)code, remedy == NULL ? "" : "; ", remedy == NULL ? "" : remedy);
    buf_release(&text);
    return status;
}

void api_body_begin(struct api_body *body)
{
    body->room = (struct json_room){.bytes = body->bytes, .cap = sizeof body->bytes};
    json_to_room(&body->json, &body->room);
    json_object(&body->json);
}

thole_slice api_body_end(struct api_body *body)
{
    json_end(&body->json);
    assert(!body->room.cut);
    return json_room_bytes(&body->room);
}

thole_slice api_body_sequence(struct api_body *body, uint64_t sequence)
{
    api_body_begin(body);
    json_member_number(&body->json, "seq", sequence);
    return api_body_end(body);
}

thole_slice api_body_delete(struct api_body *body, uint64_t sequence)
{
    api_body_begin(body);
    json_member_number(&body->json, "seq", sequence);
    json_member_bool(&body->json, "no_erase", true);
    return api_body_end(body);
}

/* While a leader is elected, which takes seconds, the servers refuse at once, and have done nothing. */
static bool refused_for_now(uint32_t code)
{
    return code == API_NO_LEADER || code == API_NOT_LEADER;
}

thole_status api_call(struct connection *connection, const char *verb, const char *target, thole_slice body,
                      struct buf *answer, uint32_t *ret_error, thole_error *reterr)
{
    char subject[API_SUBJECT_BYTES];
    uint32_t code = 0;
    int const len =
        snprintf(subject, sizeof subject, "$JS.API.%s%s%s", verb, target[0] == 0 ? "" : ".", target);
    if (ret_error != NULL)
        *ret_error = 0;
    if (len < 0 || (size_t)len >= sizeof subject)
        return thole_fail(reterr, THOLE_INVALID, "%s: the name is too long", verb);
    uint64_t const begun_ms = clock_monotonic_ms();
    for (;;) {
        THOLE_TRY(connection_request(connection, subject, body, answer, reterr));
        thole_status const status = api_judge(buf_bytes(answer), verb, target, &code, reterr);
        if (!refused_for_now(code) || clock_monotonic_ms() - begun_ms + NO_LEADER_PAUSE_MS >
                                          connection_request_timeout_ms(connection)) {
            if (ret_error != NULL)
                *ret_error = code;
            return status;
        }
        connection_pause(connection, NO_LEADER_PAUSE_MS);
    }
}

bool api_is_wrong_last(thole_slice error)
{
    thole_slice code;
    uint64_t number = 0;
    return json_find(error, "err_code", &code) && json_uint(code, &number) &&
           (number == API_WRONG_LAST || number == API_WRONG_LAST_BUSY);
}

static thole_status api_list_page(struct connection *connection, const char *verb, const char *target,
                                  const char *member, uint64_t offset, struct buf *answer,
                                  uint64_t *ret_total, thole_error *reterr)
{
    struct api_body body;
    thole_slice total;
    buf_clear(answer);
    api_body_begin(&body);
    json_member_number(&body.json, "offset", offset);
    THOLE_TRY(api_call(connection, verb, target, api_body_end(&body), answer, NULL, reterr));
    if (!json_find(buf_bytes(answer), "total", &total) || !json_uint(total, ret_total))
        return thole_fail(reterr, THOLE_CORRUPT, "the server's list of %s has no total", member);
    return THOLE_OK;
}

thole_status api_list(struct connection *connection, const char *verb, const char *target, const char *member,
                      api_item_fn *each, void *arg, thole_error *reterr)
{
    struct buf answer;
    uint64_t offset = 0, seen = 0, total = 0;
    thole_status status;
    buf_init(&answer, API_ANSWER_MAX);
    do {
        thole_slice list, item;
        size_t at = 0;
        seen = 0;
        status = api_list_page(connection, verb, target, member, offset, &answer, &total, reterr);
        if (status == THOLE_OK && json_find(buf_bytes(&answer), member, &list))
            for (; json_item(list, &at, &item); seen++)
                each(arg, item);
        offset += seen;
    } while (status == THOLE_OK && seen > 0 && offset < total);
    buf_release(&answer);
    return status;
}
