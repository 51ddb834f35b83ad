/* How many live instances of each orchestration a partition has: few names, so an array is enough. */
#include "machine.h"
#include <stdlib.h>
#include <string.h>

static size_t find(const struct partition *p, thole_slice name)
{
    size_t i = 0;
    while (i < p->names_len && !thole_slice_equal(p->names[i].name, name))
        i++;
    return i;
}

static bool grow(struct partition *p)
{
    if (p->names_len < p->names_cap)
        return true;
    size_t const cap = p->names_cap == 0 ? 8 : p->names_cap * 2;
    struct live_name *names = realloc(p->names, cap * sizeof *names);
    if (names == NULL)
        return false;
    p->names = names;
    thole_slice *view = realloc(p->names_view, cap * sizeof *view);
    if (view == NULL)
        return false;
    p->names_view = view;
    p->names_cap = cap;
    return true;
}

void names_add(struct partition *p, thole_slice name, uint64_t count)
{
    size_t const i = find(p, name);
    if (i < p->names_len) {
        p->names[i].count += count;
        return;
    }
    uint8_t *copy = malloc(name.len + 1);
    if (copy == NULL || !grow(p)) {
        free(copy);
        partition_no_memory(p);
        return;
    }
    memcpy(copy, name.ptr, name.len);
    p->names[p->names_len++] = (struct live_name){{copy, name.len}, count};
}

void names_remove(struct partition *p, thole_slice name)
{
    size_t const i = find(p, name);
    if (i == p->names_len || --p->names[i].count > 0)
        return;
    free((void *)(uintptr_t)p->names[i].name.ptr);
    p->names[i] = p->names[--p->names_len];
}

void names_release(struct partition *p)
{
    for (size_t i = 0; i < p->names_len; i++)
        free((void *)(uintptr_t)p->names[i].name.ptr);
    free(p->names);
    free(p->names_view);
    p->names = NULL;
    p->names_view = NULL;
    p->names_len = p->names_cap = 0;
}

size_t partition_live_names(const struct partition *p, const thole_slice **ret_names)
{
    for (size_t i = 0; i < p->names_len; i++)
        p->names_view[i] = p->names[i].name;
    *ret_names = p->names_view;
    return p->names_len;
}
