/*
 * The rows of a projection batch while it fills: one for each key, with the state of the last change. So no
 * row is both inserted and deleted, however often the batch changes it.
 */
#include "memory.h"
#include "projection_state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PROJECTION_BATCH_BYTES_MAX = 16 * 1024 * 1024 };

struct projection_batch *projection_batch_create(uint64_t id)
{
    struct projection_batch *b = memory_new(sizeof *b);
    arena_init(&b->arena, SIZE_MAX / 2);
    b->id = id;
    return b;
}

void projection_batch_destroy(struct projection_batch *batch)
{
    if (batch == NULL)
        return;
    assert(batch->activities_index.len == batch->activities_len &&
           batch->timers_index.len == batch->timers_len &&
           batch->quarantine_index.len == batch->quarantine_len &&
           batch->instances_index.len == batch->instances_len);
    for (size_t i = 0; i < batch->sends_len; i++)
        buf_release(&batch->sends[i].bytes);
    arena_release(&batch->arena);
    free(batch->activities);
    free(batch->timers);
    free(batch->quarantine);
    free(batch->instances);
    free(batch->pushes);
    free(batch->sends);
    free(batch->emissions);
    free(batch->deletions);
    free(batch->activities_index.cells);
    free(batch->timers_index.cells);
    free(batch->quarantine_index.cells);
    free(batch->instances_index.cells);
    free(batch);
}

bool projection_batch_full(const struct projection_batch *b)
{
    return b->activities_len >= BATCH_ROWS_MAX || b->timers_len >= BATCH_ROWS_MAX ||
           b->quarantine_len >= BATCH_ROWS_MAX || b->instances_len >= BATCH_ROWS_MAX ||
           b->sends_len >= BATCH_ROWS_MAX || b->emissions_len >= BATCH_ROWS_MAX ||
           b->deletions_len >= BATCH_ROWS_MAX || b->arena.used >= PROJECTION_BATCH_BYTES_MAX;
}

bool projection_batch_empty(const struct projection_batch *b)
{
    return b->activities_len + b->timers_len + b->quarantine_len + b->instances_len + b->deletions_len == 0;
}

#define ROW_ADD(batch, name)                                                                                 \
    row_add((void **)&(batch)->name, &(batch)->name##_len, &(batch)->name##_cap, sizeof *(batch)->name)

/* --- rows by their keys -------------------------------------------------------------------------- */

struct row_key {
    thole_slice instance;
    uint64_t execution, id;
};
typedef struct row_key key_fn(const struct projection_batch *batch, size_t i);

static struct row_key activity_key(const struct projection_batch *batch, size_t i)
{
    const struct batch_activity *row = &batch->activities[i].row;
    return (struct row_key){row->instance, row->execution, row->activity_id};
}

static struct row_key timer_key(const struct projection_batch *batch, size_t i)
{
    const struct batch_timer *row = &batch->timers[i].row;
    return (struct row_key){row->instance, row->execution, row->timer_id};
}

static struct row_key quarantine_key(const struct projection_batch *batch, size_t i)
{
    const struct batch_quarantine *row = &batch->quarantine[i].row;
    return (struct row_key){row->instance, row->execution, row->activity_id};
}

static struct row_key instance_key(const struct projection_batch *batch, size_t i)
{
    const struct batch_instance *row = &batch->instances[i].row;
    return (struct row_key){row->instance, row->execution, 0};
}

static uint32_t *batch_rows_cell(const struct key_index *index, const struct projection_batch *batch,
                                 key_fn *key_of, const struct row_key *key)
{
    assert(index->len < index->cap); /* there is a free cell */
    size_t at = key_hash(key->instance, key->execution, key->id) % index->cap;
    for (; index->cells[at] != 0; at = (at + 1) % index->cap) {
        struct row_key const has = key_of(batch, index->cells[at] - 1);
        if (has.id == key->id && has.execution == key->execution &&
            thole_slice_equal(has.instance, key->instance))
            break;
    }
    return &index->cells[at];
}

/* Room for one more entry. */
static void index_grow(struct key_index *index, const struct projection_batch *batch, key_fn *key_of)
{
    if (index->cap >= 2 * (index->len + 1))
        return;
    struct key_index grown = {.cap = index->cap == 0 ? 61 : index->cap * 2 + 1, .len = index->len};
    grown.cells = memory_array(grown.cap, sizeof *grown.cells);
    for (size_t i = 0; i < index->cap; i++) {
        if (index->cells[i] == 0)
            continue;
        struct row_key const key = key_of(batch, index->cells[i] - 1);
        *batch_rows_cell(&grown, batch, key_of, &key) = index->cells[i];
    }
    free(index->cells);
    *index = grown;
}

/* The cell of the key; it holds 0 if there is no such row yet. */
static uint32_t *batch_rows_find(struct key_index *index, const struct projection_batch *batch,
                                 key_fn *key_of, const struct row_key *key, bool *ret_new)
{
    index_grow(index, batch, key_of);
    uint32_t *at = batch_rows_cell(index, batch, key_of, key);
    if (ret_new != NULL)
        *ret_new = *at == 0;
    return at;
}

struct projected_activity *projection_batch_activity(struct projection_batch *batch, thole_slice instance,
                                                     uint64_t execution, uint64_t id, bool *ret_new)
{
    struct row_key const key = {instance, execution, id};
    uint32_t *at = batch_rows_find(&batch->activities_index, batch, activity_key, &key, ret_new);
    if (*at != 0)
        return &batch->activities[*at - 1];
    struct projected_activity *added = ROW_ADD(batch, activities);
    added->row = (struct batch_activity){.instance = instance, .execution = execution, .activity_id = id};
    *at = (uint32_t)batch->activities_len;
    batch->activities_index.len++;
    return added;
}

struct projected_activity *projection_batch_find_activity(struct projection_batch *batch,
                                                          thole_slice instance, uint64_t execution,
                                                          uint64_t id)
{
    struct row_key const key = {instance, execution, id};
    if (batch->activities_index.len == 0)
        return NULL;
    uint32_t const found = *batch_rows_cell(&batch->activities_index, batch, activity_key, &key);
    return found == 0 ? NULL : &batch->activities[found - 1];
}

struct projected_timer *projection_batch_timer(struct projection_batch *batch, thole_slice instance,
                                               uint64_t execution, uint64_t id, bool *ret_new)
{
    struct row_key const key = {instance, execution, id};
    uint32_t *at = batch_rows_find(&batch->timers_index, batch, timer_key, &key, ret_new);
    if (*at != 0)
        return &batch->timers[*at - 1];
    struct projected_timer *added = ROW_ADD(batch, timers);
    added->row = (struct batch_timer){.instance = instance, .execution = execution, .timer_id = id};
    *at = (uint32_t)batch->timers_len;
    batch->timers_index.len++;
    return added;
}

struct projected_quarantine *projection_batch_quarantine(struct projection_batch *batch, thole_slice instance,
                                                         uint64_t execution, uint64_t id, bool *ret_new)
{
    struct row_key const key = {instance, execution, id};
    uint32_t *at = batch_rows_find(&batch->quarantine_index, batch, quarantine_key, &key, ret_new);
    if (*at != 0)
        return &batch->quarantine[*at - 1];
    struct projected_quarantine *added = ROW_ADD(batch, quarantine);
    added->row = (struct batch_quarantine){.instance = instance, .execution = execution, .activity_id = id};
    *at = (uint32_t)batch->quarantine_len;
    batch->quarantine_index.len++;
    return added;
}

struct projected_instance *projection_batch_instance(struct projection_batch *batch, thole_slice instance,
                                                     uint64_t execution, bool *ret_new)
{
    struct row_key const key = {instance, execution, 0};
    uint32_t *at = batch_rows_find(&batch->instances_index, batch, instance_key, &key, ret_new);
    if (*at != 0)
        return &batch->instances[*at - 1];
    struct projected_instance *added = ROW_ADD(batch, instances);
    added->row = (struct batch_instance){.instance = instance, .execution = execution};
    *at = (uint32_t)batch->instances_len;
    batch->instances_index.len++;
    return added;
}

void projection_batch_prune(struct projection_batch *batch, thole_slice instance,
                            struct executions executions)
{
    /* The batch has consecutive executions, up to the newest: if one is missing, all older ones are
     * missing. */
    for (uint64_t execution = executions.upto; execution > executions.above; execution--) {
        struct row_key const key = {instance, execution, 0};
        uint32_t const found = batch->instances_index.len == 0
                                   ? 0
                                   : *batch_rows_cell(&batch->instances_index, batch, instance_key, &key);
        if (found == 0)
            return;
        batch->instances[found - 1].pruned = true;
    }
}

static bool key_is_upto(struct row_key key, thole_slice instance, uint64_t upto)
{
    return key.execution <= upto && thole_slice_equal(key.instance, instance);
}

void projection_batch_prune_left(struct projection_batch *batch, thole_slice instance,
                                 struct executions executions)
{
    for (size_t i = 0; i < batch->instances_len; i++)
        if (batch->instances[i].row.execution > executions.above)
            batch->instances[i].pruned |= key_is_upto(instance_key(batch, i), instance, executions.upto);
    for (size_t i = 0; i < batch->timers_len; i++)
        batch->timers[i].gone |= key_is_upto(timer_key(batch, i), instance, executions.upto);
    for (size_t i = 0; i < batch->quarantine_len; i++)
        batch->quarantine[i].gone |= key_is_upto(quarantine_key(batch, i), instance, executions.upto);
}

static bool has_execution(const struct projection_batch *batch, thole_slice instance, uint64_t execution)
{
    struct row_key const key = {instance, execution, 0};
    return batch->instances_index.len > 0 &&
           *batch_rows_cell(&batch->instances_index, batch, instance_key, &key) != 0;
}

/* Looks up each execution, or looks at each row where there are fewer of these. */
bool projection_batch_has_instance(const struct projection_batch *batch, thole_slice instance, uint64_t upto)
{
    bool const look_up = upto < batch->instances_len;
    bool has = false;
    for (uint64_t execution = 0; look_up && execution <= upto && !has; execution++)
        has = has_execution(batch, instance, execution);
    for (size_t i = 0; !look_up && i < batch->instances_len && !has; i++)
        has = key_is_upto(instance_key(batch, i), instance, upto);
    return has;
}

struct projected_deletion *projection_batch_deletion(struct projection_batch *batch)
{
    return ROW_ADD(batch, deletions);
}

struct projected_push *projection_batch_push(struct projection_batch *batch)
{
    return ROW_ADD(batch, pushes);
}

struct projected_send *projection_batch_send(struct projection_batch *batch)
{
    return ROW_ADD(batch, sends);
}

struct projected_emission *projection_batch_emission(struct projection_batch *batch)
{
    return ROW_ADD(batch, emissions);
}

/* --- a struct batch for the store -------------------------------------------------------------- */

/* The struct batch goes to another thread and may outlive the partition: it owns copies of everything. */
static thole_slice batch_rows_copy(struct batch *batch, thole_slice from, bool *failed)
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
    to->instance = batch_rows_copy(batch, from->instance, failed);
    to->queue = batch_rows_copy(batch, from->queue, failed);
    to->activity = batch_rows_copy(batch, from->activity, failed);
    to->details = batch_rows_copy(batch, from->details, failed);
}

static bool copy_activities(struct batch *batch, const struct projection_batch *b, size_t from, size_t to)
{
    bool failed = false;
    batch->activities_added = arena_array(&batch->arena, to - from, sizeof *batch->activities_added);
    batch->activities_removed = arena_array(&batch->arena, to - from, sizeof *batch->activities_removed);
    if (batch->activities_added == NULL || batch->activities_removed == NULL)
        return false;
    for (size_t i = from; i < b->activities_len && i < to; i++) {
        const struct projected_activity *made = &b->activities[i];
        if (made->gone && !made->before)
            continue;
        struct batch_activity *row = made->gone ? &batch->activities_removed[batch->activities_removed_len++]
                                                : &batch->activities_added[batch->activities_added_len++];
        copy_activity(batch, row, &made->row, &failed);
        if (!made->gone)
            row->digest = batch_rows_copy(batch, work_digest_slice(&made->digest), &failed);
    }
    return !failed;
}

static bool copy_timers(struct batch *batch, const struct projection_batch *b, size_t from, size_t to)
{
    bool failed = false;
    batch->timers_added = arena_array(&batch->arena, to - from, sizeof *batch->timers_added);
    batch->timers_removed = arena_array(&batch->arena, to - from, sizeof *batch->timers_removed);
    if (batch->timers_added == NULL || batch->timers_removed == NULL)
        return false;
    for (size_t i = from; i < b->timers_len && i < to; i++) {
        const struct projected_timer *made = &b->timers[i];
        if (made->gone && !made->before)
            continue;
        struct batch_timer *row = made->gone ? &batch->timers_removed[batch->timers_removed_len++]
                                             : &batch->timers_added[batch->timers_added_len++];
        *row = made->row;
        row->instance = batch_rows_copy(batch, row->instance, &failed);
    }
    return !failed;
}

static bool copy_quarantine(struct batch *batch, const struct projection_batch *b, size_t from, size_t to)
{
    bool failed = false;
    if (b->quarantine_len == 0)
        return true;
    batch->quarantine_added = arena_array(&batch->arena, to - from, sizeof *batch->quarantine_added);
    batch->quarantine_removed = arena_array(&batch->arena, to - from, sizeof *batch->quarantine_removed);
    if (batch->quarantine_added == NULL || batch->quarantine_removed == NULL)
        return false;
    for (size_t i = from; i < b->quarantine_len && i < to; i++) {
        const struct projected_quarantine *made = &b->quarantine[i];
        if (made->gone && !made->before)
            continue;
        struct batch_quarantine *row = made->gone
                                           ? &batch->quarantine_removed[batch->quarantine_removed_len++]
                                           : &batch->quarantine_added[batch->quarantine_added_len++];
        *row = made->row;
        row->instance = batch_rows_copy(batch, row->instance, &failed);
        row->queue = batch_rows_copy(batch, row->queue, &failed);
        row->activity = batch_rows_copy(batch, row->activity, &failed);
        row->worker = batch_rows_copy(batch, row->worker, &failed);
        row->reason = batch_rows_copy(batch, row->reason, &failed);
    }
    return !failed;
}

static bool copy_instances(struct batch *batch, const struct projection_batch *b, size_t from, size_t to)
{
    bool failed = false;
    batch->instances = arena_array(&batch->arena, to - from, sizeof *batch->instances);
    if (batch->instances == NULL)
        return false;
    for (size_t i = from; i < b->instances_len && i < to; i++) {
        if (b->instances[i].pruned || b->instances[i].said)
            continue;
        struct batch_instance *row = &batch->instances[batch->instances_len++];
        *row = b->instances[i].row;
        row->instance = batch_rows_copy(batch, row->instance, &failed);
        row->orchestration = batch_rows_copy(batch, row->orchestration, &failed);
        row->detail = batch_rows_copy(batch, row->detail, &failed);
        row->custom_status = batch_rows_copy(batch, row->custom_status, &failed);
        row->parent = batch_rows_copy(batch, row->parent, &failed);
    }
    return !failed;
}

static bool copy_deletions(struct batch *batch, const struct projection_batch *b, size_t from, size_t to)
{
    bool failed = false;
    batch->deletions = arena_array(&batch->arena, to - from, sizeof *batch->deletions);
    if (batch->deletions == NULL)
        return false;
    for (size_t i = from; i < b->deletions_len && i < to; i++) {
        struct batch_deletion *row = &batch->deletions[batch->deletions_len++];
        *row = b->deletions[i].row;
        row->instance = batch_rows_copy(batch, row->instance, &failed);
    }
    return !failed;
}

/* Number of rows of the kind that has the most. Deletions fit into one struct batch (see the assertion
 * below), so the first one has them all, before any other row. */
static size_t batch_rows_longest(const struct projection_batch *b)
{
    size_t const lens[] = {b->activities_len, b->timers_len, b->quarantine_len, b->instances_len,
                           b->deletions_len};
    size_t most = 0;
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++)
        most = lens[i] > most ? lens[i] : most;
    return most;
}

struct batch *projection_batch_rows(const struct projection_batch *b, uint32_t partition, uint64_t epoch,
                                    size_t *from)
{
    assert(*from <= batch_rows_longest(b) && b->deletions_len <= BATCH_ROWS_MAX);
    size_t const left = batch_rows_longest(b) - *from, rows = left < BATCH_ROWS_MAX ? left : BATCH_ROWS_MAX;
    struct batch *batch = batch_create(partition, epoch);
    if (!copy_activities(batch, b, *from, *from + rows) || !copy_timers(batch, b, *from, *from + rows) ||
        !copy_quarantine(batch, b, *from, *from + rows) || !copy_instances(batch, b, *from, *from + rows) ||
        !copy_deletions(batch, b, *from, *from + rows)) {
        batch_destroy(batch);
        return NULL;
    }
    *from += rows;
    return batch;
}

thole_status projection_batch_removals(const struct projection_batch *b, uint32_t partition, uint64_t epoch,
                                       size_t *from, struct batch **ret_batch)
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
        arena_array(&batch->arena, left < BATCH_ROWS_MAX ? left : BATCH_ROWS_MAX, sizeof *rows);
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

bool projection_batch_has_more(const struct projection_batch *b, size_t from)
{
    return from < batch_rows_longest(b);
}
