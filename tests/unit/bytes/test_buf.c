#include "buf.h"
#include "thole_cunit.h"

static void appends(void)
{
    struct buf buf;
    buf_init(&buf, 1000);
    CHECK_STR("empty", buf_cstr(&buf), "");
    CU_ASSERT_EQUAL(buf_bytes(&buf).len, 0);
    buf_append(&buf, NULL, 0);
    buf_text(&buf, "one ");
    buf_slice(&buf, THOLE_STR("two "));
    buf_slice(&buf, (thole_slice){NULL, 0});
    buf_printf(&buf, "%d %s", 3, "four");
    CHECK_STR("text", buf_cstr(&buf), "one two 3 four");
    CU_ASSERT_EQUAL(buf.len, 14);
    uint8_t *at = buf_extend(&buf, 2);
    CU_ASSERT_PTR_NOT_NULL(at);
    memcpy(at, "!?", 2);
    CHECK_STR("extended", buf_cstr(&buf), "one two 3 four!?");
    CU_ASSERT_EQUAL(buf_status(&buf), THOLE_OK);
    buf_clear(&buf);
    CHECK_STR("cleared", buf_cstr(&buf), "");
    buf_release(&buf);
    buf_release(&buf);
    buf_release(NULL);
}

static void grows_to_its_maximum_exactly(void)
{
    for (size_t max = 0; max < 300; max++) {
        struct buf buf;
        buf_init(&buf, max);
        for (size_t i = 0; i < max; i++)
            buf_append(&buf, "x", 1);
        CU_ASSERT_EQUAL(buf_status(&buf), THOLE_OK);
        CU_ASSERT_EQUAL(buf.len, max);
        CU_ASSERT(buf.cap <= max + 1 || max < 64);
        buf_append(&buf, "x", 1);
        CU_ASSERT_EQUAL(buf_status(&buf), THOLE_LIMIT);
        CU_ASSERT_EQUAL(buf.len, max);
        buf_release(&buf);
    }
}

static void failure_is_sticky(void)
{
    struct buf buf;
    buf_init(&buf, 5);
    buf_text(&buf, "abc");
    buf_text(&buf, "def");
    buf_text(&buf, "g"); /* would fit */
    buf_printf(&buf, "h");
    CU_ASSERT_PTR_NULL(buf_extend(&buf, 1));
    CHECK_STR("kept", buf_cstr(&buf), "abc");
    CU_ASSERT_EQUAL(buf_status(&buf), THOLE_LIMIT);
    buf_clear(&buf);
    CU_ASSERT_EQUAL(buf_status(&buf), THOLE_OK);
    buf_printf(&buf, "%s", "12345");
    CHECK_STR("full", buf_cstr(&buf), "12345");
    buf_printf(&buf, "%s", "");
    CU_ASSERT_EQUAL(buf_status(&buf), THOLE_OK);
    buf_printf(&buf, "6");
    CU_ASSERT_EQUAL(buf_status(&buf), THOLE_LIMIT);
    buf_release(&buf);
}

static void sizes_that_overflow(void)
{
    struct buf buf;
    buf_init(&buf, SIZE_MAX);
    buf_text(&buf, "x");
    CU_ASSERT_PTR_NULL(buf_extend(&buf, SIZE_MAX - 1));
    CU_ASSERT_EQUAL(buf_status(&buf), THOLE_LIMIT);
    buf_clear(&buf);
    CU_ASSERT_PTR_NULL(buf_extend(&buf, SIZE_MAX));
    buf_release(&buf);
}

static const struct thole_test tests[] = {
    {"appends", appends},
    {"grows to its maximum exactly", grows_to_its_maximum_exactly},
    {"failure is sticky", failure_is_sticky},
    {"sizes that overflow", sizes_that_overflow},
};
THOLE_TEST_MAIN("buf", tests)
