/* CloudEvents 1.0: both modes, what is refused, and the way back. */
#include "cloud_event.h"
#include "thole_cunit.h"
#include <stdlib.h>

static struct arena arena;
static struct event_header headers[80];
static size_t headers_len;

/* "Name: value" lines into headers. */
static void take_headers(const char *lines)
{
    for (headers_len = 0; *lines != '\0'; headers_len++) {
        const char *const colon = strchr(lines, ':'), *const end = lines + strcspn(lines, "\n");
        headers[headers_len] = (struct event_header){{(const uint8_t *)lines, (size_t)(colon - lines)},
                                                     {(const uint8_t *)colon + 2, (size_t)(end - colon - 2)}};
        lines = *end == '\0' ? end : end + 1;
    }
}

/* The event read, as the JSON of its structured form; else the error. */
static const char *read_event(const char *lines, thole_slice body)
{
    static char text[8192];
    struct cloud_event event;
    thole_error error = {.status = THOLE_OK};
    uint8_t *const copy = malloc(body.len + 1); /* exact: AddressSanitizer sees what is read too far */
    struct buf json;
    memcpy(copy, body.ptr, body.len);
    take_headers(lines);
    struct event_message const message = {.subject = THOLE_STR("a.b"),
                                          .body = {copy, body.len},
                                          .headers = headers,
                                          .headers_len = headers_len};
    arena_init(&arena, 1 << 20);
    buf_init(&json, sizeof text);
    if (cloud_event_read(&message, &arena, &event, &error) != THOLE_OK)
        (void)snprintf(text, sizeof text, "%s: %s", thole_status_name(error.status), error.text);
    else if (!event.present)
        (void)snprintf(text, sizeof text, "none: %.*s%s", THOLE_FMT(event.data),
                       event.data_is_json ? " (JSON)" : "");
    else {
        cloud_event_write(&event, &json);
        (void)snprintf(text, sizeof text, "%s", buf_cstr(&json));
    }
    buf_release(&json);
    arena_release(&arena);
    free(copy);
    return text;
}

#define BINARY "ce-specversion: 1.0\nce-id: 1\nce-source: /s\nce-type: t"
#define STRUCTURED "Content-Type: application/cloudevents+json"
#define NEEDED "\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/s\",\"type\":\"t\""

static const struct event_case {
    const char *name, *headers, *body, *want;
} cases[] = {
    {"no event", "X: 1", "hello", "none: hello"},
    {"no event, JSON", "", "{\"a\":1}", "none: {\"a\":1} (JSON)"},
    {"binary, no data", BINARY, "", "{" NEEDED "}"},
    {"binary, text", BINARY, "hi", "{" NEEDED ",\"data\":\"hi\"}"},
    {"binary, JSON", BINARY "\nContent-Type: application/json; charset=utf-8", "{\"a\":[1]}",
     "{" NEEDED ",\"datacontenttype\":\"application/json; charset=utf-8\",\"data\":{\"a\":[1]}}"},
    {"binary, JSON of a vendor", BINARY "\ncontent-type: application/x+json", "7",
     "{" NEEDED ",\"datacontenttype\":\"application/x+json\",\"data\":7}"},
    {"binary, broken JSON is text", BINARY "\nContent-Type: application/json",
     "{\"a\":", "{" NEEDED ",\"datacontenttype\":\"application/json\",\"data\":\"{\\\"a\\\":\"}"},
    {"binary, bytes", BINARY, "\xff\x01", "{" NEEDED ",\"data_base64\":\"/wE=\"}"},
    {"binary, extension", BINARY "\nce-tenant: acme", "", "{" NEEDED ",\"tenant\":\"acme\"}"},
    {"binary, case of headers", "Ce-SpecVersion: 1.0\nCE-ID: 1\nce-source: /s\nCe-Type: t", "",
     "{" NEEDED "}"},
    {"binary, percent", BINARY "\nce-subject: Eu%20ro%e2%82%AC %zz %", "",
     "{" NEEDED ",\"subject\":\"Eu ro€ %zz %\"}"},
    {"binary, percent at the end", BINARY "\nce-subject: a%4", "", "{" NEEDED ",\"subject\":\"a%4\"}"},
    {"binary, percent at the end of what was quoted", BINARY "\nce-subject: \"a%4\"", "",
     "{" NEEDED ",\"subject\":\"a%4\"}"},
    {"binary, quoted", BINARY "\nce-subject: \"a \\\"b\\\" %41\"", "",
     "{" NEEDED ",\"subject\":\"a \\\"b\\\" A\"}"},
    {"binary, not UTF-8", BINARY "\nce-subject: %ff", "", "INVALID: header ce-subject is not UTF-8"},
    {"binary, NUL", BINARY "\nce-subject: a%00b", "", "INVALID: header ce-subject is not UTF-8"},
    {"binary, twice", BINARY "\nce-id: 2", "", "INVALID: header ce-id is there twice"},
    {"binary, name", BINARY "\nce-a_b: 2", "",
     "INVALID: header ce-a_b: names of attributes are lower-case letters and digits, at most 64, and not "
     "data"},
    {"binary, data", BINARY "\nCE-Data: x", "",
     "INVALID: header ce-data: names of attributes are lower-case letters and digits, at most 64, and not "
     "data"},
    {"binary, no id", "ce-specversion: 1.0\nce-source: /s\nce-type: t", "",
     "INVALID: the CloudEvent has no id: specversion, id, source and type are required"},
    {"binary, version", "ce-specversion: 0.3\nce-id: 1\nce-source: /s\nce-type: t", "",
     "INVALID: the CloudEvent has specversion 0.3, only 1.0 is known"},
    {"structured", STRUCTURED, " {" NEEDED ",\"data\":{\"a\":\"b\"}} ",
     "{" NEEDED ",\"data\":{\"a\":\"b\"}}"},
    {"structured, charset", "content-type: Application/CloudEvents+JSON; charset=utf-8", "{" NEEDED "}",
     "{" NEEDED "}"},
    {"structured, blanks behind the type", STRUCTURED "  ; charset=utf-8", "{" NEEDED "}", "{" NEEDED "}"},
    {"batch, blanks", "Content-Type: application/cloudevents-batch+json ", "[]",
     "INVALID: application/cloudevents-batch+json is not known: send application/cloudevents+json, one event "
     "in a message, or the attributes as headers ce-*"},
    {"structured, a text is JSON", STRUCTURED, "{" NEEDED ",\"data\":\"x\"}", "{" NEEDED ",\"data\":\"x\"}"},
    {"structured, text of a type", STRUCTURED,
     "{" NEEDED ",\"datacontenttype\":\"text/plain\",\"data\":\"a\\nb\"}",
     "{" NEEDED ",\"datacontenttype\":\"text/plain\",\"data\":\"a\\nb\"}"},
    {"structured, base64", STRUCTURED, "{" NEEDED ",\"data_base64\":\"/wE=\"}",
     "{" NEEDED ",\"data_base64\":\"/wE=\"}"},
    {"structured, extensions", STRUCTURED,
     "{" NEEDED ",\"n\":12,\"b\":true,\"none\":null,\"esc\":\"\\u00e4\"}",
     "{" NEEDED ",\"n\":\"12\",\"b\":\"true\",\"esc\":\"ä\"}"},
    {"structured wins over headers", STRUCTURED "\nce-specversion: 1.0", "{" NEEDED "}", "{" NEEDED "}"},
    {"structured, both data", STRUCTURED, "{" NEEDED ",\"data\":1,\"data_base64\":\"\"}",
     "INVALID: the event has both data and data_base64"},
    {"structured, bad base64", STRUCTURED, "{" NEEDED ",\"data_base64\":\"x\"}",
     "INVALID: the event's data_base64 is no base64"},
    {"structured, no JSON", STRUCTURED, "{" NEEDED,
     "INVALID: the Content-Type says a CloudEvent in JSON, and the body is no JSON"},
    {"structured, empty", STRUCTURED, "",
     "INVALID: the Content-Type says a CloudEvent in JSON, and the body is no JSON"},
    {"structured, a list", STRUCTURED, "[1]", "INVALID: the event is no JSON object"},
    {"structured, nested attribute", STRUCTURED, "{" NEEDED ",\"x\":{}}",
     "INVALID: the event's member x is no text, number or boolean"},
    {"structured, twice", STRUCTURED, "{" NEEDED ",\"id\":\"2\"}", "INVALID: member id is there twice"},
    {"structured, data twice", STRUCTURED, "{" NEEDED ",\"data\":1,\"data\":2}",
     "INVALID: member data is there twice"},
    {"structured, data in base64 twice", STRUCTURED,
     "{" NEEDED ",\"data_base64\":\"YQ==\",\"data_base64\":\"YQ==\"}",
     "INVALID: member data_base64 is there twice"},
    {"structured, empty id", STRUCTURED,
     "{\"specversion\":\"1.0\",\"id\":\"\",\"source\":\"/s\",\"type\":\"t\"}",
     "INVALID: the CloudEvent has no id: specversion, id, source and type are required"},
    {"batch", "Content-Type: application/cloudevents-batch+json", "[]",
     "INVALID: application/cloudevents-batch+json is not known: send application/cloudevents+json, one event "
     "in a "
     "message, or the attributes as headers ce-*"},
    {"avro", "Content-Type: application/cloudevents+avro", "x",
     "INVALID: application/cloudevents+avro is not known: send application/cloudevents+json, one event in a "
     "message, or the attributes as headers ce-*"},
};

static void test_reading(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const got = read_event(cases[i].headers, thole_slice_from(cases[i].body));
        CHECK_STR(cases[i].name, got, cases[i].want);
    }
}

static void test_bounds(void)
{
    char lines[12000] = BINARY, value[EVENT_ATTRIBUTE_MAX + 2];
    memset(value, 'x', sizeof value);
    value[sizeof value - 1] = '\0';
    (void)snprintf(lines, sizeof lines, BINARY "\nce-subject: %s", value);
    const char *got = read_event(lines, THOLE_STR(""));
    CHECK_STR("long", got, "INVALID: header ce-subject has 4097 bytes, at most 4096 are allowed");
    size_t len = (size_t)snprintf(lines, sizeof lines, BINARY);
    for (int i = 0; i < 61; i++)
        len += (size_t)snprintf(lines + len, sizeof lines - len, "\nce-a%d: 1", i);
    got = read_event(lines, THOLE_STR(""));
    CHECK_STR("many", got, "INVALID: the event has more than 64 attributes");
}

/* Each ceiling below what is needed is a clean refusal. */
static void test_memory(void)
{
    take_headers(BINARY "\nce-subject: a%20b");
    struct event_message const message = {.headers = headers, .headers_len = headers_len};
    struct cloud_event event;
    thole_status status = THOLE_LIMIT;
    for (size_t limit = 0; status != THOLE_OK && limit < 8192; limit += 16) {
        arena_init(&arena, limit);
        status = cloud_event_read(&message, &arena, &event, NULL);
        CU_ASSERT_TRUE(status == THOLE_OK || status == THOLE_LIMIT);
        arena_release(&arena);
    }
    CU_ASSERT_EQUAL(status, THOLE_OK);
}

static void test_header_values(void)
{
    struct buf text;
    buf_init(&text, 100);
    cloud_event_header_value(THOLE_STR("a b%\"ä\n~"), &text);
    CHECK_STR("escaped", buf_cstr(&text), "a%20b%25%22%C3%A4%0A~");
    buf_release(&text);
}

int main(void)
{
    static const struct thole_test tests[] = {{"reading", test_reading},
                                              {"bounds", test_bounds},
                                              {"memory", test_memory},
                                              {"header values", test_header_values}};
    return thole_run_suite("cloud_event", tests, ARRAY_LEN(tests));
}
