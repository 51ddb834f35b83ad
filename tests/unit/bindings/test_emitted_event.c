/* CloudEvents of instances as NATS messages, in both modes, and that what reads CloudEvents reads them. */
#include "cloud_event.h"
#include "emitted_event.h"
#include "thole_cunit.h"

static struct arena arena;
static char text[8192];

static const char *made(enum events_mode mode, const struct emission *emission)
{
    struct emitted_event event;
    thole_error err = {.status = THOLE_OK};
    struct buf said;
    arena_init(&arena, 1 << 20);
    buf_init(&said, sizeof text);
    if (emitted_event_make("shop", mode, emission, &arena, &event, &err) != THOLE_OK) {
        (void)snprintf(text, sizeof text, "%s: %s", thole_status_name(err.status), err.text);
    } else {
        buf_printf(&said, "%s id %s", event.subject, event.message_id);
        for (size_t i = 0; i < event.headers_len; i++)
            buf_printf(&said, " | %s: %.*s", event.headers[i].key, THOLE_FMT(event.headers[i].value));
        if (mode == EVENTS_MODE_STRUCTURED)
            buf_printf(&said, " | %.*s", THOLE_FMT(event.body));
        else
            CU_ASSERT(event.body.ptr == emission->data.ptr && event.body.len == emission->data.len);
        (void)snprintf(text, sizeof text, "%s", buf_cstr(&said));
    }
    buf_release(&said);
    arena_release(&arena);
    return text;
}

#define S(s)                                                                                                 \
    {                                                                                                        \
        (const uint8_t *)(s), sizeof(s) - 1                                                                  \
    }
#define OF .orchestration = S("checkout"), .execution = 2, .time_ms = 1700000000123
#define TO(token, type, id) "thole.shop.event.checkout." token ".ce." type " id shop/" token "/2/" id
#define HEAD(id) " | ce-specversion: 1.0 | ce-id: shop/" id " | ce-source: /thole/shop/checkout | ce-type: "
#define TIME " | ce-time: 2023-11-14T22:13:20.123Z"

static const struct {
    const char *name;
    struct emission of;
    const char *want;
} cases[] = {
    {"JSON",
     {OF, .instance = S("order-17"), .type = S("com.example.order.shipped"), .data = S("{\"a\":1}"),
      .event = 7},
     TO("order-17", "com.example.order.shipped", "7")
         HEAD("order-17/2/7") "com.example.order.shipped | ce-subject: order-17" TIME
                              " | Content-Type: application/json"},
    {"text",
     {OF, .instance = S("i"), .type = S("t"), .data = S("\xc3\xa4 b"), .event = 1},
     TO("i", "t", "1") HEAD("i/2/1") "t | ce-subject: i" TIME " | Content-Type: text/plain; charset=utf-8"},
    {"bytes",
     {OF, .instance = S("i"), .type = S("t"), .data = S("\xff"), .event = 1},
     TO("i", "t", "1") HEAD("i/2/1") "t | ce-subject: i" TIME " | Content-Type: application/octet-stream"},
    {"nothing",
     {OF, .instance = S("i"), .type = S("t"), .event = 1},
     TO("i", "t", "1") HEAD("i/2/1") "t | ce-subject: i" TIME},
    {"a text that looks like JSON",
     {OF, .instance = S("i"), .type = S("thole.instance.failed"), .data = S("404"), .event = 9,
      .is_text = true, .error_type = S("not.found")},
     TO("i", "thole.instance.failed", "9") HEAD("i/2/9") "thole.instance.failed | ce-subject: i" TIME
                                                         " | ce-errortype: not.found"
                                                         " | Content-Type: text/plain; charset=utf-8"},
    {"an id that is none of NATS, a trace",
     {OF, .instance = S("a b/\"\xc3\xa4.>\r\n"), .type = S("t"), .event = 1,
      .trace = {S("00-x"), S("a=b,c=%")}},
     TO("a%20b%2F%22%C3%A4%2E%3E%0D%0A", "t", "1")
         HEAD("a%20b/%22%C3%A4.>%0D%0A/2/1") "t | ce-subject: a%20b/%22%C3%A4.>%0D%0A" TIME
                                             " | ce-traceparent: 00-x | ce-tracestate: a=b,c=%25"},
    {"a deletion",
     {OF, .instance = S("i"), .type = S("thole.instance.deleted"), .is_text = true},
     TO("i", "thole.instance.deleted", "deleted")
         HEAD("i/2/deleted") "thole.instance.deleted | ce-subject: i" TIME},
    {"a type that is none",
     {OF, .instance = S("i"), .type = S("a.>"), .event = 1},
     "INVALID: event type has byte 0x3e, allowed is [A-Za-z0-9_.-]"},
    {"an id that is none", {OF, .type = S("t"), .event = 1}, "INVALID: instance id is empty"},
};

static void messages(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(cases[i].name, made(EVENTS_MODE_BINARY, &cases[i].of), cases[i].want);
}

#define WHOLE(token, type, id)                                                                               \
    TO(token, type, id)                                                                                      \
    " | Content-Type: application/cloudevents+json | {\"specversion\":\"1.0\",\"id\":\"shop/"
#define SOURCE "\",\"source\":\"/thole/shop/checkout\",\"type\":\""
#define AT "\",\"time\":\"2023-11-14T22:13:20.123Z\""

/* Of the cases above, in their order; those that are errors are the same. */
static const char *const whole[] = {
    WHOLE("order-17", "com.example.order.shipped",
          "7") "order-17/2/7" SOURCE "com.example.order.shipped\",\"subject\":\"order-17" AT
               ",\"datacontenttype\":\"application/json\",\"data\":{\"a\":1}}",
    WHOLE("i", "t", "1") "i/2/1" SOURCE "t\",\"subject\":\"i" AT
                         ",\"datacontenttype\":\"text/plain; charset=utf-8\",\"data\":\"\xc3\xa4 b\"}",
    WHOLE("i", "t", "1") "i/2/1" SOURCE "t\",\"subject\":\"i" AT
                         ",\"datacontenttype\":\"application/octet-stream\",\"data_base64\":\"/w==\"}",
    WHOLE("i", "t", "1") "i/2/1" SOURCE "t\",\"subject\":\"i" AT "}",
    WHOLE("i", "thole.instance.failed",
          "9") "i/2/9" SOURCE "thole.instance.failed\",\"subject\":\"i" AT ",\"errortype\":\"not.found\""
               ",\"datacontenttype\":\"text/plain; charset=utf-8\",\"data\":\"404\"}",
    WHOLE("a%20b%2F%22%C3%A4%2E%3E%0D%0A", "t", "1") "a b/\\\"\xc3\xa4.>\\r\\n/2/1" SOURCE
                                                     "t\",\"subject\":\"a b/\\\"\xc3\xa4.>\\r\\n" AT
                                                     ",\"traceparent\":\"00-x\",\"tracestate\":\"a=b,c=%\"}",
    WHOLE("i", "thole.instance.deleted", "deleted") "i/2/deleted" SOURCE
                                                    "thole.instance.deleted\",\"subject\":\"i" AT "}",
};

static void structured_messages(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(cases[i].name, made(EVENTS_MODE_STRUCTURED, &cases[i].of),
                  i < ARRAY_LEN(whole) ? whole[i] : cases[i].want);
}

/* Rules of thole bind may take them. */
static void check_back(enum events_mode mode, const struct emission *of)
{
    struct emitted_event event;
    struct cloud_event back;
    struct event_header headers[EMITTED_HEADERS_MAX];
    CU_ASSERT_EQUAL_FATAL(emitted_event_make("shop", mode, of, &arena, &event, NULL), THOLE_OK);
    for (size_t k = 0; k < event.headers_len; k++)
        headers[k] = (struct event_header){thole_slice_from(event.headers[k].key), event.headers[k].value};
    struct event_message const message = {.subject = thole_slice_from(event.subject),
                                          .body = event.body,
                                          .headers = headers,
                                          .headers_len = event.headers_len};
    CU_ASSERT_EQUAL_FATAL(cloud_event_read(&message, &arena, &back, NULL), THOLE_OK);
    CU_ASSERT(back.present);
    CU_ASSERT(thole_slice_equal(cloud_event_attribute(&back, THOLE_STR("subject")), of->instance));
    CU_ASSERT(thole_slice_equal(cloud_event_attribute(&back, THOLE_STR("type")), of->type));
    CU_ASSERT(thole_slice_equal(cloud_event_attribute(&back, THOLE_STR("tracestate")), of->trace.list));
    CU_ASSERT(thole_slice_equal(back.data, of->data));
}

static void read_back(void)
{
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i + 2 < ARRAY_LEN(cases); i++) {
        check_back(EVENTS_MODE_BINARY, &cases[i].of);
        check_back(EVENTS_MODE_STRUCTURED, &cases[i].of);
    }
    arena_release(&arena);
}

/* The longest of all: an arena that is too small is a status, and the room that is told is enough. */
static void check_longest(const char *ns, enum events_mode mode, const struct emission *of)
{
    struct emitted_event event;
    bool fitted = false;
    for (size_t room = 0; room <= emitted_event_room(mode, of); room += 64) {
        arena_init(&arena, room);
        thole_status const status = emitted_event_make(ns, mode, of, &arena, &event, NULL);
        CU_ASSERT(status == THOLE_OK || (status == THOLE_LIMIT && !fitted));
        fitted |= status == THOLE_OK;
        arena_release(&arena);
    }
    CU_ASSERT(fitted);
}

static void longest(void)
{
    static uint8_t bytes[2048];
    memset(bytes, 0x01, sizeof bytes); /* each has six bytes in JSON */
    char name[THOLE_NAME_BYTES_MAX + 1] = {0};
    memset(name, 'n', THOLE_NAME_BYTES_MAX);
    char type[129] = {0};
    memset(type, 't', 128);
    struct emission const of = {.instance = {bytes, THOLE_ID_BYTES_MAX},
                                .orchestration = thole_slice_from(name),
                                .type = thole_slice_from(type),
                                .data = {bytes, sizeof bytes},
                                .error_type = {(const uint8_t *)type, 64},
                                .execution = UINT64_MAX,
                                .event = UINT64_MAX,
                                .time_ms = 1,
                                .is_text = true,
                                .trace = {{bytes, 64}, {bytes, 512}}};
    check_longest(name, EVENTS_MODE_BINARY, &of);
    check_longest(name, EVENTS_MODE_STRUCTURED, &of);
}

static const struct thole_test tests[] = {
    {"messages", messages},
    {"structured messages", structured_messages},
    {"read back", read_back},
    {"the longest", longest},
};
THOLE_TEST_MAIN("emitted events", tests)
