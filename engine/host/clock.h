/* Clocks in milliseconds. Any thread. */
#ifndef THOLE_CLOCK_H
#define THOLE_CLOCK_H
#include <stdint.h>
#include <time.h>

uint64_t clock_monotonic_ms(void);           /* never goes back; for deadlines within this process */
struct timespec clock_timespec(uint64_t ms); /* for the calls that take one */
uint64_t clock_wall_ms(void);                /* since 1970 UTC; may jump */
#endif
