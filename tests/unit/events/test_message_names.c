/* Instance ids and names. */
#include "message.h"
#include "thole_cunit.h"

#define ID(literal, text)                                                                                    \
    {                                                                                                        \
        THOLE_STR(literal), text                                                                             \
    }

static void ids(void)
{
    struct {
        thole_slice id;
        const char *expected;
    } const rows[] = {
        ID("a", "ok"),
        ID("order 1/\r\n*.>", "ok"), /* the subject gate's business */
        ID("", "instance id is empty"),
        ID("a\0b", "instance id contains a NUL byte"),
        ID("\xc3\xa9", "ok"),
        ID("\xe2\x82\xac", "ok"),
        ID("\xf0\x9f\x9a\xa3", "ok"),
        ID("\xf4\x8f\xbf\xbf", "ok"), /* U+10FFFF */
        ID("\xed\x9f\xbf", "ok"),     /* U+D7FF */
        ID("\xee\x80\x80", "ok"),     /* U+E000 */
        ID("\xe0\xa0\x80", "ok"),     /* U+0800 */
        ID("\xf0\x90\x80\x80", "ok"), /* U+10000 */
        ID("a\xff", "instance id is not valid UTF-8 at byte 1"),
        ID("a\x80", "instance id is not valid UTF-8 at byte 1"),
        ID("\xc0\xaf", "instance id is not valid UTF-8 at byte 0"),         /* overlong / */
        ID("\xc1\xbf", "instance id is not valid UTF-8 at byte 0"),         /* overlong */
        ID("\xe0\x9f\xbf", "instance id is not valid UTF-8 at byte 0"),     /* overlong */
        ID("\xf0\x8f\xbf\xbf", "instance id is not valid UTF-8 at byte 0"), /* overlong */
        ID("\xed\xa0\x80", "instance id is not valid UTF-8 at byte 0"),     /* surrogate */
        ID("\xed\xbf\xbf", "instance id is not valid UTF-8 at byte 0"),     /* surrogate */
        ID("\xf4\x90\x80\x80", "instance id is not valid UTF-8 at byte 0"), /* beyond U+10FFFF */
        ID("\xf5\x80\x80\x80", "instance id is not valid UTF-8 at byte 0"),
        ID("abc\xe2\x82", "instance id is not valid UTF-8 at byte 3"), /* cut off */
        ID("abc\xc3", "instance id is not valid UTF-8 at byte 3"),
        ID("\xe2\x82z", "instance id is not valid UTF-8 at byte 0"),
        ID("\xf0\x9f\x9az", "instance id is not valid UTF-8 at byte 0"),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_error err = {.text = "ok"};
        thole_status const status = id_check(rows[i].id, &err);
        CHECK_STR("id", err.text, rows[i].expected);
        CU_ASSERT_EQUAL(status, strcmp(rows[i].expected, "ok") == 0 ? THOLE_OK : THOLE_INVALID);
    }
}

/* All sequences of up to three bytes, and all of four that begin like one, against the definition. */
static bool by_definition(const uint8_t *p, size_t len)
{
    uint32_t code = 0;
    if (len == 1)
        return p[0] < 0x80 && p[0] != 0;
    if (len == 2 && (p[0] & 0xe0) == 0xc0)
        code = p[0] & 0x1fu;
    else if (len == 3 && (p[0] & 0xf0) == 0xe0)
        code = p[0] & 0x0fu;
    else if (len == 4 && (p[0] & 0xf8) == 0xf0)
        code = p[0] & 0x07u;
    else
        return false;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return false;
        code = code << 6 | (p[i] & 0x3fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return code >= least[len] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

static void every_single_sequence(void)
{
    size_t wrong = 0;
    for (uint32_t first = 0x80; first < 0x100; first++) {
        for (uint32_t rest = 0; rest < 0x10000; rest += rest % 7 + 1) {
            uint8_t const p[4] = {(uint8_t)first, (uint8_t)(rest >> 8), (uint8_t)rest, 0x80 | (rest & 0x3f)};
            size_t const len = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
            bool const expected = by_definition(p, len);
            wrong += (id_check((thole_slice){p, len}, NULL) == THOLE_OK) != expected;
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void lengths(void)
{
    uint8_t bytes[201];
    thole_error err;
    memset(bytes, 'x', sizeof bytes);
    CU_ASSERT_EQUAL(id_check((thole_slice){bytes, 200}, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(id_check((thole_slice){bytes, 201}, &err), THOLE_INVALID);
    CHECK_STR("id", err.text, "instance id has 201 bytes, at most 200 are allowed");
    CU_ASSERT_EQUAL(name_check((thole_slice){bytes, 64}, "queue", NULL), THOLE_OK);
    CU_ASSERT_EQUAL(name_check((thole_slice){bytes, 65}, "queue", &err), THOLE_INVALID);
    CHECK_STR("name", err.text, "queue name has 65 bytes, at most 64 are allowed");
}

static void names(void)
{
    thole_error err;
    CU_ASSERT_EQUAL(name_check((thole_slice){NULL, 0}, "queue", &err), THOLE_INVALID);
    CHECK_STR("empty", err.text, "queue name is empty");
    CU_ASSERT_EQUAL(name_check(THOLE_STR("a b"), "activity", &err), THOLE_INVALID);
    CHECK_STR("space", err.text, "activity name has byte 0x20, allowed is [A-Za-z0-9_-]");
    for (int c = 0; c < 256; c++) {
        uint8_t const byte = (uint8_t)c;
        bool const good =
            c != 0 && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", c) != NULL;
        CU_ASSERT_EQUAL(name_check((thole_slice){&byte, 1}, "x", NULL) == THOLE_OK, good);
    }
}

static void error_types(void)
{
    uint8_t bytes[65];
    thole_error err;
    memset(bytes, 'x', sizeof bytes);
    CU_ASSERT_EQUAL(error_type_check((thole_slice){NULL, 0}, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(error_type_check((thole_slice){bytes, 64}, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(error_type_check((thole_slice){bytes, 65}, &err), THOLE_INVALID);
    CHECK_STR("long", err.text, "error type has 65 bytes, at most 64 are allowed");
    CU_ASSERT_EQUAL(error_type_check(THOLE_STR("a/b"), &err), THOLE_INVALID);
    CHECK_STR("slash", err.text, "error type has byte 0x2f, allowed is [A-Za-z0-9_.-]");
    for (int c = 0; c < 256; c++) {
        uint8_t const byte = (uint8_t)c;
        bool const good = name_check((thole_slice){&byte, 1}, "x", NULL) == THOLE_OK || c == '.';
        CU_ASSERT_EQUAL(error_type_check((thole_slice){&byte, 1}, NULL) == THOLE_OK, good);
    }
}

static const struct thole_test tests[] = {
    {"ids", ids},
    {"every single sequence", every_single_sequence},
    {"lengths", lengths},
    {"names", names},
    {"error types", error_types},
};
THOLE_TEST_MAIN("message_names", tests)
