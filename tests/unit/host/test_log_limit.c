/* At most one line a second of one kind, and none of the others forgotten. */
#include "log_limit.h"
#include "thole_cunit.h"

static void test_one_a_second(void)
{
    struct log_limit limit;
    uint64_t more = 7;
    log_limit_init(&limit);
    CU_ASSERT_TRUE(log_limit_pass(&limit, 5000, &more));
    CU_ASSERT_EQUAL(more, 0);
    CU_ASSERT_EQUAL(log_limit_due_ms(&limit), UINT64_MAX);
    for (uint64_t i = 0; i < 1000; i++)
        CU_ASSERT_FALSE(log_limit_pass(&limit, 5000 + i % 1000, &more));
    CU_ASSERT_EQUAL(log_limit_due_ms(&limit), 6000);
    CU_ASSERT_EQUAL(log_limit_rest(&limit, 5999), 0);
    CU_ASSERT_TRUE(log_limit_pass(&limit, 6000, &more));
    CU_ASSERT_EQUAL(more, 1000);
    log_limit_release(&limit);
}

static void test_what_nothing_follows_is_told_too(void)
{
    struct log_limit limit;
    uint64_t more = 0;
    log_limit_init(&limit);
    CU_ASSERT_TRUE(log_limit_pass(&limit, 0, &more));
    CU_ASSERT_FALSE(log_limit_pass(&limit, 1, &more));
    CU_ASSERT_FALSE(log_limit_pass(&limit, 2, &more));
    CU_ASSERT_EQUAL(log_limit_rest(&limit, 1001), 2);
    CU_ASSERT_EQUAL(log_limit_rest(&limit, 9000), 0);
    CU_ASSERT_EQUAL(log_limit_due_ms(&limit), UINT64_MAX);
    CU_ASSERT_FALSE(log_limit_pass(&limit, 2000, &more)); /* that was a line, too */
    CU_ASSERT_TRUE(log_limit_pass(&limit, 2001, &more));
    CU_ASSERT_EQUAL(more, 1);
    log_limit_release(&limit);
}

static const struct thole_test tests[] = {
    {"one_a_second", test_one_a_second},
    {"what_nothing_follows_is_told_too", test_what_nothing_follows_is_told_too},
};
THOLE_TEST_MAIN("log limit", tests)
