#include "forecast.h"

enum { DAY_MS = 24 * 60 * 60 * 1000 };

void forecast_take(struct forecast *forecast, uint64_t now_ms, uint64_t bytes, uint64_t bytes_max)
{
    struct forecast *const f = forecast;
    if (f->from_ms == 0 || now_ms < f->at_ms) {
        f->from_ms = f->later_ms = now_ms;
        f->from_bytes = f->later_bytes = bytes;
    }
    if (now_ms - f->later_ms >= FORECAST_WINDOW_MS) {
        f->from_ms = f->later_ms;
        f->from_bytes = f->later_bytes;
        f->later_ms = now_ms;
        f->later_bytes = bytes;
    }
    f->at_ms = now_ms;
    f->bytes = bytes;
    f->bytes_max = bytes_max;
}

uint64_t forecast_span_ms(const struct forecast *forecast)
{
    return forecast->at_ms - forecast->from_ms;
}

bool forecast_is_known(const struct forecast *forecast)
{
    return forecast->from_ms != 0 && forecast_span_ms(forecast) >= FORECAST_LEAST_MS;
}

uint64_t forecast_per_day(const struct forecast *forecast)
{
    if (!forecast_is_known(forecast) || forecast->bytes <= forecast->from_bytes)
        return 0;
    double const grown = (double)(forecast->bytes - forecast->from_bytes);
    double const per_day = grown / (double)forecast_span_ms(forecast) * DAY_MS;
    return per_day < (double)(UINT64_MAX / 2) ? (uint64_t)per_day : UINT64_MAX / 2;
}

uint64_t forecast_days(const struct forecast *forecast)
{
    uint64_t const per_day = forecast_per_day(forecast);
    if (forecast->bytes_max == 0)
        return FORECAST_NEVER;
    if (forecast->bytes >= forecast->bytes_max)
        return 0;
    if (per_day == 0)
        return FORECAST_NEVER;
    uint64_t const days = (forecast->bytes_max - forecast->bytes) / per_day;
    return days < FORECAST_NEVER ? days : FORECAST_NEVER;
}
