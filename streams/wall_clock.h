/*
 * nats.c uses the wall clock for waits and pings: when that goes back an hour, a current wait lasts an hour
 * longer, and a silent server is not noticed for that time. So the connection is made again then. A clock
 * that goes forward only ends waits early.
 */
#ifndef THOLE_WALL_CLOCK_H
#define THOLE_WALL_CLOCK_H
#include <stdbool.h>
#include <stdint.h>

struct wall_clock {
    int64_t ahead_ms; /* of the monotonic clock; the maximum so far */
};
void wall_clock_begin(struct wall_clock *clock, uint64_t wall_ms, uint64_t monotonic_ms);
/* True when the wall clock lags its maximum lead by at least a second. */
bool wall_clock_went_back(struct wall_clock *clock, uint64_t wall_ms, uint64_t monotonic_ms);
#endif
