/* How fast an amount grows, and for how many days there is room. */
#include "forecast.h"
#include "thole_cunit.h"

enum { MINUTE = 60 * 1000, HOUR = 60 * MINUTE };
#define GB UINT64_C(1000000000)

static void test_rows(void)
{
    static const struct {
        const char *name;
        uint64_t span_ms, from, bytes, max;
        bool known;
        uint64_t per_day, days;
    } rows[] = {
        {"too early", 10 * MINUTE - 1, 0, GB, 2 * GB, false, 0, FORECAST_NEVER},
        {"an hour", HOUR, 0, GB, 25 * GB, true, 24 * GB, 1},
        {"not a day", HOUR, 0, GB, 24 * GB, true, 24 * GB, 0},
        {"ten minutes", 10 * MINUTE, GB, 2 * GB, 290 * GB, true, 144 * GB, 2},
        {"no limit", HOUR, 0, GB, 0, true, 24 * GB, FORECAST_NEVER},
        {"it stays", HOUR, GB, GB, 2 * GB, true, 0, FORECAST_NEVER},
        {"it shrinks", HOUR, 2 * GB, GB, 2 * GB, true, 0, FORECAST_NEVER},
        {"it is full", HOUR, GB, 2 * GB, 2 * GB, true, 24 * GB, 0},
        {"it is more than full, and early", MINUTE, GB, 3 * GB, 2 * GB, false, 0, 0},
        {"a byte an hour", HOUR, 0, 1, UINT64_MAX / 2, true, 24, FORECAST_NEVER},
        {"all at once", 10 * MINUTE, 0, UINT64_MAX / 2, UINT64_MAX, true, UINT64_MAX / 2, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct forecast forecast = {.from_ms = 0};
        forecast_take(&forecast, 5000, rows[i].from, 0);
        forecast_take(&forecast, 5000 + rows[i].span_ms, rows[i].bytes, rows[i].max);
        CHECK_STR(rows[i].name, forecast_is_known(&forecast) == rows[i].known ? "" : "otherwise known", "");
        uint64_t const per_day = forecast_per_day(&forecast);
        bool const near =
            per_day >= rows[i].per_day - rows[i].per_day / 1000 && per_day <= rows[i].per_day + 1;
        CHECK_STR(rows[i].name, near ? "" : "another growth", "");
        if (forecast_days(&forecast) != rows[i].days)
            fprintf(stderr, "  %s: %llu days\n", rows[i].name, (unsigned long long)forecast_days(&forecast));
        CU_ASSERT_EQUAL(forecast_days(&forecast), rows[i].days);
    }
    CU_ASSERT_FALSE(forecast_is_known(&(struct forecast){.from_ms = 0}));
    CU_ASSERT_EQUAL(forecast_days(&(struct forecast){.from_ms = 0}), FORECAST_NEVER);
}

/* A burst of yesterday says nothing of today. */
static void test_window(void)
{
    struct forecast forecast = {.from_ms = 0};
    uint64_t now_ms = 1000;
    forecast_take(&forecast, now_ms, 0, 100 * GB);
    for (int minute = 0; minute < 60; minute++)
        forecast_take(&forecast, now_ms += MINUTE, GB * (uint64_t)(minute + 1), 100 * GB);
    CU_ASSERT_EQUAL(forecast_days(&forecast), 0); /* 40 GB are left, a GB a minute comes */
    for (int minute = 0; minute < 9 * 60; minute++) {
        forecast_take(&forecast, now_ms += MINUTE, 60 * GB, 100 * GB);
        CU_ASSERT_TRUE(forecast_span_ms(&forecast) <= 2 * (uint64_t)FORECAST_WINDOW_MS);
    }
    CU_ASSERT_EQUAL(forecast_per_day(&forecast), 0);
    CU_ASSERT_EQUAL(forecast_days(&forecast), FORECAST_NEVER);
    CU_ASSERT_TRUE(forecast_span_ms(&forecast) >= FORECAST_WINDOW_MS);
    forecast_take(&forecast, 500, 5, 100 * GB); /* another clock */
    CU_ASSERT_FALSE(forecast_is_known(&forecast));
}

static const struct thole_test tests[] = {{"rows", test_rows}, {"the window", test_window}};
THOLE_TEST_MAIN("forecast", tests)
