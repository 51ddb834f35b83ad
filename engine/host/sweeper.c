/*
 * What should never be needed: an activity whose row no worker claims or renews, because its message is gone,
 * is queued again. Acknowledgements are not fences, so a message can go while its row stays: a late one
 * removes a redelivered message; a database that lost its last moments shows a worker no row, and it
 * acknowledges. Asks the database only while the partition has open activities.
 */
#include "engine.h"
#include <stdlib.h>

void sweeper_run(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    if (partition_state(owned->machine) != PARTITION_OPEN || partition_open_activities(owned->machine) == 0) {
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
    owned->sweep_ms = now_ms + age;
    store_submit(shard->store, job);
}

uint64_t sweeper_deadline_ms(const struct owned *owned)
{
    return owned->sweep_ms == 0 || owned->sweeping ? UINT64_MAX : owned->sweep_ms;
}

static void find(struct shard *shard, const struct owned *owned, const struct batch_activity *orphan)
{
    struct job *job = job_create(JOB_FIND, shard, owned->p, partition_generation(owned->machine));
    struct batch_activity *copy = job == NULL ? NULL : &job->activity;
    if (copy == NULL)
        return; /* the next sweep finds it again */
    copy->execution = orphan->execution;
    copy->activity_id = orphan->activity_id;
    if (arena_dup(&job->arena, orphan->instance, &copy->instance) != THOLE_OK ||
        arena_dup(&job->arena, orphan->queue, &copy->queue) != THOLE_OK ||
        arena_dup(&job->arena, orphan->activity, &copy->activity) != THOLE_OK)
        job_destroy(job);
    else
        loader_submit(shard->engine->loader, job);
}

void sweeper_answered(struct shard *shard, struct owned *owned, const struct job *job)
{
    bool const current = partition_generation(owned->machine) == job->generation;
    if (job->kind == JOB_STORE_ORPHANS) {
        owned->sweeping = false;
        for (size_t i = 0; i < job->orphans_len && current && job->status == THOLE_OK; i++)
            find(shard, owned, &job->orphans[i]);
        return;
    }
    if (!current || job->status != THOLE_OK)
        return;
    const struct batch_activity *activity = &job->activity;
    if (!job->found) {
        log_line(LOG_LEVEL_ERROR, "sweeper", "p=%u %.*s has an activity %llu that its history does not know",
                 owned->p, THOLE_FMT(activity->instance), (unsigned long long)activity->activity_id);
        return;
    }
    shard_requeue(shard, owned, activity, job->input);
}
