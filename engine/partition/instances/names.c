/* How many live instances of each orchestration a partition has: few names, so an array is enough. */
#include "instances_state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSIONED_NAME_BYTES = THOLE_NAME_BYTES_MAX + 16 };

static size_t find(const struct instances *p, thole_slice name)
{
    size_t i = 0;
    while (i < p->names_len && !thole_slice_equal(p->names[i].name, name))
        i++;
    return i;
}

static bool grow(struct instances *p)
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

void names_add(struct instances *p, thole_slice name, uint64_t count)
{
    if (name.len == 0)
        return;
    size_t const i = find(p, name);
    if (i < p->names_len) {
        p->names[i].count += count;
        return;
    }
    uint8_t *copy = malloc(name.len);
    if (copy == NULL || !grow(p)) {
        free(copy);
        env_no_memory(p->env);
        return;
    }
    memcpy(copy, name.ptr, name.len);
    p->names[p->names_len++] = (struct live_name){{copy, name.len}, count};
}

static void names_remove(struct instances *p, thole_slice name)
{
    size_t const i = find(p, name);
    if (i == p->names_len || --p->names[i].count > 0)
        return;
    free((void *)(uintptr_t)p->names[i].name.ptr);
    p->names[i] = p->names[--p->names_len];
}

static thole_slice versioned(char text[VERSIONED_NAME_BYTES], thole_slice name, uint32_t version)
{
    if (version <= 1 || name.len > THOLE_NAME_BYTES_MAX)
        return name;
    int const n = snprintf(text, VERSIONED_NAME_BYTES, "%.*s@%u", THOLE_FMT(name), version);
    return (thole_slice){(const uint8_t *)text, (size_t)n};
}

void names_count(struct instances *p, struct entry *entry, thole_slice orchestration, uint32_t version)
{
    char text[VERSIONED_NAME_BYTES];
    names_add(p, versioned(text, orchestration, version), 1);
    names_uncount(p, entry);
    entry->counted.name = true;
    entry->counted.version = version;
}

void names_uncount(struct instances *p, struct entry *entry)
{
    char text[VERSIONED_NAME_BYTES];
    if (entry->counted.name)
        names_remove(p, versioned(text, entry->orchestration, entry->counted.version));
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
