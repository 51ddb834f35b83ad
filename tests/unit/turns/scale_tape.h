/* A history that is recorded while it is made, for tests of how costs grow. */
#ifndef THOLE_SCALE_TAPE_H
#define THOLE_SCALE_TAPE_H
#include "play.h"

struct tape {
    struct buf *records;
    size_t len, cap;
    uint64_t begin_ms; /* of processor time */
    bool completed;    /* ended so, and not as failed */
};

struct play scale_play(thole_orchestration_fn *code);
void tape_init(struct tape *tape);
/* A turn; false when the execution has ended, or failed. */
bool tape_feed(struct tape *tape, struct instance *instance, const struct event *events, size_t n);
/* Replays with and without code, shows how long all took, and forgets the tape. The bound on time is some
 * twenty times what is measured without sanitizers; a square of the largest numbers takes longer. */
void tape_finish(const char *name, const struct play *play, struct tape *tape);
/* Started with the number as input. */
struct event scale_start(size_t n);
/* The input says how many. */
size_t scale_number(thole_slice input);
#endif
