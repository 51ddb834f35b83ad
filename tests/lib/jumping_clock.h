/* The wall clock of a program under test, which jumps at command: tests/preload/clock_preload.c. */
#ifndef THOLE_JUMPING_CLOCK_H
#define THOLE_JUMPING_CLOCK_H
#include <stdbool.h>
#include <stdint.h>

enum { JUMPING_CLOCK_HOUR_MS = 3600 * 1000 };

struct jumping_clock {
    _Atomic int64_t *ahead_ms; /* in a file that the program maps */
    char path[256], library[256];
};
/* A clock that is right, in a folder that the program may read. False: errno says why. */
bool jumping_clock_open(struct jumping_clock *clock, const char *dir, const char *name);
/* Programs started from now on use this clock; NULL: the machine's. */
void jumping_clock_use(const struct jumping_clock *clock);
/* Shows so much more than it is, at once, to whoever goes by it. */
void jumping_clock_set(struct jumping_clock *clock, int64_t ahead_ms);
#endif
