/*
 * Inside of the instances room: which entry runs next. Ready entries wait in lanes, one for each
 * orchestration, and the lanes take turns, so a long queue of one orchestration does not delay another one.
 *
 * That alone is not enough for latency, since a turn's record then passes through the log and the rows, which
 * all share. So a lane that takes most of the partition's turns, while another one has some, runs in bursts:
 * a few turns, and when all their effects are done it rests for as long as that took. A busy orchestration
 * then has about half of the shared capacity, however large that is, and another one finds short queues.
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
