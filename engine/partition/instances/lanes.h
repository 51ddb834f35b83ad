/*
 * Inside of the instances room: whose turn is next. What may run waits in lanes, one for each orchestration,
 * and each lane in turn gives one. So what one orchestration has waiting is not before what another one has.
 *
 * That alone is not enough for latency, as what has run is on its way through the log and the rows, which are
 * common. So a lane that takes most of the partition's turns, while another one has some, has them in bursts:
 * a few, and when all that follows from them is done it rests for as long as that took. A busy orchestration
 * then has about half of what all share, whatever the machine can do, and another one finds short queues.
 */
#ifndef THOLE_LANES_H
#define THOLE_LANES_H
#include "entries.h"

struct lane_view { /* of the partition, when the next turn is chosen */
    uint64_t now_ms;
    uint64_t done_n; /* all effects of the epoch's records up to it are done */
    size_t burst;    /* turns in a burst; 0: no lane rests */
    size_t full;     /* a lane with this many entries does not rest: messages after them are not read */
};

/* The orchestration of the entry's lane: of a start that creates its instance, the one that it names. */
thole_slice lane_name(const struct entry *entry);
void lanes_add(struct lanes *lanes, struct entry *entry);
/* NULL: none is ready, or only lanes that rest. */
struct entry *lanes_take(struct lanes *lanes, const struct lane_view *view);
/* The turn of the entry that was taken last has taken @p events, and has become records of which @p n is the
 * last. */
void lanes_ran(struct lanes *lanes, size_t events, uint64_t n, uint64_t now_ms);
/* When a lane that rests goes on; UINT64_MAX: none rests, or it waits for its effects. */
uint64_t lanes_deadline_ms(const struct lanes *lanes);
/* Entries that wait in a lane that rests. */
size_t lanes_resting(const struct lanes *lanes);
/* The first entry of a lane that rests, if that is to be said now; NULL: none does, or it was said lately. */
const struct entry *lanes_say_rest(struct lanes *lanes, uint64_t now_ms);
bool lanes_empty(const struct lanes *lanes);
#endif
