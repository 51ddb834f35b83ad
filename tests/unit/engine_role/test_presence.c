/* What an engine's answer to another may look like. */
#include "presence.h"
#include "thole_cunit.h"

#define NUMBER "0123456789abcdef0123456789abcdef"
#define HASH "fedcba9876543210fedcba9876543210"

static bool parses(const char *text)
{
    thole_slice number = {NULL, 0}, hash = {NULL, 0};
    bool const good = presence_parse(thole_slice_from(text), &number, &hash);
    if (good)
        CU_ASSERT_EQUAL(number.len + 1 + hash.len, strlen(text));
    return good;
}

static void test_answers(void)
{
    thole_slice number, hash;
    CU_ASSERT_TRUE_FATAL(presence_parse(THOLE_STR(NUMBER " " HASH), &number, &hash));
    CU_ASSERT_TRUE(thole_slice_equal(number, THOLE_STR(NUMBER)));
    CU_ASSERT_TRUE(thole_slice_equal(hash, THOLE_STR(HASH)));
    CU_ASSERT_TRUE(parses(NUMBER " 1"));
    CU_ASSERT_TRUE(parses(NUMBER " " HASH HASH));
}

static void test_what_is_no_answer(void)
{
    static const char *const others[] = {
        "",
        " ",
        NUMBER,
        NUMBER " ",
        NUMBER "  ",
        NUMBER "1 " HASH,
        NUMBER " " HASH " ",
        NUMBER " " HASH HASH "1",
        NUMBER "\n" HASH,
        NUMBER " a\x01",
        NUMBER " \x80",
        "0123 " NUMBER NUMBER,
        HASH "-" NUMBER,
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        CU_ASSERT_FALSE(parses(others[i]));
}

static const struct thole_test tests[] = {{"answers", test_answers},
                                          {"what is no answer", test_what_is_no_answer}};
THOLE_TEST_MAIN("presence", tests)
