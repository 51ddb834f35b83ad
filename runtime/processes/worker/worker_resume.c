/* Claims that another worker has made, whose place this one takes: their handlers run already, elsewhere. */
#include "clock.h"
#include "memory.h"
#include "subject.h"
#include "worker_parts.h"

enum { RESUMED_MEMORY_MIN = 64 * 1024, MICROS_IN_MILLI = 1000, CALL_TIMEOUT_MS_MIN = 500 };

static struct remote_resumption *resumption_of(const struct worker_host *host)
{
    return host->options.remote == NULL ? NULL : host->options.remote->resumption;
}

size_t worker_resumed_len(const struct worker_host *host)
{
    const struct remote_resumption *const resumption = resumption_of(host);
    return resumption == NULL ? 0 : resumption->len;
}

static struct claim claim_of(const struct worker_host *host, const struct resumed_claim *from)
{
    return (struct claim){.key = {.instance = from->item.instance,
                                  .execution = from->item.execution,
                                  .activity_id = from->item.activity_id,
                                  .try_number = (uint32_t)from->item.try_number},
                          .partition = subject_partition(from->item.instance, host->topology.partitions),
                          .lease_ms = host->lease_ms,
                          .attempt = from->attempt,
                          .claimed_us = from->claimed_us,
                          .digest = work_digest_slice(&from->digest)};
}

/* In one statement. */
static thole_status worker_resume_take_over(struct worker_host *host,
                                            const struct remote_resumption *resumption, thole_error *reterr)
{
    struct postgres *pg = NULL;
    struct row_pool *const pool = host->options.row_pool;
    uint64_t const sixth_ms = host->lease_ms / 6;
    struct resumption const how = {.worker = host->incarnation_slice,
                                   .from = thole_slice_from(resumption->from),
                                   .queue = thole_slice_from(host->options.queue)};
    THOLE_TRY(row_pool_take(pool, ROW_POOL_RENEWAL,
                            sixth_ms > CALL_TIMEOUT_MS_MIN ? sixth_ms : CALL_TIMEOUT_MS_MIN, &pg, reterr));
    host->resumed_ms = clock_monotonic_ms();
    thole_status const status =
        worker_store_resume(pg, &how, host->resumed, resumption->len, &host->resumed_details, reterr);
    row_pool_give(pool, ROW_POOL_RENEWAL, pg);
    return status;
}

/* A row that is missing goes on as well, to be told that it is cancelled. */
static thole_status worker_resume_look_at(const struct worker_host *host,
                                          struct remote_resumption *resumption, thole_error *reterr)
{
    for (size_t i = 0; i < resumption->len; i++) {
        enum row_state const state = host->resumed[i].state;
        if (state == ROW_UNKNOWN)
            return thole_fail(reterr, THOLE_UNAVAILABLE,
                              "it is not known yet what of the session is left: the database was lost, and "
                              "an engine writes its rows again; ask again");
        resumption->claims[i].gone = state != ROW_MINE && state != ROW_MISSING;
    }
    return THOLE_OK;
}

/* Approximates the start by the time of the claim, by the database's clock, which may be another one. */
static void set_start(struct worker_host *host, struct thole_activity *act)
{
    worker_count_started(host, act);
    uint64_t const claimed_ms = act->claimed_us / MICROS_IN_MILLI;
    uint64_t const since_us =
        claimed_ms < act->started_ms ? (act->started_ms - claimed_ms) * MICROS_IN_MILLI : 0;
    if (since_us == 0 || since_us > act->started_us)
        return;
    act->started_ms = claimed_ms;
    act->started_us -= since_us;
}

static struct thole_activity *worker_resume_make_activity(struct worker_host *host,
                                                          const struct resumed_claim *from,
                                                          const struct claim *claim, uint64_t now_ms)
{
    struct work_item item = from->item;
    item.queue = thole_slice_from(host->options.queue);
    item.activity = claim->activity;
    struct thole_activity *const act = activity_create(work_message_elsewhere(&item, &from->digest), now_ms);
    struct activity_parties const parties = {.worker = host->incarnation_slice};
    uint64_t const deadline_ms = claim->expired        ? now_ms
                                 : claim->left_ms == 0 ? UINT64_MAX
                                                       : now_ms + claim->left_ms;
    act->partition = claim->partition;
    act->claimed_us = from->claimed_us;
    act->run = remote_handler;
    if (activity_begin(act, from->attempt, deadline_ms, claim->details, &parties) != THOLE_OK)
        memory_give_up(1, claim->details.len);
    return act;
}

/* False: the machine has another claim of the same try. */
static bool worker_resume_go_on(struct worker_host *host, const struct resumed_claim *from,
                                const struct claim *claim, size_t n)
{
    uint64_t const now_ms = clock_monotonic_ms();
    struct thole_activity *const act = worker_resume_make_activity(host, from, claim, now_ms);
    const struct work_item *const item = &act->message->item;
    struct worker_row const row = {.attempt = from->attempt,
                                   .claimed_us = from->claimed_us,
                                   .state = (enum worker_row_state)claim->state,
                                   .expired = claim->expired,
                                   .left_ms = claim->left_ms};
    struct worker_in const in = {
        .kind = WORKER_IN_RESUMED,
        .id = (uint64_t)(uintptr_t)act,
        .key = {item->instance, item->execution, item->activity_id, (uint32_t)item->try_number},
        .digest = from->digest,
        .nonce = item->nonce,
        .arrived_ms = host->resumed_ms,
        .rows = &row,
        .rows_len = 1};
    if (worker_input(host->machine, &in, now_ms) != THOLE_OK) {
        activity_destroy(act);
        return false;
    }
    set_start(host, act);
    act->running = true;
    host->options.remote->resumed(host->options.remote->arg, host, act, n);
    return true;
}

thole_status worker_resume(struct worker_host *host, thole_error *reterr)
{
    struct remote_resumption *const resumption = resumption_of(host);
    size_t gone = 0;
    atomic_store(&host->heard, resumption == NULL);
    if (resumption == NULL)
        return THOLE_OK;
    size_t const n = resumption->len;
    host->resumed = memory_array(n + 1, sizeof *host->resumed);
    arena_init(&host->resumed_details, RESUMED_MEMORY_MIN + n * (DETAILS_BYTES_MAX + 256));
    for (size_t i = 0; i < n; i++)
        host->resumed[i] = claim_of(host, &resumption->claims[i]);
    THOLE_TRY(worker_resume_take_over(host, resumption, reterr));
    THOLE_TRY(worker_resume_look_at(host, resumption, reterr));
    for (size_t i = 0; i < n; i++) {
        struct resumed_claim *const claim = &resumption->claims[i];
        if (!claim->gone)
            claim->gone = !worker_resume_go_on(host, claim, &host->resumed[i], i);
        gone += claim->gone;
    }
    log_line(LOG_LEVEL_INFO, "worker", "goes on with %zu activities of the worker before, %zu are gone",
             n - gone, gone);
    return THOLE_OK;
}
