#include "worker.h"

enum { LOSSES_FREE = 2 };

void worker_options_init(struct worker_options *options)
{
    *options = (struct worker_options){.slots = 16,
                                       .completions_max = 16,
                                       .lease_ms = 30000,
                                       .grace_ms = 10000,
                                       .stop_grace_ms = 2000,
                                       .poison_after = 5};
}

/* The first losses do not count: activities that ran beside a handler that kills the worker have them too.
 * The last one always counts. */
uint32_t worker_candidate_after(uint32_t poison_after)
{
    if (poison_after == 0)
        return UINT32_MAX;
    return poison_after > LOSSES_FREE ? LOSSES_FREE : poison_after - 1;
}

uint32_t worker_strikes_max(uint32_t poison_after)
{
    return poison_after == 0 ? UINT32_MAX : poison_after - worker_candidate_after(poison_after);
}
