/* Common parts of the kit: memory that never fails, and the steps of the engine. */
#include "kit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kit_must(bool worked)
{
    if (worked)
        return;
    (void)fputs("thole test kit: out of memory\n", stderr);
    abort();
}

void *kit_alloc(thole_test_env *env, size_t bytes)
{
    void *const memory = arena_alloc(&env->memory, bytes);
    kit_must(memory != NULL);
    return memory;
}

thole_slice kit_dup(thole_test_env *env, thole_slice from)
{
    thole_slice copy = {0};
    kit_must(from.len == 0 || arena_dup(&env->memory, from, &copy) == THOLE_OK);
    return copy;
}

void *kit_grow(thole_test_env *env, void *items, size_t len, size_t *cap, size_t size)
{
    if (len < *cap)
        return items;
    size_t const more = *cap == 0 ? 16 : *cap * 2;
    void *const grown = arena_array(&env->memory, more, size);
    kit_must(grown != NULL);
    if (len > 0)
        memcpy(grown, items, len * size);
    *cap = more;
    return grown;
}

bool kit_step(thole_test_env *env)
{
    if (env->steps_left > 0)
        env->steps_left--;
    if (env->crash_in != UINT64_MAX && env->crash_in-- == 0)
        env->dying = true;
    return !env->dying;
}
