/* CloudEvents that instances emit. */
#include "emitted_event.h"
#include "cloud_event.h"
#include "event.h"
#include "json_check.h"
#include "subject.h"
#include "text.h"
#include "utf8.h"
#include <assert.h>
#include <string.h>

#define JSON_TYPE "application/json"

enum {
    TEXT_BYTES_MAX = 4096, /* of a subject, an id, a header */
    ATTRIBUTES_MAX = EMITTED_HEADERS_MAX,
    ROOM_BYTES = 16 * 1024, /* for all but the data */
    JSON_ESCAPE_BYTES = 6,  /* of a byte in a JSON text */
};

static thole_slice content_type(const struct emission *emission)
{
    size_t at = 0;
    if (!emission->is_text && json_is_valid(emission->data))
        return THOLE_STR(JSON_TYPE);
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
    struct cloud_attribute attributes[ATTRIBUTES_MAX];
    size_t attributes_len;
    struct emitted_event *event;
    thole_status status;
};

/* The text so far, NUL-terminated. */
static const char *emitted_event_keep(struct making *m)
{
    thole_slice kept = {0};
    if (m->status == THOLE_OK)
        m->status = buf_status(&m->text);
    if (m->status == THOLE_OK)
        m->status =
            arena_dup(m->arena, (thole_slice){(const uint8_t *)buf_cstr(&m->text), m->text.len + 1}, &kept);
    return m->status == THOLE_OK ? (const char *)kept.ptr : "";
}

static void emitted_event_add(struct making *m, const char *name, thole_slice value)
{
    assert(m->attributes_len < ATTRIBUTES_MAX);
    if (value.len > 0)
        m->attributes[m->attributes_len++] = (struct cloud_attribute){thole_slice_from(name), value};
}

static void emitted_event_add_header(struct making *m, const char *key, thole_slice value)
{
    assert(m->event->headers_len < EMITTED_HEADERS_MAX);
    m->event->headers[m->event->headers_len++] = (struct header){key, value};
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

static void add_attributes(struct making *m, const char *ns, const struct emission *emission)
{
    char time[TIME_TEXT_BYTES];
    emitted_event_add(m, "specversion", THOLE_STR("1.0"));
    buf_clear(&m->text);
    write_id(m, ns, emission->instance, emission);
    emitted_event_add(m, "id", thole_slice_from(emitted_event_keep(m)));
    buf_clear(&m->text);
    buf_printf(&m->text, "/thole/%s/%.*s", ns, THOLE_FMT(emission->orchestration));
    emitted_event_add(m, "source", thole_slice_from(emitted_event_keep(m)));
    emitted_event_add(m, "type", emission->type);
    emitted_event_add(m, "subject", emission->instance);
    text_time(emission->time_ms, time);
    buf_clear(&m->text);
    buf_text(&m->text, time);
    emitted_event_add(m, "time", thole_slice_from(emitted_event_keep(m)));
    emitted_event_add(m, "errortype", emission->error_type);
    emitted_event_add(m, "traceparent", emission->trace.parent);
    emitted_event_add(m, "tracestate", emission->trace.list);
}

/* Headers ce-*, escaped as the protocol binding says. */
static void write_binary(struct making *m, const struct emission *emission)
{
    for (size_t i = 0; i < m->attributes_len; i++) {
        buf_clear(&m->text);
        buf_printf(&m->text, "ce-%.*s", THOLE_FMT(m->attributes[i].name));
        const char *const key = emitted_event_keep(m);
        buf_clear(&m->text);
        cloud_event_header_value(m->attributes[i].value, &m->text);
        emitted_event_add_header(m, key, thole_slice_from(emitted_event_keep(m)));
    }
    if (emission->data.len > 0)
        emitted_event_add_header(m, "Content-Type", content_type(emission));
    m->event->body = emission->data;
}

static void write_structured(struct making *m, const struct emission *emission)
{
    thole_slice const type = content_type(emission);
    struct buf body;
    if (emission->data.len > 0)
        emitted_event_add(m, "datacontenttype", type);
    struct cloud_event const event = {.present = true,
                                      .attributes = m->attributes,
                                      .attributes_len = m->attributes_len,
                                      .data = emission->data,
                                      .data_is_json = emission->data.len > 0 &&
                                                      thole_slice_equal(type, THOLE_STR(JSON_TYPE))};
    buf_init(&body, emitted_event_room(EVENTS_MODE_STRUCTURED, emission));
    cloud_event_write(&event, &body);
    if (m->status == THOLE_OK)
        m->status = buf_status(&body);
    if (m->status == THOLE_OK)
        m->status = arena_dup(m->arena, buf_bytes(&body), &m->event->body);
    buf_release(&body);
    emitted_event_add_header(m, "Content-Type", THOLE_STR("application/cloudevents+json"));
}

/* Equal to ce-id for an instance id that needs no escape. */
static thole_status make_message_id(struct making *m, const char *ns, const struct emission *emission,
                                    thole_error *reterr)
{
    struct buf token;
    buf_init(&token, SUBJECT_BYTES_MAX);
    thole_status const status = subject_token(&token, emission->instance, reterr);
    if (status == THOLE_OK) {
        buf_clear(&m->text);
        write_id(m, ns, buf_bytes(&token), emission);
        m->event->message_id = emitted_event_keep(m);
    }
    buf_release(&token);
    return status;
}

static thole_status emitted_event_build(struct making *m, const char *ns, enum events_mode mode,
                                        const struct emission *emission, thole_error *reterr)
{
    THOLE_TRY(
        subject_emitted(&m->text, ns, emission->orchestration, emission->instance, emission->type, reterr));
    m->event->subject = emitted_event_keep(m);
    THOLE_TRY(make_message_id(m, ns, emission, reterr));
    add_attributes(m, ns, emission);
    if (mode == EVENTS_MODE_STRUCTURED)
        write_structured(m, emission);
    else
        write_binary(m, emission);
    return m->status == THOLE_OK ? THOLE_OK : thole_fail(reterr, m->status, "an event does not fit");
}

thole_status emitted_event_make(const char *ns, enum events_mode mode, const struct emission *emission,
                                struct arena *arena, struct emitted_event *ret, thole_error *reterr)
{
    struct making m = {.arena = arena, .event = ret, .status = THOLE_OK};
    *ret = (struct emitted_event){.headers_len = 0};
    buf_init(&m.text, TEXT_BYTES_MAX);
    thole_status const status = emitted_event_build(&m, ns, mode, emission, reterr);
    buf_release(&m.text);
    return status;
}

size_t emitted_event_room(enum events_mode mode, const struct emission *emission)
{
    assert(emission->data.len <= RECORD_BYTES_MAX);
    return ROOM_BYTES + (mode == EVENTS_MODE_STRUCTURED ? emission->data.len * JSON_ESCAPE_BYTES : 0);
}
