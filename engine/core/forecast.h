/*
 * For how long there is room: the growth of an amount over the last hours, and what it is against a limit.
 * Pure.
 */
#ifndef THOLE_FORECAST_H
#define THOLE_FORECAST_H
#include <stdbool.h>
#include <stdint.h>

enum {
    FORECAST_LEAST_MS = 10 * 60 * 1000,      /* growth within less says nothing of days */
    FORECAST_WINDOW_MS = 3 * 60 * 60 * 1000, /* growth is that of one to two of these */
    FORECAST_WARN_DAYS = 7,
    FORECAST_NEVER = 36500, /* days: it does not grow, has no limit, or it is too early to say */
};
/* One amount; zeroed: never seen. */
struct forecast {
    uint64_t from_ms, from_bytes;     /* growth is counted from here */
    uint64_t later_ms, later_bytes;   /* and from here next */
    uint64_t at_ms, bytes, bytes_max; /* bytes_max 0: it has no limit */
};
/* Adds the present size. Time that goes back begins again. */
void forecast_take(struct forecast *forecast, uint64_t now_ms, uint64_t bytes, uint64_t bytes_max);
/* For how long growth has been looked at. */
uint64_t forecast_span_ms(const struct forecast *forecast);
/* False: too early to say. */
bool forecast_is_known(const struct forecast *forecast);
/* Bytes a day; 0: it shrinks or stays, or it is too early to say. */
uint64_t forecast_per_day(const struct forecast *forecast);
/* Days until it reaches its limit, at most FORECAST_NEVER. */
uint64_t forecast_days(const struct forecast *forecast);
#endif
