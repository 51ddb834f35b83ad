#include "holds.h"
#include "id_set.h"
#include "jscan.h"
#include "json.h"
#include "message.h"
#include "reader.h"
#include "stored_write.h"
#include "subject.h"
#include "subject_list.h"
#include "topology_spec.h"
#include <stdio.h>

enum { VALUE_MAX = 16 * 1024, TOKEN_INSTANCE = 2 };

/* ---- names ---- */

static thole_status bucket_stream(const char *ns, char ret[STREAM_NAME_BYTES_MAX], thole_error *reterr)
{
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    (void)snprintf(ret, STREAM_NAME_BYTES_MAX, "KV_THOLE_%s_HOLDS", ns);
    return THOLE_OK;
}

/* $KV.THOLE_<ns>_HOLDS.<instance> */
static thole_status key_subject(struct buf *to, const char *ns, thole_slice instance, thole_error *reterr)
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

thole_status holds_ensure(struct connection *connection, const char *ns, uint32_t replicas,
                          thole_error *reterr)
{
    struct stream_spec spec = {.purpose = "it is a key-value bucket of legal holds",
                               .retention = "limits",
                               .replicas = replicas,
                               .subjects_len = 1,
                               .max_per_subject = HOLDS_HISTORY,
                               .deny_delete = true,
                               .deny_purge = true};
    THOLE_TRY(bucket_stream(ns, spec.name, reterr));
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "$KV.THOLE_%s_HOLDS.>", ns);
    return spec_ensure(connection, &spec, reterr);
}

/* ---- values ---- */

static void write_value(const struct hold *hold, struct buf *to)
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

/* What is no value of ours holds the instance: only a release that is whole lets it go. */
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
        (void)json_uint(found, &hold.time_ms);
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
    thole_status status = bucket_stream(ns, stream, reterr);
    if (status == THOLE_OK)
        status = key_subject(&subject, ns, instance, reterr);
    if (status == THOLE_OK)
        status = stream_last_by_subject(connection, stream, buf_cstr(&subject), ret_revision, value, reterr);
    buf_release(&subject);
    return status == THOLE_NOT_FOUND ? THOLE_OK : status; /* no bucket */
}

thole_status holds_find(struct connection *connection, const char *ns, thole_slice instance, bool *ret_held,
                        hold_fn *each, void *arg, thole_error *reterr)
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

static thole_status write_key(struct connection *connection, const char *ns, const struct hold *hold,
                              thole_slice value, uint64_t revision, uint64_t *ret_revision,
                              thole_error *reterr)
{
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = key_subject(&subject, ns, hold->instance, reterr);
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
    buf_init(&value, VALUE_MAX);
    thole_status status = read_last(connection, ns, hold->instance, &revision, &value, reterr);
    if (status == THOLE_OK && revision > 0)
        status = give_value(hold->instance, revision, buf_bytes(&value), &held, NULL, NULL);
    if (status == THOLE_OK && held == hold->held)
        status = thole_fail(reterr, THOLE_CONFLICT, "\"%.*s\" is %s legal hold; nothing was changed",
                            THOLE_FMT(hold->instance), held ? "already under" : "not under");
    if (status == THOLE_OK) {
        buf_clear(&value);
        write_value(hold, &value);
        status = buf_status(&value) == THOLE_OK
                     ? write_key(connection, ns, hold, buf_bytes(&value), revision, ret_revision, reterr)
                     : thole_fail(reterr, buf_status(&value), "the reason of a hold is too long");
    }
    buf_release(&value);
    return status;
}

/* ---- lists ---- */

static void note_id(void *arg, thole_slice subject)
{
    struct buf id;
    buf_init(&id, THOLE_ID_BYTES_MAX);
    if (subject_token_decode(subject_nth(subject, TOKEN_INSTANCE), &id, NULL) == THOLE_OK)
        (void)id_set_add(arg, buf_bytes(&id));
    buf_release(&id);
}

/* bounds.messages 0: there is nothing. */
static thole_status look_at_bucket(struct connection *connection, const char *ns,
                                   char stream[STREAM_NAME_BYTES_MAX], struct stream_bounds *ret,
                                   thole_error *reterr)
{
    *ret = (struct stream_bounds){.messages = 0};
    THOLE_TRY(bucket_stream(ns, stream, reterr));
    thole_status const status = stream_bounds(connection, stream, ret, reterr);
    return status == THOLE_NOT_FOUND ? THOLE_OK : status;
}

thole_status holds_list(struct connection *connection, const char *ns, hold_fn *each, void *arg,
                        thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    struct stream_bounds bounds;
    struct id_set ids;
    bool held;
    THOLE_TRY(look_at_bucket(connection, ns, stream, &bounds, reterr));
    if (bounds.messages == 0)
        return THOLE_OK;
    id_set_init(&ids);
    thole_status status = stream_subjects(connection, stream, bounds.last, HOLDS_MAX, note_id, &ids, reterr);
    if (status == THOLE_OK && ids.full)
        status = thole_fail(reterr, THOLE_LIMIT, "too many holds to list");
    id_set_sort(&ids);
    for (size_t i = 0; i < ids.len && status == THOLE_OK; i++)
        status = holds_find(connection, ns, ids.ids[i], &held, each, arg, reterr);
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
    THOLE_TRY(look_at_bucket(connection, ns, stream, &bounds, reterr));
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = key_subject(&subject, ns, instance, reterr);
    if (status == THOLE_OK && bounds.messages > 0)
        status =
            stream_walk(connection, stream, buf_cstr(&subject), 1, bounds.last, on_value, &reading, reterr);
    buf_release(&subject);
    return status;
}
