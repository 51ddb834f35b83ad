/* An engine whose clock is ten years ahead for a while. As soon as it is known to be wrong its host closes
 * all its partitions and opens none, until it is right again; before that no step is given the wrong time. In
 * half of these worlds the host believes the clock, as with --clock-offset-max 0s, until it jumps back:
 * timers, tries and quarantines are put off for years. Then the operator has them begin, ends what only a
 * total timeout would end, and all must finish but events that came before their instance. */
#ifndef THOLE_CLOCK_FAKE_H
#define THOLE_CLOCK_FAKE_H
#include "world.h"

enum { CLOCK_MAY_ERR_MS = 60 * 1000 }; /* no time in the log is ahead of the world by more */

struct engine;
struct seat;
void clocks_begin(struct world *w);
void clocks_end(struct world *w); /* all are right */
/* Whether the engine owns no partition for that reason. */
bool clock_keeps_closed(const struct world *w, const struct engine *engine);
/* Nobody waits for that: a wrong clock has set it, and the operator has it begin. */
bool clock_is_wrong_time(const struct world *w, uint64_t due_ms);
/* An execution that has had the wrong time: what is counted from the clock that an engine has now. */
bool clock_counts(const struct world *w, uint64_t time_ms, uint64_t due_ms, uint64_t most_ms);
/* The time that the machine is given: the wrong time while it is closed. */
uint64_t seat_now_ms(struct world *w, const struct seat *seat);
#endif
