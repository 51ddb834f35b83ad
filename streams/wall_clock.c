#include "wall_clock.h"

enum { BACK_MS = 1000 };

static int64_t wall_clock_ahead(uint64_t wall_ms, uint64_t monotonic_ms)
{
    return (int64_t)(wall_ms - monotonic_ms);
}

void wall_clock_begin(struct wall_clock *clock, uint64_t wall_ms, uint64_t monotonic_ms)
{
    clock->ahead_ms = wall_clock_ahead(wall_ms, monotonic_ms);
}

bool wall_clock_went_back(struct wall_clock *clock, uint64_t wall_ms, uint64_t monotonic_ms)
{
    int64_t const now = wall_clock_ahead(wall_ms, monotonic_ms);
    if (now > clock->ahead_ms)
        clock->ahead_ms = now;
    return now <= clock->ahead_ms - BACK_MS;
}
