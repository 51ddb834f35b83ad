#include "gateway_request.h"
#include "clock.h"
#include "log.h"
#include "memory.h"
#include "proto_json.h"
#include "sender_headers.h"
#include "subject.h"
#include "text.h"
#include "values.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CONTENT_JSON "application/json"
#define CONTENT_PROTOBUF "application/protobuf"

enum { TEXT_BYTES = 512, MEMBER_COLUMNS = 64, MEMBERS_BYTES = 256 };

/* ---- reading ---- */

/* "Application/JSON; charset=utf-8" is JSON as well. */
static bool content_is(thole_slice type, const char *wanted)
{
    size_t const len = strlen(wanted);
    if (type.len < len || strncasecmp((const char *)type.ptr, wanted, len) != 0)
        return false;
    return type.len == len || strchr("; \t", type.ptr[len]) != NULL;
}

/* Without the header the first byte tells: no message of the contract begins with { in protobuf. */
static thole_status find_form(const struct delivery *delivery, enum gateway_form *ret, thole_error *reterr)
{
    thole_slice const type = delivery_header_any_case(delivery, "Content-Type");
    bool const json = type.len == 0 ? proto_json_is(delivery->body) : content_is(type, CONTENT_JSON);
    *ret = json ? GATEWAY_JSON : GATEWAY_PROTOBUF;
    if (json || type.len == 0 || content_is(type, CONTENT_PROTOBUF))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_UNSUPPORTED,
                      "the Content-Type is not " CONTENT_JSON " or " CONTENT_PROTOBUF);
}

/* A member that a request has not: perhaps mistyped, perhaps of a newer contract. */
static thole_status refuse_unknown(struct codec_scratch *scratch, const struct proto_json_unknown *unknown,
                                   thole_error *reterr)
{
    const ProtobufCMessageDescriptor *const message = unknown->message;
    const char **const names = memory_array(message->n_fields + 1, sizeof *names);
    struct buf member, known;
    buf_init(&member, TEXT_BYTES);
    buf_init(&known, MEMBERS_BYTES);
    text_safe(&member, unknown->member, MEMBER_COLUMNS);
    for (unsigned i = 0; i < message->n_fields; i++) {
        names[i] = proto_json_name(&message->fields[i], scratch);
        buf_printf(&known, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    const char *const near = word_suggest(buf_cstr(&member), names, message->n_fields);
    thole_status const status =
        near != NULL ? thole_fail(reterr, THOLE_INVALID, "%s has no member \"%s\"; did you mean \"%s\"?",
                                  message->short_name, buf_cstr(&member), near)
                     : thole_fail(reterr, THOLE_INVALID, "%s has no member \"%s\" at this gateway; it has %s",
                                  message->short_name, buf_cstr(&member), buf_cstr(&known));
    buf_release(&member);
    buf_release(&known);
    free(names);
    return status;
}

/* In protobuf a message whose fields all have their defaults has no bytes. */
static thole_status empty_message(struct gateway_request *request, ProtobufCMessage **ret,
                                  thole_error *reterr)
{
    const ProtobufCMessageDescriptor *const asked = request->endpoint->asked;
    ProtobufCMessage *const message = arena_alloc(&request->scratch.arena, asked->sizeof_message);
    if (message == NULL)
        return thole_fail(reterr, THOLE_NOMEM, "no memory for the request");
    protobuf_c_message_init(asked, message);
    *ret = message;
    return THOLE_OK;
}

/* Reads a body in JSON. A client's request is done as written, or not at all. A worker's session tolerates
 * unknown fields in its messages. */
static thole_status read_json(struct gateway_request *request, thole_slice body,
                              struct proto_json_tolerance *tolerance, ProtobufCMessage **ret,
                              thole_error *reterr)
{
    const ProtobufCMessageDescriptor *const asked = request->endpoint->asked;
    struct proto_json_unknown unknown;
    if (!request->endpoint->of_client)
        return proto_json_decode_tolerant(asked, body, &request->scratch, tolerance, ret, reterr);
    thole_status const status =
        proto_json_decode_known(asked, body, &request->scratch, &unknown, ret, reterr);
    return unknown.message == NULL ? status : refuse_unknown(&request->scratch, &unknown, reterr);
}

static thole_status read_protobuf(struct gateway_request *request, thole_slice body, ProtobufCMessage **ret,
                                  thole_error *reterr)
{
    const ProtobufCMessageDescriptor *const asked = request->endpoint->asked;
    if (body.len == 0)
        return empty_message(request, ret, reterr);
    thole_status const status =
        codec_unpack(asked, body, GATEWAY_MESSAGE_BYTES_MAX, &request->scratch, "request", ret, reterr);
    if (status == THOLE_CORRUPT)
        return thole_fail(
            reterr, status,
            "the request does not decode as protobuf; JSON has the header Content-Type: " CONTENT_JSON);
    THOLE_TRY(status);
    if (request->endpoint->of_client && (*ret)->n_unknown_fields > 0)
        return thole_fail(reterr, THOLE_INVALID, "%s has no field %u at this gateway", asked->short_name,
                          (*ret)->unknown_fields[0].tag);
    return THOLE_OK;
}

static thole_status gateway_request_read_message(struct gateway_request *request, thole_slice body,
                                                 thole_error *reterr)
{
    struct proto_json_tolerance tolerance = {.items = request->endpoint->items};
    bool const tolerant = tolerance.items != NULL;
    ProtobufCMessage *message = NULL;
    if (body.len > GATEWAY_MESSAGE_BYTES_MAX)
        return thole_fail(reterr, THOLE_LIMIT, "the request has %zu bytes, at most %d are allowed", body.len,
                          GATEWAY_MESSAGE_BYTES_MAX);
    if (request->form == GATEWAY_JSON)
        THOLE_TRY(read_json(request, body, tolerant ? &tolerance : NULL, &message, reterr));
    else
        THOLE_TRY(read_protobuf(request, body, &message, reterr));
    if (tolerant)
        proto_texts_mend(message);
    else
        THOLE_TRY(proto_texts_check(message, reterr));
    THOLE_TRY(codec_ranges_check(message, reterr));
    request->item_errors = tolerance.errors;
    request->message = message;
    return THOLE_OK;
}

static thole_status copy_sender(struct arena *arena, const struct actor *from, thole_sender *to,
                                thole_error *reterr)
{
    thole_status status = arena_dup(arena, from->name, &to->actor);
    if (status == THOLE_OK)
        status = arena_dup(arena, from->client, &to->client_name);
    if (status == THOLE_OK)
        status = arena_dup(arena, from->trace.parent, &to->traceparent);
    if (status == THOLE_OK)
        status = arena_dup(arena, from->trace.list, &to->tracestate);
    return status == THOLE_OK ? THOLE_OK : thole_fail(reterr, status, "no memory for the request");
}

/* An actor in the subject wins over that of the headers: NATS lets only some publish it. */
static thole_status gateway_request_read_sender(struct gateway_request *request,
                                                const struct delivery *delivery, thole_error *reterr)
{
    struct actor actor = sender_headers_read(delivery, NULL);
    struct buf vouched;
    buf_init(&vouched, ACTOR_NAME_BYTES_MAX);
    thole_status status = subject_actor(
        delivery->subject, CLIENT_TOKEN_OPERATION + 1 + (size_t)request->endpoint->named, &vouched, reterr);
    request->sender.vouched = vouched.len > 0;
    if (request->sender.vouched)
        actor.name = buf_bytes(&vouched);
    if (status == THOLE_OK)
        status = copy_sender(&request->scratch.arena, &actor, &request->sender, reterr);
    buf_release(&vouched);
    return status;
}

static char *gateway_request_text_of(thole_slice slice)
{
    return memory_copy(slice.ptr, slice.len);
}

/* The name that the request concerns. */
static thole_slice gateway_request_name_of(const struct endpoint *endpoint, thole_slice subject)
{
    if (endpoint->of_client) /* an actor may follow */
        return subject_nth(subject, CLIENT_TOKEN_OPERATION + 1);
    size_t begin = subject.len;
    while (begin > 0 && subject.ptr[begin - 1] != '.')
        begin--;
    return (thole_slice){subject.ptr + begin, subject.len - begin};
}

struct gateway_request *gateway_request_take(struct connection *connection, struct endpoint *endpoint,
                                             const struct delivery *delivery)
{
    thole_error error = {.status = THOLE_OK};
    /* the sender need not be allowed to publish everything that a gateway may */
    if (!subject_is_reply(delivery->reply))
        return NULL;
    struct gateway_request *const request = memory_new(sizeof *request);
    request->connection = connection;
    request->endpoint = endpoint;
    request->received_us = clock_monotonic_us();
    request->reply = gateway_request_text_of(delivery->reply);
    request->name = gateway_request_text_of(gateway_request_name_of(endpoint, delivery->subject));
    codec_init(&request->scratch);
    thole_status status = find_form(delivery, &request->form, &error);
    if (status == THOLE_OK)
        status = gateway_request_read_message(request, delivery->body, &error);
    if (status == THOLE_OK && endpoint->of_client)
        status = gateway_request_read_sender(request, delivery, &error);
    if (status == THOLE_OK)
        return request;
    gateway_refuse(request, status == THOLE_CORRUPT ? THOLE_INVALID : status, "%s", error.text);
    return NULL;
}

void gateway_request_free(struct gateway_request *request)
{
    if (request == NULL)
        return;
    codec_release(&request->scratch);
    free(request->reply);
    free(request->name);
    free(request);
}

/* ---- answering ---- */

char *gateway_copy_text(struct arena *arena, thole_slice text)
{
    char *const copy = arena_alloc(arena, text.len + 1);
    if (copy == NULL)
        return (char *)"";
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

static thole_status gateway_request_encode(enum gateway_form form, const ProtobufCMessage *message,
                                           struct buf *to)
{
    return form == GATEWAY_JSON ? proto_json_encode(message, to) : codec_pack(message, to);
}

/* Every answer's first two fields. */
static void set_status(ProtobufCMessage *answer, thole_status status, const char *text)
{
    const ProtobufCFieldDescriptor *const fields = answer->descriptor->fields;
    assert(fields[0].type == PROTOBUF_C_TYPE_UINT32 && fields[1].type == PROTOBUF_C_TYPE_STRING);
    uint32_t const number = (uint32_t)status;
    memcpy((char *)answer + fields[0].offset, &number, sizeof number);
    memcpy((char *)answer + fields[1].offset, &text, sizeof text);
}

static void gateway_request_count(struct endpoint *endpoint, uint64_t received_us, thole_status status)
{
    (void)atomic_fetch_add(&endpoint->requests, 1);
    (void)atomic_fetch_add(&endpoint->busy_us, clock_monotonic_us() - received_us);
    metric_count(endpoint->cells, METRIC_GATEWAY_REQUESTS, endpoint->kind, 1);
    if (status == THOLE_OK)
        return;
    metric_count(endpoint->cells, METRIC_GATEWAY_REQUEST_FAILURES, endpoint->kind, 1);
    (void)atomic_fetch_add(&endpoint->errors, 1);
    atomic_store(&endpoint->last_error, status);
}

/* A header is one line of ASCII: some clients refuse the whole message otherwise. The body has the text. */
static void gateway_request_make_header(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
        else if ((unsigned char)*text > 0x7f)
            *text = '?';
}

static void gateway_request_send_answer(const struct gateway_request *request, thole_slice body,
                                        thole_status status, const char *text)
{
    char code[16], said[TEXT_BYTES];
    thole_error error = {.status = THOLE_OK};
    (void)snprintf(code, sizeof code, "%d", (int)status);
    (void)snprintf(said, sizeof said, "%s", text);
    gateway_request_make_header(said);
    struct header const headers[] = {
        {"Content-Type", thole_slice_from(request->form == GATEWAY_JSON ? CONTENT_JSON : CONTENT_PROTOBUF)},
        {"Nats-Service-Error", thole_slice_from(said)},
        {"Nats-Service-Error-Code", thole_slice_from(code)},
    };
    size_t const n = status == THOLE_OK ? 1 : 3;
    if (request->asks != NULL && connection_publish_asking(request->asks, request->reply, request->unheard,
                                                           headers, n, body, NULL) == THOLE_OK)
        return;
    if (connection_publish(request->connection, request->reply, headers, n, body, &error) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "gateway", "an answer was not sent: %s", error.text);
}

void gateway_answer(struct gateway_request *request, ProtobufCMessage *answer, thole_status status,
                    const char *text)
{
    struct buf body;
    buf_init(&body, 2 * (size_t)GATEWAY_MESSAGE_BYTES_MAX);
    set_status(answer, status, text);
    thole_status const encoded = gateway_request_encode(request->form, answer, &body);
    if (encoded == THOLE_OK)
        gateway_request_send_answer(request, buf_bytes(&body), status, text);
    else
        log_line(LOG_LEVEL_WARN, "gateway", "an answer to %s was not sent: it is too large",
                 request->endpoint->name);
    buf_release(&body);
    gateway_request_count(request->endpoint, request->received_us, status);
    gateway_request_free(request);
}

void gateway_refuse(struct gateway_request *request, thole_status status, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const ProtobufCMessageDescriptor *const kind = request->endpoint->answered;
    ProtobufCMessage *const answer = memory_new(kind->sizeof_message);
    protobuf_c_message_init(kind, answer);
    gateway_answer(request, answer, status, text);
    free(answer);
}

void gateway_tell(struct connection *connection, const char *subject, enum gateway_form form,
                  const ProtobufCMessage *message)
{
    struct buf body;
    thole_error error = {.status = THOLE_OK};
    struct header const type = {"Content-Type",
                                thole_slice_from(form == GATEWAY_JSON ? CONTENT_JSON : CONTENT_PROTOBUF)};
    buf_init(&body, GATEWAY_MESSAGE_BYTES_MAX);
    if (gateway_request_encode(form, message, &body) != THOLE_OK ||
        connection_publish(connection, subject, &type, 1, buf_bytes(&body), &error) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "gateway", "a notice was not sent: %s", error.text);
    buf_release(&body);
}
