#include "thole_cunit.h"
#include "wall_clock.h"

enum { HOUR_MS = 3600 * 1000 };
#define NOW_MS UINT64_C(1800000000000)

static void test_goes_on(void)
{
    struct wall_clock clock;
    wall_clock_begin(&clock, NOW_MS, 50);
    CU_ASSERT_FALSE(wall_clock_went_back(&clock, NOW_MS + 1000, 1050));
    CU_ASSERT_FALSE(wall_clock_went_back(&clock, NOW_MS + HOUR_MS - 900, HOUR_MS + 50)); /* slewed */
}

static void test_back(void)
{
    struct wall_clock clock;
    wall_clock_begin(&clock, NOW_MS, 50);
    CU_ASSERT_TRUE(wall_clock_went_back(&clock, NOW_MS + 1000 - HOUR_MS, 1050));
    CU_ASSERT_TRUE(wall_clock_went_back(&clock, NOW_MS + 1000 - 1000, 1050));
    wall_clock_begin(&clock, NOW_MS - HOUR_MS, 1050); /* the next connection */
    CU_ASSERT_FALSE(wall_clock_went_back(&clock, NOW_MS - HOUR_MS + 10, 1060));
}

/* Times planned while it was ahead are an hour off. */
static void test_forward_and_back(void)
{
    struct wall_clock clock;
    wall_clock_begin(&clock, NOW_MS, 50);
    CU_ASSERT_FALSE(wall_clock_went_back(&clock, NOW_MS + 1000 + HOUR_MS, 1050));
    CU_ASSERT_TRUE(wall_clock_went_back(&clock, NOW_MS + 2000, 2050));
}

static void test_smaller_than_the_monotonic_clock(void)
{
    struct wall_clock clock;
    wall_clock_begin(&clock, 5000, 900000); /* no battery */
    CU_ASSERT_FALSE(wall_clock_went_back(&clock, 6000, 901000));
    CU_ASSERT_FALSE(wall_clock_went_back(&clock, NOW_MS, 902000));
    CU_ASSERT_TRUE(wall_clock_went_back(&clock, 8000, 903000));
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"goes_on", test_goes_on},
        {"back", test_back},
        {"forward_and_back", test_forward_and_back},
        {"smaller_than_the_monotonic_clock", test_smaller_than_the_monotonic_clock},
    };
    return thole_run_suite("wall_clock", tests, ARRAY_LEN(tests));
}
