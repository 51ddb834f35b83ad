#include "audit_stream.h"
#include "api.h"
#include "jscan.h"
#include "link.h"
#include "log_place.h"
#include "marked_store.h"
#include "subject.h"
#include <stdio.h>

enum { TOKEN_WHAT = 4, NANOS_IN_MILLI = 1000000 };

thole_status audit_stream_require(struct connection *connection, const char *ns, thole_error *reterr)
{
    return marked_store_require(connection, ns, STORE_AUDIT, reterr);
}

static thole_status audit_stream_read_all(struct connection *connection, const char *ns, const char *stream,
                                          const char *filter, uint64_t from, stream_delivery_fn *each,
                                          void *arg, thole_error *reterr)
{
    struct stream_bounds bounds;
    thole_status const status = stream_bounds(connection, stream, &bounds, reterr);
    if (status == THOLE_NOT_FOUND)
        return marked_store_check(connection, ns, STORE_AUDIT, reterr);
    if (status != THOLE_OK || bounds.last < from)
        return status;
    return stream_read_deliveries(connection, stream, filter, from, bounds.last, each, arg, reterr);
}

thole_status audit_stream_read(struct connection *connection, const char *ns, uint32_t p, uint64_t from,
                               stream_delivery_fn *each, void *arg, thole_error *reterr)
{
    struct buf stream, filter;
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    buf_init(&filter, SUBJECT_BYTES_MAX);
    thole_status status = stream_name(&stream, ns, "AUDIT", -1, reterr);
    if (status == THOLE_OK)
        status = subject_audit(&filter, ns, p, NULL, reterr);
    if (status == THOLE_OK)
        status = audit_stream_read_all(connection, ns, buf_cstr(&stream), buf_cstr(&filter), from, each, arg,
                                       reterr);
    buf_release(&stream);
    buf_release(&filter);
    return status;
}

thole_status audit_stream_last(struct connection *connection, const char *ns, uint32_t p, const char *what,
                               uint64_t *ret_sequence, struct buf *ret, thole_error *reterr)
{
    struct buf stream, subject;
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = stream_name(&stream, ns, "AUDIT", -1, reterr);
    if (status == THOLE_OK)
        status = subject_audit(&subject, ns, p, what, reterr);
    if (status == THOLE_OK)
        status = stream_last_by_subject(connection, buf_cstr(&stream), buf_cstr(&subject), ret_sequence, ret,
                                        reterr);
    buf_release(&stream);
    buf_release(&subject);
    if (status != THOLE_NOT_FOUND)
        return status;
    *ret_sequence = 0;
    return marked_store_check(connection, ns, STORE_AUDIT, reterr);
}

bool audit_stream_is(thole_slice subject, const char *what)
{
    return thole_slice_equal(subject_nth(subject, TOKEN_WHAT), thole_slice_from(what));
}

static thole_status audit_stream_check(thole_slice answer, const char *subject, uint64_t *ret_sequence,
                                       thole_error *reterr)
{
    thole_slice error, sequence;
    if (json_find(answer, "error", &error)) {
        if (api_is_wrong_last(error))
            return thole_fail(reterr, THOLE_CONFLICT, "publish to %s: another one was first", subject);
        return thole_fail(reterr, THOLE_UNAVAILABLE, "publish to %s: the server says: %.*s", subject,
                          THOLE_FMT(error));
    }
    if (json_find(answer, "seq", &sequence) && json_uint(sequence, ret_sequence))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_UNAVAILABLE, "publish to %s: nothing says that it is stored", subject);
}

static thole_status audit_stream_publish_note(struct connection *connection, const char *ns, uint32_t p,
                                              const char *what, const struct header *header, thole_slice body,
                                              uint64_t *ret_sequence, thole_error *reterr)
{
    struct buf subject, answer;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = subject_audit(&subject, ns, p, what, reterr);
    if (status == THOLE_OK)
        status = connection_request_with(connection, buf_cstr(&subject), header, header != NULL, body,
                                         &answer, reterr);
    if (status == THOLE_OK)
        status = audit_stream_check(buf_bytes(&answer), buf_cstr(&subject), ret_sequence, reterr);
    buf_release(&subject);
    buf_release(&answer);
    return status;
}

thole_status audit_stream_publish(struct connection *connection, const char *ns, uint32_t p, const char *what,
                                  thole_slice body, thole_error *reterr)
{
    uint64_t sequence;
    return audit_stream_publish_note(connection, ns, p, what, NULL, body, &sequence, reterr);
}

thole_status audit_stream_publish_list(struct connection *connection, const char *ns, uint32_t p,
                                       uint64_t sequence, thole_error *reterr)
{
    struct buf stream, record;
    bool there = false;
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    buf_init(&record, API_ANSWER_MAX);
    thole_status status = stream_name(&stream, ns, "HIST", (int64_t)p, reterr);
    if (status == THOLE_OK)
        status = stream_message(connection, buf_cstr(&stream), sequence, &there, &record, reterr);
    if (status == THOLE_OK && there)
        status = audit_stream_publish(connection, ns, p, AUDIT_LIST, buf_bytes(&record), reterr);
    buf_release(&stream);
    buf_release(&record);
    return status;
}

thole_status audit_stream_publish_leaves(struct connection *connection, const char *ns, uint32_t p,
                                         thole_slice body, uint64_t *sequence, thole_error *reterr)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)*sequence);
    struct header const expected = {"Nats-Expected-Last-Subject-Sequence", thole_slice_from(number)};
    return audit_stream_publish_note(connection, ns, p, AUDIT_LEAVES, &expected, body, sequence, reterr);
}

/* When the first record after @p sequence was stored; 0: none was. */
static thole_status stored_behind(struct connection *connection, const char *stream, uint64_t sequence,
                                  uint64_t *ret_ms, thole_error *reterr)
{
    struct api_body body;
    struct buf answer;
    thole_slice time;
    uint32_t code = 0;
    uint64_t ns = 0;
    buf_init(&answer, API_ANSWER_MAX);
    api_body_begin(&body);
    json_member_number(&body.json, "seq", sequence + 1);
    json_member_text(&body.json, "next_by_subj", ">");
    thole_status status =
        api_call(connection, "STREAM.MSG.GET", stream, api_body_end(&body), &answer, &code, reterr);
    if (status == THOLE_OK &&
        !(json_path(buf_bytes(&answer), "message.time", &time) && json_time_ns(time, &ns)))
        status = thole_fail(reterr, THOLE_CORRUPT, "stream %s: a record has no time", stream);
    buf_release(&answer);
    *ret_ms = ns / NANOS_IN_MILLI;
    return status == THOLE_NOT_FOUND && code == API_MESSAGE_NOT_FOUND ? THOLE_OK : status;
}

/* Of the last checkpoint, as it says: it is not verified here. 0: there is none, or it does not say. */
static thole_status covered_until(struct connection *connection, const char *ns, uint32_t p, uint64_t *ret,
                                  thole_error *reterr)
{
    struct buf message;
    struct checkpoint checkpoint;
    struct log_place place;
    struct merkle_tree tree;
    uint64_t sequence = 0;
    buf_init(&message, NOTE_TEXT_BYTES_MAX);
    thole_status const status =
        audit_stream_last(connection, ns, p, AUDIT_CHECKPOINT_SUBJECT, &sequence, &message, reterr);
    bool const is = status == THOLE_OK && sequence > 0 &&
                    checkpoint_parse(buf_bytes(&message), &checkpoint, NULL) == THOLE_OK &&
                    log_place_parse(&checkpoint, &place, &tree);
    *ret = is ? place.sequence : 0;
    buf_release(&message);
    return status;
}

thole_status audit_stream_waiting(struct connection *connection, const char *ns, uint32_t partitions,
                                  struct audit_waiting *ret, thole_error *reterr)
{
    struct audit_waiting waiting = {.checkpoints = 0};
    struct buf stream;
    thole_status status = THOLE_OK;
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    for (uint32_t p = 0; p < partitions && status == THOLE_OK; p++) {
        uint64_t covered = 0, stored_ms = 0;
        buf_clear(&stream);
        status = stream_name(&stream, ns, "HIST", (int64_t)p, reterr);
        if (status == THOLE_OK)
            status = covered_until(connection, ns, p, &covered, reterr);
        if (status == THOLE_OK)
            status = stored_behind(connection, buf_cstr(&stream), covered, &stored_ms, reterr);
        waiting.checkpoints += covered > 0;
        if (stored_ms > 0 && (waiting.stored_ms == 0 || stored_ms < waiting.stored_ms)) {
            waiting.stored_ms = stored_ms;
            waiting.p = p;
        }
    }
    buf_release(&stream);
    if (status == THOLE_OK)
        *ret = waiting;
    return status;
}
