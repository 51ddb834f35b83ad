#include "holds.h"
#include "id_set.h"
#include "jscan.h"
#include "json.h"
#include "marked_store.h"
#include "memory.h"
#include "message.h"
#include "partition_io.h"
#include "range.h"
#include "reader.h"
#include "stored_write.h"
#include "subject.h"
#include "subject_list.h"
#include <stdio.h>
#include <stdlib.h>

enum { VALUE_MAX = 16 * 1024, TOKEN_INSTANCE = 2 };

/* ---- names ---- */

static thole_status holds_bucket_stream(const char *ns, char ret[STREAM_NAME_BYTES_MAX], thole_error *reterr)
{
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    (void)snprintf(ret, STREAM_NAME_BYTES_MAX, "KV_THOLE_%s_HOLDS", ns);
    return THOLE_OK;
}

/* $KV.THOLE_<ns>_HOLDS.<instance> */
static thole_status holds_key_subject(struct buf *to, const char *ns, thole_slice instance,
                                      thole_error *reterr)
{
    struct buf token;
    buf_init(&token, SUBJECT_BYTES_MAX);
    thole_status status = subject_token(&token, instance, reterr);
    if (status == THOLE_OK) {
        buf_clear(to);
        buf_printf(to, "$KV.THOLE_%s_HOLDS.%s", ns, buf_cstr(&token));
        status = buf_status(to);
    }
    buf_release(&token);
    return status;
}

thole_status holds_require(struct connection *connection, const char *ns, thole_error *reterr)
{
    return marked_store_require(connection, ns, STORE_HOLDS, reterr);
}

/* ---- values ---- */

static void holds_write_value(const struct hold *hold, struct buf *to)
{
    struct json json;
    json_to_buf(&json, to);
    json_object(&json);
    json_member_bool(&json, "held", hold->held);
    json_member(&json, "by", hold->by);
    json_member(&json, "reason", hold->reason);
    json_member_number(&json, "time_ms", hold->time_ms);
    json_end(&json);
}

/* An unknown value holds the instance: only a complete release ends a hold. */
static thole_status give_value(thole_slice instance, uint64_t revision, thole_slice value, bool *ret_held,
                               hold_fn *each, void *arg)
{
    struct hold hold = {.instance = instance, .revision = revision};
    thole_slice found;
    struct buf by, reason;
    buf_init(&by, VALUE_MAX);
    buf_init(&reason, VALUE_MAX);
    hold.held = !json_find(value, "held", &found) || !thole_slice_equal(found, THOLE_STR("false"));
    if (json_find(value, "by", &found) && json_text(found, &by))
        hold.by = buf_bytes(&by);
    if (json_find(value, "reason", &found) && json_text(found, &reason))
        hold.reason = buf_bytes(&reason);
    if (json_find(value, "time_ms", &found))
        if (!json_uint(found, &hold.time_ms) ||
            range_check_as(RANGE_TIME_MS, "", hold.time_ms, NULL) != THOLE_OK)
            hold.time_ms = 0;
    if (ret_held != NULL)
        *ret_held = hold.held;
    thole_status const status = each == NULL ? THOLE_OK : each(arg, &hold);
    buf_release(&by);
    buf_release(&reason);
    return status;
}

/* ---- one instance ---- */

/* *ret_revision 0: nothing was ever said of it. */
static thole_status read_last(struct connection *connection, const char *ns, thole_slice instance,
                              uint64_t *ret_revision, struct buf *value, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    *ret_revision = 0;
    thole_status status = holds_bucket_stream(ns, stream, reterr);
    if (status == THOLE_OK)
        status = holds_key_subject(&subject, ns, instance, reterr);
    if (status == THOLE_OK)
        status = stream_last_by_subject(connection, stream, buf_cstr(&subject), ret_revision, value, reterr);
    buf_release(&subject);
    return status == THOLE_NOT_FOUND ? THOLE_OK : status; /* no bucket */
}

static thole_status find_hold(struct connection *connection, const char *ns, thole_slice instance,
                              bool *ret_held, hold_fn *each, void *arg, thole_error *reterr)
{
    uint64_t revision = 0;
    struct buf value;
    bool held = false;
    buf_init(&value, VALUE_MAX);
    thole_status status = read_last(connection, ns, instance, &revision, &value, reterr);
    if (status == THOLE_OK && revision > 0)
        status = give_value(instance, revision, buf_bytes(&value), &held, NULL, NULL);
    if (status == THOLE_OK && held)
        status = give_value(instance, revision, buf_bytes(&value), NULL, each, arg);
    buf_release(&value);
    if (status == THOLE_OK)
        *ret_held = held;
    return status;
}

/* Whether it is held is not known when the bucket is lost. */
thole_status holds_find(struct connection *connection, const char *ns, thole_slice instance, bool *ret_held,
                        hold_fn *each, void *arg, thole_error *reterr)
{
    THOLE_TRY(marked_store_check(connection, ns, STORE_HOLDS, reterr));
    return find_hold(connection, ns, instance, ret_held, each, arg, reterr);
}

static thole_status holds_write_key(struct connection *connection, const char *ns, const struct hold *hold,
                                    thole_slice value, uint64_t revision, uint64_t *ret_revision,
                                    thole_error *reterr)
{
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = holds_key_subject(&subject, ns, hold->instance, reterr);
    if (status == THOLE_OK)
        status = stored_write(
            connection,
            &(struct stored_write){.subject = buf_cstr(&subject), .expected = revision, .body = value},
            ret_revision, reterr);
    buf_release(&subject);
    if (status != THOLE_CONFLICT)
        return status;
    return thole_fail(reterr, THOLE_CONFLICT,
                      "the hold of \"%.*s\" was changed by another at the same moment; nothing was changed",
                      THOLE_FMT(hold->instance));
}

thole_status holds_put(struct connection *connection, const char *ns, const struct hold *hold,
                       uint64_t *ret_revision, thole_error *reterr)
{
    struct buf value;
    uint64_t revision = 0;
    bool held = false;
    THOLE_TRY(id_check(hold->instance, reterr));
    THOLE_TRY(marked_store_check(connection, ns, STORE_HOLDS, reterr));
    buf_init(&value, VALUE_MAX);
    thole_status status = read_last(connection, ns, hold->instance, &revision, &value, reterr);
    if (status == THOLE_OK && revision > 0)
        status = give_value(hold->instance, revision, buf_bytes(&value), &held, NULL, NULL);
    if (status == THOLE_OK && held == hold->held)
        status = thole_fail(reterr, THOLE_CONFLICT, "\"%.*s\" is %s legal hold; nothing was changed",
                            THOLE_FMT(hold->instance), held ? "already under" : "not under");
    if (status == THOLE_OK) {
        buf_clear(&value);
        holds_write_value(hold, &value);
        status =
            buf_status(&value) == THOLE_OK
                ? holds_write_key(connection, ns, hold, buf_bytes(&value), revision, ret_revision, reterr)
                : thole_fail(reterr, buf_status(&value), "the reason of a hold is too long");
    }
    buf_release(&value);
    return status;
}

/* ---- lists ---- */

static void holds_note_id(void *arg, thole_slice subject)
{
    struct buf id;
    buf_init(&id, THOLE_ID_BYTES_MAX);
    if (subject_token_decode(subject_nth(subject, TOKEN_INSTANCE), &id, NULL) == THOLE_OK)
        (void)id_set_add(arg, buf_bytes(&id));
    buf_release(&id);
}

/* bounds.messages 0: there is nothing. */
static thole_status holds_look_at_bucket(struct connection *connection, const char *ns,
                                         char stream[STREAM_NAME_BYTES_MAX], struct stream_bounds *ret,
                                         thole_error *reterr)
{
    *ret = (struct stream_bounds){.messages = 0};
    THOLE_TRY(holds_bucket_stream(ns, stream, reterr));
    THOLE_TRY(marked_store_check(connection, ns, STORE_HOLDS, reterr));
    thole_status const status = stream_bounds(connection, stream, ret, reterr);
    return status == THOLE_NOT_FOUND ? THOLE_OK : status;
}

static thole_status note_mentioned(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct holds_mentioned *const mentioned = arg;
    (void)body;
    if (mentioned->len == HOLDS_MENTIONED_MAX)
        return THOLE_LIMIT;
    mentioned->hashes =
        memory_reserve(mentioned->hashes, &mentioned->cap, mentioned->len + 1, sizeof *mentioned->hashes);
    mentioned->hashes[mentioned->len++] = instance_id_hash(subject_nth(subject, TOKEN_INSTANCE));
    mentioned->revision = sequence;
    return THOLE_OK;
}

/* By getting single messages: engines may do that in the bucket, and list nothing. */
thole_status holds_mentioned_read(struct connection *connection, const char *ns,
                                  struct holds_mentioned *mentioned, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX], all[STREAM_NAME_BYTES_MAX + 8];
    uint64_t last = 0;
    THOLE_TRY(holds_bucket_stream(ns, stream, reterr));
    THOLE_TRY(marked_store_check(connection, ns, STORE_HOLDS, reterr));
    (void)snprintf(all, sizeof all, "$KV.THOLE_%s_HOLDS.>", ns);
    thole_status const status = stream_last_by_subject(connection, stream, all, &last, NULL, reterr);
    if (status != THOLE_OK && status != THOLE_NOT_FOUND) /* no bucket */
        return status;
    if (last < mentioned->revision) /* the bucket was made again */
        holds_mentioned_release(mentioned);
    if (last == mentioned->revision)
        return THOLE_OK;
    if (last - mentioned->revision > HOLDS_MENTIONED_MAX - mentioned->len)
        return thole_fail(reterr, THOLE_LIMIT, "there are more than %d holds", HOLDS_MENTIONED_MAX);
    return stream_walk(connection, stream, all, mentioned->revision + 1, last, note_mentioned, mentioned,
                       reterr);
}

bool holds_mentioned_has(const struct holds_mentioned *mentioned, thole_slice instance)
{
    struct buf token;
    buf_init(&token, SUBJECT_BYTES_MAX);
    bool has = subject_token(&token, instance, NULL) != THOLE_OK;
    uint64_t const hash = instance_id_hash(buf_bytes(&token));
    for (size_t i = 0; i < mentioned->len && !has; i++)
        has = mentioned->hashes[i] == hash;
    buf_release(&token);
    return has;
}

void holds_mentioned_release(struct holds_mentioned *mentioned)
{
    free(mentioned->hashes);
    *mentioned = (struct holds_mentioned){.len = 0};
}

thole_status holds_list(struct connection *connection, const char *ns, hold_fn *each, void *arg,
                        thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    struct stream_bounds bounds;
    struct id_set ids;
    bool held;
    THOLE_TRY(holds_look_at_bucket(connection, ns, stream, &bounds, reterr));
    if (bounds.messages == 0)
        return THOLE_OK;
    id_set_init(&ids);
    thole_status status =
        stream_subjects(connection, stream, bounds.last, HOLDS_MAX, holds_note_id, &ids, reterr);
    if (status == THOLE_OK && ids.full)
        status = thole_fail(reterr, THOLE_LIMIT, "too many holds to list");
    id_set_sort(&ids);
    for (size_t i = 0; i < ids.len && status == THOLE_OK; i++)
        status = find_hold(connection, ns, ids.ids[i], &held, each, arg, reterr);
    id_set_release(&ids);
    return status;
}

struct holds_reading {
    thole_slice instance;
    hold_fn *each;
    void *arg;
};

static thole_status on_value(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    const struct holds_reading *reading = arg;
    (void)subject;
    return give_value(reading->instance, sequence, body, NULL, reading->each, reading->arg);
}

thole_status holds_history(struct connection *connection, const char *ns, thole_slice instance, hold_fn *each,
                           void *arg, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    struct stream_bounds bounds;
    struct buf subject;
    struct holds_reading reading = {instance, each, arg};
    THOLE_TRY(holds_look_at_bucket(connection, ns, stream, &bounds, reterr));
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = holds_key_subject(&subject, ns, instance, reterr);
    if (status == THOLE_OK && bounds.messages > 0)
        status =
            stream_walk(connection, stream, buf_cstr(&subject), 1, bounds.last, on_value, &reading, reterr);
    buf_release(&subject);
    return status;
}
