/* Activity messages: publishing, reading, signalling. */
#include "work.h"
#include "api.h"
#include "header_names.h"
#include "json.h"
#include "link.h"
#include "memory.h"
#include "nonce.h"
#include "push_consumer.h"
#include "reader.h"
#include "subject.h"
#include "work_message.h"
#include "work_names.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

thole_status work_names_make(const char *ns, thole_slice queue, struct work_names *ret, thole_error *reterr)
{
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    THOLE_TRY(name_check(queue, "queue", reterr));
    (void)snprintf(ret->stream, sizeof ret->stream, "THOLE_%s_WORK", ns);
    (void)snprintf(ret->consumer, sizeof ret->consumer, "q_%.*s", THOLE_FMT(queue));
    (void)snprintf(ret->filter, sizeof ret->filter, "thole.%s.work.%.*s.>", ns, THOLE_FMT(queue));
    (void)snprintf(ret->ns, sizeof ret->ns, "%s", ns);
    (void)snprintf(ret->queue, sizeof ret->queue, "%.*s", THOLE_FMT(queue));
    return THOLE_OK;
}

static const char RESULTS_LIST[] = "list";

enum { WORK_HEADERS = 5 };
static size_t write_headers(const struct work_item *item, struct header headers[WORK_HEADERS])
{
    size_t n = 0;
    headers[n++] = (struct header){HEADER_ACTIVITY, item->activity};
    headers[n++] = (struct header){HEADER_NONCE, item->nonce};
    if (item->lists)
        headers[n++] = (struct header){HEADER_RESULTS, thole_slice_from(RESULTS_LIST)};
    if (item->trace.parent.len > 0)
        headers[n++] = (struct header){HEADER_TRACEPARENT, item->trace.parent};
    if (item->trace.parent.len > 0 && item->trace.list.len > 0)
        headers[n++] = (struct header){HEADER_TRACESTATE, item->trace.list};
    return n;
}

thole_status work_publish(struct requests *requests, const char *ns, const struct work_item *item,
                          uint64_t token, thole_error *reterr)
{
    struct buf subject;
    THOLE_TRY(name_check(item->activity, "activity", reterr));
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = subject_work(&subject, ns, item->queue, item->instance, item->execution,
                                       item->activity_id, item->try_number, reterr);
    if (status == THOLE_OK) {
        struct header headers[WORK_HEADERS];
        struct publish const publish = {.subject = buf_cstr(&subject),
                                        .body = item->input,
                                        .headers = headers,
                                        .headers_len = write_headers(item, headers)};
        status = requests_publish(requests, &publish, token, reterr);
    }
    buf_release(&subject);
    return status;
}

/* By the literal subject, which is cheap for the server however long the queue is. If of several messages the
 * last one was removed nats-server 2.10.27 finds none, and the item is queued once more. */
thole_status work_look(struct requests *requests, const char *ns, const struct work_item *item,
                       uint64_t token, thole_error *reterr)
{
    char api[STREAM_NAME_BYTES_MAX + 32];
    struct json json;
    struct buf subject, body;
    (void)snprintf(api, sizeof api, "$JS.API.STREAM.MSG.GET.THOLE_%s_WORK", ns);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, 2 * SUBJECT_BYTES_MAX);
    thole_status status = subject_work(&subject, ns, item->queue, item->instance, item->execution,
                                       item->activity_id, item->try_number, reterr);
    if (status == THOLE_OK) {
        json_to_buf(&json, &body);
        json_object(&json);
        json_member_text(&json, "last_by_subj", buf_cstr(&subject));
        json_end(&json);
        status = buf_status(&body);
    }
    if (status == THOLE_OK)
        status = requests_send(requests, api, buf_bytes(&body), token, reterr);
    buf_release(&subject);
    buf_release(&body);
    return status;
}

static struct work_digest digest_of(const struct work_item *item)
{
    return work_digest_make(item->queue, item->activity, item->nonce, item->input);
}

/* ---- look-ups ---- */

/* The value of the first header with that name, as nats.c reads it for a worker; empty: there is none. */
static thole_slice header_in(thole_slice headers, const char *name)
{
    size_t const name_len = strlen(name);
    for (size_t at = 0, len; at < headers.len; at += len) {
        const uint8_t *const line = headers.ptr + at;
        const uint8_t *const newline = memchr(line, '\n', headers.len - at);
        len = newline == NULL ? headers.len - at : (size_t)(newline - line) + 1;
        if (len <= name_len || memcmp(line, name, name_len) != 0 || line[name_len] != ':')
            continue;
        size_t from = name_len + 1, to = len;
        while (from < to && line[from] == ' ')
            from++;
        while (to > from && (line[to - 1] == '\n' || line[to - 1] == '\r' || line[to - 1] == ' '))
            to--;
        return (thole_slice){line + from, to - from};
    }
    return (thole_slice){NULL, 0};
}

thole_status work_look_answer(thole_slice answer, thole_slice queue, uint64_t *ret_sequence, bool *ret_read,
                              struct work_digest *ret_digest, thole_error *reterr)
{
    struct buf headers, input;
    buf_init(&headers, API_ANSWER_MAX);
    buf_init(&input, API_ANSWER_MAX);
    thole_status status = stream_get_answer(answer, ret_sequence, &input, reterr);
    if (status == THOLE_OK)
        status = stream_get_headers(answer, &headers, reterr);
    struct work_item const item = {.queue = queue,
                                   .activity = header_in(buf_bytes(&headers), HEADER_ACTIVITY),
                                   .nonce = header_in(buf_bytes(&headers), HEADER_NONCE),
                                   .input = buf_bytes(&input)};
    *ret_read = status == THOLE_OK && name_check(item.activity, "activity", NULL) == THOLE_OK &&
                nonce_is_text(item.nonce);
    if (*ret_read)
        *ret_digest = digest_of(&item);
    buf_release(&headers);
    buf_release(&input);
    return status;
}

/* ---- delivered ---- */

/* Within the range of the rows' columns: a larger number would make the whole claim statement fail. */
static bool work_read_number(thole_slice subject, size_t token, uint64_t most, uint64_t *ret)
{
    return slice_uint(subject_nth(subject, token), ret) && *ret > 0 && *ret <= most;
}

static const char *work_read_item(natsMsg *native, const struct work_names *names, struct work_box *box)
{
    struct work_item *item = &box->message.item;
    thole_slice const subject = thole_slice_from(natsMsg_GetSubject(native));
    thole_slice const instance = subject_nth(subject, WORK_TOKEN_INSTANCE);
    struct buf id;
    if (subject_nth(subject, WORK_TOKENS).len > 0 ||
        !thole_slice_equal(subject_nth(subject, 1), thole_slice_from(names->ns)) ||
        !thole_slice_equal(subject_nth(subject, WORK_TOKEN_QUEUE), thole_slice_from(names->queue)))
        return "the subject is not one of this queue";
    if (!work_read_number(subject, WORK_TOKEN_INSTANCE + 1, INT64_MAX, &item->execution))
        return "the execution in the subject is missing or not a number";
    if (!work_read_number(subject, WORK_TOKEN_INSTANCE + 2, INT64_MAX, &item->activity_id))
        return "the activity's id in the subject is missing or not a number";
    if (!work_read_number(subject, WORK_TOKEN_INSTANCE + 3, INT32_MAX, &item->try_number))
        return "the try in the subject is missing or not a number";
    item->activity = link_native_header(native, HEADER_ACTIVITY);
    if (name_check(item->activity, "activity", NULL) != THOLE_OK)
        return "header Thole-Activity is missing or not a name";
    item->nonce = link_native_header(native, HEADER_NONCE);
    if (!nonce_is_text(item->nonce))
        return "header Thole-Nonce is missing, or not 32 hexadecimal digits";
    struct trace const trace = {link_native_header(native, HEADER_TRACEPARENT),
                                link_native_header(native, HEADER_TRACESTATE)};
    item->trace = trace_valid(&trace);
    item->lists =
        thole_slice_equal(link_native_header(native, HEADER_RESULTS), thole_slice_from(RESULTS_LIST));
    buf_init(&id, THOLE_ID_BYTES_MAX);
    thole_status const status = subject_token_decode(instance, &id, NULL);
    if (status == THOLE_OK)
        memcpy(box->instance, id.ptr, id.len);
    item->instance = (thole_slice){box->instance, status == THOLE_OK ? id.len : 0};
    buf_release(&id);
    return status == THOLE_OK ? NULL : "the instance in the subject is not a valid id";
}

struct work_message *work_message_create(natsMsg *native, const struct work_names *names,
                                         const char **ret_bad)
{
    struct ack_meta meta = {.deliveries = 0};
    struct work_box *box = memory_new(sizeof *box);
    const char *const reply = natsMsg_GetReply(native);
    int const len = natsMsg_GetDataLength(native);
    *ret_bad = names->queue[0] == '\0' ? NULL : work_read_item(native, names, box);
    if (!ack_parse(thole_slice_from(reply), &meta))
        *ret_bad = "the reply subject is not JetStream's";
    box->message.item.input =
        (thole_slice){(const uint8_t *)natsMsg_GetData(native), len > 0 ? (size_t)len : 0};
    box->message.deliveries = meta.deliveries;
    box->message.sequence = meta.stream_sequence;
    box->message.reply = memory_text(reply != NULL ? reply : "");
    box->message.native = native;
    if (names->queue[0] == '\0')
        return &box->message;
    box->message.item.queue = subject_nth(thole_slice_from(natsMsg_GetSubject(native)), WORK_TOKEN_QUEUE);
    assert(*ret_bad != NULL || box->message.item.instance.len > 0);
    if (*ret_bad == NULL)
        box->message.digest = digest_of(&box->message.item);
    return &box->message;
}

static thole_slice copy_behind(uint8_t **to, thole_slice from)
{
    thole_slice const copy = {*to, from.len};
    if (from.len > 0)
        memcpy(*to, from.ptr, from.len);
    *to += from.len;
    return copy;
}

/* The message's texts are stored after the struct. */
struct work_message *work_message_elsewhere(const struct work_item *item, const struct work_digest *digest)
{
    size_t const size = item->queue.len + item->activity.len + item->nonce.len + item->input.len;
    struct work_box *const box = memory_new(sizeof *box + size + 1);
    uint8_t *to = (uint8_t *)(box + 1);
    assert(item->instance.len <= sizeof box->instance);
    memcpy(box->instance, item->instance.ptr, item->instance.len);
    box->message.item = (struct work_item){.queue = copy_behind(&to, item->queue),
                                           .activity = copy_behind(&to, item->activity),
                                           .nonce = copy_behind(&to, item->nonce),
                                           .input = copy_behind(&to, item->input),
                                           .instance = {box->instance, item->instance.len},
                                           .execution = item->execution,
                                           .activity_id = item->activity_id,
                                           .try_number = item->try_number};
    box->message.digest = *digest;
    box->message.reply = memory_text("");
    return &box->message;
}

void work_message_destroy(struct work_message *message)
{
    if (message == NULL)
        return;
    link_message_free(message->native);
    free(message->reply);
    free(message); /* the first member of its box */
}

void work_message_adopt(struct work_message *message, struct work_message *again)
{
    char *const old = message->reply;
    assert(message != again && message->item.execution == again->item.execution);
    assert(message->item.activity_id == again->item.activity_id);
    assert(thole_slice_equal(message->item.instance, again->item.instance));
    message->reply = again->reply;
    message->sequence = again->sequence;
    message->deliveries = again->deliveries;
    again->reply = old;
    work_message_destroy(again);
}

static thole_status send_signal(struct connection *connection, const struct work_message *message,
                                thole_slice word, thole_error *reterr)
{
    bool sent = false;
    struct link *link = link_acquire(connection);
    if (message->reply[0] == '\0' || link == NULL) {
        link_release(link);
        return thole_fail(reterr, THOLE_UNAVAILABLE,
                          "NATS is not connected: an activity message was not signalled");
    }
    thole_status const status = link_send_bytes(link, message->reply, NULL, word, &sent, reterr);
    link_release(link);
    return status;
}

thole_status work_message_signal(struct connection *connection, const struct work_message *message,
                                 enum work_signal signal, thole_error *reterr)
{
    static const char *const words[] = {
        [WORK_ACK] = "+ACK", [WORK_NAK] = "-NAK", [WORK_PROGRESS] = "+WPI", [WORK_TERM] = "+TERM"};
    return send_signal(connection, message, thole_slice_from(words[signal]), reterr);
}

thole_status work_message_put_back(struct connection *connection, const struct work_message *message,
                                   uint64_t delay_ms, thole_error *reterr)
{
    char word[API_BODY_BYTES + 8];
    struct api_body body;
    api_body_begin(&body);
    json_member_number(&body.json, "delay", delay_ms * NANOS_PER_MS);
    thole_slice const delay = api_body_end(&body);
    (void)snprintf(word, sizeof word, "-NAK %.*s", THOLE_FMT(delay));
    return send_signal(connection, message, thole_slice_from(word), reterr);
}
