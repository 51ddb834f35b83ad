#include "id_set.h"
#include "memory.h"
#include <stdlib.h>
#include <string.h>

#define IDS_BYTES_MAX (UINT64_C(4) * 1024 * 1024 * 1024)

void id_set_init(struct id_set *set)
{
    *set = (struct id_set){.ids = NULL};
    arena_init(&set->arena, IDS_BYTES_MAX);
}

void id_set_release(struct id_set *set)
{
    arena_release(&set->arena);
    free(set->ids);
    *set = (struct id_set){.ids = NULL};
}

thole_status id_set_add(struct id_set *set, thole_slice id)
{
    if (set->len > 0 && thole_slice_equal(set->ids[set->len - 1], id))
        return THOLE_OK;
    thole_slice kept;
    thole_status const status = arena_dup(&set->arena, id, &kept);
    set->full |= status != THOLE_OK;
    if (status != THOLE_OK)
        return status;
    set->ids = memory_reserve(set->ids, &set->cap, set->len + 1, sizeof *set->ids);
    set->ids[set->len++] = kept;
    return THOLE_OK;
}

static int id_set_compare(const void *left, const void *right)
{
    const thole_slice *const a = left, *const b = right;
    size_t const len = a->len < b->len ? a->len : b->len;
    int const by = len == 0 ? 0 : memcmp(a->ptr, b->ptr, len);
    return by != 0 ? by : (a->len > b->len) - (a->len < b->len);
}

void id_set_sort(struct id_set *set)
{
    size_t kept = 0;
    if (set->len > 0)
        qsort(set->ids, set->len, sizeof *set->ids, id_set_compare);
    for (size_t i = 0; i < set->len; i++)
        if (kept == 0 || !thole_slice_equal(set->ids[kept - 1], set->ids[i]))
            set->ids[kept++] = set->ids[i];
    set->len = kept;
}

bool id_set_has(const struct id_set *set, thole_slice id)
{
    return set->len > 0 && bsearch(&id, set->ids, set->len, sizeof id, id_set_compare) != NULL;
}
