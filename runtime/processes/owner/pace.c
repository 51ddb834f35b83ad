#include "pace.h"

enum {
    WEIGHT = 32,   /* of the mean, against one more */
    SLACK_US = 10, /* too short to matter */
    STEP_UP = 2,   /* quarters */
    BURST_US_MAX = 20 * 1000,
    SILENT_MAX = 10,  /* bursts without a wait by others, after which no others are assumed */
    FIFTHS_LIMIT = 6, /* of what others wait alone */
};

uint64_t pace_mean_us(uint64_t mean_us, uint64_t us)
{
    if (mean_us == 0)
        return us + (us == 0);
    if (us > PACE_OUTLIER * mean_us)
        us = PACE_OUTLIER * mean_us;
    return (mean_us * (WEIGHT - 1) + us + WEIGHT / 2) / WEIGHT;
}

static void pace_hurry(struct pace *pace)
{
    pace->quarters -= pace->quarters > 0;
}

void pace_judge(struct pace *pace, uint64_t n, uint64_t us, uint64_t alone_us)
{
    pace->silent = n == 0 ? pace->silent + 1 : 0;
    if (n == 0 || alone_us == 0) {
        if (pace->silent >= SILENT_MAX || alone_us == 0)
            pace_hurry(pace);
    } else if (us / n <= alone_us / 5 * FIFTHS_LIMIT + SLACK_US) {
        pace_hurry(pace);
    } else {
        pace->quarters += STEP_UP;
        if (pace->quarters > PACE_QUARTERS_MAX)
            pace->quarters = PACE_QUARTERS_MAX;
    }
}

bool pace_is_free(const struct pace *pace)
{
    return pace->urgent || pace->quarters == 0;
}

uint64_t pace_rest_us(const struct pace *pace, uint64_t burst_us)
{
    return pace_is_free(pace) ? 0 : (burst_us < BURST_US_MAX ? burst_us : BURST_US_MAX) / 4 * pace->quarters;
}
