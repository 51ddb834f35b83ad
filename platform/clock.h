/* The clocks, read here alone (lint.banned). Any thread. */
#ifndef THOLE_CLOCK_H
#define THOLE_CLOCK_H
#include <pthread.h>
#include <stdint.h>
#include <time.h>

uint64_t clock_monotonic_us(void); /* never goes back; for deadlines and durations within this machine */
uint64_t clock_monotonic_ms(void);
uint64_t clock_wall_us(void); /* since 1970 UTC; may jump */
uint64_t clock_wall_ms(void);
struct timespec clock_timespec(uint64_t ms); /* for the calls that take one */
/* A condition whose timed waits take times of the monotonic clock. */
void clock_condition_init(pthread_cond_t *condition);
#endif
