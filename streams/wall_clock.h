/*
 * nats.c waits and sends its pings by the wall clock: when that goes back an hour, a wait that has begun
 * lasts an hour longer, and a server that is silent is not noticed for as long. So a connection is made anew
 * when it does. A clock that goes forward only ends waits early.
 */
#ifndef THOLE_WALL_CLOCK_H
#define THOLE_WALL_CLOCK_H
#include <stdbool.h>
#include <stdint.h>

struct wall_clock {
    int64_t ahead_ms; /* of the monotonic clock; the most that was seen */
};
void wall_clock_begin(struct wall_clock *clock, uint64_t wall_ms, uint64_t monotonic_ms);
/* True when it shows at least a second less than it once would have shown now. */
bool wall_clock_went_back(struct wall_clock *clock, uint64_t wall_ms, uint64_t monotonic_ms);
#endif
