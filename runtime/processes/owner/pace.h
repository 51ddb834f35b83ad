/*
 * How long a thread rests that sends many requests to a server which others need as well: after each burst,
 * for so many quarters of the burst's time that the waiting time of others grows by at most a fifth. The
 * thread never rests longer than three bursts, so that it finishes even when others wait for another reason.
 * Pure.
 */
#ifndef THOLE_PACE_H
#define THOLE_PACE_H
#include <stdbool.h>
#include <stdint.h>

enum {
    PACE_BURST_US = 2000,
    PACE_QUARTERS_MAX = 12,
    PACE_OUTLIER =
        4, /* times the mean: what waited longer, waited for something else, and counts as so much */
};

struct pace {
    uint32_t quarters; /* of a burst, between two of them */
    uint32_t silent;   /* bursts without others, one after the other */
    bool urgent;       /* others will wait for this thread if it rests: it does not */
};
/* A moving mean of the waits of others: of @p mean_us (0: not known yet) and one more. A wait for something
 * else has little influence. */
uint64_t pace_mean_us(uint64_t mean_us, uint64_t us);
/* After a burst, beside which @p n of others have waited @p us in all; alone it is @p alone_us for each, 0:
 * not known. */
void pace_judge(struct pace *pace, uint64_t n, uint64_t us, uint64_t alone_us);
bool pace_is_free(const struct pace *pace); /* Whether the caller need not rest. */
uint64_t pace_rest_us(const struct pace *pace, uint64_t burst_us);
#endif
