#include "instance_names.h"
#include "hash.h"
#include "instance_memory.h"
#include <assert.h>

enum { NAMES_CAP_MIN = 8 };

static struct name **instance_names_bucket(const struct name_table *table, uint64_t hash)
{
    return &table->buckets[hash & (table->cap - 1)];
}

static struct name *instance_names_find(const struct name_table *table, uint64_t hash, thole_slice text)
{
    if (table->cap == 0)
        return NULL;
    for (struct name *name = *instance_names_bucket(table, hash); name != NULL; name = name->next)
        if (name->hash == hash && thole_slice_equal(name->text, text))
            return name;
    return NULL;
}

struct name *names_find(const struct instance *in, thole_slice text)
{
    return instance_names_find(&in->names, hash_bytes(0, text), text);
}

static thole_status instance_names_grow(struct instance *in)
{
    struct name_table larger = {.len = in->names.len, .cap = in->names.cap * 2};
    if (larger.cap == 0)
        larger.cap = NAMES_CAP_MIN;
    larger.buckets = arena_array(&in->arena, larger.cap, sizeof *larger.buckets);
    if (larger.buckets == NULL)
        return instance_full(in);
    for (size_t i = 0; i < in->names.cap; i++) {
        for (struct name *name = in->names.buckets[i], *next; name != NULL; name = next) {
            next = name->next;
            struct name **to = instance_names_bucket(&larger, name->hash);
            name->next = *to;
            *to = name;
        }
    }
    in->names = larger;
    return THOLE_OK;
}

struct name *names_intern(struct instance *in, thole_slice text)
{
    uint64_t const hash = hash_bytes(0, text);
    struct name *name = instance_names_find(&in->names, hash, text);
    if (name != NULL)
        return name;
    if (in->names.len == in->names.cap && instance_names_grow(in) != THOLE_OK)
        return NULL;
    name = arena_alloc(&in->arena, sizeof *name);
    if (name == NULL) {
        (void)instance_full(in);
        return NULL;
    }
    name->hash = hash;
    if (instance_keep(in, text, &name->text) != THOLE_OK)
        return NULL;
    struct name **to = instance_names_bucket(&in->names, hash);
    name->next = *to;
    *to = name;
    in->names.len++;
    return name;
}

void names_answer_patch(struct name *name, enum patch_answer answer)
{
    assert(answer != PATCH_UNKNOWN);
    name->patch = (uint8_t)answer;
}
