/*
 * The rows of a projection batch while it is being made: one for each key, holding what the last change says.
 * So inserts and deletes never name the same row, however often a build changes it.
 */
#include "projection_state.h"
#include <stdlib.h>
#include <string.h>

enum { BUILD_BYTES_MAX = 16 * 1024 * 1024 };

struct build *build_create(uint64_t id)
{
    struct build *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    arena_init(&b->arena, SIZE_MAX / 2);
    b->id = id;
    return b;
}

void build_destroy(struct build *build)
{
    if (build == NULL)
        return;
    for (size_t i = 0; i < build->sends_len; i++)
        buf_release(&build->sends[i].bytes);
    arena_release(&build->arena);
    free(build->activities);
    free(build->timers);
    free(build->quarantine);
    free(build->instances);
    free(build->pushes);
    free(build->sends);
    free(build->deletions);
    free(build->activities_index.cells);
    free(build->timers_index.cells);
    free(build->quarantine_index.cells);
    free(build->instances_index.cells);
    free(build);
}

bool build_full(const struct build *b)
{
    return b->activities_len >= BATCH_ROWS_MAX || b->timers_len >= BATCH_ROWS_MAX ||
           b->quarantine_len >= BATCH_ROWS_MAX || b->instances_len >= BATCH_ROWS_MAX ||
           b->sends_len >= BATCH_ROWS_MAX || b->deletions_len >= BATCH_ROWS_MAX ||
           b->arena.used >= BUILD_BYTES_MAX;
}

bool build_empty(const struct build *b)
{
    return b->activities_len + b->timers_len + b->quarantine_len + b->instances_len + b->deletions_len == 0;
}

#define ROW_ADD(build, name)                                                                                 \
    row_add((void **)&(build)->name, &(build)->name##_len, &(build)->name##_cap, sizeof *(build)->name)

/* --- rows by their keys -------------------------------------------------------------------------- */

struct row_key {
    thole_slice instance;
    uint64_t execution, id;
};
typedef struct row_key key_fn(const struct build *build, size_t i);

static struct row_key activity_key(const struct build *build, size_t i)
{
    const struct batch_activity *row = &build->activities[i].row;
    return (struct row_key){row->instance, row->execution, row->activity_id};
}

static struct row_key timer_key(const struct build *build, size_t i)
{
    const struct batch_timer *row = &build->timers[i].row;
    return (struct row_key){row->instance, row->execution, row->timer_id};
}

static struct row_key quarantine_key(const struct build *build, size_t i)
{
    const struct batch_quarantine *row = &build->quarantine[i].row;
    return (struct row_key){row->instance, row->execution, row->activity_id};
}

static struct row_key instance_key(const struct build *build, size_t i)
{
    const struct batch_instance *row = &build->instances[i].row;
    return (struct row_key){row->instance, row->execution, 0};
}

static uint32_t *cell(const struct key_index *index, const struct build *build, key_fn *key_of,
                      const struct row_key *key)
{
    size_t at = key_hash(key->instance, key->execution, key->id) % index->cap;
    for (; index->cells[at] != 0; at = (at + 1) % index->cap) {
        struct row_key const has = key_of(build, index->cells[at] - 1);
        if (has.id == key->id && has.execution == key->execution &&
            thole_slice_equal(has.instance, key->instance))
            break;
    }
    return &index->cells[at];
}

/* Room for one more entry. */
static bool index_grow(struct key_index *index, const struct build *build, key_fn *key_of)
{
    if (index->cap >= 2 * (index->len + 1))
        return true;
    struct key_index grown = {.cap = index->cap == 0 ? 61 : index->cap * 2 + 1, .len = index->len};
    grown.cells = calloc(grown.cap, sizeof *grown.cells);
    if (grown.cells == NULL)
        return false;
    for (size_t i = 0; i < index->cap; i++) {
        if (index->cells[i] == 0)
            continue;
        struct row_key const key = key_of(build, index->cells[i] - 1);
        *cell(&grown, build, key_of, &key) = index->cells[i];
    }
    free(index->cells);
    *index = grown;
    return true;
}

/* The cell of the key; 0 in it: there is no such row yet. NULL: out of memory. */
static uint32_t *find(struct key_index *index, const struct build *build, key_fn *key_of,
                      const struct row_key *key, bool *ret_new)
{
    if (!index_grow(index, build, key_of))
        return NULL;
    uint32_t *at = cell(index, build, key_of, key);
    if (ret_new != NULL)
        *ret_new = *at == 0;
    return at;
}

struct fold_activity *build_activity(struct build *build, thole_slice instance, uint64_t execution,
                                     uint64_t id, bool *ret_new)
{
    struct row_key const key = {instance, execution, id};
    uint32_t *at = find(&build->activities_index, build, activity_key, &key, ret_new);
    if (at == NULL || *at != 0)
        return at == NULL ? NULL : &build->activities[*at - 1];
    struct fold_activity *added = ROW_ADD(build, activities);
    if (added == NULL)
        return NULL;
    added->row = (struct batch_activity){.instance = instance, .execution = execution, .activity_id = id};
    *at = (uint32_t)build->activities_len;
    build->activities_index.len++;
    return added;
}

struct fold_activity *build_find_activity(struct build *build, thole_slice instance, uint64_t execution,
                                          uint64_t id)
{
    struct row_key const key = {instance, execution, id};
    if (build->activities_index.len == 0)
        return NULL;
    uint32_t const found = *cell(&build->activities_index, build, activity_key, &key);
    return found == 0 ? NULL : &build->activities[found - 1];
}

struct fold_timer *build_timer(struct build *build, thole_slice instance, uint64_t execution, uint64_t id,
                               bool *ret_new)
{
    struct row_key const key = {instance, execution, id};
    uint32_t *at = find(&build->timers_index, build, timer_key, &key, ret_new);
    if (at == NULL || *at != 0)
        return at == NULL ? NULL : &build->timers[*at - 1];
    struct fold_timer *added = ROW_ADD(build, timers);
    if (added == NULL)
        return NULL;
    added->row = (struct batch_timer){.instance = instance, .execution = execution, .timer_id = id};
    *at = (uint32_t)build->timers_len;
    build->timers_index.len++;
    return added;
}

struct fold_quarantine *build_quarantine(struct build *build, thole_slice instance, uint64_t execution,
                                         uint64_t id, bool *ret_new)
{
    struct row_key const key = {instance, execution, id};
    uint32_t *at = find(&build->quarantine_index, build, quarantine_key, &key, ret_new);
    if (at == NULL || *at != 0)
        return at == NULL ? NULL : &build->quarantine[*at - 1];
    struct fold_quarantine *added = ROW_ADD(build, quarantine);
    if (added == NULL)
        return NULL;
    added->row = (struct batch_quarantine){.instance = instance, .execution = execution, .activity_id = id};
    *at = (uint32_t)build->quarantine_len;
    build->quarantine_index.len++;
    return added;
}

struct fold_instance *build_instance(struct build *build, thole_slice instance, uint64_t execution,
                                     bool *ret_new)
{
    struct row_key const key = {instance, execution, 0};
    uint32_t *at = find(&build->instances_index, build, instance_key, &key, ret_new);
    if (at == NULL || *at != 0)
        return at == NULL ? NULL : &build->instances[*at - 1];
    struct fold_instance *added = ROW_ADD(build, instances);
    if (added == NULL)
        return NULL;
    added->row = (struct batch_instance){.instance = instance, .execution = execution};
    *at = (uint32_t)build->instances_len;
    build->instances_index.len++;
    return added;
}

void build_prune(struct build *build, thole_slice instance, struct executions executions)
{
    /* They follow each other, and the newest is the last one: what is before the build's is not in it. */
    for (uint64_t execution = executions.upto; execution > executions.above; execution--) {
        struct row_key const key = {instance, execution, 0};
        uint32_t const found =
            build->instances_index.len == 0 ? 0 : *cell(&build->instances_index, build, instance_key, &key);
        if (found == 0)
            return;
        build->instances[found - 1].pruned = true;
    }
}

bool build_has_instance(const struct build *build, thole_slice instance, uint64_t execution)
{
    struct row_key const key = {instance, execution, 0};
    return build->instances_index.len > 0 && *cell(&build->instances_index, build, instance_key, &key) != 0;
}

struct fold_deletion *build_deletion(struct build *build)
{
    return ROW_ADD(build, deletions);
}

struct fold_push *build_push(struct build *build)
{
    return ROW_ADD(build, pushes);
}

struct fold_send *build_send(struct build *build)
{
    return ROW_ADD(build, sends);
}

/* --- a build as a batch -------------------------------------------------------------------------- */

/* The batch goes to another thread and may outlive the partition: it owns copies of everything. */
static thole_slice own(struct batch *batch, thole_slice from, bool *failed)
{
    thole_slice copy = {0};
    if (from.len > 0 && arena_dup(&batch->arena, from, &copy) != THOLE_OK)
        *failed = true;
    return copy;
}

static void copy_activity(struct batch *batch, struct batch_activity *to, const struct batch_activity *from,
                          bool *failed)
{
    *to = *from;
    to->instance = own(batch, from->instance, failed);
    to->queue = own(batch, from->queue, failed);
    to->activity = own(batch, from->activity, failed);
    to->details = own(batch, from->details, failed);
}

static bool copy_activities(struct batch *batch, const struct build *b, size_t from, size_t to)
{
    bool failed = false;
    batch->activities_added = arena_array(&batch->arena, to - from, sizeof *batch->activities_added);
    batch->activities_removed = arena_array(&batch->arena, to - from, sizeof *batch->activities_removed);
    if (batch->activities_added == NULL || batch->activities_removed == NULL)
        return false;
    for (size_t i = from; i < b->activities_len && i < to; i++) {
        const struct fold_activity *made = &b->activities[i];
        if (made->gone && !made->before)
            continue;
        struct batch_activity *row = made->gone ? &batch->activities_removed[batch->activities_removed_len++]
                                                : &batch->activities_added[batch->activities_added_len++];
        copy_activity(batch, row, &made->row, &failed);
    }
    return !failed;
}

static bool copy_timers(struct batch *batch, const struct build *b, size_t from, size_t to)
{
    bool failed = false;
    batch->timers_added = arena_array(&batch->arena, to - from, sizeof *batch->timers_added);
    batch->timers_removed = arena_array(&batch->arena, to - from, sizeof *batch->timers_removed);
    if (batch->timers_added == NULL || batch->timers_removed == NULL)
        return false;
    for (size_t i = from; i < b->timers_len && i < to; i++) {
        const struct fold_timer *made = &b->timers[i];
        if (made->gone && !made->before)
            continue;
        struct batch_timer *row = made->gone ? &batch->timers_removed[batch->timers_removed_len++]
                                             : &batch->timers_added[batch->timers_added_len++];
        *row = made->row;
        row->instance = own(batch, row->instance, &failed);
    }
    return !failed;
}

static bool copy_quarantine(struct batch *batch, const struct build *b, size_t from, size_t to)
{
    bool failed = false;
    if (b->quarantine_len == 0)
        return true;
    batch->quarantine_added = arena_array(&batch->arena, to - from, sizeof *batch->quarantine_added);
    batch->quarantine_removed = arena_array(&batch->arena, to - from, sizeof *batch->quarantine_removed);
    if (batch->quarantine_added == NULL || batch->quarantine_removed == NULL)
        return false;
    for (size_t i = from; i < b->quarantine_len && i < to; i++) {
        const struct fold_quarantine *made = &b->quarantine[i];
        if (made->gone && !made->before)
            continue;
        struct batch_quarantine *row = made->gone
                                           ? &batch->quarantine_removed[batch->quarantine_removed_len++]
                                           : &batch->quarantine_added[batch->quarantine_added_len++];
        *row = made->row;
        row->instance = own(batch, row->instance, &failed);
        row->queue = own(batch, row->queue, &failed);
        row->activity = own(batch, row->activity, &failed);
        row->worker = own(batch, row->worker, &failed);
        row->reason = own(batch, row->reason, &failed);
    }
    return !failed;
}

static bool copy_instances(struct batch *batch, const struct build *b, size_t from, size_t to)
{
    bool failed = false;
    batch->instances = arena_array(&batch->arena, to - from, sizeof *batch->instances);
    if (batch->instances == NULL)
        return false;
    for (size_t i = from; i < b->instances_len && i < to; i++) {
        if (b->instances[i].pruned)
            continue;
        struct batch_instance *row = &batch->instances[batch->instances_len++];
        *row = b->instances[i].row;
        row->instance = own(batch, row->instance, &failed);
        row->orchestration = own(batch, row->orchestration, &failed);
        row->detail = own(batch, row->detail, &failed);
        row->custom_status = own(batch, row->custom_status, &failed);
        row->parent = own(batch, row->parent, &failed);
    }
    return !failed;
}

static bool copy_deletions(struct batch *batch, const struct build *b, size_t from, size_t to)
{
    bool failed = false;
    batch->deletions = arena_array(&batch->arena, to - from, sizeof *batch->deletions);
    if (batch->deletions == NULL)
        return false;
    for (size_t i = from; i < b->deletions_len && i < to; i++) {
        struct batch_deletion *row = &batch->deletions[batch->deletions_len++];
        *row = b->deletions[i].row;
        row->instance = own(batch, row->instance, &failed);
    }
    return !failed;
}

/* There are never more deletions than one batch can have: they come before everything else. */
static size_t longest(const struct build *b)
{
    size_t const lens[] = {b->activities_len, b->timers_len, b->quarantine_len, b->instances_len,
                           b->deletions_len};
    size_t most = 0;
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++)
        most = lens[i] > most ? lens[i] : most;
    return most;
}

struct batch *build_batch(const struct build *b, uint32_t partition, uint64_t epoch, size_t *from)
{
    size_t const left = longest(b) - *from, rows = left < BATCH_ROWS_MAX ? left : BATCH_ROWS_MAX;
    struct batch *batch = batch_create(partition, epoch);
    if (batch == NULL || !copy_activities(batch, b, *from, *from + rows) ||
        !copy_timers(batch, b, *from, *from + rows) || !copy_quarantine(batch, b, *from, *from + rows) ||
        !copy_instances(batch, b, *from, *from + rows) || !copy_deletions(batch, b, *from, *from + rows)) {
        batch_destroy(batch);
        return NULL;
    }
    *from += rows;
    return batch;
}

thole_status build_removals(const struct build *b, uint32_t partition, uint64_t epoch, size_t *from,
                            struct batch **ret_batch)
{
    bool failed = false;
    *ret_batch = NULL;
    while (*from < b->activities_len && !(b->activities[*from].gone && b->activities[*from].before))
        ++*from;
    if (*from == b->activities_len)
        return THOLE_OK;
    size_t const left = b->activities_len - *from;
    struct batch *const batch = batch_create(partition, epoch);
    struct batch_activity *const rows =
        batch == NULL
            ? NULL
            : arena_array(&batch->arena, left < BATCH_ROWS_MAX ? left : BATCH_ROWS_MAX, sizeof *rows);
    if (rows == NULL) {
        batch_destroy(batch);
        return THOLE_NOMEM;
    }
    batch->activities_removed = rows;
    for (; *from < b->activities_len && batch->activities_removed_len < BATCH_ROWS_MAX; ++*from)
        if (b->activities[*from].gone && b->activities[*from].before)
            copy_activity(batch, &rows[batch->activities_removed_len++], &b->activities[*from].row, &failed);
    if (failed) {
        batch_destroy(batch);
        return THOLE_NOMEM;
    }
    *ret_batch = batch;
    return THOLE_OK;
}

bool build_has_more(const struct build *b, size_t from)
{
    return from < longest(b);
}
