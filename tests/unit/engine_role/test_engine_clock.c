/* Whether the own clock is wrong, by those of two servers, which may be unknown, wrong themselves, or read
 * late. */
#include "engine_clock.h"
#include "thole_cunit.h"

enum { LIMIT = 60000, YEARS = 1000000000 };

static struct clock_offset known(int64_t ahead_ms)
{
    return (struct clock_offset){.known = true, .ahead_ms = ahead_ms, .error_ms = 2};
}

static const struct clock_offset unknown = {.known = false};

static void test_majority(void)
{
    const struct {
        const char *name;
        struct clock_offset nats, postgres;
        bool wrong;
    } rows[] = {
        {"all agree", known(3), known(-4), false},
        {"at the limit", known(LIMIT), known(LIMIT), false},
        {"beyond it, within what the reading may err", known(LIMIT + 2), known(-LIMIT - 2), false},
        {"ahead of both", known(LIMIT + 3), known(LIMIT + 3), true},
        {"behind both", known(-YEARS), known(-YEARS), true},
        {"ahead of one and behind the other", known(YEARS), known(-YEARS), true},
        {"NATS is the odd one", known(YEARS), known(0), false},
        {"Postgres is the odd one", known(0), known(-YEARS), false},
        {"only NATS is known", known(YEARS), unknown, true},
        {"only NATS is known, and agrees", known(5), unknown, false},
        {"only Postgres is known", unknown, known(-YEARS), true},
        {"none is known", unknown, unknown, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(rows[i].name, clock_is_wrong(&rows[i].nats, &rows[i].postgres, LIMIT) ? "wrong" : "right",
                  rows[i].wrong ? "wrong" : "right");
}

static void test_read_late(void)
{
    struct clock_offset const late = {.known = true, .ahead_ms = 5000, .error_ms = 5000};
    CU_ASSERT_FALSE(clock_offset_beyond(&late, 0));
    CU_ASSERT_FALSE(clock_offset_beyond(&unknown, 0));
    CU_ASSERT_TRUE(clock_offset_beyond(&(struct clock_offset){true, -5001, 5000}, 0));
    CU_ASSERT_TRUE(clock_offset_beyond(&(struct clock_offset){true, INT64_MIN + 1, 5000}, LIMIT));
}

/* Without an engine around it, the machine's clock is believed. */
static void test_none(void)
{
    CU_ASSERT_TRUE(engine_clock_is_right(NULL));
    CU_ASSERT_TRUE(engine_clock_ms(NULL) > 1700000000000);
}

static const struct thole_test tests[] = {
    {"majority", test_majority}, {"read late", test_read_late}, {"none", test_none}};
THOLE_TEST_MAIN("engine_clock", tests)
