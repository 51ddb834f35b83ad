/* Templates, rules, and what a rule makes of a message. */
#include "bind_plan.h"
#include "event_template.h"
#include "thole_cunit.h"
#include <stdlib.h>

static const struct event_header plain_headers[] = {
    {{(const uint8_t *)"X-Id", 4}, {(const uint8_t *)"x 1", 3}}};
static struct event_message message = {
    .headers = plain_headers, .headers_len = 1, .sequence = 42, .stored_ns = 7};

/* ---- templates ---- */

static const char *expand(const char *template, const char *body)
{
    static char text[2048];
    thole_error error = {.status = THOLE_OK};
    struct arena arena;
    struct cloud_event event;
    struct buf to;
    message.subject = THOLE_STR("orders.eu.17.created");
    message.stream = THOLE_STR("ORDERS");
    message.body = thole_slice_from(body);
    arena_init(&arena, 1 << 20);
    buf_init(&to, 200);
    thole_status status = event_template_check(thole_slice_from(template), &error);
    if (status == THOLE_OK)
        status = cloud_event_read(&message, &arena, &event, &error);
    if (status == THOLE_OK)
        status = event_template_expand(thole_slice_from(template), &message, &event, &to, &error);
    (void)snprintf(text, sizeof text, "%s", status == THOLE_OK ? buf_cstr(&to) : error.text);
    buf_release(&to);
    arena_release(&arena);
    return text;
}

#define PLACES                                                                                               \
    "; there are {subject.N}, {subject}, {header.NAME}, {ce.ATTRIBUTE}, {json.PATH}, {stream} and "          \
    "{sequence}, "                                                                                           \
    "each perhaps with |name behind it"
static const struct template_case {
    const char *template, *body, *want;
} templates[] = {
    {"plain", "", "plain"},
    {"order-{subject.3}", "", "order-17"},
    {"{subject.1}/{subject.4}", "", "orders/created"},
    {"{subject}", "", "orders.eu.17.created"},
    {"{subject|name}", "", "orders_eu_17_created"},
    {"{subject.5}", "", "{subject.5}: the message does not have it"},
    {"{header.x-id}", "", "x 1"},
    {"{header.x-id|name}", "", "x_1"},
    {"{header.none}", "", "{header.none}: the message does not have it"},
    {"{stream}:{sequence}", "", "ORDERS:42"},
    {"{{{subject.3}}}", "", "{17}"},
    {"{json.a.b}", "{\"a\":{\"b\":\"c\\u00e4\"}}", "cä"},
    {"{json.a.1.b}-{json.n}-{json.t}", " {\"n\":-1.5,\"t\":true,\"a\":[0,{\"b\":2}]}", "2--1.5-true"},
    {"{json.0}", "[\"first\"]", "first"},
    {"{json.1}", "[\"first\"]", "{json.1}: the data has no such member"},
    {"{json.a}", "{\"a\":1,\"b\":2,\"a\":3}", "{json.a}: the data has that member twice"},
    {"{json.a.b}", "{\"a\":{\"b\":1,\"b\":1}}", "{json.a.b}: the data has that member twice"},
    {"{json.a}", "{\"b\":1,\"a\":3,\"b\":2}", "3"},
    {"{json.a.b.c}", "{\"a\":{\"b\":1}}", "{json.a.b.c}: the data has no such member"},
    {"{json.a}", "{\"a\":{}}", "{json.a}: it is no text, number or boolean"},
    {"{json.a}", "{\"a\":null}", "{json.a}: it is no text, number or boolean"},
    {"{json.a}", "{\"a\":\"\"}", "{json.a}: the message does not have it"},
    {"{json.a}", "no", "{json.a}: the data is no JSON"},
    {"{ce.id}", "", "{ce.id}: the message is no CloudEvent"},
    {"", "", "a template has 1 to 512 bytes, this one 0"},
    {"a}", "", "a } without its { in a}; write }} for a brace"},
    {"{a", "", "a { without its } in {a; write {{ for a brace"},
    {"{}", "", "{}: there is no such place" PLACES},
    {"{json}", "", "{json}: something must stand behind the dot" PLACES},
    {"{json.}", "", "{json.}: something must stand behind the dot" PLACES},
    {"{sequence.1}", "", "{sequence.1}: it takes no dot" PLACES},
    {"{subject.0}", "", "{subject.0}: tokens of the subject are counted from 1" PLACES},
    {"{subject.x}", "", "{subject.x}: tokens of the subject are counted from 1" PLACES},
    {"{subject|upper}", "", "{subject|upper}: only name may stand behind the bar" PLACES},
};

static void test_templates(void)
{
    char many[512] = "";
    for (size_t i = 0; i < ARRAY_LEN(templates); i++) {
        const char *const got = expand(templates[i].template, templates[i].body);
        CHECK_STR(templates[i].template, got, templates[i].want);
    }
    for (size_t i = 0; i < 17; i++)
        (void)memcpy(many + 11 * i, "{subject.1}", 11);
    const char *got = expand(many, "");
    CHECK_STR("many", got, "a template has at most 16 places in braces, this one 17");
    got = expand(
        "{subject}{subject}{subject}{subject}{subject}{subject}{subject}{subject}{subject}{subject}{subject}",
        "");
    CHECK_STR("long", got, "{subject}: what stands there is too long");
}

/* ---- rules ---- */

static struct bind_rule start_rule(void)
{
    return (struct bind_rule){.subject = THOLE_STR("orders.*.*.created"),
                              .stream = THOLE_STR("ORDERS"),
                              .action = BIND_START,
                              .orchestration = THOLE_STR("checkout"),
                              .instance = THOLE_STR("order-{json.id}"),
                              .in_flight = 10};
}

static const char *json_of(const struct bind_rule *rule)
{
    static char text[BIND_RULE_JSON_MAX];
    struct json json;
    struct buf to;
    buf_init(&to, sizeof text);
    json_to_buf(&json, &to);
    bind_rule_write(rule, &json);
    (void)snprintf(text, sizeof text, "%s", buf_cstr(&to));
    buf_release(&to);
    return text;
}

/* Read and written again; else the error. */
static const char *read_rule(const char *text)
{
    static char result[BIND_RULE_JSON_MAX];
    thole_error error = {.status = THOLE_OK};
    struct bind_rule rule;
    struct arena arena;
    arena_init(&arena, 1 << 16);
    thole_status const status = bind_rule_read(thole_slice_from(text), &arena, &rule, &error);
    if (status == THOLE_OK)
        (void)snprintf(result, sizeof result, "%s", json_of(&rule));
    else
        (void)snprintf(result, sizeof result, "%s: %s", thole_status_name(status), error.text);
    arena_release(&arena);
    return result;
}

#define RULE                                                                                                 \
    "{\"format\":1,\"stream\":\"ORDERS\",\"subject\":\"orders.*.*.created\",\"action\":\"start\","           \
    "\"orchestration\":\"checkout\",\"instance\":\"order-{json.id}\",\"data\":\"data\",\"from\":\"all\","    \
    "\"in_flight\":10}"

static void test_rules(void)
{
    struct bind_rule const rule = start_rule();
    const char *got = json_of(&rule);
    CHECK_STR("written", got, RULE);
    got = read_rule(RULE);
    CHECK_STR("read", got, RULE);
    got = read_rule("{\"format\":2}");
    CHECK_STR("newer", got, "UNSUPPORTED: the rule has format 2: a newer thole is needed");
    got = read_rule("{\"format\":1,");
    CHECK_STR("broken", got, "CORRUPT: what is stored is no rule: store it again with thole bind set");
    got = read_rule("{\"format\":1,\"action\":\"begin\"}");
    CHECK_STR("action", got, "CORRUPT: the rule's action is missing or not known");
}

static const char *checked(struct bind_rule rule)
{
    static thole_error error;
    return bind_rule_check(&rule, &error) == THOLE_OK ? "good" : error.text;
}

#define FILTER                                                                                               \
    "the subject is no filter: 1 to 256 bytes, tokens with dots between them, * for any token, > at the "    \
    "end for "                                                                                               \
    "all that follow, such as orders.*.created"

static void test_subjects(void)
{
    static const char *const good[] = {"a", "a.b", "*", ">", "a.*.>", "a.$x-%41"};
    static const char *const bad[] = {"", ".", "a.", ".a", "a..b", "a b", ">.a", "a*", "a.b>", "ä", "a\r\nb"};
    struct bind_rule rule = start_rule();
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        rule.subject = thole_slice_from(good[i]);
        CHECK_STR(good[i], checked(rule), "good");
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        rule.subject = thole_slice_from(bad[i]);
        CHECK_STR(bad[i], checked(rule), FILTER);
    }
}

static void test_matches(void)
{
    static const struct {
        const char *filter, *subject;
        bool matches;
    } rows[] = {{"orders.new", "orders.new", true},   {"orders.new", "orders.old", false},
                {"orders.*", "orders.new", true},     {"orders.*", "orders", false},
                {"orders.*", "orders.new.x", false},  {"orders.>", "orders.new.x", true},
                {"orders.>", "orders", false},        {">", "a", true},
                {"*.*.created", "a.b.created", true}, {"a", "ab", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bind_rule const rule = {.subject = thole_slice_from(rows[i].filter)};
        if (bind_rule_matches(&rule, thole_slice_from(rows[i].subject)) != rows[i].matches)
            CHECK_STR(rows[i].filter, rows[i].subject, "");
    }
}

static const char *placed(const char *subject, const char *instance, const char *event)
{
    static thole_error error;
    struct bind_rule rule = start_rule();
    rule.subject = thole_slice_from(subject);
    rule.instance = thole_slice_from(instance);
    rule.event = thole_slice_from(event);
    return bind_rule_check_places(&rule, &error) == THOLE_OK ? "good" : error.text;
}

static void test_places(void)
{
    CHECK_STR("the last", placed("a.*.c", "{subject.3}", ""), "good");
    CHECK_STR("more", placed("a.*.c", "x-{subject.7}", ""),
              "instance: {subject.7}: subjects of a.*.c have fewer tokens");
    CHECK_STR("any number", placed("a.>", "{subject.7}", ""), "good");
    CHECK_STR("lower case", placed("a", "{ce.myext1}", "{ce.type|name}"), "good");
    CHECK_STR("upper case", placed("a", "{ce.id}", "{ce.ID|name}"),
              "event: {ce.ID|name}: names of attributes are lower-case letters and digits, and not data");
    CHECK_STR("no attribute", placed("a", "{ce.data}", "e"),
              "instance: {ce.data}: names of attributes are lower-case letters and digits, and not data");
}

static void test_what_no_rule_is(void)
{
    struct bind_rule rule = start_rule();
    rule.event = THOLE_STR("paid");
    CHECK_STR("event", checked(rule),
              "a start delivers no event: leave the event out, or use signal-with-start");
    rule.action = BIND_SIGNAL;
    CHECK_STR("orchestration", checked(rule),
              "a signal starts nothing: leave the orchestration out, or use signal-with-start");
    rule.orchestration = THOLE_STR("");
    CHECK_STR("signal", checked(rule), "good");
    rule.event = THOLE_STR("{");
    CHECK_STR("template", checked(rule), "event: a { without its } in {; write {{ for a brace");
    rule = start_rule();
    rule.in_flight = 0;
    CHECK_STR("none", checked(rule), "in_flight is 1 to 10000");
    rule = start_rule();
    rule.stream = THOLE_STR("a.b");
    CHECK_STR(
        "stream", checked(rule),
        "the stream's name is not one of a stream: 1 to 100 bytes without blanks, dots, *, > and slashes");
    static uint8_t name[BIND_STREAM_MAX + 1];
    memset(name, 'S', sizeof name);
    for (size_t len = 0; len <= sizeof name; len++) {
        rule.stream = (thole_slice){name, len};
        CU_ASSERT_EQUAL(strcmp(checked(rule), "good") == 0, len > 0 && len <= BIND_STREAM_MAX);
    }
}

/* ---- plans ---- */

/* "kind orchestration instance event(event data) input id". */
static const char *plan_of(const struct bind_rule *rule, const char *body, uint64_t payload_max)
{
    static char text[4096];
    thole_error error = {.status = THOLE_OK};
    struct bind_plan plan;
    struct arena arena;
    message.subject = THOLE_STR("orders.eu.17.created");
    message.stream = THOLE_STR("ORDERS");
    message.body = thole_slice_from(body);
    arena_init(&arena, BIND_ARENA_MAX);
    thole_status const status =
        bind_plan_make(rule, THOLE_STR("new-orders"), &message, payload_max, &arena, &plan, &error);
    const struct message *const m = &plan.message;
    if (status == THOLE_OK)
        (void)snprintf(text, sizeof text, "%s %.*s %.*s %.*s(%.*s) %.*s by %s",
                       m->kind == MESSAGE_START ? "start" : "event", THOLE_FMT(m->orchestration),
                       THOLE_FMT(m->instance), THOLE_FMT(m->event_name), THOLE_FMT(m->event_data),
                       THOLE_FMT(m->data), plan.id_from);
    else
        (void)snprintf(text, sizeof text, "%s: %s", thole_status_name(status), error.text);
    arena_release(&arena);
    return text;
}

static void test_plans(void)
{
    struct bind_rule rule = start_rule();
    const char *got = plan_of(&rule, "{\"id\":\"a/b\"}", 1024);
    CHECK_STR("start", got, "start checkout order-a/b () {\"id\":\"a/b\"} by sequence");
    got = plan_of(&rule, "{\"id\":\"a/b\"}", 5);
    CHECK_STR("large", got, "LIMIT: the data has 12 bytes, the namespace takes 5");
    got = plan_of(&rule, "{}", 1024);
    CHECK_STR("missing", got, "INVALID: instance: {json.id}: the data has no such member");
    got = plan_of(&rule, "{\"id\":\"\\u0000\"}", 1024);
    CHECK_STR("no id", got, "INVALID: instance id contains a NUL byte");
    rule.data = BIND_EVENT;
    got = plan_of(&rule, "{\"id\":1}", 1024);
    CHECK_STR("no event", got,
              "INVALID: the message is no CloudEvent, and the rule passes whole events on (--data event)");
    rule = start_rule();
    rule.action = BIND_SIGNAL_WITH_START;
    rule.event = THOLE_STR("paid-{subject.2}");
    got = plan_of(&rule, "{\"id\":1}", 1024);
    CHECK_STR("both", got, "start checkout order-1 paid-eu({\"id\":1})  by sequence");
    rule.action = BIND_SIGNAL;
    rule.orchestration = THOLE_STR("");
    got = plan_of(&rule, "{\"id\":1}", 1024);
    CHECK_STR("signal", got, "event  order-1 paid-eu({\"id\":1})  by sequence");
    rule.event = THOLE_STR("{subject}");
    got = plan_of(&rule, "{\"id\":1}", 1024);
    CHECK_STR(
        "name", got,
        "INVALID: event name has byte 0x2e, allowed is [A-Za-z0-9_-]; {…|name} writes _ for other bytes");
}

/* ---- request ids ---- */

static const char *id_of(const char *rule_name, const struct event_header *headers, size_t headers_len,
                         uint64_t sequence, uint64_t stored_ns)
{
    static char ids[4][BIND_REQUEST_ID_BYTES];
    static unsigned turn;
    char *const id = ids[turn++ % 4];
    struct bind_rule rule = start_rule();
    struct bind_plan plan;
    struct arena arena;
    struct event_message const m = {.subject = THOLE_STR("s"),
                                    .stream = THOLE_STR("ORDERS"),
                                    .headers = headers,
                                    .headers_len = headers_len,
                                    .sequence = sequence,
                                    .stored_ns = stored_ns};
    rule.instance = THOLE_STR("one");
    arena_init(&arena, BIND_ARENA_MAX);
    thole_status const status =
        bind_plan_make(&rule, thole_slice_from(rule_name), &m, 1024, &arena, &plan, NULL);
    CU_ASSERT_EQUAL(status, THOLE_OK);
    (void)snprintf(id, sizeof ids[0], "%s", plan.request_id);
    arena_release(&arena);
    return id;
}

#define H(name, value)                                                                                       \
    {                                                                                                        \
        {(const uint8_t *)(name), sizeof(name) - 1},                                                         \
        {                                                                                                    \
            (const uint8_t *)(value), sizeof(value) - 1                                                      \
        }                                                                                                    \
    }

/* Equal messages have equal ids; another message or rule has another one. */
static void test_request_ids(void)
{
    static const struct event_header event[] = {H("ce-specversion", "1.0"), H("ce-id", "1"),
                                                H("ce-source", "/a"), H("ce-type", "t"),
                                                H("Nats-Msg-Id", "m")};
    static const struct event_header moved[] = {H("ce-specversion", "1.0"), H("ce-id", "a1"),
                                                H("ce-source", "/"), H("ce-type", "t")};
    static const struct event_header msg[] = {H("Nats-Msg-Id", "m")};
    CHECK_STR("sequence", id_of("r", NULL, 0, 1, 2), id_of("r", NULL, 0, 1, 2));
    CU_ASSERT_STRING_NOT_EQUAL(id_of("r", NULL, 0, 1, 2), id_of("r", NULL, 0, 2, 2));
    CU_ASSERT_STRING_NOT_EQUAL(id_of("r", NULL, 0, 1, 2),
                               id_of("r", NULL, 0, 1, 3)); /* the stream began again */
    CU_ASSERT_STRING_NOT_EQUAL(id_of("r", NULL, 0, 1, 2), id_of("q", NULL, 0, 1, 2));
    CHECK_STR("Nats-Msg-Id", id_of("r", msg, 1, 1, 2), id_of("r", msg, 1, 5, 6));
    CHECK_STR("event", id_of("r", event, 5, 1, 2), id_of("r", event, 4, 5, 6));
    CU_ASSERT_STRING_NOT_EQUAL(id_of("r", event, 5, 1, 2), id_of("r", moved, 4, 1, 2));
    /* the id is stored in histories: it must never change */
    CHECK_STR("fixed", id_of("new-orders", NULL, 0, 42, 7),
              "bind.new-orders.1525c37b8ab4d014130072dd87b1fbe4");
    CHECK_STR("fixed", id_of("new-orders", msg, 1, 42, 7),
              "bind.new-orders.42f1ad7ffdff63888ccc0509393b91dc");
    CHECK_STR("fixed", id_of("new-orders", event, 5, 42, 7),
              "bind.new-orders.4334940303cd74582a6922f84a56364a");
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"templates", test_templates}, {"rules", test_rules},
        {"subjects", test_subjects},   {"matches", test_matches},
        {"places", test_places},       {"what no rule is", test_what_no_rule_is},
        {"plans", test_plans},         {"request ids", test_request_ids}};
    return thole_run_suite("bind_plan", tests, ARRAY_LEN(tests));
}
