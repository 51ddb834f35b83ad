/*
 * Reads of whole streams without a consumer, for those who may create none: each message by its sequence,
 * from the leader, with some requests under way. Who may create a consumer of a stream may let it deliver to
 * any subject of the account, and may make so many that no engine gets another one.
 */
#include "api.h"
#include "inflow.h"
#include "jscan.h"
#include "link.h"
#include "reader.h"
#include "subject.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { FETCH_WINDOW = INFLOW_READS, FETCH_ATTEMPTS_MAX = 3, FETCH_REPLY_BYTES = LINK_INBOX_BYTES + 24 };

struct fetch {
    struct connection *connection;
    const char *stream;
    stream_delivery_fn *each;
    void *arg;
    uint64_t next;   /* first sequence not handed over yet */
    uint64_t sent;   /* first one that was not asked for */
    uint64_t target; /* the last one */
    /* of the attempt */
    struct link *link;
    natsSubscription *native;
    char inbox[LINK_INBOX_BYTES];
    natsMsg *answers[FETCH_WINDOW]; /* of the sequences from next on, each in the place of its remainder */
    unsigned missing;               /* in a row, up to next */
    bool broken;                    /* an answer did not come: try again */
    struct buf subject, headers, body;
};

/* ---- one message ---- */

/* The headers as a message of nats.c; NULL: there are none. */
static natsMsg *headers_message(struct buf *headers)
{
    natsMsg *message = NULL;
    char *line = strstr(buf_cstr(headers), "\r\n"); /* after the version */
    if (line == NULL || natsMsg_Create(&message, "headers", NULL, NULL, 0) != NATS_OK)
        return NULL;
    for (line += 2; *line != '\0';) {
        char *const end = strstr(line, "\r\n");
        char *value = strchr(line, ':');
        if (end == NULL)
            break;
        *end = '\0';
        if (value != NULL && value < end) {
            *value++ = '\0';
            (void)natsMsgHeader_Add(message, line, value + strspn(value, " "));
        }
        line = end + 2;
    }
    return message;
}

static thole_status fetch_deliver(struct fetch *fetch, thole_slice answer, thole_error *reterr)
{
    THOLE_TRY(stream_get_subject(answer, &fetch->subject, reterr));
    THOLE_TRY(stream_get_headers(answer, &fetch->headers, reterr));
    natsMsg *const headers = fetch->headers.len == 0 ? NULL : headers_message(&fetch->headers);
    struct delivery const delivery = {
        .subject = buf_bytes(&fetch->subject), .body = buf_bytes(&fetch->body), .native = headers};
    thole_status const status = fetch->each(fetch->arg, fetch->next, &delivery);
    link_message_free(headers);
    return status;
}

/* The answer about the sequence @p fetch->next. */
static thole_status fetch_take(struct fetch *fetch, natsMsg *message, thole_error *reterr)
{
    struct delivery const given = link_delivery(message);
    uint64_t found = 0;
    thole_slice text;
    if (given.body.len == 0) /* 503: there is no leader */
        return thole_fail(reterr, THOLE_UNAVAILABLE, "read of stream %s: no answer, status %u", fetch->stream,
                          link_status(&given, &text));
    THOLE_TRY(stream_get_answer(given.body, &found, &fetch->body, reterr));
    if (found != 0 && found != fetch->next)
        return thole_fail(reterr, THOLE_CORRUPT, "stream %s: message %llu was asked for, and %llu came",
                          fetch->stream, (unsigned long long)fetch->next, (unsigned long long)found);
    fetch->missing = found == 0 ? fetch->missing + 1 : 0;
    return found == 0 ? THOLE_OK : fetch_deliver(fetch, given.body, reterr);
}

/* ---- the window ---- */

static thole_status fetch_send(struct fetch *fetch, uint64_t sequence, thole_error *reterr)
{
    char api[API_SUBJECT_BYTES], reply[FETCH_REPLY_BYTES];
    struct api_body body;
    bool sent;
    (void)snprintf(api, sizeof api, "$JS.API.STREAM.MSG.GET.%s", fetch->stream);
    (void)snprintf(reply, sizeof reply, "%s.%llu", fetch->inbox, (unsigned long long)sequence);
    return link_send_bytes(fetch->link, api, reply, api_body_sequence(&body, sequence), &sent, reterr);
}

static thole_status fetch_fill(struct fetch *fetch, thole_error *reterr)
{
    for (; fetch->sent <= fetch->target && fetch->sent < fetch->next + FETCH_WINDOW; fetch->sent++)
        THOLE_TRY(fetch_send(fetch, fetch->sent, reterr));
    return THOLE_OK;
}

static void fetch_keep(struct fetch *fetch, natsMsg *message)
{
    const char *const subject = natsMsg_GetSubject(message);
    uint64_t sequence = 0;
    natsMsg **place = NULL;
    if (json_uint(thole_slice_from(strrchr(subject, '.') + 1), &sequence) && sequence >= fetch->next &&
        sequence < fetch->sent)
        place = &fetch->answers[sequence % FETCH_WINDOW];
    if (place == NULL || *place != NULL) { /* requested before, and not needed */
        link_message_free(message);
        return;
    }
    *place = message;
}

static void fetch_forget(struct fetch *fetch)
{
    for (size_t i = 0; i < FETCH_WINDOW; i++) {
        link_message_free(fetch->answers[i]);
        fetch->answers[i] = NULL;
    }
}

static thole_status fetch_hand_over(struct fetch *fetch, thole_error *reterr)
{
    while (fetch->next < fetch->sent) {
        natsMsg *const message = fetch->answers[fetch->next % FETCH_WINDOW];
        if (message == NULL)
            return THOLE_OK;
        fetch->answers[fetch->next % FETCH_WINDOW] = NULL;
        thole_status const status = fetch_take(fetch, message, reterr);
        link_message_free(message);
        THOLE_TRY(status);
        fetch->next++;
    }
    return THOLE_OK;
}

/* Many consecutive messages were deleted: the leader says where the next one is. */
static thole_status fetch_leap(struct fetch *fetch, thole_error *reterr)
{
    uint64_t there = 0;
    THOLE_TRY(stream_next(fetch->connection, fetch->stream, fetch->next, &there, reterr));
    fetch->missing = 0;
    if (there == 0 || there > fetch->target)
        there = fetch->target + 1;
    if (there <= fetch->sent) /* these answers are on their way */
        return THOLE_OK;
    fetch_forget(fetch);
    fetch->next = fetch->sent = there;
    return THOLE_OK;
}

/* ---- reading ---- */

static thole_status fetch_loop(struct fetch *fetch, thole_error *reterr)
{
    while (fetch->next <= fetch->target) {
        natsMsg *message = NULL;
        THOLE_TRY(fetch_fill(fetch, reterr));
        natsStatus const got = natsSubscription_NextMsg(
            &message, fetch->native, (int64_t)connection_request_timeout_ms(fetch->connection));
        if (got == NATS_TIMEOUT) {
            fetch->broken = true;
            return THOLE_OK;
        }
        THOLE_TRY(link_fail(got, "read of stream", fetch->stream, reterr));
        fetch_keep(fetch, message);
        THOLE_TRY(fetch_hand_over(fetch, reterr));
        if (fetch->missing >= FETCH_WINDOW)
            THOLE_TRY(fetch_leap(fetch, reterr));
    }
    return THOLE_OK;
}

static thole_status fetch_once(struct fetch *fetch, thole_error *reterr)
{
    char pattern[LINK_INBOX_BYTES + 2];
    fetch->link = link_acquire(fetch->connection);
    if (fetch->link == NULL)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "read of stream %s: not connected to NATS",
                          fetch->stream);
    fetch->broken = false;
    fetch->sent = fetch->next;
    connection_inbox(fetch->connection, fetch->inbox);
    (void)snprintf(pattern, sizeof pattern, "%s.*", fetch->inbox);
    natsStatus const subscribed = natsConnection_SubscribeSync(&fetch->native, fetch->link->nc, pattern);
    thole_status status = link_fail(subscribed, "read of stream", fetch->stream, reterr);
    if (status == THOLE_OK) {
        (void)natsSubscription_SetPendingLimits(fetch->native, -1, -1);
        status = fetch_loop(fetch, reterr);
        connection_retire(fetch->connection, fetch->native, fetch->link->epoch);
    }
    fetch_forget(fetch);
    link_release(fetch->link);
    return status;
}

static thole_status fetch_all(struct fetch *fetch, thole_error *reterr)
{
    char api[API_SUBJECT_BYTES], ignored[1];
    (void)snprintf(api, sizeof api, "$JS.API.STREAM.MSG.GET.%s", fetch->stream);
    for (int attempt = 0; attempt < FETCH_ATTEMPTS_MAX; attempt++) {
        uint64_t const before = fetch->next;
        uint64_t const violations = connection_violations(fetch->connection, ignored, sizeof ignored);
        THOLE_TRY(fetch_once(fetch, reterr));
        assert(fetch->next >= before); /* nothing is handed over twice */
        if (!fetch->broken)
            return THOLE_OK;
        THOLE_TRY(connection_explain_silence(fetch->connection, violations, api, THOLE_UNAVAILABLE, reterr) ==
                          THOLE_DENIED
                      ? THOLE_DENIED
                      : THOLE_OK);
        if (fetch->next > before)
            attempt = 0;
    }
    return thole_fail(reterr, THOLE_UNAVAILABLE, "read of stream %s stopped before sequence %llu: try again",
                      fetch->stream, (unsigned long long)fetch->next);
}

thole_status stream_fetch(struct connection *connection, const char *stream, uint64_t from, uint64_t to,
                          stream_delivery_fn *each, void *arg, thole_error *reterr)
{
    struct stream_bounds bounds;
    THOLE_TRY(stream_bounds(connection, stream, &bounds, reterr));
    struct fetch fetch = {.connection = connection, .stream = stream, .each = each, .arg = arg};
    fetch.next = from > bounds.first ? from : bounds.first;
    fetch.target = bounds.messages == 0 ? 0 : bounds.last < to ? bounds.last : to;
    buf_init(&fetch.subject, SUBJECT_BYTES_MAX);
    buf_init(&fetch.headers, API_ANSWER_MAX);
    buf_init(&fetch.body, API_ANSWER_MAX);
    thole_status const status = fetch_all(&fetch, reterr);
    buf_release(&fetch.subject);
    buf_release(&fetch.headers);
    buf_release(&fetch.body);
    return status;
}
