/*
 * Whether this machine's clock may be believed. Timers are set by it, and one that is ahead sets them far too
 * late: so it is compared with those of NATS and of Postgres, and while it differs from both by more than
 * --clock-offset-max this engine owns no partition. Between two comparisons the monotonic clock tells a jump:
 * the times that engine_clock_ms() gives do not take part in it.
 */
#ifndef THOLE_ENGINE_CLOCK_H
#define THOLE_ENGINE_CLOCK_H
#include "thole/types.h"

struct engine_clock;
struct engine_host;
/* Not right yet. @p changed is told, on any thread, that it is, or is not any more. */
typedef void engine_clock_fn(struct engine_host *engine);
struct engine_clock *engine_clock_create(struct engine_host *engine, engine_clock_fn *changed);
/* Compares once, then from time to time on a thread of its own. NATS is connected. */
THOLE_NODISCARD thole_status engine_clock_start(struct engine_clock *clock, thole_error *reterr);
void engine_clock_stop(struct engine_clock *clock); /* NULL-safe; joins, and leaves it as it is */
void engine_clock_destroy(struct engine_clock *clock);

/* The time of a step of a partition, since 1970. Any thread; of NULL the machine's. */
uint64_t engine_clock_ms(struct engine_clock *clock);
/* NULL: true. Any thread. */
bool engine_clock_is_right(const struct engine_clock *clock);

/* One comparison: how far the own clock is ahead. */
struct clock_offset {
    bool known;
    int64_t ahead_ms;
    uint64_t error_ms; /* possible error of ahead_ms, in both directions */
};
/* Whether it differs by more than so much, certainly. */
bool clock_offset_beyond(const struct clock_offset *offset, uint64_t limit_ms);
/* The own clock is one of three: it is wrong when no other one that is known agrees with it. */
bool clock_is_wrong(const struct clock_offset *nats, const struct clock_offset *postgres, uint64_t limit_ms);
#endif
