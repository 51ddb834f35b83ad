/* How long the remover rests: as long as others wait more than they do alone, and not for ever. */
#include "pace.h"
#include "thole_cunit.h"

enum { ALONE_US = 500, BURSTS = 200 };

/* So many bursts, beside each of which one append of another waits so long. */
static uint32_t quarters_after(struct pace *pace, unsigned bursts, uint64_t us)
{
    for (unsigned i = 0; i < bursts; i++)
        pace_judge(pace, 1, us, ALONE_US);
    return pace->quarters;
}

static void test_others_wait(void)
{
    struct pace pace = {.quarters = 0};
    CU_ASSERT_EQUAL(quarters_after(&pace, BURSTS, ALONE_US), 0);
    CU_ASSERT_EQUAL(quarters_after(&pace, BURSTS, ALONE_US / 5 * 6), 0);
    CU_ASSERT(quarters_after(&pace, 1, 2 * ALONE_US) > 0);
    CU_ASSERT_EQUAL(quarters_after(&pace, BURSTS, 2 * ALONE_US), PACE_QUARTERS_MAX);
    CU_ASSERT_EQUAL(pace_rest_us(&pace, PACE_BURST_US), 3 * PACE_BURST_US);
    CU_ASSERT_EQUAL(quarters_after(&pace, BURSTS, ALONE_US), 0);
    CU_ASSERT_EQUAL(pace_rest_us(&pace, PACE_BURST_US), 0);
}

/* One whose rest makes others wait does not rest, and later begins where it was. */
static void test_urgent(void)
{
    struct pace pace = {.quarters = PACE_QUARTERS_MAX, .urgent = true};
    CU_ASSERT(pace_is_free(&pace));
    CU_ASSERT_EQUAL(pace_rest_us(&pace, PACE_BURST_US), 0);
    CU_ASSERT_EQUAL(quarters_after(&pace, BURSTS, 2 * ALONE_US), PACE_QUARTERS_MAX);
    pace.urgent = false;
    CU_ASSERT_FALSE(pace_is_free(&pace));
    CU_ASSERT_EQUAL(pace_rest_us(&pace, PACE_BURST_US), 3 * PACE_BURST_US);
}

/* One that waits for the disk does not make it rest. */
static void test_long_bursts(void)
{
    struct pace pace = {.quarters = PACE_QUARTERS_MAX};
    CU_ASSERT(pace_rest_us(&pace, 10 * 1000 * 1000) < 100 * 1000);
}

static void test_nobody_waits(void)
{
    struct pace pace = {.quarters = PACE_QUARTERS_MAX};
    for (unsigned i = 0; i < 9; i++)
        pace_judge(&pace, 0, 0, ALONE_US);
    CU_ASSERT_EQUAL(pace.quarters, PACE_QUARTERS_MAX);
    for (unsigned i = 0; i < BURSTS; i++)
        pace_judge(&pace, 0, 0, ALONE_US);
    CU_ASSERT_EQUAL(pace.quarters, 0);
}

static void test_not_known(void)
{
    struct pace pace = {.quarters = 0};
    for (unsigned i = 0; i < BURSTS; i++)
        pace_judge(&pace, 1, 1000 * 1000, 0);
    CU_ASSERT_EQUAL(pace.quarters, 0);
}

static void test_mean(void)
{
    uint64_t mean_us = pace_mean_us(0, ALONE_US);
    CU_ASSERT_EQUAL(mean_us, ALONE_US);
    mean_us = pace_mean_us(mean_us, 1000 * 1000);
    CU_ASSERT(mean_us > ALONE_US && mean_us < ALONE_US / 5 * 6);
    for (unsigned i = 0; i < BURSTS; i++)
        mean_us = pace_mean_us(mean_us, 2 * ALONE_US);
    CU_ASSERT(mean_us > 2 * ALONE_US - ALONE_US / 5 && mean_us <= 2 * ALONE_US);
    CU_ASSERT(pace_mean_us(0, 0) > 0);
}

static const struct thole_test tests[] = {
    {"others wait", test_others_wait},   {"urgent", test_urgent},
    {"long bursts", test_long_bursts},   {"nobody waits", test_nobody_waits},
    {"it is not known", test_not_known}, {"the mean", test_mean},
};
THOLE_TEST_MAIN("pace", tests)
