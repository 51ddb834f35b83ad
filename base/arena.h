/*
 * Bump allocator with one lifetime and a hard ceiling. Memory is zeroed as it is given out. Not thread-safe.
 * Release is one call. With ARENA_DEBUG (on under AddressSanitizer) every allocation is a malloc of its own,
 * so that overruns are seen.
 */
#ifndef THOLE_ARENA_H
#define THOLE_ARENA_H
#include "thole/types.h"

struct arena_block;
struct arena {
    struct arena_block *head;
    size_t used, limit; /* bytes given out; limit is fixed at init */
    size_t held;        /* bytes taken from malloc for it, blocks' unused ends included */
    bool nomem;         /* malloc has failed */
};

void arena_init(struct arena *arena, size_t limit_bytes);
/* Aligned for any type. NULL when the limit would be passed or malloc fails. size 0 gives a valid pointer. */
void *arena_alloc(struct arena *arena, size_t size);
/* Why an allocation gave NULL: THOLE_NOMEM when malloc failed, else THOLE_LIMIT. */
thole_status arena_status(const struct arena *arena);
/* Room for @p n objects of @p size bytes; checks the product. */
void *arena_array(struct arena *arena, size_t n, size_t size);
/* Copies @p from; a NUL follows the copy. THOLE_LIMIT or THOLE_NOMEM. */
THOLE_NODISCARD thole_status arena_dup(struct arena *arena, thole_slice from, thole_slice *ret);
/* Frees everything; the arena may be used again. NULL-safe on a zeroed struct. */
void arena_release(struct arena *arena);
#endif
