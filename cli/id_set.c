#include "id_set.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_BYTES_MAX = 1024 * 1024 * 1024 };

void id_set_init(struct id_set *set)
{
    *set = (struct id_set){.full = false};
    arena_init(&set->arena, IDS_BYTES_MAX);
    buf_init(&set->ids, IDS_BYTES_MAX);
}

void id_set_release(struct id_set *set)
{
    arena_release(&set->arena);
    buf_release(&set->ids);
}

void id_set_add(struct id_set *set, thole_slice id)
{
    thole_slice kept;
    if (arena_dup(&set->arena, id, &kept) != THOLE_OK) {
        set->full = true;
        return;
    }
    buf_append(&set->ids, &kept, sizeof kept);
    set->full |= buf_status(&set->ids) != THOLE_OK;
}

static int compare(const void *a, const void *b)
{
    const thole_slice *x = a, *y = b;
    size_t const shorter = x->len < y->len ? x->len : y->len;
    int const order = shorter == 0 ? 0 : memcmp(x->ptr, y->ptr, shorter);
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

void id_set_sort(struct id_set *set)
{
    thole_slice *const ids = (void *)set->ids.ptr;
    size_t const len = id_set_len(set);
    size_t kept = 0;
    if (len == 0)
        return;
    qsort(ids, len, sizeof *ids, compare);
    for (size_t i = 0; i < len; i++)
        if (kept == 0 || !thole_slice_equal(ids[kept - 1], ids[i]))
            ids[kept++] = ids[i];
    set->ids.len = kept * sizeof *ids;
}

size_t id_set_len(const struct id_set *set)
{
    return set->ids.len / sizeof(thole_slice);
}

thole_slice id_set_at(const struct id_set *set, size_t i)
{
    assert(i < id_set_len(set));
    return ((const thole_slice *)(const void *)set->ids.ptr)[i];
}

bool id_set_has(const struct id_set *set, thole_slice id)
{
    size_t const len = id_set_len(set);
    return len > 0 && bsearch(&id, set->ids.ptr, len, sizeof id, compare) != NULL;
}
