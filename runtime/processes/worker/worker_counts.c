/* Counters of the worker's loop. Names of instances never become labels. */
#include "clock.h"
#include "worker_parts.h"
#include <assert.h>

static_assert((int)CLAIMS_GONE == (int)WORKER_ROW_MISSING && (int)CLAIMS_CLAIMED == (int)WORKER_ROW_MINE &&
                  (int)CLAIMS_STOLEN == (int)WORKER_ROW_STOLEN &&
                  (int)CLAIMS_CANDIDATE == (int)WORKER_ROW_CANDIDATE &&
                  (int)CLAIMS_HELD == (int)WORKER_ROW_HELD &&
                  (int)CLAIMS_UNKNOWN == (int)WORKER_ROW_UNKNOWN &&
                  (int)CLAIMS_FORGED == (int)WORKER_ROW_FORGED,
              "claims are counted by the state of the row");

enum { MICROS_IN_MILLI = 1000 };

static size_t row_outcome(const struct row_call *call, size_t i)
{
    if (call->unknown)
        return ROWS_UNANSWERED;
    switch (call->rows[i].state) {
    case WORKER_ROW_MISSING: return ROWS_GONE;
    case WORKER_ROW_MINE: return ROWS_MINE;
    case WORKER_ROW_STOLEN: return ROWS_STOLEN;
    case WORKER_ROW_CANDIDATE:
    case WORKER_ROW_HELD:
    case WORKER_ROW_UNKNOWN:
    case WORKER_ROW_FORGED: break;
    }
    return ROWS_UNKNOWN;
}

/* The row of a quick one is claimed and completed at once, or else claimed later. */
static void count_begun(struct worker_host *host, const struct row_call *call, size_t i)
{
    const struct worker_row *const row = &call->rows[i];
    bool const mine = !call->unknown && row->state == WORKER_ROW_MINE;
    if (row->quick && mine)
        metric_add(host->cells, METRIC_WORKER_CLAIMS, CLAIMS_CLAIMED, 1);
    if (!row->quick || mine)
        metric_add(host->cells, METRIC_WORKER_COMPLETIONS, row_outcome(call, i), 1);
}

void worker_count_answer(struct worker_host *host, const struct row_call *call)
{
    for (size_t i = 0; i < call->len; i++) {
        if (call->kind == ROW_CALL_CLAIM)
            metric_add(host->cells, METRIC_WORKER_CLAIMS,
                       call->unknown ? CLAIMS_UNANSWERED : (size_t)call->rows[i].state, 1);
        else if (call->kind == ROW_CALL_RENEW)
            metric_add(host->cells, METRIC_WORKER_RENEWALS, row_outcome(call, i), 1);
        else if (call->kind == ROW_CALL_BEGIN)
            count_begun(host, call, i);
    }
}

/* Also counts one that was lost and made again since the last call. */
void worker_count_link(struct worker_host *host)
{
    if (host->cells == NULL)
        return;
    uint64_t const epoch = connection_epoch(host->connection);
    if (host->epoch != 0 && epoch != host->epoch)
        metric_add(host->cells, METRIC_NATS_DISCONNECTS, 0, 1);
    host->epoch = epoch;
    metric_set(host->cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_UP, epoch != 0);
    metric_set(host->cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_DOWN, epoch == 0);
}

/* The clocks of engine and worker may differ: what seems to be yet to come is now. */
uint64_t worker_since_ms(uint64_t wall_ms)
{
    uint64_t const wall_now_ms = clock_wall_ms();
    uint64_t const now_ms = clock_monotonic_ms();
    uint64_t const age_ms = wall_ms < wall_now_ms ? wall_now_ms - wall_ms : 0;
    if (wall_ms == 0)
        return 0;
    return age_ms < now_ms ? now_ms - age_ms : 1;
}

static void observe_delay(struct worker_host *host, size_t path, uint64_t since_ms)
{
    uint64_t const now_us = clock_monotonic_us(), since_us = since_ms * MICROS_IN_MILLI;
    if (since_ms > 0)
        metric_observe(host->cells, METRIC_WORKER_CANCELLATION_DELAY, path,
                       now_us > since_us ? now_us - since_us : 0);
}

void worker_count_fired(struct worker_host *host, const struct worker_out *out)
{
    metric_add(host->cells, METRIC_WORKER_TOKENS, (size_t)out->path, 1);
    if (out->path == WORKER_PATH_PUSH)
        observe_delay(host, CANCELLATIONS_PUSH, out->since_ms);
    else if (out->path == WORKER_PATH_RENEWAL)
        observe_delay(host, CANCELLATIONS_RENEWAL, out->since_ms);
}

void worker_count_started(struct worker_host *host, struct thole_activity *act)
{
    act->started_us = clock_monotonic_us();
    act->started_ms = clock_wall_ms();
    host->running++;
}

static size_t worker_counts_returned(thole_status status)
{
    switch (status) {
    case THOLE_OK: return HANDLERS_OK;
    case THOLE_APP: return HANDLERS_APP;
    case THOLE_CANCELLED: return HANDLERS_CANCELLED;
    case THOLE_LATER: return HANDLERS_LATER;
    default: return HANDLERS_OTHER;
    }
}

void worker_count_returned(struct worker_host *host, const struct thole_activity *act)
{
    uint64_t const now_us = clock_monotonic_us(), fired_us = act->fired_ms * MICROS_IN_MILLI;
    host->running--;
    metric_observe(host->cells, METRIC_WORKER_ACTIVITY_DURATION, act->entry, now_us - act->started_us);
    metric_add(host->cells, METRIC_WORKER_HANDLERS, worker_counts_returned(act->status), 1);
    if (act->fired_kind != THOLE_CANCEL_NONE)
        metric_observe(host->cells, METRIC_WORKER_CANCELLATION_GRACE, 0, now_us - fired_us);
}

void worker_count_published(struct worker_host *host, bool stored)
{
    metric_add(host->cells, METRIC_WORKER_RESULTS, stored ? RESULTS_STORED : RESULTS_FAILED, 1);
}

void worker_count_end(struct worker_host *host, const struct worker_out *out)
{
    metric_add(host->cells, METRIC_WORKER_ENDED, (size_t)out->end, 1);
    if (out->end == WORKER_END_REFUSED)
        observe_delay(host, CANCELLATIONS_REFUSED, out->since_ms);
}

void worker_count_machine(struct worker_host *host)
{
    if (host->cells == NULL)
        return;
    struct worker_counters const c = worker_counters(host->machine);
    metric_set(host->cells, METRIC_WORKER_SLOTS, 0, host->options.slots);
    metric_set(host->cells, METRIC_WORKER_HELD, 0, worker_held(host->machine));
    metric_set(host->cells, METRIC_WORKER_RUNNING, 0, host->running);
    metric_set(host->cells, METRIC_WORKER_DELIVERED, 0, c.delivered);
    metric_set(host->cells, METRIC_WORKER_CANCELLATIONS, CANCELLATIONS_PUSH, c.cancelled_by_push);
    metric_set(host->cells, METRIC_WORKER_CANCELLATIONS, CANCELLATIONS_RENEWAL, c.cancelled_by_renewal);
    metric_set(host->cells, METRIC_WORKER_CANCELLATIONS, CANCELLATIONS_REFUSED, c.refused);
    metric_set(host->cells, METRIC_WORKER_PUSHES_IGNORED, IGNORED_MALFORMED,
               log_limits_total(host->lines, WORKER_LINE_BAD_PUSH));
    metric_set(host->cells, METRIC_WORKER_PUSHES_IGNORED, IGNORED_UNPROVEN, c.unproven);
    metric_set(host->cells, METRIC_WORKER_PUSHES_CONTRADICTED, 0, c.contradicted);
    metric_set(host->cells, METRIC_WORKER_ABANDONED, 0, c.abandoned);
    metric_set(host->cells, METRIC_WORKER_POISONED, 0, c.poisoned);
}
