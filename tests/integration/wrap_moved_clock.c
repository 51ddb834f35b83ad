#include "wrap_moved_clock.h"
#include "clock.h"
#include "connection.h"
#include "wall_clock.h"
#include <stdatomic.h>

enum { LOOK_MS = 20, MICROS_IN_MILLI = 1000 };

uint64_t __real_clock_monotonic_ms(void);
uint64_t __real_clock_monotonic_us(void);
struct timespec __real_clock_timespec(uint64_t ms);
void __real_connection_read(struct connection *connection, struct pollfd *also, size_t n,
                            uint64_t deadline_ms, connection_awake_fn *awake, void *arg);

static _Atomic uint64_t ahead_ms;

void moved_clock_pass(uint64_t ms)
{
    atomic_fetch_add(&ahead_ms, ms);
}

uint64_t __wrap_clock_monotonic_ms(void)
{
    return __real_clock_monotonic_ms() + atomic_load(&ahead_ms);
}

uint64_t __wrap_clock_monotonic_us(void)
{
    return __real_clock_monotonic_us() + atomic_load(&ahead_ms) * MICROS_IN_MILLI;
}

/* A time at which a wait ends, for the machine's clock. What is less than the clock has been moved by is a
 * pause.
 */
struct timespec __wrap_clock_timespec(uint64_t ms)
{
    uint64_t const moved_ms = atomic_load(&ahead_ms);
    return __real_clock_timespec(ms >= moved_ms ? ms - moved_ms : ms);
}

/* Where a worker's loop waits: the clock may be moved meanwhile. */
void __wrap_connection_read(struct connection *connection, struct pollfd *also, size_t n,
                            uint64_t deadline_ms, connection_awake_fn *awake, void *arg)
{
    uint64_t const look_ms = __wrap_clock_monotonic_ms() + LOOK_MS;
    __real_connection_read(connection, also, n, deadline_ms < look_ms ? deadline_ms : look_ms, awake, arg);
}

/* Compared with a clock that was moved, the machine's wall clock seems to have been set back: connections
 * would be made again, and messages about messages lost with them. */
bool __wrap_wall_clock_went_back(struct wall_clock *clock, uint64_t wall_ms, uint64_t monotonic_ms)
{
    (void)clock, (void)wall_ms, (void)monotonic_ms;
    return false;
}
