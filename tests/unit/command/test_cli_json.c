/* The JSON writer, and text made safe for terminals. */
#include "json_file.h"
#include "text.h"
#include "thole_cunit.h"
#include <stdlib.h>

enum { OUT_BYTES = 8192 };

static thole_slice bytes_of(const char *text, size_t len)
{
    return (thole_slice){(const uint8_t *)text, len};
}

#define BYTES(literal) bytes_of(literal, sizeof(literal) - 1)

/* Writes one object with one payload; returns static text. */
static const char *data_as_json(thole_slice data)
{
    static char out[OUT_BYTES];
    struct json json;
    FILE *to = fmemopen(out, sizeof out, "w");
    json_to_file(&json, to);
    json_object(&json);
    json_member_data(&json, "data", data);
    json_end(&json);
    (void)fclose(to);
    return out;
}

static void test_payloads(void)
{
    static const struct {
        const char *name, *data;
        size_t len;
        const char *want;
    } cases[] = {
#define CASE(name, literal, want) {name, literal, sizeof(literal) - 1, want}
        CASE("empty", "", "{\"data\":\"\"}\n"),
        CASE("plain", "order=1", "{\"data\":\"order=1\"}\n"),
        CASE("quotes", "a\"b\\c", "{\"data\":\"a\\\"b\\\\c\"}\n"),
        CASE("controls", "\n\r\t\x01\x1f\x7f", "{\"data\":\"\\n\\r\\t\\u0001\\u001f\\u007f\"}\n"),
        CASE("C1 controls", "\xc2\x80\xc2\x9b\xc2\xa0", "{\"data\":\"\\u0080\\u009b\xc2\xa0\"}\n"),
        CASE("NUL", "a\0b", "{\"data\":\"a\\u0000b\"}\n"),
        CASE("utf8", "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
             "{\"data\":\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"}\n"),
        CASE("not utf8", "\xff\xfe", "{\"data_base64\":\"//4=\"}\n"),
        CASE("overlong", "\xc0\x80", "{\"data_base64\":\"wIA=\"}\n"),
        CASE("surrogate", "\xed\xa0\x80", "{\"data_base64\":\"7aCA\"}\n"),
        CASE("beyond unicode", "\xf4\x90\x80\x80", "{\"data_base64\":\"9JCAgA==\"}\n"),
        CASE("cut", "ab\xe2\x82", "{\"data_base64\":\"YWLigg==\"}\n"),
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(cases[i].name, data_as_json(bytes_of(cases[i].data, cases[i].len)), cases[i].want);
}

static void test_nesting(void)
{
    char out[OUT_BYTES];
    struct json json;
    FILE *to = fmemopen(out, sizeof out, "w");
    json_to_file(&json, to);
    json_object(&json);
    json_member(&json, "id", BYTES("a\xff"));
    json_key(&json, "list");
    json_array(&json);
    json_number(&json, 0);
    json_number(&json, UINT64_MAX);
    json_bool(&json, false);
    json_null(&json);
    json_object(&json);
    json_end(&json);
    json_array(&json);
    json_end(&json);
    json_end(&json);
    json_member_time(&json, "then", UINT64_C(1763717401250));
    json_member_time(&json, "never", 0);
    json_end(&json);
    json_object(&json); /* the next line */
    json_end(&json);
    (void)fclose(to);
    CHECK_STR("nested", out,
              "{\"id\":\"a\xef\xbf\xbd\",\"list\":[0,18446744073709551615,false,null,{},[]],"
              "\"then\":\"2025-11-21T09:30:01.250Z\",\"never\":null}\n{}\n");
}

/* Whole characters and whole escapes, as many as there is room for. */
static void test_within(void)
{
    static const struct {
        const char *text;
        size_t bytes_max;
        const char *want;
    } rows[] = {
        {"abc", 3, "\"abc\""},
        {"abc", 2, "\"ab\""},
        {"abc", 0, "\"\""},
        {"", 0, "\"\""},
        {"a\"b", 2, "\"a\""},
        {"a\"b", 3, "\"a\\\"\""},
        {"\x01\x01", 11, "\"\\u0001\""},
        {"\x01\x01", 12, "\"\\u0001\\u0001\""},
        {"\xe2\x82\xac\xe2\x82\xac", 5, "\"\xe2\x82\xac\""},
        {"\xff\xff", 5, "\"\xef\xbf\xbd\""},
        {"\xe2\x82", 6, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xef\xbf\xbd\xef\xbf\xbe\xef\xbf\xbf", 20, "\"\xef\xbf\xbd\\ufffe\\uffff\""},
        {"\xef\xbf\xbe", 5, "\"\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf to;
        struct json json;
        buf_init(&to, 64);
        json_to_buf(&json, &to);
        json_string_within(&json, thole_slice_from(rows[i].text), rows[i].bytes_max);
        CHECK_STR(rows[i].want, buf_cstr(&to), rows[i].want);
        buf_release(&to);
    }
}

/* Memory of a fixed size: what fits exactly, and what does not, of which nothing more is written. */
static void test_room(void)
{
    char const want[] = "{\"a\":-9223372036854775808,\"b\":[true,\"x\"]}";
    for (size_t cap = 0; cap <= sizeof want; cap++) {
        char bytes[sizeof want + 1];
        struct json json;
        struct json_room room = {.bytes = bytes, .cap = cap};
        memset(bytes, '#', sizeof bytes);
        json_to_room(&json, &room);
        json_object(&json);
        json_member_integer(&json, "a", INT64_MIN);
        json_key(&json, "b");
        json_array(&json);
        json_bool(&json, true);
        json_string(&json, THOLE_STR("x"));
        json_end(&json);
        json_end(&json);
        CU_ASSERT_EQUAL(room.cut, cap < sizeof want - 1);
        CU_ASSERT(room.len <= cap && strncmp(bytes, want, room.len) == 0 && bytes[room.len] == '#');
        CU_ASSERT(room.cut || thole_slice_equal(json_room_bytes(&room), thole_slice_from(want)));
    }
}

/* Larger than the pieces that base64 is written in. */
static void test_long_base64(void)
{
    enum { LEN = 10000 };
    uint8_t *data = malloc(LEN);
    char *out = calloc(1, 2 * LEN);
    struct json json;
    memset(data, 0xff, LEN);
    FILE *to = fmemopen(out, 2 * LEN, "w");
    json_to_file(&json, to);
    json_object(&json);
    json_member_data(&json, "data", (thole_slice){data, LEN});
    json_end(&json);
    (void)fclose(to);
    /* 3,333 groups of //// and one byte: /w== */
    CU_ASSERT_EQUAL(strlen(out), strlen("{\"data_base64\":\"") + 4 * 3334 + strlen("\"}\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "/////w==\"}\n"));
    CU_ASSERT_EQUAL(strspn(out + strlen("{\"data_base64\":\""), "/"), 4 * 3333 + 1);
    free(data);
    free(out);
}

static void test_safe_text(void)
{
    static const struct {
        const char *text, *want;
        size_t columns;
    } cases[] = {
        {"plain", "plain", 10},
        {"cut here", "cut…", 3},
        {"a\x1b[31mred", "a\\x1b[31mred", 20},
        {"line\nnext\ttab", "line\\nnext\\ttab", 20},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m", 20},
        {"\xff", "\\xff", 20},
        {"h\xc3\xa9h\xc3\xa9", "h\xc3\xa9…", 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf got;
        buf_init(&got, 1024);
        text_safe(&got, thole_slice_from(cases[i].text), cases[i].columns);
        CHECK_STR(cases[i].want, buf_cstr(&got), cases[i].want);
        buf_release(&got);
    }
}

static void test_times(void)
{
    char text[TIME_TEXT_BYTES];
    text_time(0, text);
    CHECK_STR("none", text, "-");
    text_time(1, text);
    CHECK_STR("first", text, "1970-01-01T00:00:00.001Z");
    text_time(UINT64_MAX, text);
    CHECK_STR("absurd", text, "-");
}

struct time_row {
    const char *text;
    uint64_t want; /* 0: refused */
};

static void check_times(const struct time_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[64], want[64];
        uint64_t got = 0;
        if (!text_time_parse(rows[i].text, UINT64_C(1795253400000), &got))
            got = 0;
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)got);
        (void)snprintf(want, sizeof want, "%llu", (unsigned long long)rows[i].want);
        CHECK_STR(rows[i].text, text, want);
    }
}

static void test_time_parse(void)
{
    static const struct time_row rows[] = {
        {"2026-11-21T09:30:01.250Z", 1795253401250},
        {"2026-11-21T09:30:01Z", 1795253401000},
        {"2026-11-21T09:30Z", 1795253400000},
        {"2026-11-21T09:30", 1795253400000},
        {"2026-11-21", 1795219200000},
        {"2024-02-29", 1709164800000},
        {"2h", 1795253400000 - 7200000},
        {"0", 1795253400000},
        {"100000d", 1},
        {"", 0},
        {"yesterday", 0},
        {"2026-13-01", 0},
        {"2026-02-29", 0},
        {"2026-11-31", 0},
        {"2026-11-21T24:00", 0},
        {"2026-11-21T09:60", 0},
        {"2026-11-21T09:30:61", 0},
        {"2026-11-21T09", 0},
        {"2026-11-21T09:30:01.25Z", 0},
        {"2026-11-21 09:30", 0},
        {"2026-11-21T09:30Z ", 0},
        {"2026-11-21T09:30+01:00", 0},
        {"1969-12-31", 0},
        {"-1h", 0},
    };
    check_times(rows, ARRAY_LEN(rows));
}

static void test_time_limits(void)
{
    static const struct time_row rows[] = {
        /* cut where no cut may be, and what goes on too long */
        {"2026", 0},
        {"2026-11", 0},
        {"2026-11-", 0},
        {"2026-11-2", 0},
        {"2026-1-21", 0},
        {"2026-11-21T", 0},
        {"2026-11-21T5", 0},
        {"2026-11-21T5Z", 0},
        {"2026-11-21T09Z", 0},
        {"2026-11-21T09:", 0},
        {"2026-11-21T09:3", 0},
        {"2026-11-21T09:30:", 0},
        {"2026-11-21T09:30:1", 0},
        {"2026-11-21T09:30:01.", 0},
        {"2026-11-21T09:30:01.2", 0},
        {"2026-11-21T09:30:01.2500", 0},
        {"2026-11-21T09:30.250", 0},
        {"2026-11-21.250", 0},
        {"2026-11-21Z", 0},
        {"2026-11-21ZZ", 0},
        {"2026-11-21T09:30ZZ", 0},
        {"2026-11-21t09:30", 0},
        {"2026-11-21T09:30z", 0},
        {"2026/11/21", 0},
        /* fractions */
        {"2026-11-21T09:30:01.000Z", 1795253401000},
        {"2026-11-21T09:30:01.999", 1795253401999},
        /* offsets: there are none but Z */
        {"2026-11-21T09:30:01+00:00", 0},
        {"2026-11-21T09:30:01-0100", 0},
        /* days, months, years */
        {"2026-04-30", 1777507200000},
        {"2026-04-31", 0},
        {"2026-00-10", 0},
        {"2026-01-00", 0},
        {"2026-01-32", 0},
        {"2000-02-29", 951782400000},
        {"1900-02-28", 0},
        {"2100-02-28", 4107456000000},
        {"2100-02-29", 0},
        {"2400-02-29", 13574563200000},
        {"2026-12-31T23:59:59.999Z", 1798761599999},
        {"2026-12-31T23:59:60Z", 0},
        {"1970-01-01", 1},
        {"1970-01-01T00:00:01", 1000},
        {"0000-01-01", 0},
        {"9999-12-31T23:59:59Z", 253402300799000},
        {"10000-01-01", 0},
    };
    check_times(rows, ARRAY_LEN(rows));
}

static const struct thole_test tests[] = {
    {"within", test_within},
    {"room", test_room},
    {"payloads", test_payloads},
    {"nesting", test_nesting},
    {"long_base64", test_long_base64},
    {"safe_text", test_safe_text},
    {"times", test_times},
    {"time_parse", test_time_parse},
    {"time_limits", test_time_limits},
};
THOLE_TEST_MAIN("cli_json", tests)
