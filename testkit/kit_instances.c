/* The instances that there are, found by their ids. */
#include "kit.h"

static struct kit_instance **kit_instances_bucket(const thole_test_env *env, thole_slice id)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < id.len; i++)
        hash = (hash ^ id.ptr[i]) * 1099511628211u;
    return (struct kit_instance **)&env->buckets[hash % KIT_INSTANCE_BUCKETS];
}

struct kit_instance *kit_instance_find(const thole_test_env *env, thole_slice id)
{
    struct kit_instance *instance = *kit_instances_bucket(env, id);
    while (instance != NULL && !thole_slice_equal(instance->id, id))
        instance = instance->hash_next;
    return instance;
}

struct kit_instance *kit_instance_at(thole_test_env *env, thole_slice id)
{
    struct kit_instance *instance = kit_instance_find(env, id);
    if (instance != NULL)
        return instance;
    struct kit_instance **const at = kit_instances_bucket(env, id);
    instance = kit_alloc(env, sizeof *instance);
    instance->id = kit_dup(env, id);
    instance->hash_next = *at;
    *at = instance;
    instance->next = env->instances;
    env->instances = instance;
    return instance;
}
