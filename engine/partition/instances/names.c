/* Counts the live instances of each orchestration: few names, so an array is enough. */
#include "instances_state.h"
#include "memory.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSIONED_NAME_BYTES = THOLE_NAME_BYTES_MAX + 16 };

static size_t names_locate(const struct instances *p, thole_slice name)
{
    size_t i = 0;
    while (i < p->names_len && !thole_slice_equal(p->names[i].name, name))
        i++;
    return i;
}

/* Both arrays have the same length. */
static void names_grow(struct instances *p)
{
    size_t cap = p->names_cap;
    p->names = memory_reserve(p->names, &cap, p->names_len + 1, sizeof *p->names);
    p->names_view = memory_reserve(p->names_view, &p->names_cap, p->names_len + 1, sizeof *p->names_view);
    assert(cap == p->names_cap && p->names_len < cap);
}

void names_add(struct instances *p, thole_slice name, uint64_t count)
{
    if (name.len == 0)
        return;
    size_t const i = names_locate(p, name);
    if (i < p->names_len) {
        p->names[i].count += count;
        return;
    }
    names_grow(p);
    p->names[p->names_len++] = (struct live_name){{memory_copy(name.ptr, name.len), name.len}, count};
}

static void names_remove(struct instances *p, thole_slice name)
{
    size_t const i = names_locate(p, name);
    if (i == p->names_len || --p->names[i].count > 0)
        return;
    free((void *)(uintptr_t)p->names[i].name.ptr);
    p->names[i] = p->names[--p->names_len];
}

static thole_slice names_versioned(char text[VERSIONED_NAME_BYTES], thole_slice name, uint32_t version)
{
    if (version <= 1 || name.len > THOLE_NAME_BYTES_MAX)
        return name;
    int const n = snprintf(text, VERSIONED_NAME_BYTES, "%.*s@%u", THOLE_FMT(name), version);
    return (thole_slice){(const uint8_t *)text, (size_t)n};
}

void names_count(struct instances *p, struct entry *entry, thole_slice orchestration, uint32_t version)
{
    char text[VERSIONED_NAME_BYTES];
    names_add(p, names_versioned(text, orchestration, version), 1);
    names_uncount(p, entry);
    entry->counted.name = true;
    entry->counted.version = version;
}

void names_uncount(struct instances *p, struct entry *entry)
{
    char text[VERSIONED_NAME_BYTES];
    if (entry->counted.name)
        names_remove(p, names_versioned(text, entry->orchestration, entry->counted.version));
    entry->counted.name = false;
}

void names_release(struct instances *p)
{
    for (size_t i = 0; i < p->names_len; i++)
        free((void *)(uintptr_t)p->names[i].name.ptr);
    free(p->names);
    free(p->names_view);
    p->names = NULL;
    p->names_view = NULL;
    p->names_len = p->names_cap = 0;
}

size_t instances_live_names(const struct instances *p, const thole_slice **ret_names)
{
    for (size_t i = 0; i < p->names_len; i++)
        p->names_view[i] = p->names[i].name;
    *ret_names = p->names_view;
    return p->names_len;
}
