/* CloudEvents that instances emit. */
#include "emitted_event.h"
#include "cloud_event.h"
#include "subject.h"
#include "text.h"
#include "utf8.h"
#include <assert.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 4096 }; /* of a subject, an id, a header */

static thole_slice content_type(const struct emission *emission)
{
    size_t at = 0;
    if (!emission->is_text && event_json_is_valid(emission->data))
        return THOLE_STR("application/json");
    for (size_t n; at < emission->data.len; at += n) {
        n = utf8_character((thole_slice){emission->data.ptr + at, emission->data.len - at});
        if (n == 0)
            return THOLE_STR("application/octet-stream");
    }
    return THOLE_STR("text/plain; charset=utf-8");
}

struct making {
    struct arena *arena;
    struct buf text; /* cleared for each */
    struct emitted_event *event;
    thole_status status;
};

/* The text so far, NUL-terminated. */
static const char *keep(struct making *m)
{
    thole_slice kept = {0};
    if (m->status == THOLE_OK)
        m->status = buf_status(&m->text);
    if (m->status == THOLE_OK)
        m->status =
            arena_dup(m->arena, (thole_slice){(const uint8_t *)buf_cstr(&m->text), m->text.len + 1}, &kept);
    return m->status == THOLE_OK ? (const char *)kept.ptr : "";
}

static void add(struct making *m, const char *key, const char *value)
{
    assert(m->event->headers_len < EMITTED_HEADERS_MAX);
    m->event->headers[m->event->headers_len++] = (struct header){key, thole_slice_from(value)};
}

/* Escaped as the protocol binding says. */
static void add_value(struct making *m, const char *key, thole_slice value)
{
    if (value.len == 0)
        return;
    buf_clear(&m->text);
    cloud_event_header_value(value, &m->text);
    add(m, key, keep(m));
}

/* "<namespace>/<instance>/<execution>/<event>", or .../deleted */
static void write_id(struct making *m, const char *ns, thole_slice instance, const struct emission *emission)
{
    buf_printf(&m->text, "%s/", ns);
    buf_slice(&m->text, instance);
    buf_printf(&m->text, "/%llu/", (unsigned long long)emission->execution);
    if (emission->event == 0)
        buf_text(&m->text, "deleted");
    else
        buf_printf(&m->text, "%llu", (unsigned long long)emission->event);
}

static void add_headers(struct making *m, const char *ns, const struct emission *emission)
{
    char time[TIME_TEXT_BYTES];
    add(m, "ce-specversion", "1.0");
    buf_clear(&m->text);
    write_id(m, ns, emission->instance, emission);
    const char *const id = keep(m);
    add_value(m, "ce-id", thole_slice_from(id));
    buf_clear(&m->text);
    buf_printf(&m->text, "/thole/%s/%.*s", ns, THOLE_FMT(emission->orchestration));
    add(m, "ce-source", keep(m));
    add_value(m, "ce-type", emission->type);
    add_value(m, "ce-subject", emission->instance);
    text_time(emission->time_ms, time);
    add_value(m, "ce-time", thole_slice_from(time));
    add_value(m, "ce-errortype", emission->error_type);
    add_value(m, "ce-traceparent", emission->trace.parent);
    add_value(m, "ce-tracestate", emission->trace.list);
    if (emission->data.len > 0)
        m->event->headers[m->event->headers_len++] = (struct header){"Content-Type", content_type(emission)};
}

/* The same as ce-id for an instance id that needs no escape. */
static thole_status make_message_id(struct making *m, const char *ns, const struct emission *emission,
                                    thole_error *reterr)
{
    struct buf token;
    buf_init(&token, SUBJECT_BYTES_MAX);
    thole_status const status = subject_token(&token, emission->instance, reterr);
    if (status == THOLE_OK) {
        buf_clear(&m->text);
        write_id(m, ns, buf_bytes(&token), emission);
        m->event->message_id = keep(m);
    }
    buf_release(&token);
    return status;
}

static thole_status make(struct making *m, const char *ns, const struct emission *emission,
                         thole_error *reterr)
{
    THOLE_TRY(
        subject_emitted(&m->text, ns, emission->orchestration, emission->instance, emission->type, reterr));
    m->event->subject = keep(m);
    THOLE_TRY(make_message_id(m, ns, emission, reterr));
    add_headers(m, ns, emission);
    m->event->body = emission->data;
    return m->status == THOLE_OK ? THOLE_OK : thole_fail(reterr, m->status, "an event's headers do not fit");
}

thole_status emitted_event_make(const char *ns, const struct emission *emission, struct arena *arena,
                                struct emitted_event *ret, thole_error *reterr)
{
    struct making m = {.arena = arena, .event = ret, .status = THOLE_OK};
    *ret = (struct emitted_event){.headers_len = 0};
    buf_init(&m.text, TEXT_BYTES_MAX);
    thole_status const status = make(&m, ns, emission, reterr);
    buf_release(&m.text);
    return status;
}
