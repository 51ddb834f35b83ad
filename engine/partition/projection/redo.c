/*
 * State that is kept while the log is read again, so that a partition that opens does not repeat work that is
 * already done. Activities whose end is in the same log get no row and no message. Activities that are still
 * open at the end of the log, and whose results do not wait in the inbox, get theirs then, and only then the
 * watermark moves.
 */
#include "memory.h"
#include "projection_state.h"
#include <assert.h>
#include <stdlib.h>

enum { COMPACT_MIN = 10000 }; /* entries */

void redo_release(struct redo *redo)
{
    projection_batch_destroy(redo->open);
    free(redo->roots);
    arena_release(&redo->arena);
    *redo = (struct redo){0};
}

/* --- activities ------------------------------------------------------------------------------- */

static thole_slice redo_copy(struct projection *p, struct projection_batch *b, thole_slice from)
{
    thole_slice copy = {0};
    if (from.len > 0 && arena_dup(&b->arena, from, &copy) != THOLE_OK)
        env_no_memory(p->env);
    return copy;
}

static void redo_put(struct projection *p, struct projection_batch *to, const struct batch_activity *row,
                     thole_slice input, const struct trace *trace)
{
    thole_slice const instance = redo_copy(p, to, row->instance);
    struct projected_activity *entry =
        projection_batch_activity(to, instance, row->execution, row->activity_id, NULL);
    entry->gone = false;
    entry->row = *row;
    entry->row.instance = instance;
    entry->row.queue = redo_copy(p, to, row->queue);
    entry->row.activity = redo_copy(p, to, row->activity);
    entry->row.details = redo_copy(p, to, row->details);
    entry->trace.parent = redo_copy(p, to, trace->parent);
    entry->trace.list = redo_copy(p, to, trace->list);
    entry->input = redo_copy(p, to, input);
}

/* Removed entries take memory too: the others are moved into a new table when there are too many. */
static void redo_compact(struct projection *p)
{
    struct redo *redo = &p->redo;
    if (redo->open->activities_len < COMPACT_MIN || 2 * redo->open_len > redo->open->activities_len)
        return;
    struct projection_batch *fresh = projection_batch_create(0);
    for (size_t i = 0; i < redo->open->activities_len; i++) {
        const struct projected_activity *entry = &redo->open->activities[i];
        if (!entry->gone)
            redo_put(p, fresh, &entry->row, entry->input, &entry->trace);
    }
    assert(fresh->activities_len == redo->open_len);
    projection_batch_destroy(redo->open);
    redo->open = fresh;
}

void redo_queued(struct projection *p, const struct batch_activity *row, thole_slice input,
                 const struct trace *trace)
{
    struct redo *redo = &p->redo;
    if (redo->open == NULL)
        redo->open = projection_batch_create(0);
    bool fresh = false;
    const struct projected_activity *known =
        projection_batch_activity(redo->open, row->instance, row->execution, row->activity_id, &fresh);
    if (fresh || known->gone)
        redo->open_len++;
    redo_put(p, redo->open, row, input, trace);
}

void redo_gone(struct projection *p, thole_slice instance, uint64_t execution, uint64_t id)
{
    struct redo *redo = &p->redo;
    struct projected_activity *entry =
        redo->open == NULL ? NULL : projection_batch_find_activity(redo->open, instance, execution, id);
    if (entry == NULL || entry->gone)
        return;
    assert(redo->open_len > 0);
    entry->gone = true;
    redo->open_len--;
    redo_compact(p);
}

/* Only deletions whose records may still be there have activities before them: they are few, so a scan is
 * enough. */
void redo_deleted(struct projection *p, thole_slice instance, uint64_t execution)
{
    struct redo *redo = &p->redo;
    for (size_t i = 0; redo->open_len > 0 && i < redo->open->activities_len; i++) {
        struct projected_activity *entry = &redo->open->activities[i];
        if (entry->gone || entry->row.execution > execution ||
            !thole_slice_equal(entry->row.instance, instance))
            continue;
        entry->gone = true;
        redo->open_len--;
    }
}

void redo_ended(struct projection *p, const struct partition_result *results, size_t n,
                const struct progress *inbox)
{
    for (size_t i = 0; i < n && p->redo.open != NULL; i++) {
        if (results[i].sequence != 0 && progress_has(inbox, results[i].sequence))
            continue;
        const struct projected_activity *entry = projection_batch_find_activity(
            p->redo.open, results[i].instance, results[i].execution, results[i].activity_id);
        if (entry != NULL && entry->row.try_number == results[i].try_number)
            redo_gone(p, results[i].instance, results[i].execution, results[i].activity_id);
    }
}

void redo_finish(struct projection *p, struct projection_batch *b)
{
    struct redo *redo = &p->redo;
    assert(redo->open_len > 0);
    for (size_t i = 0; i < redo->open->activities_len; i++) {
        const struct projected_activity *entry = &redo->open->activities[i];
        if (!entry->gone)
            redo_put(p, b, &entry->row, entry->input, &entry->trace);
    }
    projection_batch_destroy(redo->open);
    redo->open = NULL;
    redo->open_len = 0;
}

/* --- root instances --------------------------------------------------------------------- */

/* The cell of the id, or the free cell for it. */
static struct root_instance *root_cell(const struct redo *redo, thole_slice instance)
{
    assert(redo->roots_len < redo->roots_cap); /* there is a free cell */
    size_t at = key_hash(instance, 1, 1) % redo->roots_cap;
    while (redo->roots[at].id.len != 0 && !thole_slice_equal(redo->roots[at].id, instance))
        at = (at + 1) % redo->roots_cap;
    return &redo->roots[at];
}

static void grow_roots(struct redo *redo)
{
    struct redo grown = *redo;
    grown.roots_cap = redo->roots_cap == 0 ? 1021 : redo->roots_cap * 2 + 1;
    grown.roots = memory_array(grown.roots_cap, sizeof *grown.roots);
    for (size_t i = 0; i < redo->roots_cap; i++)
        if (redo->roots[i].id.len != 0)
            *root_cell(&grown, redo->roots[i].id) = redo->roots[i];
    free(redo->roots);
    *redo = grown;
}

void redo_root(struct projection *p, thole_slice instance)
{
    struct redo *redo = &p->redo;
    if (redo->roots_len == ROOT_INSTANCES_MAX)
        return;
    if (redo->roots_cap == 0)
        arena_init(&redo->arena, SIZE_MAX / 2);
    if (redo->roots_cap <= 2 * (redo->roots_len + 1))
        grow_roots(redo);
    struct root_instance *cell = root_cell(redo, instance);
    cell->is_child = false;
    if (cell->id.len != 0)
        return;
    if (arena_dup(&redo->arena, instance, &cell->id) != THOLE_OK)
        env_no_memory(p->env);
    else
        redo->roots_len++;
}

void redo_no_root(struct projection *p, thole_slice instance)
{
    if (p->redo.roots_cap > 0)
        root_cell(&p->redo, instance)->is_child = true; /* without effect in a free cell */
}

bool redo_is_root(const struct projection *p, thole_slice instance)
{
    if (p->redo.roots_cap == 0)
        return false;
    const struct root_instance *cell = root_cell(&p->redo, instance);
    return cell->id.len != 0 && !cell->is_child;
}
