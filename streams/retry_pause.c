#include "retry_pause.h"
#include <assert.h>
#include <stdbool.h>

enum {
    FAILED_FIRST_MS = 50,
    FAILED_MAX_MS = 2000,
    LOST_FIRST_MS = 250,
    STEADY_MS = 60 * 1000, /* a connection that has lived as long was not lost shortly after it was made */
};

/* Between half of it and all of it. */
static uint64_t retry_pause_jitter(struct retry_pause *pause, uint64_t ms)
{
    pause->random ^= pause->random << 13;
    pause->random ^= pause->random >> 7;
    pause->random ^= pause->random << 17;
    assert(pause->random != 0); /* else it stays 0 for ever */
    return ms / 2 + pause->random % (ms / 2 + 1);
}

static uint64_t retry_pause_grow(uint64_t ms, uint64_t first_ms, uint64_t max_ms)
{
    uint64_t const next_ms = ms == 0 ? first_ms : ms * 2;
    return next_ms < max_ms ? next_ms : max_ms;
}

void retry_pause_begin(struct retry_pause *pause, uint64_t lost_max_ms, uint64_t seed)
{
    *pause = (struct retry_pause){.lost_max_ms = lost_max_ms, .random = seed | 1};
}

void retry_pause_failed(struct retry_pause *pause, uint64_t now_ms)
{
    pause->failed_ms = retry_pause_grow(pause->failed_ms, FAILED_FIRST_MS, FAILED_MAX_MS);
    pause->due_ms = now_ms + retry_pause_jitter(pause, pause->failed_ms);
}

/* One that is lost at once is not made again at once. */
void retry_pause_connected(struct retry_pause *pause, uint64_t now_ms)
{
    pause->failed_ms = 0;
    pause->connected_ms = now_ms;
    pause->due_ms = now_ms + FAILED_FIRST_MS;
}

void retry_pause_lost(struct retry_pause *pause, uint64_t now_ms)
{
    assert(now_ms >= pause->connected_ms);
    if (pause->lost_max_ms == 0)
        return;
    bool const steady = now_ms - pause->connected_ms >= STEADY_MS;
    pause->lost_ms = steady ? 0 : retry_pause_grow(pause->lost_ms, LOST_FIRST_MS, pause->lost_max_ms);
    if (!steady)
        pause->due_ms = now_ms + retry_pause_jitter(pause, pause->lost_ms);
}
