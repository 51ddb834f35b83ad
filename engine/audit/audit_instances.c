#include "audit_instances.h"
#include "hash.h"
#include "memory.h"
#include <stdlib.h>
#include <string.h>

enum { CAP_FIRST = 256 };

static void audit_instances_grow(struct audit_instances *instances)
{
    size_t const cap = instances->cap == 0 ? CAP_FIRST : instances->cap * 2;
    struct audit_instance **buckets = memory_array(cap, sizeof(struct audit_instance *));
    for (size_t i = 0; i < instances->cap; i++)
        for (struct audit_instance *at = instances->buckets[i], *next; at != NULL; at = next) {
            next = at->next;
            at->next = buckets[at->hash & (cap - 1)];
            buckets[at->hash & (cap - 1)] = at;
        }
    free(instances->buckets);
    instances->buckets = buckets;
    instances->cap = cap;
}

struct audit_instance *audit_instances_at(struct audit_instances *instances, thole_slice id)
{
    uint64_t const hash = hash_bytes(0, id);
    if (instances->len == instances->cap)
        audit_instances_grow(instances);
    struct audit_instance **bucket = &instances->buckets[hash & (instances->cap - 1)];
    for (struct audit_instance *at = *bucket; at != NULL; at = at->next)
        if (at->hash == hash && thole_slice_equal((thole_slice){at->id, at->id_len}, id))
            return at;
    struct audit_instance *added = memory_new(sizeof *added + id.len);
    added->hash = hash;
    added->id_len = (uint32_t)id.len;
    memcpy(added->id, id.ptr, id.len);
    added->next = *bucket;
    *bucket = added;
    instances->len++;
    return added;
}

void audit_instances_release(struct audit_instances *instances)
{
    for (size_t i = 0; i < instances->cap; i++)
        for (struct audit_instance *at = instances->buckets[i], *next; at != NULL; at = next) {
            next = at->next;
            free(at);
        }
    free(instances->buckets);
    *instances = (struct audit_instances){0};
}
