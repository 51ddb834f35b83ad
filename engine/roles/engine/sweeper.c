/*
 * What should never be needed: an activity whose row no worker claims or renews, because its message is gone,
 * is queued again. Acknowledgements are not fences, so a message can go while its row stays: a late one
 * removes a redelivered message; a database that lost its last moments shows a worker no row, and it
 * acknowledges. The rows say when they were last heard of, by the database's clock: it is asked at once when
 * the partition opens, and then when the next row can be due. Only while the partition has open activities.
 *
 * And what no worker may be left to do: tries are ended when their time is over. When there can be a deadline
 * is known from the rows that are projected, and from the database when the partition opens; it is asked only
 * then. A worker that lives does this itself, so that it gets a moment to be the first.
 */
#include "engine.h"
#include "notice.h"
#include <stdlib.h>

enum {
    DEADLINE_SLACK_MS = 500,
    ROUNDING_MS = 20,
    SWEEPS_MAX = 4, /* in the time after which a row is due: some row of very many always is */
    AGAIN_MS = 1000 /* after one that failed */
};

void sweeper_opened(struct owned *owned)
{
    owned->sweep_ms = clock_monotonic_ms();
}

static void sweep_orphans(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    if (partition_open_activities(owned->machine) == 0) {
        owned->sweep_ms = 0;
        return;
    }
    uint64_t const age = shard->engine->options.sweep_ms;
    if (owned->sweep_ms == 0)
        owned->sweep_ms = now_ms + age;
    if (owned->sweeping || now_ms < owned->sweep_ms)
        return;
    struct job *job = job_create(JOB_STORE_ORPHANS, shard, owned->p, partition_generation(owned->machine));
    if (job == NULL)
        return;
    job->before_ms = age;
    owned->sweeping = true;
    store_submit(shard->store, job);
}

static void sweep_deadlines(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    if (owned->expire_ms == 0 || owned->expiring || now_ms < owned->expire_ms)
        return;
    struct job *job = job_create(JOB_STORE_EXPIRE, shard, owned->p, partition_generation(owned->machine));
    if (job == NULL)
        return;
    job->before_ms = DEADLINE_SLACK_MS;
    owned->expiring = true;
    owned->expire_ms = 0;
    store_submit(shard->store, job);
}

void sweeper_run(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    enum partition_state const state = partition_state(owned->machine);
    if (state != PARTITION_OPEN)
        owned->sweep_ms = 0;
    if (state == PARTITION_CLOSED)
        owned->expire_ms = 0; /* opening it finds out anew */
    if (state != PARTITION_OPEN)
        return;
    sweep_orphans(shard, owned, now_ms);
    sweep_deadlines(shard, owned, now_ms);
}

uint64_t sweeper_deadline_ms(const struct owned *owned)
{
    uint64_t const sweep_ms = owned->sweep_ms == 0 || owned->sweeping ? UINT64_MAX : owned->sweep_ms;
    if (owned->expire_ms == 0 || owned->expiring || partition_state(owned->machine) != PARTITION_OPEN)
        return sweep_ms;
    return owned->expire_ms < sweep_ms ? owned->expire_ms : sweep_ms;
}

static void swept(const struct shard *shard, struct owned *owned, const struct job *job)
{
    uint64_t const age = shard->engine->options.sweep_ms;
    uint64_t pause_ms = job->orphan_in_ms < age ? job->orphan_in_ms + ROUNDING_MS : age;
    if (pause_ms < age / SWEEPS_MAX)
        pause_ms = age / SWEEPS_MAX;
    if (job->status != THOLE_OK)
        pause_ms = AGAIN_MS;
    owned->sweep_ms = clock_monotonic_ms() + pause_ms;
}

void sweeper_missing(struct shard *shard, struct owned *owned, const struct batch_activity *orphan)
{
    struct job *job = job_create(JOB_FIND, shard, owned->p, partition_generation(owned->machine));
    struct batch_activity *copy = job == NULL ? NULL : &job->activity;
    if (copy == NULL)
        return; /* the next sweep finds it again */
    copy->execution = orphan->execution;
    copy->activity_id = orphan->activity_id;
    copy->try_number = orphan->try_number;
    if (arena_dup(&job->arena, orphan->instance, &copy->instance) != THOLE_OK ||
        arena_dup(&job->arena, orphan->queue, &copy->queue) != THOLE_OK ||
        arena_dup(&job->arena, orphan->activity, &copy->activity) != THOLE_OK)
        job_destroy(job);
    else
        loader_submit(shard->engine->loader, job);
}

static void found(struct shard *shard, struct owned *owned, const struct job *job)
{
    const struct batch_activity *activity = &job->activity;
    if (!job->found) {
        log_line(LOG_LEVEL_ERROR, "sweeper", "p=%u %.*s has an activity %llu that its history does not know",
                 owned->p, THOLE_FMT(activity->instance), (unsigned long long)activity->activity_id);
        return;
    }
    shard_requeue(shard, owned, activity, job->input);
}

/* Its worker may still be at it. */
static void push(struct shard *shard, const struct expired_try *expired)
{
    struct cancel_notice const notice = {.instance = expired->row.instance,
                                         .execution = expired->row.execution,
                                         .activity_ids = &expired->row.activity_id,
                                         .activity_ids_len = 1,
                                         .try_number = expired->row.try_number,
                                         .kind =
                                             thole_slice_from(thole_cancel_kind_name(THOLE_CANCEL_TIMEOUT))};
    thole_error err = {0};
    if (cancel_notice_publish(shard->engine->connection, shard->engine->topology.ns, &notice, &err) !=
        THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "sweeper", "a cancel push was not sent: %s", err.text);
}

static void ended(struct shard *shard, const struct owned *owned, const struct job *job)
{
    if (job->expired_len > 0)
        log_line(LOG_LEVEL_INFO, "sweeper", "p=%u %zu tries are past their deadline and ended", owned->p,
                 job->expired_len);
    for (size_t i = 0; i < job->expired_len; i++)
        push(shard, &job->expired[i]);
}

/* When there is something to look for. */
static void expect(struct owned *owned, uint64_t in_ms, uint64_t slack_ms)
{
    uint64_t const at_ms = clock_monotonic_ms() + in_ms + slack_ms;
    if (in_ms < UINT64_MAX / 2 && (owned->expire_ms == 0 || at_ms < owned->expire_ms))
        owned->expire_ms = at_ms;
}

void sweeper_answered(struct shard *shard, struct owned *owned, const struct job *job)
{
    bool const good = partition_generation(owned->machine) == job->generation && job->status == THOLE_OK;
    switch (job->kind) {
    case JOB_STORE_ORPHANS:
        owned->sweeping = false;
        if (job->generation == partition_generation(owned->machine))
            swept(shard, owned, job);
        for (size_t i = 0; i < job->orphans_len && good; i++)
            shard_look_for_work(shard, owned, &job->orphans[i]);
        break;
    case JOB_FIND:
        if (good)
            found(shard, owned, job);
        break;
    case JOB_STORE_EXPIRE:
        owned->expiring = false;
        if (job->status == THOLE_OK)
            ended(shard, owned, job);
        if (job->status != THOLE_OK)
            expect(owned, AGAIN_MS, 0);
        if (good) /* what is left of very many is looked at at once */
            expect(owned, job->deadline_in_ms,
                   job->expired_len > 0 && job->deadline_in_ms == 0 ? 0 : DEADLINE_SLACK_MS + ROUNDING_MS);
        break;
    case JOB_STORE_LIVE:
    case JOB_STORE_APPLY:
        if (good)
            expect(owned, job->deadline_in_ms, DEADLINE_SLACK_MS + ROUNDING_MS);
        break;
    case JOB_READ_TAIL:
    case JOB_READ_LOG:
    case JOB_READ_RESULTS:
    case JOB_LOAD:
    case JOB_REMOVE:
    case JOB_DELETE:
    case JOB_PURGE:
    case JOB_OPEN_INBOX:
    case JOB_CLOSE_INBOX:
    case JOB_READ_CRASHES:
    case JOB_PUT_CRASH:
    case JOB_FORGET_CRASHES:
    case JOB_LOOK_INBOX:
    case JOB_STORE_OPEN:
    case JOB_STORE_RESET:
    case JOB_STORE_TIMERS: break;
    }
}
