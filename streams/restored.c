#include "restored.h"
#include "api.h"
#include "jscan.h"
#include "marked_store.h"
#include "message.h"
#include "reader.h"
#include "stored_write.h"
#include "subject.h"
#include <stdio.h>

enum { TOKEN_INSTANCE = 4, TOKEN_WHAT = 5, SEQUENCE_BYTES = 24 };

#define RECEIPT "receipt"

thole_status restored_require(struct connection *connection, const char *ns, thole_error *reterr)
{
    return marked_store_require(connection, ns, STORE_RESTORED, reterr);
}

/* ---- names ---- */

struct names { /* of an instance; released in any case */
    char stream[STREAM_NAME_BYTES_MAX];
    struct buf subject;
};

/* @p what: receipt, a sequence, or a wildcard. */
static thole_status names_make(struct names *names, const struct restored_place *place, const char *what,
                               thole_error *reterr)
{
    buf_init(&names->subject, SUBJECT_BYTES_MAX);
    THOLE_TRY(name_check(thole_slice_from(place->ns), "namespace", reterr));
    (void)snprintf(names->stream, sizeof names->stream, "THOLE_%s_RESTORED", place->ns);
    return subject_restored(&names->subject, place->ns, place->partition, place->instance, what, reterr);
}

static const char *sequence_text(uint64_t sequence, char ret[SEQUENCE_BYTES])
{
    (void)snprintf(ret, SEQUENCE_BYTES, "%llu", (unsigned long long)sequence);
    return ret;
}

/* ---- reading ---- */

thole_status restored_receipt(struct connection *connection, const struct restored_place *place, bool *ret,
                              struct buf *to, thole_error *reterr)
{
    struct names names;
    uint64_t sequence = 0;
    thole_status status = names_make(&names, place, RECEIPT, reterr);
    if (status == THOLE_OK)
        status =
            stream_last_by_subject(connection, names.stream, buf_cstr(&names.subject), &sequence, to, reterr);
    buf_release(&names.subject);
    *ret = status == THOLE_OK && sequence > 0;
    return status == THOLE_NOT_FOUND ? marked_store_check(connection, place->ns, STORE_RESTORED, reterr)
                                     : status;
}

struct walk {
    restored_record_fn *each_record;
    restored_receipt_fn *each_receipt;
    void *arg;
    thole_error *reterr;
};

static thole_status restored_on_record(void *arg, uint64_t at, thole_slice subject, thole_slice body)
{
    const struct walk *walk = arg;
    thole_slice const what = subject_nth(subject, TOKEN_WHAT);
    uint64_t sequence = 0;
    if (thole_slice_equal(what, THOLE_STR(RECEIPT)))
        return THOLE_OK;
    if (!json_uint(what, &sequence) || sequence == 0)
        return thole_fail(walk->reterr, THOLE_CORRUPT,
                          "message #%llu of what was restored names no sequence: %.*s",
                          (unsigned long long)at, THOLE_FMT(subject));
    return walk->each_record(walk->arg, sequence, body);
}

thole_status restored_read(struct connection *connection, const struct restored_place *place,
                           restored_record_fn *each, void *arg, thole_error *reterr)
{
    struct names names;
    struct walk walk = {.each_record = each, .arg = arg, .reterr = reterr};
    thole_status status = names_make(&names, place, "*", reterr);
    if (status == THOLE_OK)
        status = stream_walk(connection, names.stream, buf_cstr(&names.subject), 1, UINT64_MAX,
                             restored_on_record, &walk, reterr);
    buf_release(&names.subject);
    return status;
}

static thole_status on_first(void *arg, uint64_t at, thole_slice subject, thole_slice body)
{
    uint64_t *const first = arg;
    (void)body;
    if (thole_slice_equal(subject_nth(subject, TOKEN_WHAT), THOLE_STR(RECEIPT)))
        return THOLE_OK;
    *first = at;
    return THOLE_CANCELLED;
}

thole_status restored_first(struct connection *connection, const struct restored_place *place,
                            uint64_t *ret_sequence, thole_error *reterr)
{
    struct names names;
    *ret_sequence = 0;
    thole_status status = names_make(&names, place, "*", reterr);
    if (status == THOLE_OK)
        status = stream_walk(connection, names.stream, buf_cstr(&names.subject), 1, UINT64_MAX, on_first,
                             ret_sequence, reterr);
    buf_release(&names.subject);
    return *ret_sequence > 0 ? THOLE_OK : status;
}

static thole_status on_receipt(void *arg, uint64_t at, thole_slice subject, thole_slice body)
{
    const struct walk *walk = arg;
    struct buf instance;
    (void)at;
    buf_init(&instance, THOLE_ID_BYTES_MAX);
    thole_status status = subject_token_decode(subject_nth(subject, TOKEN_INSTANCE), &instance, walk->reterr);
    if (status == THOLE_OK)
        status = walk->each_receipt(walk->arg, buf_bytes(&instance), body);
    buf_release(&instance);
    return status;
}

thole_status restored_list(struct connection *connection, const char *ns, restored_receipt_fn *each,
                           void *arg, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX], filter[STREAM_NAME_BYTES_MAX + 64];
    struct walk walk = {.each_receipt = each, .arg = arg, .reterr = reterr};
    struct stream_bounds bounds;
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    (void)snprintf(stream, sizeof stream, "THOLE_%s_RESTORED", ns);
    (void)snprintf(filter, sizeof filter, "thole.%s.restored.*.*.%s", ns, RECEIPT);
    thole_status const status = stream_bounds(connection, stream, &bounds, reterr);
    if (status == THOLE_NOT_FOUND)
        return marked_store_check(connection, ns, STORE_RESTORED, reterr);
    if (status == THOLE_OK && bounds.messages == 0)
        return THOLE_OK;
    if (status != THOLE_OK)
        return status;
    return stream_walk(connection, stream, filter, 1, bounds.last, on_receipt, &walk, reterr);
}

/* ---- writing ---- */

static thole_status restored_put_value(struct connection *connection, const struct restored_place *place,
                                       const char *what, thole_slice body, thole_error *reterr)
{
    struct names names;
    thole_status status = names_make(&names, place, what, reterr);
    if (status == THOLE_OK)
        status = stored_write(connection,
                              &(struct stored_write){.subject = buf_cstr(&names.subject), .body = body}, NULL,
                              reterr);
    buf_release(&names.subject);
    return status;
}

thole_status restored_put(struct connection *connection, const struct restored_place *place,
                          uint64_t sequence, thole_slice bytes, thole_error *reterr)
{
    char what[SEQUENCE_BYTES];
    return restored_put_value(connection, place, sequence_text(sequence, what), bytes, reterr);
}

thole_status restored_put_receipt(struct connection *connection, const struct restored_place *place,
                                  thole_slice receipt, thole_error *reterr)
{
    return restored_put_value(connection, place, RECEIPT, receipt, reterr);
}

static thole_status restored_purge(struct connection *connection, const struct restored_place *place,
                                   const char *what, thole_error *reterr)
{
    struct names names;
    struct buf body, answer;
    struct json json;
    buf_init(&body, 2 * SUBJECT_BYTES_MAX);
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = names_make(&names, place, what, reterr);
    if (status == THOLE_OK) {
        json_to_buf(&json, &body);
        json_object(&json);
        json_member(&json, "filter", buf_bytes(&names.subject));
        json_end(&json);
        status = buf_status(&body) == THOLE_OK ? api_call(connection, "STREAM.PURGE", names.stream,
                                                          buf_bytes(&body), &answer, NULL, reterr)
                                               : thole_fail(reterr, buf_status(&body), "subject too long");
    }
    buf_release(&names.subject);
    buf_release(&body);
    buf_release(&answer);
    return status;
}

thole_status restored_remove(struct connection *connection, const struct restored_place *place,
                             thole_error *reterr)
{
    THOLE_TRY(restored_purge(connection, place, RECEIPT, reterr));
    return restored_purge(connection, place, "*", reterr);
}
