#include "thole/types.h"
#include "thole_cunit.h"

static void names_and_texts(void)
{
    CHECK_STR("name", thole_status_name(THOLE_OK), "OK");
    CHECK_STR("name", thole_status_name(THOLE_FENCED), "FENCED");
    CHECK_STR("name", thole_status_name((thole_status)99), "UNKNOWN");
    CHECK_STR("text", thole_status_text(THOLE_TIMEOUT), "timed out");
    CHECK_STR("text", thole_status_text((thole_status)99), "unknown status");
}

/* Stored in histories: these numbers may never change. */
static void values_are_for_ever(void)
{
    static const char *const names[] = {"OK",          "NOMEM",          "INVALID",   "LIMIT",
                                        "CORRUPT",     "NONDETERMINISM", "CANCELLED", "APP",
                                        "CONFLICT",    "UNAVAILABLE",    "NOT_FOUND", "TIMEOUT",
                                        "UNSUPPORTED", "DENIED",         "FENCED"};
    for (int i = 0; i < (int)ARRAY_LEN(names); i++)
        CHECK_STR(names[i], thole_status_name((thole_status)i), names[i]);
}

static void fails(void)
{
    thole_error err = {0};
    char long_text[1000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    CU_ASSERT_EQUAL(thole_fail(&err, THOLE_INVALID, "%s %d", "n is", 3), THOLE_INVALID);
    CHECK_STR("text", err.text, "n is 3");
    CU_ASSERT_EQUAL(err.status, THOLE_INVALID);
    CU_ASSERT_EQUAL(thole_fail(NULL, THOLE_LIMIT, "unseen"), THOLE_LIMIT);
    CU_ASSERT_EQUAL(thole_fail(&err, THOLE_LIMIT, "%s", long_text), THOLE_LIMIT);
    CU_ASSERT_EQUAL(strlen(err.text), sizeof err.text - 1);
}

static void slices(void)
{
    CU_ASSERT_EQUAL(thole_slice_from(NULL).len, 0);
    CU_ASSERT(thole_slice_equal(thole_slice_from("abc"), THOLE_STR("abc")));
    CU_ASSERT(thole_slice_equal(thole_slice_from(""), (thole_slice){NULL, 0}));
    CU_ASSERT_FALSE(thole_slice_equal(THOLE_STR("abc"), THOLE_STR("abd")));
    CU_ASSERT_FALSE(thole_slice_equal(THOLE_STR("abc"), THOLE_STR("ab")));
    CU_ASSERT(thole_slice_equal(THOLE_STR("a\0b"), THOLE_STR("a\0b")));
    CU_ASSERT_FALSE(thole_slice_equal(THOLE_STR("a\0b"), THOLE_STR("a\0c")));
}

static const struct thole_test tests[] = {
    {"names and texts", names_and_texts},
    {"values are for ever", values_are_for_ever},
    {"fails", fails},
    {"slices", slices},
};
THOLE_TEST_MAIN("status", tests)
