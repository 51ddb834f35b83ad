/*
 * Where a log's deletions stand, in its order, found in few round trips: several stretches of sequences, the
 * lanes, are walked at a time. One lane goes first, and shows how far apart deletions stand. Pure.
 *
 *   deletion_lanes_ask()     questions that are asked at once; none: all lanes have ended
 *   deletion_lanes_answer()  the answer to each of them
 *   deletion_lanes_item()    what was found, in the log's order
 *   deletion_lanes_advance() the next lanes; false: no deletion is left that is old enough
 */
#ifndef THOLE_DELETION_LANES_H
#define THOLE_DELETION_LANES_H
#include "arena.h"
#include "dispensable.h"

enum {
    DELETION_LANES = 32,
    DELETION_LANE_ITEMS = 32, /* of a lane; about a quarter is expected */
    DELETION_QUESTIONS_MAX = 2 * DELETION_LANES,
};

struct deletion_item {
    uint64_t sequence;
    thole_slice subject, bytes; /* until deletion_lanes_advance() */
    bool asked, last;           /* last: the last record of its instance */
};
struct deletion_lane {
    uint64_t next, end; /* sequences: where it goes on, and its last one */
    uint64_t beyond;    /* the first deletion after `end`; 0: none */
    bool ended;
    size_t len;
    struct deletion_item items[DELETION_LANE_ITEMS];
};
struct deletion_lanes {
    uint64_t from, to; /* of all lanes; the last sequence that is looked at at all */
    size_t items_max;  /* of a lane */
    bool young;        /* the last lane has met one that is not old enough: so are all later ones */
    size_t len;
    struct deletion_lane lanes[DELETION_LANES];
    struct arena arena;
};

struct deletion_question {
    size_t lane, item;
    bool last;           /* the last record of the item's instance; else the lane's next deletion */
    uint64_t from;       /* where the lane goes on */
    thole_slice subject; /* of the item */
};

void deletion_lanes_init(struct deletion_lanes *lanes, uint64_t from, uint64_t to);
void deletion_lanes_release(struct deletion_lanes *lanes);
size_t deletion_lanes_ask(struct deletion_lanes *lanes, struct deletion_question ret[DELETION_QUESTIONS_MAX]);
/* @p sequence 0: there is none. @p age, @p subject and @p bytes are those of a lane's next deletion.
 * THOLE_LIMIT: no memory for it. */
THOLE_NODISCARD thole_status deletion_lanes_answer(struct deletion_lanes *lanes,
                                                   const struct deletion_question *question,
                                                   uint64_t sequence, enum dispensable_age age,
                                                   thole_slice subject, thole_slice bytes);
/* The item @p at, from 0 on. NULL: there are no more. */
const struct deletion_item *deletion_lanes_item(const struct deletion_lanes *lanes, size_t at);
bool deletion_lanes_advance(struct deletion_lanes *lanes);
#endif
