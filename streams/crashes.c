/* Crashes of instances. */
#include "crashes.h"
#include "api.h"
#include "jscan.h"
#include "json.h"
#include "link.h"
#include "message.h"
#include "range.h"
#include "reader.h"
#include "subject.h"
#include <stdio.h>

enum { ENTRY_BYTES_MAX = 16 * 1024, TOKEN_INSTANCE = 3, WRITE_ATTEMPTS = 5, NUMBER_BYTES = 24 };

/* ---- keys and values ---- */

/* $KV.THOLE_<ns>_CRASHES.<p>.<instance>; an empty instance gives * */
static thole_status crash_subject(struct buf *to, const char *ns, uint32_t p, thole_slice instance,
                                  thole_error *reterr)
{
    struct buf token;
    buf_init(&token, SUBJECT_BYTES_MAX);
    thole_status status = name_check(thole_slice_from(ns), "namespace", reterr);
    if (status == THOLE_OK && instance.len > 0)
        status = subject_token(&token, instance, reterr);
    if (status == THOLE_OK) {
        buf_clear(to);
        buf_printf(to, "$KV.THOLE_%s_CRASHES.%u.%s", ns, p, instance.len == 0 ? "*" : buf_cstr(&token));
        status = buf_status(to);
    }
    buf_release(&token);
    return status;
}

static void crashes_write_value(const struct crash_entry *entry, struct buf *to)
{
    struct json json;
    json_to_buf(&json, to);
    json_object(&json);
    json_member_number(&json, "count", entry->count);
    json_member_number(&json, "execution", entry->execution);
    json_member(&json, "build", entry->build);
    json_member(&json, "orchestration", entry->orchestration);
    json_member_number(&json, "version", entry->version);
    json_member(&json, "text", entry->text);
    json_member_number(&json, "time_ms", entry->time_ms);
    json_end(&json);
}

static bool crashes_read_text(thole_slice object, const char *key, struct buf *into, thole_slice *ret)
{
    thole_slice value;
    buf_init(into, ENTRY_BYTES_MAX);
    if (!json_find(object, key, &value) || !json_text(value, into))
        return false;
    *ret = buf_bytes(into);
    return true;
}

static bool crashes_read_number(thole_slice object, const char *key, enum range range, uint64_t *ret)
{
    thole_slice value;
    return json_find(object, key, &value) && json_uint(value, ret) &&
           range_check_as(range, key, *ret, NULL) == THOLE_OK;
}

struct texts {
    struct buf build, orchestration, text, instance;
};

static void texts_release(struct texts *texts)
{
    buf_release(&texts->build);
    buf_release(&texts->orchestration);
    buf_release(&texts->text);
    buf_release(&texts->instance);
}

/* False: it is none. The entry borrows from @p texts. */
static bool crashes_read_value(thole_slice value, struct texts *texts, struct crash_entry *ret)
{
    *ret = (struct crash_entry){.count = 0};
    if (!crashes_read_number(value, "execution", RANGE_EXECUTION, &ret->execution))
        ret->execution = 0; /* entries of earlier versions have none */
    return crashes_read_number(value, "count", RANGE_ATTEMPT, &ret->count) &&
           crashes_read_text(value, "build", &texts->build, &ret->build) &&
           crashes_read_text(value, "orchestration", &texts->orchestration, &ret->orchestration) &&
           crashes_read_number(value, "version", RANGE_RECORDED, &ret->version) &&
           crashes_read_text(value, "text", &texts->text, &ret->text) &&
           crashes_read_number(value, "time_ms", RANGE_TIME_MS, &ret->time_ms);
}

/* ---- writing ---- */

/* @p expected: the sequence that was read; UINT64_MAX: any. THOLE_CONFLICT: the key has another one.
 */
static thole_status crashes_write(struct connection *connection, const char *subject, uint64_t expected,
                                  thole_slice operation, thole_slice value, thole_error *reterr)
{
    char number[NUMBER_BYTES];
    struct header headers[2];
    size_t n = 0;
    struct buf answer;
    thole_slice found;
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)expected);
    if (expected != UINT64_MAX)
        headers[n++] = (struct header){"Nats-Expected-Last-Subject-Sequence", thole_slice_from(number)};
    if (operation.len > 0)
        headers[n++] = (struct header){"KV-Operation", operation};
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = connection_request_with(connection, subject, headers, n, value, &answer, reterr);
    if (status == THOLE_OK && json_find(buf_bytes(&answer), "error", &found)) {
        status = thole_fail(reterr, api_is_wrong_last(found) ? THOLE_CONFLICT : THOLE_UNAVAILABLE,
                            "write to %s: the server says: %.*s", subject, THOLE_FMT(found));
    } else if (status == THOLE_OK && !json_find(buf_bytes(&answer), "seq", &found)) {
        status =
            thole_fail(reterr, THOLE_UNAVAILABLE, "write to %s: nothing says that it is stored", subject);
    }
    buf_release(&answer);
    return status;
}

static thole_status crashes_put_entry(struct connection *connection, const char *subject, uint64_t expected,
                                      const struct crash_entry *entry, thole_error *reterr)
{
    struct buf value;
    buf_init(&value, ENTRY_BYTES_MAX);
    crashes_write_value(entry, &value);
    thole_status status = buf_status(&value);
    if (status == THOLE_OK)
        status = crashes_write(connection, subject, expected, THOLE_STR(""), buf_bytes(&value), reterr);
    else
        status = thole_fail(reterr, status, "a crash's entry is too large");
    buf_release(&value);
    return status;
}

static uint64_t next_count(const struct crash_entry *old, const struct crash_entry *entry, bool certain)
{
    if (!thole_slice_equal(old->build, entry->build))
        return 1;
    if (certain)
        return old->count + 1;
    return old->count > 1 ? old->count : 1;
}

static thole_status add_once(struct connection *connection, const char *ns, const char *subject,
                             const struct crash_entry *entry, bool certain, uint64_t *ret_count,
                             thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    struct crash_entry old = {.count = 0}, now = *entry;
    struct texts texts = {0};
    struct buf body;
    uint64_t sequence = 0;
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_CRASHES", ns);
    buf_init(&body, ENTRY_BYTES_MAX);
    thole_status status = stream_last_by_subject(connection, stream, subject, &sequence, &body, reterr);
    if (status == THOLE_OK) {
        bool const there = sequence != 0 && crashes_read_value(buf_bytes(&body), &texts, &old);
        now.count = there ? next_count(&old, entry, certain) : 1;
        status = crashes_put_entry(connection, subject, sequence, &now, reterr);
    }
    if (status == THOLE_OK)
        *ret_count = now.count;
    texts_release(&texts);
    buf_release(&body);
    return status;
}

thole_status crashes_add(struct connection *connection, const char *ns, uint32_t p,
                         const struct crash_entry *entry, bool certain, uint64_t *ret_count,
                         thole_error *reterr)
{
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = crash_subject(&subject, ns, p, entry->instance, reterr);
    for (int i = 0; i < WRITE_ATTEMPTS && status == THOLE_OK; i++) {
        status = add_once(connection, ns, buf_cstr(&subject), entry, certain, ret_count, reterr);
        if (status != THOLE_CONFLICT)
            break;
        status = i + 1 < WRITE_ATTEMPTS ? THOLE_OK : THOLE_UNAVAILABLE;
    }
    buf_release(&subject);
    return status;
}

thole_status crashes_put(struct connection *connection, const char *ns, uint32_t p,
                         const struct crash_entry *entry, thole_error *reterr)
{
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = crash_subject(&subject, ns, p, entry->instance, reterr);
    if (status == THOLE_OK)
        status = crashes_put_entry(connection, buf_cstr(&subject), UINT64_MAX, entry, reterr);
    buf_release(&subject);
    return status;
}

thole_status crashes_remove(struct connection *connection, const char *ns, uint32_t p, thole_slice instance,
                            thole_error *reterr)
{
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = crash_subject(&subject, ns, p, instance, reterr);
    if (status == THOLE_OK)
        status = crashes_write(connection, buf_cstr(&subject), UINT64_MAX, THOLE_STR("DEL"), THOLE_STR(""),
                               reterr);
    buf_release(&subject);
    return status;
}

/* ---- reading ---- */

struct reading {
    crashes_fn *each;
    void *arg;
};

static thole_status crashes_on_message(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    const struct reading *const reading = arg;
    struct texts texts = {0};
    struct crash_entry entry;
    thole_status status = THOLE_OK;
    (void)sequence;
    bool const good = crashes_read_value(body, &texts, &entry); /* a removed one is empty */
    buf_init(&texts.instance, THOLE_ID_BYTES_MAX);
    if (good &&
        subject_token_decode(subject_nth(subject, TOKEN_INSTANCE), &texts.instance, NULL) == THOLE_OK) {
        entry.instance = buf_bytes(&texts.instance);
        status = reading->each(reading->arg, &entry);
    }
    texts_release(&texts);
    return status;
}

thole_status crashes_read(struct connection *connection, const char *ns, uint32_t p, crashes_fn *each,
                          void *arg, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    struct reading reading = {each, arg};
    struct stream_bounds bounds = {0};
    struct buf subject;
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_CRASHES", ns);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = crash_subject(&subject, ns, p, (thole_slice){0}, reterr);
    if (status == THOLE_OK)
        status = stream_bounds(connection, stream, &bounds, reterr);
    if (status == THOLE_OK && bounds.messages > 0)
        status = stream_read(connection, stream, buf_cstr(&subject), 1, bounds.last, crashes_on_message,
                             &reading, reterr);
    buf_release(&subject);
    return status;
}
