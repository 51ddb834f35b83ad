/*
 * When a connection is made again: after attempts that failed, with pauses that grow; after a loss, at once,
 * or, where it is lost again and again shortly after it was made, with pauses that grow, too. nats.c forgets
 * the message that it was receiving when a connection is lost, so a connection that strangers can have closed
 * must not be made again as fast as they do so. Pure: times of the monotonic clock are passed in.
 */
#ifndef THOLE_RETRY_PAUSE_H
#define THOLE_RETRY_PAUSE_H
#include <stdint.h>

struct retry_pause {
    uint64_t due_ms;             /* not before */
    uint64_t failed_ms, lost_ms; /* the last pauses of either kind; 0: none */
    uint64_t lost_max_ms;        /* 0: a loss has no pause of its own */
    uint64_t connected_ms;
    uint64_t random;
};
/* @p seed: any number. */
void retry_pause_begin(struct retry_pause *pause, uint64_t lost_max_ms, uint64_t seed);
void retry_pause_failed(struct retry_pause *pause, uint64_t now_ms);
void retry_pause_connected(struct retry_pause *pause, uint64_t now_ms);
void retry_pause_lost(struct retry_pause *pause, uint64_t now_ms);
#endif
