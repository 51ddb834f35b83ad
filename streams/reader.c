/* Blocking reads of streams, and removal. */
#include "reader.h"
#include "api.h"
#include "inflow.h"
#include "jscan.h"
#include "json.h"
#include "push_consumer.h"
#include "subject.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    READ_HEARTBEAT_MS = 250, /* shows that the end was reached if the last messages were deleted */
    READ_SILENCE_MS = 2000,  /* then the consumer counts as lost */
    READ_ATTEMPTS_MAX = 3,   /* in a row without a message */
    /* A consumer may send so much before it waits for an answer; with another one it would be twice as much.
     * Several threads read at once, and the server closes a connection for which too much waits: inflow.h.
     * So after some ten MiB the next consumer goes on. */
    READ_WINDOW_MAX = 4 * INFLOW_WINDOW_FIRST,
    LEFT_MS = 5000, /* how long a consumer stays that is left to the server */
    GET_REQUEST_MAX = 4096,
};

static bool reader_get_uint(thole_slice object, const char *path, uint64_t *ret)
{
    thole_slice value;
    return json_path(object, path, &value) && json_uint(value, ret);
}

static thole_status parse_bounds(thole_slice answer, const char *stream, struct stream_bounds *ret,
                                 thole_error *reterr)
{
    struct stream_bounds bounds;
    if (!reader_get_uint(answer, "state.first_seq", &bounds.first) ||
        !reader_get_uint(answer, "state.last_seq", &bounds.last) ||
        !reader_get_uint(answer, "state.messages", &bounds.messages))
        return thole_fail(reterr, THOLE_CORRUPT, "stream %s: the server's answer has no state", stream);
    if (bounds.messages == 0)
        bounds.first = bounds.last + 1;
    *ret = bounds;
    return THOLE_OK;
}

/* A call with an answer that only confirms it. */
static thole_status reader_notify(struct connection *connection, const char *verb, const char *stream,
                                  thole_slice body, uint32_t *ret_error, thole_error *reterr)
{
    struct buf answer;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status const status = api_call(connection, verb, stream, body, &answer, ret_error, reterr);
    buf_release(&answer);
    return status;
}

thole_status stream_bounds(struct connection *connection, const char *stream, struct stream_bounds *ret,
                           thole_error *reterr)
{
    struct buf answer;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = api_call(connection, "STREAM.INFO", stream, THOLE_STR(""), &answer, NULL, reterr);
    if (status == THOLE_OK)
        status = parse_bounds(buf_bytes(&answer), stream, ret, reterr);
    buf_release(&answer);
    return status;
}

thole_status stream_server_ms(struct connection *connection, const char *stream, uint64_t *ret_ms,
                              thole_error *reterr)
{
    struct buf answer;
    thole_slice time;
    uint64_t ns = 0;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = api_call(connection, "STREAM.INFO", stream, THOLE_STR(""), &answer, NULL, reterr);
    if (status == THOLE_OK && !(json_find(buf_bytes(&answer), "ts", &time) && json_time_ns(time, &ns)))
        status = thole_fail(reterr, THOLE_CORRUPT, "stream %s: the server's answer has no time", stream);
    *ret_ms = ns / 1000000;
    buf_release(&answer);
    return status;
}

thole_status stream_still_holds(struct connection *connection, const char *stream, uint64_t sequence,
                                uint64_t stored_ns, bool *ret, uint64_t *ret_last, thole_error *reterr)
{
    struct stream_bounds bounds;
    struct api_body body;
    struct buf answer;
    thole_slice time;
    uint64_t ns = 0;
    uint32_t code = 0;
    /* In this order: a missing message within the bounds was removed. */
    THOLE_TRY(stream_bounds(connection, stream, &bounds, reterr));
    *ret_last = bounds.last;
    *ret = bounds.last >= sequence;
    if (!*ret || stored_ns == 0)
        return THOLE_OK;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = api_call(connection, "STREAM.MSG.GET", stream, api_body_sequence(&body, sequence),
                                   &answer, &code, reterr);
    if (status == THOLE_OK) {
        if (json_path(buf_bytes(&answer), "message.time", &time) && json_time_ns(time, &ns))
            *ret = ns == stored_ns;
        else
            status = thole_fail(reterr, THOLE_CORRUPT, "stream %s: message %llu has no time", stream,
                                (unsigned long long)sequence);
    } else if (code == API_MESSAGE_NOT_FOUND) {
        status = THOLE_OK;
    }
    buf_release(&answer);
    return status;
}

thole_status stream_message(struct connection *connection, const char *stream, uint64_t sequence,
                            bool *ret_there, struct buf *ret_body, thole_error *reterr)
{
    struct api_body body;
    struct buf answer;
    uint64_t found = 0;
    uint32_t code = 0;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = api_call(connection, "STREAM.MSG.GET", stream, api_body_sequence(&body, sequence),
                                   &answer, &code, reterr);
    if (status == THOLE_OK)
        status = stream_get_answer(buf_bytes(&answer), &found, ret_body, reterr);
    else if (code == API_MESSAGE_NOT_FOUND)
        status = THOLE_OK;
    *ret_there = found == sequence;
    buf_release(&answer);
    return status;
}

thole_status stream_next(struct connection *connection, const char *stream, uint64_t from,
                         uint64_t *ret_sequence, thole_error *reterr)
{
    struct api_body body;
    struct buf answer;
    thole_slice sequence;
    uint32_t code = 0;
    buf_init(&answer, API_ANSWER_MAX);
    api_body_begin(&body);
    json_member_number(&body.json, "seq", from);
    json_member_text(&body.json, "next_by_subj", ">");
    thole_status status =
        api_call(connection, "STREAM.MSG.GET", stream, api_body_end(&body), &answer, &code, reterr);
    *ret_sequence = 0;
    if (status == THOLE_OK &&
        !(json_path(buf_bytes(&answer), "message.seq", &sequence) && json_uint(sequence, ret_sequence)))
        status = thole_fail(reterr, THOLE_CORRUPT, "stream %s: a message has no sequence", stream);
    else if (code == API_MESSAGE_NOT_FOUND)
        status = THOLE_OK;
    buf_release(&answer);
    return status;
}

/*
 * The subject with a wildcard for its second token, the namespace or the bucket, which is the same for all
 * messages of a stream. For a literal subject whose last message was deleted, nats-server 2.10.27 answers "no
 * message found" even when older ones are there; with a wildcard it finds them.
 */
static void reader_widen(struct buf *to, const char *subject)
{
    const char *first = strchr(subject, '.');
    const char *second = first == NULL ? NULL : strchr(first + 1, '.');
    if (second == NULL || strpbrk(subject, "*>") != NULL) {
        buf_text(to, subject);
        return;
    }
    buf_append(to, subject, (size_t)(first + 1 - subject));
    buf_text(to, "*");
    buf_text(to, second);
}

thole_status stream_get_request(struct buf *to, const char *subject)
{
    struct json json;
    struct buf wide;
    buf_init(&wide, SUBJECT_BYTES_MAX + 1);
    reader_widen(&wide, subject);
    buf_clear(to);
    json_to_buf(&json, to);
    json_object(&json);
    json_member_text(&json, "last_by_subj", buf_cstr(&wide));
    json_end(&json);
    thole_status const status = buf_status(&wide) != THOLE_OK ? buf_status(&wide) : buf_status(to);
    buf_release(&wide);
    return status;
}

/* A member in base64; empty: the message has none. */
static thole_status get_bytes(thole_slice message, const char *member, struct buf *to, thole_error *reterr)
{
    thole_slice value;
    struct buf text;
    buf_clear(to);
    if (!json_find(message, member, &value)) /* empty members are omitted */
        return THOLE_OK;
    buf_init(&text, value.len);
    bool const good = json_text(value, &text) && base64_decode(buf_bytes(&text), to);
    buf_release(&text);
    if (buf_status(to) != THOLE_OK)
        return thole_fail(reterr, buf_status(to), "a message is larger than %zu bytes", to->max);
    return good ? THOLE_OK : thole_fail(reterr, THOLE_CORRUPT, "the server's answer has no valid base64");
}

thole_status stream_sequence_request(struct buf *to, uint64_t sequence)
{
    struct json json;
    assert(sequence > 0);
    buf_clear(to);
    json_to_buf(&json, to);
    json_object(&json);
    json_member_number(&json, "seq", sequence);
    json_end(&json);
    return buf_status(to);
}

thole_status stream_first_request(struct buf *to, const char *subject)
{
    struct json json;
    buf_clear(to);
    json_to_buf(&json, to);
    json_object(&json);
    json_member_number(&json, "seq", 1);
    json_member_text(&json, "next_by_subj", subject);
    json_end(&json);
    return buf_status(to);
}

thole_status stream_get_answer(thole_slice answer, uint64_t *ret_sequence, struct buf *ret_body,
                               thole_error *reterr)
{
    thole_slice message;
    uint32_t code = 0;
    thole_status status = api_judge(answer, "STREAM.MSG.GET", "", &code, reterr);
    if (code == API_MESSAGE_NOT_FOUND) {
        *ret_sequence = 0;
        if (ret_body != NULL)
            buf_clear(ret_body);
        return THOLE_OK;
    }
    THOLE_TRY(status);
    if (!json_find(answer, "message", &message) || !reader_get_uint(message, "seq", ret_sequence) ||
        *ret_sequence == 0)
        return thole_fail(reterr, THOLE_CORRUPT, "the server's answer holds no message");
    return ret_body == NULL ? THOLE_OK : get_bytes(message, "data", ret_body, reterr);
}

thole_status stream_get_headers(thole_slice answer, struct buf *to, thole_error *reterr)
{
    thole_slice message;
    buf_clear(to);
    return json_find(answer, "message", &message) ? get_bytes(message, "hdrs", to, reterr) : THOLE_OK;
}

thole_status stream_get_subject(thole_slice answer, struct buf *to, thole_error *reterr)
{
    thole_slice message, subject;
    buf_clear(to);
    if (json_find(answer, "message", &message) && json_find(message, "subject", &subject) &&
        json_text(subject, to) && buf_status(to) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_CORRUPT, "the server's answer names no subject");
}

thole_status stream_last_by_subject(struct connection *connection, const char *stream, const char *subject,
                                    uint64_t *ret_sequence, struct buf *ret_body, thole_error *reterr)
{
    struct buf request, answer;
    uint32_t code = 0;
    buf_init(&request, GET_REQUEST_MAX);
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = stream_get_request(&request, subject);
    if (status != THOLE_OK)
        status = thole_fail(reterr, status, "subject is too long");
    else
        status = api_call(connection, "STREAM.MSG.GET", stream, buf_bytes(&request), &answer, &code, reterr);
    if (status == THOLE_OK || (status == THOLE_NOT_FOUND && code == API_MESSAGE_NOT_FOUND))
        status = stream_get_answer(buf_bytes(&answer), ret_sequence, ret_body, reterr);
    buf_release(&request);
    buf_release(&answer);
    return status;
}

thole_status stream_find(struct connection *connection, const char *stream, const char *subject,
                         uint64_t from, struct stored_message *ret, struct buf *ret_body, thole_error *reterr)
{
    struct buf wide, request, answer;
    struct json json;
    thole_slice time;
    uint32_t code = 0;
    *ret = (struct stored_message){0};
    buf_init(&wide, SUBJECT_BYTES_MAX + 1);
    buf_init(&request, GET_REQUEST_MAX);
    buf_init(&answer, API_ANSWER_MAX);
    reader_widen(&wide, subject);
    json_to_buf(&json, &request);
    json_object(&json);
    if (from > 0)
        json_member_number(&json, "seq", from);
    json_member_text(&json, from > 0 ? "next_by_subj" : "last_by_subj", buf_cstr(&wide));
    json_end(&json);
    thole_status status = buf_status(&wide) != THOLE_OK ? buf_status(&wide) : buf_status(&request);
    if (status != THOLE_OK)
        status = thole_fail(reterr, status, "subject is too long");
    else
        status = api_call(connection, "STREAM.MSG.GET", stream, buf_bytes(&request), &answer, &code, reterr);
    if (status == THOLE_OK || (status == THOLE_NOT_FOUND && code == API_MESSAGE_NOT_FOUND))
        status = stream_get_answer(buf_bytes(&answer), &ret->sequence, ret_body, reterr);
    if (status == THOLE_OK && ret->sequence > 0 && json_path(buf_bytes(&answer), "message.time", &time))
        (void)json_time_ns(time, &ret->stored_ns);
    buf_release(&wide);
    buf_release(&request);
    buf_release(&answer);
    return status;
}

/* ---- without a consumer ---- */

/* The first matching message at @p from or after it; sequence 0: none. */
static thole_status walk_step(struct connection *connection, const char *stream, const char *wide,
                              uint64_t from, struct buf *answer, uint64_t *ret_sequence, struct buf *body,
                              thole_error *reterr)
{
    struct buf request;
    struct json json;
    uint32_t code = 0;
    buf_init(&request, GET_REQUEST_MAX);
    json_to_buf(&json, &request);
    json_object(&json);
    json_member_number(&json, "seq", from);
    json_member_text(&json, "next_by_subj", wide);
    json_end(&json);
    thole_status status = buf_status(&request);
    if (status != THOLE_OK)
        status = thole_fail(reterr, status, "filter is too long");
    else
        status = api_call(connection, "STREAM.MSG.GET", stream, buf_bytes(&request), answer, &code, reterr);
    if (status == THOLE_OK || (status == THOLE_NOT_FOUND && code == API_MESSAGE_NOT_FOUND))
        status = stream_get_answer(buf_bytes(answer), ret_sequence, body, reterr);
    buf_release(&request);
    return status;
}

thole_status stream_walk(struct connection *connection, const char *stream, const char *filter, uint64_t from,
                         uint64_t to, stream_read_fn *each, void *arg, thole_error *reterr)
{
    struct buf wide, answer, body, subject;
    uint64_t next = from == 0 ? 1 : from, last = 0;
    buf_init(&wide, SUBJECT_BYTES_MAX + 1);
    buf_init(&answer, API_ANSWER_MAX);
    buf_init(&body, API_ANSWER_MAX);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    reader_widen(&wide, filter);
    thole_status status = buf_status(&wide) == THOLE_OK
                              ? THOLE_OK
                              : thole_fail(reterr, buf_status(&wide), "filter is too long");
    /* To find that nothing follows the last message, the server would look through all stored messages. */
    if (status == THOLE_OK && next <= to)
        status = stream_last_by_subject(connection, stream, buf_cstr(&wide), &last, NULL, reterr);
    while (status == THOLE_OK && next <= to && next <= last) {
        uint64_t sequence = 0;
        status = walk_step(connection, stream, buf_cstr(&wide), next, &answer, &sequence, &body, reterr);
        if (status != THOLE_OK || sequence == 0 || sequence > to)
            break;
        if (sequence < next)
            status = thole_fail(reterr, THOLE_CORRUPT,
                                "stream %s: the message at %llu or behind it is said to be %llu", stream,
                                (unsigned long long)next, (unsigned long long)sequence);
        if (status == THOLE_OK)
            status = stream_get_subject(buf_bytes(&answer), &subject, reterr);
        if (status == THOLE_OK)
            status = each(arg, sequence, buf_bytes(&subject), buf_bytes(&body));
        next = sequence + 1;
    }
    buf_release(&wide);
    buf_release(&answer);
    buf_release(&body);
    buf_release(&subject);
    return status;
}

/* ---- stream_read ---- */

struct read {
    const char *stream, *filter;
    uint64_t to;
    stream_read_fn *each;
    stream_delivery_fn *each_delivery; /* where each is NULL */
    void *arg;
    bool leaves;     /* the consumer expires: its user may not remove any */
    uint64_t next;   /* first sequence not handed over yet */
    uint64_t target; /* read up to this sequence, by the leader */
    bool bounded;    /* target is known */
    bool done;
    /* of the attempt */
    struct link *link;
    natsSubscription *native;
    struct link_spent spent;
    char inbox[LINK_INBOX_BYTES], name[PUSH_NAME_BYTES];
    uint64_t consumer_sequence; /* of the last message */
    size_t window;              /* bytes that the server sends before it waits for an answer */
    size_t behind;              /* bytes received since an unanswered flow control message */
    bool full;                  /* the message is not answered: the next consumer continues */
    uint64_t looked;            /* up to where the consumer has scanned, by its heartbeats */
    uint64_t progress_ms;       /* time of the last progress */
    /* limit for a consumer that sends heartbeats but no messages: its replica lags */
    uint64_t patience_ms;
    bool broken; /* a gap, standstill, or the consumer is gone: try again */
};

static thole_status reader_send_create(struct read *read, thole_error *reterr)
{
    char api[PUSH_API_BYTES];
    struct buf request;
    bool sent;
    struct push_options const options = {.stream = read->stream,
                                         .filter = read->filter,
                                         .name = read->name,
                                         .deliver = read->inbox,
                                         .from = read->next,
                                         .heartbeat_ms = READ_HEARTBEAT_MS,
                                         .expires_ms = read->leaves ? LEFT_MS : PUSH_EXPIRES_MS};
    buf_init(&request, PUSH_JSON_MAX);
    thole_status status = push_request(&options, api, &request, reterr);
    if (status == THOLE_OK)
        status = link_send_bytes(read->link, api, read->inbox, buf_bytes(&request), &sent, reterr);
    buf_release(&request);
    return status;
}

/* Asks the leader how far to read: with a filter for the last message that matches. */
static thole_status send_bounds(struct read *read, thole_error *reterr)
{
    char api[PUSH_API_BYTES];
    struct buf request;
    bool sent;
    (void)snprintf(api, sizeof api, "$JS.API.STREAM.%s.%s", read->filter == NULL ? "INFO" : "MSG.GET",
                   read->stream);
    buf_init(&request, GET_REQUEST_MAX);
    thole_status status = read->filter == NULL ? THOLE_OK : stream_get_request(&request, read->filter);
    if (status != THOLE_OK)
        status = thole_fail(reterr, status, "filter is too long");
    else
        status = link_send_bytes(read->link, api, read->inbox, buf_bytes(&request), &sent, reterr);
    buf_release(&request);
    return status;
}

static thole_status take_bounds(struct read *read, thole_slice answer, thole_error *reterr)
{
    struct stream_bounds bounds = {.last = 0};
    if (read->filter == NULL) {
        THOLE_TRY(api_judge(answer, "STREAM.INFO", read->stream, NULL, reterr));
        THOLE_TRY(parse_bounds(answer, read->stream, &bounds, reterr));
        if (bounds.messages == 0)
            bounds.last = 0;
    } else {
        THOLE_TRY(stream_get_answer(answer, &bounds.last, NULL, reterr));
    }
    read->target = bounds.last < read->to ? bounds.last : read->to;
    read->bounded = true;
    read->progress_ms = link_now_ms();
    read->done = read->next > read->target;
    return THOLE_OK;
}

/* Each answer doubles the window. */
static void reader_take_flow(struct read *read, thole_slice subject)
{
    if (subject.len == 0)
        return;
    read->full = read->window >= READ_WINDOW_MAX;
    read->behind = 0;
    if (!read->full && push_flow_reply(read->link, subject))
        read->window *= 2;
}

/* Heartbeats and flow control. The heartbeat says how far the consumer has looked. */
static void reader_take_status(struct read *read, uint32_t status, const struct delivery *delivery)
{
    uint64_t looked = 0, sent = 0;
    if (status != 100) {
        read->broken = true;
        return;
    }
    thole_slice const stalled = delivery_header(delivery, "Nats-Consumer-Stalled");
    reader_take_flow(read, delivery->reply);
    if (read->full && stalled.len > 0)
        read->broken = true; /* all that it had under way has come */
    else
        push_flow_reply(read->link, stalled);
    if (!slice_uint(delivery_header(delivery, "Nats-Last-Consumer"), &sent))
        return; /* flow control */
    if (sent != read->consumer_sequence ||
        !slice_uint(delivery_header(delivery, "Nats-Last-Stream"), &looked)) {
        read->broken = true;
        return;
    }
    if (looked > read->looked) {
        read->looked = looked;
        read->progress_ms = link_now_ms();
    }
    read->done = read->bounded && looked >= read->target;
}

static thole_status reader_take_message(struct read *read, const struct delivery *delivery)
{
    struct ack_meta meta;
    if (!ack_parse(delivery->reply, &meta) || !thole_slice_equal(meta.consumer, thole_slice_from(read->name)))
        return THOLE_OK; /* not ours */
    if (meta.consumer_sequence != read->consumer_sequence + 1) {
        read->broken = true;
        return THOLE_OK;
    }
    read->consumer_sequence = meta.consumer_sequence;
    read->behind += delivery->subject.len + delivery->reply.len + delivery->body.len;
    if (read->full &&
        read->behind >= read->window / 4) /* most of what it had under way; headers count, too */
        read->broken = true;
    if (meta.stream_sequence < read->next)
        return THOLE_OK;
    if (meta.stream_sequence > read->to) {
        read->done = true;
        return THOLE_OK;
    }
    read->next = meta.stream_sequence + 1;
    read->done = read->bounded && read->next > read->target;
    thole_status const status =
        read->each != NULL ? read->each(read->arg, meta.stream_sequence, delivery->subject, delivery->body)
                           : read->each_delivery(read->arg, meta.stream_sequence, delivery);
    read->progress_ms = link_now_ms(); /* the callback may have taken long */
    return status;
}

/* An answer of the API: to the create, or with the bounds. */
static thole_status reader_take_answer(struct read *read, thole_slice answer, thole_error *reterr)
{
    thole_slice type;
    if (json_find(answer, "type", &type) &&
        json_text_is(type, "io.nats.jetstream.api.v1.consumer_create_response"))
        return api_judge(answer, "CONSUMER.CREATE", read->stream, NULL, reterr);
    return take_bounds(read, answer, reterr);
}

static thole_status reader_take(struct read *read, natsMsg *message, thole_error *reterr)
{
    struct delivery const delivery = link_delivery(message);
    thole_slice text;
    if (!thole_slice_equal(delivery.subject, thole_slice_from(read->inbox)))
        return reader_take_message(read, &delivery);
    if (delivery.body.len > 0)
        return reader_take_answer(read, delivery.body, reterr);
    reader_take_status(read, link_status(&delivery, &text), &delivery);
    return THOLE_OK;
}

static thole_status read_loop(struct read *read, thole_error *reterr)
{
    while (!read->done && !read->broken) {
        natsMsg *message = NULL;
        natsStatus const got = natsSubscription_NextMsg(&message, read->native, READ_SILENCE_MS);
        if (got == NATS_TIMEOUT) {
            read->broken = true;
            break;
        }
        THOLE_TRY(link_fail(got, "read of stream", read->stream, reterr));
        thole_status const status = reader_take(read, message, reterr);
        link_spent_add(&read->spent, message);
        THOLE_TRY(status);
        if (link_now_ms() - read->progress_ms > read->patience_ms)
            read->broken = true;
    }
    return THOLE_OK;
}

/* One consumer: until done, broken, or an error. */
static thole_status read_once(struct read *read, struct connection *connection, thole_error *reterr)
{
    read->link = link_acquire(connection);
    if (read->link == NULL)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "read of stream %s: not connected to NATS",
                          read->stream);
    assert(!read->done && read->native == NULL && read->next <= read->to);
    read->broken = read->full = false;
    read->window = INFLOW_WINDOW_FIRST;
    read->behind = 0;
    read->consumer_sequence = 0;
    read->looked = 0;
    read->progress_ms = link_now_ms();
    read->patience_ms = connection_request_timeout_ms(connection);
    connection_inbox(connection, read->inbox);
    push_name("read", read->inbox, read->name);
    /* One literal subject for all: a push consumer is active only if exactly its own subject is subscribed
     * to. */
    natsStatus const subscribed = natsConnection_SubscribeSync(&read->native, read->link->nc, read->inbox);
    thole_status status = link_fail(subscribed, "read of stream", read->stream, reterr);
    if (status == THOLE_OK) {
        (void)natsSubscription_SetPendingLimits(read->native, -1, -1);
        status = send_bounds(read, reterr);
        if (status == THOLE_OK)
            status = reader_send_create(read, reterr);
        if (status == THOLE_OK)
            status = read_loop(read, reterr);
        link_spent_end(&read->spent);
        connection_retire(connection, read->native, read->link->epoch);
        read->native = NULL;
        if (!read->leaves)
            push_remove(read->link, read->stream, read->name);
    }
    link_release(read->link);
    return status;
}

static thole_status reader_read_all(struct connection *connection, struct read read, uint64_t from,
                                    thole_error *reterr)
{
    const char *const stream = read.stream, *const filter = read.filter;
    read.next = from == 0 ? 1 : from;
    assert((read.each == NULL) != (read.each_delivery == NULL));
    if (!link_subject_is_safe(stream) || (filter != NULL && !link_subject_is_safe(filter)))
        return thole_fail(reterr, THOLE_INVALID, "stream or filter is empty or has a space or control byte");
    if (read.next > read.to)
        return THOLE_OK;
    for (int attempt = 0; attempt < READ_ATTEMPTS_MAX; attempt++) {
        uint64_t const before = read.next;
        THOLE_TRY(read_once(&read, connection, reterr));
        assert(read.next >= before); /* nothing is handed over twice */
        if (read.done)
            return THOLE_OK;
        assert(read.broken);
        if (read.next > before)
            attempt = 0;
    }
    return thole_fail(reterr, THOLE_UNAVAILABLE, "read of stream %s stopped before sequence %llu: try again",
                      stream, (unsigned long long)read.next);
}

thole_status stream_read(struct connection *connection, const char *stream, const char *filter, uint64_t from,
                         uint64_t to, stream_read_fn *each, void *arg, thole_error *reterr)
{
    struct read const read = {.stream = stream, .filter = filter, .to = to, .each = each, .arg = arg};
    return reader_read_all(connection, read, from, reterr);
}

thole_status stream_read_deliveries(struct connection *connection, const char *stream, const char *filter,
                                    uint64_t from, uint64_t to, stream_delivery_fn *each, void *arg,
                                    thole_error *reterr)
{
    struct read const read = {
        .stream = stream, .filter = filter, .to = to, .each_delivery = each, .arg = arg, .leaves = true};
    return reader_read_all(connection, read, from, reterr);
}

/* ---- removal ---- */

thole_status stream_delete(struct connection *connection, const char *stream, uint64_t sequence,
                           thole_error *reterr)
{
    struct api_body body;
    uint32_t code = 0, why = 0;
    thole_status status = reader_notify(connection, "STREAM.MSG.DELETE", stream,
                                        api_body_delete(&body, sequence), &code, reterr);
    if (code == API_SEQUENCE_NOT_FOUND || code == API_MESSAGE_NOT_FOUND)
        status = THOLE_OK;
    if (code == API_DELETE_FAILED) { /* 2.10 returns it for a missing message, and for real failures */
        thole_status const ignored = reader_notify(connection, "STREAM.MSG.GET", stream,
                                                   api_body_sequence(&body, sequence), &why, NULL);
        (void)ignored;
        if (why == API_MESSAGE_NOT_FOUND)
            status = THOLE_OK;
    }
    return status;
}

/*
 * The last message always stays. To empty a stream, nats-server 2.10 renames its folder away before it notes
 * the last sequence in the new one: after a kill -9 in between the stream begins again at 1, and new messages
 * have sequences that a saved position takes for old ones.
 */
thole_status stream_purge_below(struct connection *connection, const char *stream, uint64_t sequence,
                                thole_error *reterr)
{
    struct api_body body;
    struct stream_bounds bounds;
    THOLE_TRY(stream_bounds(connection, stream, &bounds, reterr));
    uint64_t const below = sequence < bounds.last ? sequence : bounds.last;
    if (bounds.messages == 0 || below <= bounds.first)
        return THOLE_OK;
    assert(below <= bounds.last && below > bounds.first);
    return reader_notify(connection, "STREAM.PURGE", stream, api_body_sequence(&body, below), NULL, reterr);
}
