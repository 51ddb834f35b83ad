#include "marked_store.h"
#include "jscan.h"
#include "json.h"
#include "link.h"
#include "reader.h"
#include "stored_write.h"
#include "stream_specs.h"
#include <inttypes.h>
#include <stdio.h>

enum { MARK_BYTES_MAX = 128, MARK_SUBJECT_BYTES = 160, MARK_TRIES = 5 };

/* ---- the mark ---- */

static void mark_subject(const char *ns, enum namespace_store store, char ret[MARK_SUBJECT_BYTES])
{
    (void)snprintf(ret, MARK_SUBJECT_BYTES, "$KV.THOLE_%s_CONFIG.store_%s", ns, store_name(store));
}

static bool mark_parse(thole_slice text, struct store_mark *ret)
{
    thole_slice value;
    *ret = (struct store_mark){.made = false};
    if (!json_find(text, "made", &value))
        return false;
    ret->made = json_is_true(value);
    if (!ret->made)
        return thole_slice_equal(value, THOLE_STR("false"));
    return json_find(text, "last", &value) && json_uint(value, &ret->last);
}

/* *ret_revision: of the key, 0: it was never written. */
static thole_status mark_get(struct connection *connection, const char *ns, enum namespace_store store,
                             struct store_mark *ret, uint64_t *ret_revision, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX], subject[MARK_SUBJECT_BYTES];
    struct buf body;
    *ret = (struct store_mark){.made = false};
    *ret_revision = 0;
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_CONFIG", ns);
    mark_subject(ns, store, subject);
    buf_init(&body, MARK_BYTES_MAX);
    thole_status status = stream_last_by_subject(connection, stream, subject, ret_revision, &body, reterr);
    if (status == THOLE_OK && *ret_revision != 0 && !mark_parse(buf_bytes(&body), ret))
        status = thole_fail(reterr, THOLE_CORRUPT,
                            "key store_%s of bucket THOLE_%s_CONFIG is \"%.*s\", which says not whether the "
                            "store was made: put back what was there",
                            store_name(store), ns, THOLE_FMT(buf_bytes(&body)));
    buf_release(&body);
    return status == THOLE_NOT_FOUND ? THOLE_OK : status;
}

thole_status store_mark_read(struct connection *connection, const char *ns, enum namespace_store store,
                             struct store_mark *ret, thole_error *reterr)
{
    uint64_t revision;
    return mark_get(connection, ns, store, ret, &revision, reterr);
}

static thole_status mark_put(struct connection *connection, const char *ns, enum namespace_store store,
                             const struct store_mark *mark, uint64_t revision, thole_error *reterr)
{
    char subject[MARK_SUBJECT_BYTES];
    struct json json;
    struct buf text;
    buf_init(&text, MARK_BYTES_MAX);
    json_to_buf(&json, &text);
    json_object(&json);
    json_member_bool(&json, "made", mark->made);
    if (mark->made)
        json_member_number(&json, "last", mark->last);
    json_end(&json);
    mark_subject(ns, store, subject);
    thole_status const status = stored_write(
        connection,
        &(struct stored_write){.subject = subject, .expected = revision, .body = buf_bytes(&text)}, NULL,
        reterr);
    buf_release(&text);
    return status;
}

thole_status store_mark_made(struct connection *connection, const char *ns, enum namespace_store store,
                             uint64_t last, thole_error *reterr)
{
    thole_status status = THOLE_CONFLICT;
    for (int i = 0; i < MARK_TRIES && status == THOLE_CONFLICT; i++) {
        struct store_mark mark;
        uint64_t revision;
        THOLE_TRY(mark_get(connection, ns, store, &mark, &revision, reterr));
        if (mark.made && mark.last >= last)
            return THOLE_OK;
        status = mark_put(connection, ns, store, &(struct store_mark){.made = true, .last = last}, revision,
                          reterr);
    }
    return status;
}

thole_status store_mark_forget(struct connection *connection, const char *ns, enum namespace_store store,
                               thole_error *reterr)
{
    thole_status status = THOLE_CONFLICT;
    for (int i = 0; i < MARK_TRIES && status == THOLE_CONFLICT; i++) {
        struct store_mark mark;
        uint64_t revision;
        THOLE_TRY(mark_get(connection, ns, store, &mark, &revision, reterr));
        if (!mark.made)
            return THOLE_OK;
        status = mark_put(connection, ns, store, &(struct store_mark){.made = false}, revision, reterr);
    }
    return status;
}

/* ---- the store ---- */

void marked_store_text(const char *ns, enum namespace_store store, const struct marked_store *seen,
                       char ret[MARKED_STORE_TEXT_BYTES])
{
    struct stream_spec const spec = stream_spec_store(ns, store, 0);
    char had[40] = "";
    if (seen->mark.last > 0)
        (void)snprintf(had, sizeof had, ", with message %" PRIu64 ",", seen->mark.last);
    if (seen->verdict == STORE_OLDER)
        (void)snprintf(ret, MARKED_STORE_TEXT_BYTES,
                       "stream %s is older than it was, or another one: it had message %" PRIu64
                       " and ends with %" PRIu64 "; lost are %s",
                       spec.name, seen->mark.last, seen->last, store_loss(store));
    else
        (void)snprintf(ret, MARKED_STORE_TEXT_BYTES, "stream %s was there%s and is gone; lost are %s",
                       spec.name, had, store_loss(store));
}

static thole_status marked_store_refuse(const char *ns, enum namespace_store store,
                                        const struct marked_store *seen, thole_error *reterr)
{
    char text[MARKED_STORE_TEXT_BYTES];
    if (!store_is_lost(seen->verdict))
        return THOLE_OK;
    marked_store_text(ns, store, seen, text);
    return thole_fail(
        reterr, THOLE_CONFLICT,
        "%s. Nothing was changed. Restore it (nats stream restore), or, when that is not possible, "
        "thole recover",
        text);
}

/* Reads with the rights of who reads single messages: engines and those who delete have no other. */
thole_status marked_store_check(struct connection *connection, const char *ns, enum namespace_store store,
                                thole_error *reterr)
{
    struct stream_spec const spec = stream_spec_store(ns, store, 0);
    struct marked_store seen = {.last = 0};
    THOLE_TRY(store_mark_read(connection, ns, store, &seen.mark, reterr));
    if (!seen.mark.made)
        return THOLE_OK;
    thole_status const status =
        stream_last_by_subject(connection, spec.name, spec.subjects[0], &seen.last, NULL, reterr);
    if (status != THOLE_OK && status != THOLE_NOT_FOUND)
        return status;
    seen.verdict = store_judge(&seen.mark, status == THOLE_OK, seen.last);
    return marked_store_refuse(ns, store, &seen, reterr);
}

thole_status marked_store_look(struct connection *connection, const char *ns, enum namespace_store store,
                               struct marked_store *ret, thole_error *reterr)
{
    struct stream_spec const spec = stream_spec_store(ns, store, 0);
    struct stream_bounds bounds = {.last = 0};
    *ret = (struct marked_store){.verdict = STORE_NEVER};
    THOLE_TRY(store_mark_read(connection, ns, store, &ret->mark, reterr));
    thole_status const status = stream_bounds(connection, spec.name, &bounds, reterr);
    if (status != THOLE_OK && status != THOLE_NOT_FOUND)
        return status;
    ret->last = bounds.last;
    ret->verdict = store_judge(&ret->mark, status == THOLE_OK, bounds.last);
    return THOLE_OK;
}

thole_status marked_store_set_up(struct connection *connection, const char *ns, enum namespace_store store,
                                 uint32_t replicas, thole_error *reterr)
{
    struct stream_spec spec = stream_spec_store(ns, store, replicas);
    struct marked_store seen;
    THOLE_TRY(marked_store_look(connection, ns, store, &seen, reterr));
    if (seen.verdict != STORE_NEVER && seen.verdict != STORE_UNMARKED)
        return THOLE_OK; /* one that is lost is not made: people decide */
    if (seen.verdict == STORE_NEVER)
        THOLE_TRY(spec_ensure(connection, &spec, reterr));
    return store_mark_made(connection, ns, store, 0, reterr);
}

thole_status marked_store_require(struct connection *connection, const char *ns, enum namespace_store store,
                                  thole_error *reterr)
{
    struct stream_spec spec = stream_spec_store(ns, store, 0);
    struct marked_store seen;
    THOLE_TRY(marked_store_look(connection, ns, store, &seen, reterr));
    THOLE_TRY(marked_store_refuse(ns, store, &seen, reterr));
    if (seen.verdict == STORE_NEVER)
        return thole_fail(
            reterr, THOLE_NOT_FOUND,
            "namespace %s has no stream %s yet: start an engine of this version once, which makes "
            "it; no other role may",
            ns, spec.name);
    return spec_verify(connection, &spec, reterr);
}
