/* The rows that Postgres would have: instances, timers; the rows of activities are in kit_work.c. */
#include "kit.h"
#include <stdio.h>
#include <string.h>

/* ---- instances ---- */

static void kit_rows_replace(thole_test_env *env, thole_slice *text, thole_slice by)
{
    if (!thole_slice_equal(*text, by))
        *text = kit_dup(env, by);
}

static void clear_instance(struct kit_instance *instance)
{
    instance->status = THOLE_INSTANCE_UNKNOWN;
    instance->orchestration = instance->detail = instance->custom_status = instance->parent =
        (thole_slice){0};
    instance->execution = instance->version = 0;
}

static void apply_instance(thole_test_env *env, const struct batch_instance *row)
{
    struct kit_instance *const instance = kit_instance_at(env, row->instance);
    if (row->removed) {
        clear_instance(instance);
        return;
    }
    instance->status = (thole_instance_status)row->status;
    instance->execution = row->execution;
    if (row->version != 0)
        instance->version = row->version;
    if (row->orchestration.len > 0)
        kit_rows_replace(env, &instance->orchestration, row->orchestration);
    if (row->parent.len > 0)
        kit_rows_replace(env, &instance->parent, row->parent);
    if (row->custom_status_set)
        kit_rows_replace(env, &instance->custom_status, row->custom_status);
    kit_rows_replace(env, &instance->detail, row->detail);
}

/* ---- timers ---- */

static struct kit_timer *timer_find(const thole_test_env *env, const struct batch_timer *key)
{
    for (size_t i = 0; i < env->timers_len; i++) {
        struct kit_timer *const timer = &env->timers[i];
        if (timer->row.due_ms != 0 && timer->row.timer_id == key->timer_id &&
            timer->row.execution == key->execution && thole_slice_equal(timer->row.instance, key->instance))
            return timer;
    }
    return NULL;
}

static void add_timer(thole_test_env *env, const struct batch_timer *row)
{
    struct kit_timer *timer = timer_find(env, row);
    for (size_t i = 0; timer == NULL && i < env->timers_len; i++)
        if (env->timers[i].row.due_ms == 0)
            timer = &env->timers[i];
    if (timer == NULL) {
        env->timers = kit_grow(env, env->timers, env->timers_len, &env->timers_cap, sizeof *env->timers);
        timer = &env->timers[env->timers_len++];
    }
    timer->row = *row;
    timer->row.instance = kit_instance_at(env, row->instance)->id;
}

void kit_rows_timers(thole_test_env *env, uint64_t before_ms, struct arena *arena, struct in_timers *ret)
{
    struct batch_timer *const timers = arena_array(arena, env->timers_len, sizeof *timers);
    kit_must(timers != NULL);
    *ret = (struct in_timers){.timers = timers};
    for (size_t i = 0; i < env->timers_len; i++) {
        const struct batch_timer *const row = &env->timers[i].row;
        if (row->due_ms != 0 && row->due_ms < before_ms)
            timers[ret->timers_len++] = *row;
        else if (row->due_ms != 0 && (ret->next_due_ms == 0 || row->due_ms < ret->next_due_ms))
            ret->next_due_ms = row->due_ms;
    }
}

/* ---- transactions ---- */

/* A redo of a deletion may remove rows of a later incarnation, which it then adds again. */
static void apply_deletion(thole_test_env *env, const struct batch_deletion *row)
{
    if (row->history_seq > 0)
        clear_instance(kit_instance_at(env, row->instance));
    kit_work_deleted(env, row->instance, row->execution);
    for (size_t i = 0; i < env->timers_len; i++)
        if (env->timers[i].row.execution <= row->execution &&
            thole_slice_equal(env->timers[i].row.instance, row->instance))
            env->timers[i].row.due_ms = 0;
}

void kit_rows_apply(thole_test_env *env, const struct batch *batch)
{
    for (size_t i = 0; i < batch->deletions_len; i++)
        apply_deletion(env, &batch->deletions[i]);
    for (size_t i = 0; i < batch->activities_removed_len; i++)
        kit_work_removed(env, &batch->activities_removed[i]);
    for (size_t i = 0; i < batch->activities_added_len; i++)
        kit_work_added(env, &batch->activities_added[i]);
    for (size_t i = 0; i < batch->timers_removed_len; i++) {
        struct kit_timer *const timer = timer_find(env, &batch->timers_removed[i]);
        if (timer != NULL)
            timer->row.due_ms = 0;
    }
    for (size_t i = 0; i < batch->timers_added_len; i++)
        add_timer(env, &batch->timers_added[i]);
    for (size_t i = 0; i < batch->instances_len; i++)
        apply_instance(env, &batch->instances[i]);
    kit_must(batch->follows.batches == env->rows.batches);
    env->rows = (struct rows_state){batch->projected, env->rows.batches + 1};
}

static bool kit_rows_is_live(const struct kit_instance *instance)
{
    switch (instance->status) {
    case THOLE_INSTANCE_UNKNOWN:
    case THOLE_INSTANCE_PENDING:
    case THOLE_INSTANCE_COMPLETED:
    case THOLE_INSTANCE_FAILED:
    case THOLE_INSTANCE_CANCELLED:
    case THOLE_INSTANCE_TERMINATED: return false;
    case THOLE_INSTANCE_RUNNING:
    case THOLE_INSTANCE_WAITING:
    case THOLE_INSTANCE_STUCK:
    case THOLE_INSTANCE_PAUSED:
    case THOLE_INSTANCE_CONTINUED_AS_NEW: break;
    }
    return instance->execution > 0;
}

static bool is_blocked(const struct kit_instance *instance)
{
    return kit_rows_is_live(instance) &&
           (instance->status == THOLE_INSTANCE_WAITING || instance->status == THOLE_INSTANCE_STUCK ||
            instance->status == THOLE_INSTANCE_CONTINUED_AS_NEW);
}

/* "name" or "name@version" beyond version 1. */
static thole_slice kit_rows_live_name(const struct kit_instance *instance, struct arena *arena)
{
    size_t const room = THOLE_NAME_BYTES_MAX + 16;
    char *const text = arena_alloc(arena, room);
    kit_must(text != NULL);
    int const len = instance->version > 1 ? snprintf(text, room, "%.*s@%u",
                                                     THOLE_FMT(instance->orchestration), instance->version)
                                          : snprintf(text, room, "%.*s", THOLE_FMT(instance->orchestration));
    return (thole_slice){(const uint8_t *)text, (size_t)len};
}

static void kit_rows_count_name(thole_slice *names, uint64_t *counts, size_t *len, thole_slice name)
{
    size_t i = 0;
    while (i < *len && !thole_slice_equal(names[i], name))
        i++;
    *len += i == *len;
    names[i] = name;
    counts[i]++;
}

void kit_rows_live(thole_test_env *env, struct arena *arena, struct in_live *ret)
{
    size_t n = 0;
    for (const struct kit_instance *i = env->instances; i != NULL; i = i->next)
        n += kit_rows_is_live(i);
    struct batch_instance *const blocked = arena_array(arena, n, sizeof *blocked);
    thole_slice *const names = arena_array(arena, n, sizeof *names);
    uint64_t *const counts = arena_array(arena, n, sizeof *counts);
    kit_must(blocked != NULL && names != NULL && counts != NULL);
    *ret = (struct in_live){
        .blocked = blocked, .names = names, .counts = counts, .activities = kit_work_rows(env)};
    for (const struct kit_instance *i = env->instances; i != NULL; i = i->next) {
        if (kit_rows_is_live(i))
            kit_rows_count_name(names, counts, &ret->names_len, kit_rows_live_name(i, arena));
        if (is_blocked(i))
            blocked[ret->blocked_len++] = (struct batch_instance){.instance = i->id,
                                                                  .orchestration = i->orchestration,
                                                                  .version = i->version,
                                                                  .execution = i->execution,
                                                                  .status = i->status,
                                                                  .detail = i->detail};
    }
}

void kit_rows_reset(thole_test_env *env)
{
    for (struct kit_instance *i = env->instances; i != NULL; i = i->next)
        i->status = THOLE_INSTANCE_UNKNOWN;
    for (size_t i = 0; i < env->timers_len; i++)
        env->timers[i].row.due_ms = 0;
    for (const struct kit_work *w = env->work; w != NULL; w = w->next)
        if (!w->gone)
            kit_work_removed(env, &w->row);
    env->rows = (struct rows_state){.batches = env->rows.batches + 1};
}
