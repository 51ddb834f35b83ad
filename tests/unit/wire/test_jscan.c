/* Reading the server's JSON: right on good text, never beyond the slice on any other. */
#include "jscan.h"
#include "json.h"
#include "thole_cunit.h"
#include <stdlib.h>

/* A copy without NUL at the exact end, so that AddressSanitizer sees every byte read too far. */
static thole_slice exact(const char *text, size_t len)
{
    uint8_t *copy = malloc(len == 0 ? 1 : len);
    if (len > 0)
        memcpy(copy, text, len);
    return (thole_slice){copy, len};
}

static void drop(thole_slice slice)
{
    free((void *)(uintptr_t)slice.ptr);
}

static const char info[] =
    "{\"type\":\"io.nats.jetstream.api.v1.stream_info_response\",\"total\":0, \"config\" : {\"name\":\"S\","
    "\"subjects\":[\"a.>\",\"b.*\"],\"max_age\":0,\"max_msgs\":-1,\"sealed\":false,\"allow_direct\":true,"
    "\"metadata\":{\"x\":\"}\\\"{\"}},\"state\":{\"messages\":18446744073709551615,\"first_seq\":7}}";

static const struct {
    const char *path, *want;
} paths[] = {
    {"total", "0"},
    {"config.name", "\"S\""},
    {"config.subjects", "[\"a.>\",\"b.*\"]"},
    {"config.max_msgs", "-1"},
    {"config.allow_direct", "true"},
    {"config.metadata", "{\"x\":\"}\\\"{\"}"},
    {"config.metadata.x", "\"}\\\"{\""},
    {"state.messages", "18446744073709551615"},
    {"state.first_seq", "7"},
    {"state", "{\"messages\":18446744073709551615,\"first_seq\":7}"},
    {"name", NULL}, /* only inside config */
    {"config.absent", NULL},
    {"total.x", NULL},
    {"config.subjects.0", NULL},
    {"", NULL},
    {"state.", NULL},
};

static void test_paths(void)
{
    thole_slice const text = exact(info, sizeof info - 1);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        thole_slice value;
        bool const found = json_path(text, paths[i].path, &value);
        CU_ASSERT_EQUAL(found, paths[i].want != NULL);
        if (found && paths[i].want != NULL && !thole_slice_equal(value, thole_slice_from(paths[i].want))) {
            CU_FAIL("wrong value");
            fprintf(stderr, "\n  [%s] %.*s\n", paths[i].path, THOLE_FMT(value));
        }
    }
    drop(text);
}

/* Every prefix, and every single byte replaced: answers may change, nothing may be read outside. */
static void test_damaged_text(void)
{
    static const uint8_t replacements[] = {0, '"', '\\', '{', '}', '[', ']', ',', ':', 'u', 0xff};
    thole_slice value;
    struct buf to;
    buf_init(&to, 1024);
    for (size_t len = 0; len < sizeof info; len++) {
        thole_slice const text = exact(info, len);
        for (size_t i = 0; i < ARRAY_LEN(paths); i++)
            (void)json_path(text, paths[i].path, &value);
        if (len < sizeof info - 2) /* the last bracket closes the text after it */
            CU_ASSERT_FALSE(json_path(text, "state.first_seq", &value));
        drop(text);
    }
    for (size_t at = 0; at < sizeof info - 1; at++) {
        for (size_t r = 0; r < sizeof replacements; r++) {
            thole_slice const text = exact(info, sizeof info - 1);
            ((uint8_t *)(uintptr_t)text.ptr)[at] = replacements[r];
            for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
                size_t item = 0;
                thole_slice key, one;
                if (!json_path(text, paths[i].path, &value))
                    continue;
                CU_ASSERT(value.ptr >= text.ptr && value.ptr + value.len <= text.ptr + text.len);
                while (json_item(value, &item, &one)) {
                    buf_clear(&to);
                    (void)json_text(one, &to);
                }
                for (item = 0; json_field(value, &item, &key, &one);)
                    CU_ASSERT(key.ptr > value.ptr && one.ptr + one.len <= value.ptr + value.len);
            }
            drop(text);
        }
    }
    buf_release(&to);
}

static void test_depth_is_bounded(void)
{
    char deep[4096];
    thole_slice value;
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    thole_slice const text = exact(deep, sizeof deep);
    CU_ASSERT_FALSE(json_find(text, "a", &value));
    drop(text);
}

static void test_numbers(void)
{
    static const struct {
        const char *text;
        bool is_uint, is_int;
        uint64_t n;
        int64_t i;
    } rows[] = {
        {"0", true, true, 0, 0},
        {"18446744073709551615", true, false, UINT64_MAX, 0},
        {"18446744073709551616", false, false, 0, 0},
        {"9223372036854775807", true, true, INT64_MAX, INT64_MAX},
        {"9223372036854775808", true, false, (uint64_t)INT64_MAX + 1, 0},
        {"-1", false, true, 0, -1},
        {"-", false, false, 0, 0},
        {"", false, false, 0, 0},
        {"1.5", false, false, 0, 0},
        {"1e3", false, false, 0, 0},
        {"+1", false, false, 0, 0},
        {"true", false, false, 0, 0},
    };
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        uint64_t n = 0;
        int64_t i = 0;
        thole_slice const text = exact(rows[k].text, strlen(rows[k].text));
        CU_ASSERT_EQUAL(json_uint(text, &n), rows[k].is_uint);
        CU_ASSERT_EQUAL(n, rows[k].n);
        CU_ASSERT_EQUAL(json_int(text, &i), rows[k].is_int);
        CU_ASSERT_EQUAL(i, rows[k].i);
        drop(text);
    }
}

static void test_strings(void)
{
    static const struct {
        const char *text, *want; /* NULL: refused */
    } rows[] = {
        {"\"\"", ""},
        {"\"abc\"", "abc"},
        {"\"a\\\"b\\\\c\\/d\"", "a\"b\\c/d"},
        {"\"\\n\\t\\r\\b\\f\"", "\n\t\r\b\f"},
        {"\"\\u003e\\u00e4\\u20ac\"", ">\xc3\xa4\xe2\x82\xac"},
        {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
        {"\"\\ud83d\"", NULL},
        {"\"\\ude00\"", NULL},
        {"\"\\ud83d\\u0041\"", NULL},
        {"\"\\u12\"", NULL},
        {"\"\\u12g4\"", NULL},
        {"\"\\x\"", NULL},
        {"\"\\\"", NULL},
        {"\"", NULL},
        {"abc", NULL},
        {"", NULL},
    };
    struct buf to;
    buf_init(&to, 64);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_slice const text = exact(rows[i].text, strlen(rows[i].text));
        buf_clear(&to);
        CU_ASSERT_EQUAL(json_text(text, &to), rows[i].want != NULL);
        if (rows[i].want != NULL) {
            CHECK_STR(rows[i].text, buf_cstr(&to), rows[i].want);
            CU_ASSERT(json_text_is(text, rows[i].want));
        }
        CU_ASSERT_FALSE(json_text_is(text, "something else"));
        drop(text);
    }
    buf_release(&to);
    buf_init(&to, 2);
    CU_ASSERT_FALSE(json_text(THOLE_STR("\"abc\""), &to));
    CU_ASSERT_EQUAL(buf_status(&to), THOLE_LIMIT);
    buf_release(&to);
}

static void test_items(void)
{
    static const struct {
        const char *text;
        size_t want;
    } rows[] = {{"[]", 0},    {"[1]", 1},  {" [ 1 , {\"a\":[2]} ,\"x\"] ", 3},
                {"[1 2]", 1}, {"[1,]", 1}, {"{}", 0},
                {"", 0},      {"[", 0},    {"[,1]", 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_slice const text = exact(rows[i].text, strlen(rows[i].text));
        thole_slice item;
        size_t at = 0, count = 0;
        while (json_item(text, &at, &item))
            count++;
        CU_ASSERT_EQUAL(count, rows[i].want);
        drop(text);
    }
}

static void test_fields(void)
{
    static const struct {
        const char *text, *want;
        bool ends;
    } rows[] = {{"{\"a\":1,\"b\":{\"a\":[2]},\"c\":\"}\"}", "a=1 b={\"a\":[2]} c=\"}\" ", true},
                {" { \"a\" : 1 , \"\\\"x\" : null } ", "a=1 \\\"x=null ", true},
                {"{\"a\":1,\"a\":2}", "a=1 a=2 ", true},
                {"{\"a\":1 \"b\":2}", "a=1 ", false},
                {"{\"a\":1} ", "a=1 ", true},
                {"{\"a\":1}}", "a=1 ", false},
                {"{\"a\":1} 2}", "a=1 ", false},
                {" { }", "", true},
                {"{}x", "", false},
                {"{,}", "", false},
                {"[ ]", "", true}, /* json_item() has the same end */
                {"[}", "", false},
                {"{\"a\":1]", "a=1 ", false},
                {"{\"a\":1,}", "a=1 ", false},
                {"{\"a\":1,b:2}", "a=1 ", false},
                {"{\"a\":1,\"b\"}", "a=1 ", false},
                {"{\"a\":1,\"b\":}", "a=1 ", false},
                {"{\"a\":1", "a=1 ", false},
                {"{\"a", "", false},
                {"[1]", "", false},
                {"}", "", false},
                {"", "", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_slice const text = exact(rows[i].text, strlen(rows[i].text));
        thole_slice key, value;
        size_t at = 0;
        char got[64] = "";
        while (json_field(text, &at, &key, &value))
            (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%.*s=%.*s ", THOLE_FMT(key),
                           THOLE_FMT(value));
        CHECK_STR(rows[i].text, got, rows[i].want);
        CU_ASSERT_EQUAL(json_ends(text, at), rows[i].ends);
        drop(text);
    }
}

/* Member by member as it was read. */
static void test_copying(void)
{
    static const char *const objects[] = {"{}", "{\"a\":1}",
                                          "{\"a\\\"b\":\"x\\u0041\",\"c\":[1,{\"d\":-2.5e3}]}"};
    for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
        struct json json;
        struct buf to;
        thole_slice key, value;
        buf_init(&to, 1024);
        json_to_buf(&json, &to);
        json_object(&json);
        for (size_t at = 0; json_field(thole_slice_from(objects[i]), &at, &key, &value);)
            json_member_copy(&json, key, value);
        json_end(&json);
        CHECK_STR("copied", buf_cstr(&to), objects[i]);
        buf_release(&to);
    }
}

/* Output of json.h is read here: quotes, escapes, controls, characters of each length. */
static void test_writing(void)
{
    struct json json;
    struct buf to, back;
    thole_slice value;
    int64_t n = 0;
    char const hostile[] = "a\"b\\c\r\n\x01\x7f\xc2\x9b\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
    buf_init(&to, 256);
    buf_init(&back, 256);
    json_to_buf(&json, &to);
    json_object(&json);
    json_member_text(&json, "t", hostile);
    json_member_integer(&json, "n", -INT64_MAX);
    json_key(&json, "o");
    json_object(&json);
    json_member_bool(&json, "inner", true);
    json_end(&json);
    json_end(&json);
    CU_ASSERT(json_find(buf_bytes(&to), "t", &value) && json_text(value, &back));
    CHECK_STR("round trip", buf_cstr(&back), hostile);
    CU_ASSERT(json_find(buf_bytes(&to), "n", &value) && json_int(value, &n) && n == -INT64_MAX);
    CU_ASSERT(json_path(buf_bytes(&to), "o.inner", &value) && json_is_true(value));
    buf_release(&to);
    buf_release(&back);
}

static void test_base64(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", ""},
        {"Zg==", "f"},
        {"Zm8=", "fo"},
        {"Zm9v", "foo"},
        {"Zm9vYg==", "foob"},
        {"Zm9vYmFy", "foobar"},
        {"+/+/", "\xfb\xff\xbf"},
        {"Zg=", NULL},
        {"Zg", NULL},
        {"Z===", NULL},
        {"Zm9v\n", NULL},
        {"Zm.v", NULL},
        {"====", NULL},
        {"Zg==Zg==", NULL},
        {"-_-_", NULL},
    };
    struct buf to;
    buf_init(&to, 64);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_slice const text = exact(rows[i].text, strlen(rows[i].text));
        buf_clear(&to);
        bool const good = base64_decode(text, &to);
        CU_ASSERT_EQUAL(good, rows[i].want != NULL);
        if (good && rows[i].want != NULL)
            CHECK_STR(rows[i].text, buf_cstr(&to), rows[i].want);
        drop(text);
    }
    buf_release(&to);
    buf_init(&to, 2);
    CU_ASSERT_FALSE(base64_decode(THOLE_STR("Zm9v"), &to));
    CU_ASSERT_EQUAL(buf_status(&to), THOLE_LIMIT);
    buf_release(&to);
}

static void test_times(void)
{
    static const struct {
        const char *text;
        uint64_t want;
    } rows[] = {
        {"\"1970-01-01T00:00:00Z\"", 0},
        {"\"2026-11-21T04:24:23.123456789Z\"", UINT64_C(1795235063123456789)},
        {"\"2026-11-21T04:24:23.1Z\"", UINT64_C(1795235063100000000)},
        {"\"2026-11-21T04:24:23Z\"", UINT64_C(1795235063000000000)},
        {"\"2024-02-29T23:59:59.000000001Z\"", UINT64_C(1709251199000000001)},
        {"\"2000-03-01T00:00:00Z\"", UINT64_C(951868800000000000)},
        {"\"2553-12-31T23:59:59.999999999Z\"", UINT64_C(18429292799999999999)},
    };
    static const char *const bad[] = {"",
                                      "\"\"",
                                      "12",
                                      "\"1969-12-31T23:59:59Z\"",
                                      "\"2554-01-01T00:00:00Z\"",
                                      "\"2026-13-21T04:24:23Z\"",
                                      "\"2026-00-21T04:24:23Z\"",
                                      "\"2026-11-00T04:24:23Z\"",
                                      "\"2026-11-21T24:24:23Z\"",
                                      "\"2026-11-21T04:24:23\"",
                                      "\"2026-11-21T04:24:23+01:00\"",
                                      "\"2026-11-21T04:24:23.1234567891Z\"",
                                      "\"2026-11-21T04:24:23.12345678\"",
                                      "\"2026-11-21T04:24:23.Z",
                                      "\"2026-11-21 04:24:23Z\"",
                                      "\"2026-11-2xT04:24:23Z\"",
                                      "\"2026-11-21T04:24:23ZZ\""};
    uint64_t ns = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_slice const text = exact(rows[i].text, strlen(rows[i].text));
        CU_ASSERT(json_time_ns(text, &ns));
        CU_ASSERT_EQUAL(ns, rows[i].want);
        drop(text);
        for (size_t len = 0; len < text.len; len++) { /* cut off, and with a byte that is another one */
            thole_slice const cut = exact(rows[i].text, len), other = exact(rows[i].text, text.len);
            ((uint8_t *)(uintptr_t)other.ptr)[len] = '~';
            CU_ASSERT_FALSE(json_time_ns(cut, &ns));
            CU_ASSERT_FALSE(json_time_ns(other, &ns));
            drop(cut);
            drop(other);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        thole_slice const text = exact(bad[i], strlen(bad[i]));
        CU_ASSERT_FALSE(json_time_ns(text, &ns));
        drop(text);
    }
}

static const struct thole_test tests[] = {
    {"fields and nested fields", test_paths},
    {"damaged text", test_damaged_text},
    {"nesting is bounded", test_depth_is_bounded},
    {"numbers", test_numbers},
    {"strings and escapes", test_strings},
    {"items of arrays", test_items},
    {"fields of objects", test_fields},
    {"fields that we copy", test_copying},
    {"objects that we write", test_writing},
    {"base64", test_base64},
    {"times", test_times},
};
THOLE_TEST_MAIN("jscan", tests)
