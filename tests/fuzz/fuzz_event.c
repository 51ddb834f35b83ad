/* Any message for rules of thole bind: lines of headers, an empty line, the body. */
#include "bind_plan.h"
#include "json_check.h"
#include <assert.h>
#include <string.h>

enum { ARENA_MAX = 4 * 1024 * 1024, JSON_MAX = 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *line_end(const uint8_t *from, const uint8_t *end)
{
    const uint8_t *const newline = memchr(from, '\n', (size_t)(end - from));
    return newline != NULL ? newline : end;
}

/* Where the body begins. */
static const uint8_t *take_headers(const uint8_t *at, const uint8_t *end, struct event_header *headers,
                                   size_t *len)
{
    while (at < end && *at != '\n' && *len < EVENT_HEADERS_MAX) {
        const uint8_t *const stop = line_end(at, end);
        const uint8_t *const colon = memchr(at, ':', (size_t)(stop - at));
        const uint8_t *const name_end = colon != NULL ? colon : stop;
        const uint8_t *const value = colon != NULL ? colon + 1 : stop;
        headers[(*len)++] =
            (struct event_header){{at, (size_t)(name_end - at)}, {value, (size_t)(stop - value)}};
        at = stop < end ? stop + 1 : end;
    }
    return at < end ? at + 1 : end;
}

/* The event written in structured mode reads as the same event. */
static void write_and_read(const struct cloud_event *event, struct arena *arena)
{
    static const struct event_header type[] = {
        {{(const uint8_t *)"Content-Type", 12}, {(const uint8_t *)"application/cloudevents+json", 28}}};
    struct cloud_event again;
    struct buf json;
    buf_init(&json, JSON_MAX);
    cloud_event_write(event, &json);
    assert(buf_status(&json) == THOLE_OK && json_is_valid(buf_bytes(&json)));
    struct event_message const message = {.headers = type, .headers_len = 1, .body = buf_bytes(&json)};
    thole_status const status = cloud_event_read(&message, arena, &again, NULL);
    assert(status == THOLE_OK && again.present && again.attributes_len == event->attributes_len);
    for (size_t i = 0; i < event->attributes_len; i++)
        assert(thole_slice_equal(cloud_event_attribute(&again, event->attributes[i].name),
                                 event->attributes[i].value));
    (void)status;
    buf_release(&json);
}

/* A planned message is one that an engine takes. */
static void plan(const struct bind_rule *rule, const struct event_message *message, struct arena *arena)
{
    struct bind_plan plan;
    struct message back;
    struct buf bytes;
    if (bind_plan_make(rule, THOLE_STR("r"), message, 4096, arena, &plan, NULL) != THOLE_OK)
        return;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    thole_status status = message_encode(&plan.message, &bytes);
    assert(status == THOLE_OK);
    status = message_decode(buf_bytes(&bytes), arena, &back, NULL);
    assert(status == THOLE_OK && back.kind == plan.message.kind);
    assert(thole_slice_equal(back.instance, plan.message.instance));
    assert(thole_slice_equal(back.request_id, plan.message.request_id));
    (void)status;
    buf_release(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const char *instance, *event;
        enum bind_data data;
    } rules[] = {{"{ce.id}-{json.a.b}", "{ce.type|name}", BIND_DATA},
                 {"{subject.2}{header.X}", "{json.0|name}", BIND_EVENT},
                 {"{json.id}", "e", BIND_DATA}};
    struct event_header headers[EVENT_HEADERS_MAX];
    struct cloud_event event;
    struct arena arena;
    size_t len = 0;
    const uint8_t *const body = take_headers(data, data + size, headers, &len);
    struct event_message const message = {.subject = THOLE_STR("a.b"),
                                          .stream = THOLE_STR("S"),
                                          .headers = headers,
                                          .headers_len = len,
                                          .body = {body, (size_t)(data + size - body)}};
    arena_init(&arena, ARENA_MAX);
    if (cloud_event_read(&message, &arena, &event, NULL) == THOLE_OK && event.present)
        write_and_read(&event, &arena);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct bind_rule const rule = {.action = BIND_SIGNAL_WITH_START,
                                       .orchestration = THOLE_STR("o"),
                                       .instance = thole_slice_from(rules[i].instance),
                                       .event = thole_slice_from(rules[i].event),
                                       .data = rules[i].data};
        plan(&rule, &message, &arena);
    }
    struct bind_rule rule;
    if (bind_rule_read(message.body, &arena, &rule, NULL) == THOLE_OK)
        plan(&rule, &message, &arena);
    arena_release(&arena);
    return 0;
}
