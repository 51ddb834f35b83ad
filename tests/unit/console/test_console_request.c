/* The web console's reading of addresses and bodies, its routes, and the form of its errors. */
#include "answer.h"
#include "body.h"
#include "jscan.h"
#include "routes.h"
#include "thole_cunit.h"

static struct request request;
static thole_error err;

static void begin(const char *path, thole_status want)
{
    request_release(&request);
    request_init(&request, 64);
    CU_ASSERT_EQUAL(request_path(&request, path, &err), want);
}

static void test_paths(void)
{
    static const struct {
        const char *path, *pattern;
        bool is;
    } rows[] = {
        {"instances", "instances", true},
        {"instances/", "instances", true},
        {"instances/a", "instances", false},
        {"instances/a", "instances/*", true},
        {"instances//history", "instances/*/history", false},
        {"instances/a%2Fb", "instances/*", true},
        {"instances/a/history/7/data", "instances/*/history/*/data", true},
        {"instances/a/other", "instances/*/history", false},
        {"", "instances", false},
        {"INSTANCES", "instances", false},
        {"instances%2Fa", "instances/*", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin(rows[i].path, THOLE_OK);
        CHECK_STR(rows[i].path, request_is(&request, rows[i].pattern) ? "is" : "is not",
                  rows[i].is ? "is" : "is not");
    }
    begin("instances/%C3%bc%00%2F", THOLE_OK);
    CU_ASSERT_TRUE(thole_slice_equal(request.parts[1], (thole_slice){(const uint8_t *)"\xc3\xbc\0/", 4}));
    begin("a/%", THOLE_INVALID);
    begin("a/%4", THOLE_INVALID);
    begin("a/%g0", THOLE_INVALID);
    begin("a/%%41", THOLE_INVALID);
    begin("1/2/3/4/5/6", THOLE_OK);
    begin("1/2/3/4/5/6/7", THOLE_NOT_FOUND);
}

static void test_arguments(void)
{
    uint64_t n = 0;
    begin("a", THOLE_OK);
    CU_ASSERT_EQUAL(request_arg(&request, "limit", "10", &err), THOLE_OK);
    CU_ASSERT_EQUAL(request_arg(&request, "prefix", "a%20b", &err), THOLE_OK);
    CU_ASSERT_TRUE(thole_slice_equal(request_value(&request, "prefix"), THOLE_STR("a b")));
    CU_ASSERT_EQUAL(request_value(&request, "none").len, 0);
    CU_ASSERT_EQUAL(request_number(&request, "limit", 5, 10, &n, &err), THOLE_OK);
    CU_ASSERT_EQUAL(n, 10);
    CU_ASSERT_EQUAL(request_number(&request, "limit", 5, 9, &n, &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(request_number(&request, "none", 5, 9, &n, &err), THOLE_OK);
    CU_ASSERT_EQUAL(n, 5);
    CU_ASSERT_EQUAL(request_limit(&request, 5, 10, &n, &err), THOLE_OK);
    CU_ASSERT_EQUAL(n, 10);
    CU_ASSERT_EQUAL(request_limit(&request, 5, 9, &n, &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(request_arg(&request, "limit", "11", &err), THOLE_INVALID);
    begin("a", THOLE_OK);
    CU_ASSERT_EQUAL(request_limit(&request, 5, 9, &n, &err), THOLE_OK);
    CU_ASSERT_EQUAL(n, 5);
    CU_ASSERT_EQUAL(request_arg(&request, "limit", "0", &err), THOLE_OK);
    CU_ASSERT_EQUAL(request_limit(&request, 5, 9, &n, &err), THOLE_INVALID);
    static const char *const odd[] = {"-1", "1x", "0x1", "1%00", "99999999999999999999999999", " 1"};
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        begin("a", THOLE_OK);
        CU_ASSERT_EQUAL(request_arg(&request, "n", odd[i], &err), THOLE_OK);
        CHECK_STR(odd[i], thole_status_name(request_number(&request, "n", 1, UINT64_MAX, &n, &err)),
                  "INVALID");
    }
    begin("a", THOLE_OK);
    static const char *const names[REQUEST_ARGS_MAX + 1] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                                            "j", "k", "l", "m", "n", "o", "p", "q"};
    for (size_t i = 0; i <= REQUEST_ARGS_MAX; i++)
        CU_ASSERT_EQUAL(request_arg(&request, names[i], "x", &err),
                        i < REQUEST_ARGS_MAX ? THOLE_OK : THOLE_INVALID);
}

static void check_body(const char *text, thole_status want)
{
    begin("a", THOLE_OK);
    buf_text(&request.body, text);
    CHECK_STR(text, thole_status_name(body_check(&request, "a b", &err)), thole_status_name(want));
}

static void test_bodies(void)
{
    struct buf to;
    uint64_t n;
    check_body("{}", THOLE_OK);
    check_body(" \n{\"a\":[1,{}]}\t", THOLE_OK);
    check_body("", THOLE_INVALID);
    check_body("[]", THOLE_INVALID);
    check_body("{\"a\":}", THOLE_INVALID);
    check_body("{} {}", THOLE_INVALID);
    check_body("{\"b\":1,\"a\":2}", THOLE_OK);
    check_body("{\"a\":1,\"inptu\":1}", THOLE_INVALID);
    CHECK_STR("unknown", err.text, "there is no \"inptu\"; there are: a b");
    check_body("{\"\":1}", THOLE_INVALID);
    check_body("{\"a b\":1}", THOLE_INVALID);
    CU_ASSERT_EQUAL(json_members_check(THOLE_STR("{\"c\":1}"), "filter: ", "a b", &err), THOLE_INVALID);
    CHECK_STR("within", err.text, "filter: there is no \"c\"; there are: a b");
    static const struct {
        const char *object, *want;
    } rows[] = {
        {"{\"d\":\"text\\u0041\"}", "OK textA"},
        {"{\"d\":{\"n\":1}}", "OK {\"n\":1}"},
        {"{\"d\":12}", "OK 12"},
        {"{\"d_base64\":\"aGk=\"}", "OK hi"},
        {"{\"d_base64\":\"a\"}", "INVALID "},
        {"{\"d_base64\":1}", "INVALID "},
        {"{}", "OK "},
        {"{\"d\":null}", "OK null"},
        {"{\"d\":\"aaaaaaaaaaaaaaaaa\"}", "LIMIT "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char got[64];
        buf_init(&to, 16);
        thole_status const status = body_data(thole_slice_from(rows[i].object), "d", &to, &err);
        (void)snprintf(got, sizeof got, "%s %s", thole_status_name(status),
                       status == THOLE_OK ? buf_cstr(&to) : "");
        CHECK_STR(rows[i].object, got, rows[i].want);
        buf_release(&to);
    }
    buf_init(&to, 16);
    CU_ASSERT_EQUAL(body_text(THOLE_STR("{}"), "t", BODY_REQUIRED, &to, &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(body_text(THOLE_STR("{\"t\":null}"), "t", BODY_OPTIONAL, &to, &err), THOLE_OK);
    CU_ASSERT_EQUAL(body_text(THOLE_STR("{\"t\":1}"), "t", BODY_OPTIONAL, &to, &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(body_number(THOLE_STR("{\"n\":-1}"), "n", 3, &n, &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(body_number(THOLE_STR("{}"), "n", 3, &n, &err), THOLE_OK);
    CU_ASSERT_EQUAL(n, 3);
    CU_ASSERT_TRUE(body_is_true(THOLE_STR("{\"p\":true}"), "p"));
    CU_ASSERT_FALSE(body_is_true(THOLE_STR("{\"p\":1}"), "p"));
    buf_release(&to);
}

static void test_routes(void)
{
    bool other;
    begin("instances", THOLE_OK);
    CU_ASSERT_PTR_NOT_NULL(route_find(&request, &other));
    request.post = true;
    CU_ASSERT_TRUE(route_find(&request, &other)->post);
    begin("batch", THOLE_OK);
    CU_ASSERT_PTR_NULL(route_find(&request, &other));
    CU_ASSERT_TRUE(other);
    begin("none", THOLE_OK);
    CU_ASSERT_PTR_NULL(route_find(&request, &other));
    CU_ASSERT_FALSE(other);
    request_release(&request);
}

static void test_problems(void)
{
    struct answer answer;
    answer_init(&answer);
    buf_text(&answer.body, "begun");
    answer_problem(&answer, 403, "CSRF", "a \"quote\" and \x01\xff");
    CHECK_STR("problem", buf_cstr(&answer.body),
              "{\"type\":\"about:blank\",\"title\":\"Forbidden\",\"status\":403,"
              "\"detail\":\"a \\\"quote\\\" and \\u0001\xef\xbf\xbd\",\"code\":\"CSRF\"}");
    CHECK_STR("type", answer.type, "application/problem+json");
    thole_error const none = {.status = THOLE_NOT_FOUND, .text = "no"};
    answer_error(&answer, &none);
    CU_ASSERT_EQUAL(answer.code, 404);
    answer_release(&answer);
}

static const struct thole_test tests[] = {
    {"paths", test_paths},   {"arguments", test_arguments}, {"bodies", test_bodies},
    {"routes", test_routes}, {"problems", test_problems},
};
THOLE_TEST_MAIN("console_request", tests)
