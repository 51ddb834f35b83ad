#include "wrap_arena.h"

void *__real_arena_alloc(struct arena *arena, size_t size);
void *__real_arena_array(struct arena *arena, size_t n, size_t size);
thole_status __real_arena_dup(struct arena *arena, thole_slice from, thole_slice *ret);

static size_t left; /* requests until the one that is refused, with it */

void arena_refuse(size_t n)
{
    left = n;
}

bool arena_refused(void)
{
    bool const refused = left == 0;
    left = 0;
    return refused;
}

static bool refuses(void)
{
    return left > 0 && --left == 0;
}

void *__wrap_arena_alloc(struct arena *arena, size_t size)
{
    return refuses() ? NULL : __real_arena_alloc(arena, size);
}

void *__wrap_arena_array(struct arena *arena, size_t n, size_t size)
{
    return refuses() ? NULL : __real_arena_array(arena, n, size);
}

thole_status __wrap_arena_dup(struct arena *arena, thole_slice from, thole_slice *ret)
{
    return refuses() ? THOLE_LIMIT : __real_arena_dup(arena, from, ret);
}
