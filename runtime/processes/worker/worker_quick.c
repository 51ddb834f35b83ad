/* Activities that are declared quick: their handlers run on the loop, inside a batch of completions. */
#include "clock.h"
#include "log_work.h"
#include "worker_parts.h"
#include <inttypes.h>

enum { SLOW_US = 100 * 1000 };

bool worker_is_quick(const struct worker_host *host, const struct thole_activity *act)
{
    return act->quick && !host->slow[act->entry];
}

static void warn_slow(struct worker_host *host, const struct thole_activity *act, uint64_t took_us)
{
    struct log_fields const fields = log_work(&act->message->item);
    if (host->slow[act->entry])
        return;
    host->slow[act->entry] = true;
    log_line_of(LOG_LEVEL_WARN, "worker", &fields,
                "activity %s is declared quick and took %" PRIu64
                " ms: from now on it runs on a thread, like "
                "others; renewals and cancellations of all others had to wait meanwhile",
                host->program->activities[act->entry].name, took_us / 1000);
}

void worker_run_quick(struct worker_host *host, struct thole_activity *act)
{
    uint64_t const since_us = clock_monotonic_us();
    act->running = true;
    worker_count_started(host, act);
    activity_run(act);
    act->running = false;
    uint64_t const took_us = clock_monotonic_us() - since_us;
    if (took_us > SLOW_US)
        warn_slow(host, act, took_us);
    worker_count_returned(host, act);
}
