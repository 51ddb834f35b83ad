/*
 * Sequences of work messages by activity. Open addressing; when an entry is removed, those after it move up.
 */
#include "memory.h"
#include "projection_state.h"
#include <assert.h>
#include <stdlib.h>

enum { REFS_MIN = 256 }; /* cells; a power of two, as is the most */

void work_refs_release(struct work_refs *refs)
{
    free(refs->cells);
    *refs = (struct work_refs){0};
}

/* The cell of the key, or the free cell for it. */
static size_t work_refs_find(const struct work_refs *refs, uint64_t key)
{
    size_t at = (size_t)key & (refs->cap - 1);
    while (refs->cells[at].sequence != 0 && refs->cells[at].key != key)
        at = (at + 1) & (refs->cap - 1);
    return at;
}

static void work_refs_grow(struct work_refs *refs)
{
    assert((refs->cap & (refs->cap - 1)) == 0);
    struct work_refs grown = {.cap = refs->cap == 0 ? REFS_MIN : refs->cap * 2, .len = refs->len};
    grown.cells = memory_array(grown.cap, sizeof *grown.cells);
    for (size_t i = 0; i < refs->cap; i++)
        if (refs->cells[i].sequence != 0)
            grown.cells[work_refs_find(&grown, refs->cells[i].key)] = refs->cells[i];
    free(refs->cells);
    *refs = grown;
}

void work_refs_put(struct work_refs *refs, uint64_t key, uint64_t sequence)
{
    if (sequence == 0)
        return;
    if (refs->len == WORK_REFS_MAX) /* drops all: some entries may be stale */
        work_refs_release(refs);
    if (2 * (refs->len + 1) > refs->cap)
        work_refs_grow(refs);
    struct work_ref *const cell = &refs->cells[work_refs_find(refs, key)];
    refs->len += cell->sequence == 0;
    assert(refs->len <= WORK_REFS_MAX &&
           2 * refs->len <= refs->cap); /* work_refs_find() comes to a free cell */
    *cell = (struct work_ref){key, sequence};
}

uint64_t work_refs_take(struct work_refs *refs, uint64_t key)
{
    size_t const mask = refs->cap - 1;
    size_t hole = refs->cap == 0 ? 0 : work_refs_find(refs, key);
    uint64_t const sequence = refs->cap == 0 ? 0 : refs->cells[hole].sequence;
    if (sequence == 0)
        return 0;
    for (size_t at = (hole + 1) & mask; refs->cells[at].sequence != 0; at = (at + 1) & mask) {
        size_t const home = (size_t)refs->cells[at].key & mask;
        if (((at - home) & mask) < ((at - hole) & mask)) /* an entry must not move before its home cell */
            continue;
        refs->cells[hole] = refs->cells[at];
        hole = at;
    }
    assert(refs->len > 0);
    refs->cells[hole] = (struct work_ref){0};
    refs->len--;
    return sequence;
}
