/* When something is due: margins, fences, renewals, retries. */
#include "worker_machine.h"

enum {
    MARGIN_MS_MAX = 2000,
    BACKOFF_MS_MIN = 50,
    BACKOFF_MS_MAX = 2000,
    BACKOFF_DOUBLINGS_MAX = 10,
    UNKNOWN_RETRY_MS_MAX = 1000,
};

static uint64_t lease_times_min_ms(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t worker_margin_ms(const struct worker_machine *w)
{
    uint64_t const fifth_ms = w->options.lease_ms / 5;
    return fifth_ms < MARGIN_MS_MAX ? fifth_ms : MARGIN_MS_MAX;
}

uint64_t worker_renew_every_ms(const struct worker_machine *w)
{
    return w->options.renew_ms > 0 ? w->options.renew_ms : w->options.lease_ms / 3;
}

uint64_t worker_backoff_ms(const struct worker_machine *w, uint32_t retries)
{
    uint64_t const most_ms =
        w->options.lease_ms / 8 < BACKOFF_MS_MAX ? w->options.lease_ms / 8 : BACKOFF_MS_MAX;
    uint32_t const doublings = retries > BACKOFF_DOUBLINGS_MAX ? BACKOFF_DOUBLINGS_MAX : retries;
    uint64_t const delay_ms = ((uint64_t)BACKOFF_MS_MIN << doublings) / 2;
    return delay_ms < most_ms ? delay_ms : most_ms;
}

uint64_t worker_ask_again_ms(const struct worker_machine *w)
{
    return lease_times_min_ms(w->options.lease_ms / 15 + 1, UNKNOWN_RETRY_MS_MAX);
}

uint64_t lease_fence_ms(const struct worker_machine *w, const struct lease *lease)
{
    uint64_t const from_ms = lease->renewed_ms != UINT64_MAX ? lease->renewed_ms : lease->arrived_ms;
    return from_ms + w->options.lease_ms - worker_margin_ms(w);
}

uint64_t lease_due_ms(const struct worker_machine *w, const struct lease *lease)
{
    uint64_t const fence_ms = lease_fence_ms(w, lease);
    switch (lease->state) {
    case LEASE_PARKED: return lease->parked.until_ms;
    case LEASE_QUEUED:
    case LEASE_QUICK:
        return w->claim_failures > 0
                   ? lease_times_min_ms(lease->arrived_ms + w->options.lease_ms / 3, fence_ms)
                   : fence_ms;
    case LEASE_UNSERVED:
    case LEASE_ISOLATED:
    case LEASE_CONFIRMING: return fence_ms;
    case LEASE_STARTING:
    case LEASE_RUNNING: return lease_times_min_ms(fence_ms, lease->deadline_ms);
    case LEASE_CANCELLING:
        return lease_has_row(lease) ? lease_times_min_ms(lease->cancelling.grace_ms, fence_ms)
                                    : lease->cancelling.grace_ms;
    case LEASE_RETRYING: return lease->result.again_ms;
    default: return UINT64_MAX; /* nothing is due by time */
    }
}

void lease_refresh(struct worker_machine *w, const struct lease *lease)
{
    w->wake_ms = lease_times_min_ms(w->wake_ms, lease_due_ms(w, lease));
}

void worker_progress_arm(struct worker_machine *w, const struct lease *lease)
{
    w->progress_due_ms = lease_times_min_ms(w->progress_due_ms, lease->signal_ms + worker_renew_every_ms(w));
}

void worker_renew_arm(struct worker_machine *w, const struct lease *lease)
{
    w->renew_due_ms = lease_times_min_ms(w->renew_due_ms, lease->renewed_ms + worker_renew_every_ms(w));
    worker_progress_arm(w, lease);
}
