/* Which texts are JSON, and the errors of those that are not. */
#include "jscan.h"
#include "json_check.h"
#include "line_read.h"
#include "thole_cunit.h"

static void test_whole_values(void)
{
    static const char *const good[] = {"1",
                                       "-0.5e+3",
                                       "\"\"",
                                       "\"\\u00e4\\\"\"",
                                       "[]",
                                       "{}",
                                       " [1 , {\"a\" : []}] ",
                                       "true",
                                       "null",
                                       "{\"a\":1,\"b\":{\"c\":[[]]}}",
                                       "[[],[]]"};
    static const char *const bad[] = {"",
                                      " ",
                                      "01",
                                      "1.",
                                      "+1",
                                      "[1,]",
                                      "{\"a\":}",
                                      "{a:1}",
                                      "[1",
                                      "]",
                                      "{]",
                                      "tru",
                                      "\"\n\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "1 2",
                                      "{\"a\" 1}",
                                      "{,}",
                                      "\"\xff\"",
                                      "{\"a\":1,}",
                                      "[1 2]",
                                      "{\"a\":1 \"b\":2}",
                                      "{\"a\":1,b:2}",
                                      "{\"a\":1,\"b\" 2}",
                                      "\"\\",
                                      "\"\\u",
                                      "\"\\u123",
                                      "\"a",
                                      "{\"a",
                                      "{\"a\":",
                                      "{\"a\":1,",
                                      "-",
                                      "1e",
                                      "[1}",
                                      "{\"a\":1]",
                                      "[]]",
                                      "{}}"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!json_is_valid(thole_slice_from(good[i])))
            CHECK_STR(good[i], "refused", "valid");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (json_is_valid(thole_slice_from(bad[i])))
            CHECK_STR(bad[i], "taken", "refused");
    char deep[2 * (JSON_CHECK_DEPTH_MAX + 1) + 1] = "";
    memset(deep, '[', JSON_CHECK_DEPTH_MAX + 1);
    memset(deep + JSON_CHECK_DEPTH_MAX + 1, ']', JSON_CHECK_DEPTH_MAX + 1);
    CU_ASSERT_FALSE(json_is_valid(thole_slice_from(deep)));
    deep[2 * JSON_CHECK_DEPTH_MAX + 1] = '\0';
    CU_ASSERT_TRUE(json_is_valid(thole_slice_from(deep + 1)));
}

static void test_flaws(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"{\"a\":1}{\"a\":2}", "not JSON: byte 8: more text behind the value"},
        {"{\"a\":1} junk", "not JSON: byte 9: more text behind the value"},
        {"{\"a\":\"b\"", "not JSON: byte 9: a comma or } is expected"},
        {"[1", "not JSON: byte 3: a comma or ] is expected"},
        {"", "not JSON: byte 1: the text ends where a value is expected"},
        {"[1,]", "not JSON: byte 4: no JSON value begins here"},
        {"{\"a\" 1}", "not JSON: byte 6: a colon is expected behind the name of a member"},
        {"{a:1}", "not JSON: byte 2: the name of a member is expected, in quotes"},
        {"\"a", "not JSON: byte 3: the text ends inside a string"},
        {"\"a\nb\"", "not JSON: byte 3: a control character in a string: write it as \\u00XX"},
        {"\"\\x\"", "not JSON: byte 3: an unknown escape in a string"},
        {"\"\\u12\"", "not JSON: byte 6: \\u without four hexadecimal digits"},
        {"\"\xff\"", "not JSON: byte 2: bytes that are not UTF-8"},
        {"-", "not JSON: byte 2: a digit is missing in a number"},
        {"01", "not JSON: byte 3: a number begins with 0"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_error error = {.status = THOLE_OK};
        CU_ASSERT_EQUAL(json_check(thole_slice_from(rows[i].text), &error), THOLE_INVALID);
        CHECK_STR(rows[i].text, error.text, rows[i].want);
    }
    static const char with_nul[] = "{}\0{}";
    CU_ASSERT_FALSE(json_is_valid((thole_slice){(const uint8_t *)with_nul, sizeof with_nul - 1}));
}

static void test_members(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"{}", ""},
        {"{\"input\":{\"id\":1,\"x\":2},\"id\":\"a\"}", ""},
        {"{\"id\":1,\"inptu\":2}", "there is no \"inptu\"; there are: id input"},
        {"{\"id\":1,\"input\":2,\"id\":3}", "\"id\" is there twice"},
        {"{\"\\u0069d\":1}", "there is no \"\\u0069d\"; there are: id input"},
        {"[1]", "a JSON object is expected"},
        {"7", "a JSON object is expected"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_error error = {.status = THOLE_OK};
        thole_status const status =
            json_members_check(thole_slice_from(rows[i].text), "", "id input", &error);
        CU_ASSERT_EQUAL(status, rows[i].want[0] == 0 ? THOLE_OK : THOLE_INVALID);
        CHECK_STR(rows[i].text, error.text, rows[i].want);
    }
}

/* A NUL is a byte like others: neither does it end its line, nor does it swallow the next one. */
static void test_lines(void)
{
    static const char text[] = "one\n\0two\n\n0123456789abcdef\nlast";
    struct buf line;
    buf_init(&line, 10);
    FILE *const from = fmemopen((void *)(uintptr_t)text, sizeof text - 1, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    CU_ASSERT_EQUAL(line_read(from, &line), LINE_READ_WHOLE);
    CU_ASSERT_TRUE(thole_slice_equal(buf_bytes(&line), THOLE_STR("one")));
    CU_ASSERT_EQUAL(line_read(from, &line), LINE_READ_WHOLE);
    CU_ASSERT_TRUE(thole_slice_equal(buf_bytes(&line), ((thole_slice){(const uint8_t *)"\0two", 4})));
    CU_ASSERT_EQUAL(line_read(from, &line), LINE_READ_WHOLE);
    CU_ASSERT_EQUAL(line.len, 0);
    CU_ASSERT_EQUAL(line_read(from, &line), LINE_READ_WHOLE);
    CU_ASSERT_EQUAL(buf_status(&line), THOLE_LIMIT);
    CU_ASSERT_EQUAL(line_read(from, &line), LINE_READ_CUT);
    CU_ASSERT_TRUE(thole_slice_equal(buf_bytes(&line), THOLE_STR("last")));
    CU_ASSERT_EQUAL(line_read(from, &line), LINE_READ_NONE);
    (void)fclose(from);
    buf_release(&line);
}

static const struct thole_test tests[] = {
    {"whole values", test_whole_values},
    {"flaws are named", test_flaws},
    {"members", test_members},
    {"lines of any bytes", test_lines},
};
THOLE_TEST_MAIN("json_check", tests)
