/* The bump allocator: a few blocks of about 1 KiB, then ones that double up to 64 KiB; what is large gets a
 * block of its own. */
#include "arena.h"
#include "sanitizers.h"
#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#ifndef ARENA_DEBUG
#define ARENA_DEBUG SANITIZED_ADDRESS
#endif

/* A small block with its head is below 1,008 bytes, a small one for glibc's malloc, too: those are cached for
 * each thread, while a larger one first makes it merge all free blocks. */
enum {
    ARENA_BLOCK_MIN = 960,
    ARENA_BLOCKS_SMALL = 4, /* so many before they double */
    ARENA_BLOCK_MAX = 64 * ARENA_BLOCK_MIN,
    ARENA_ALIGN = alignof(max_align_t)
};

struct arena_block {
    struct arena_block *next;
    size_t used, cap;
    alignas(max_align_t) uint8_t bytes[];
};
static_assert(sizeof(struct arena_block) + ARENA_BLOCK_MIN < 1008, "the least block is a small one");

void arena_init(struct arena *arena, size_t limit_bytes)
{
    *arena = (struct arena){.limit = limit_bytes};
}

static struct arena_block *block_create(struct arena *arena, size_t cap)
{
    struct arena_block *block = malloc(sizeof *block + cap);
    if (block == NULL) {
        arena->nomem = true;
        return NULL;
    }
    *block = (struct arena_block){.cap = cap};
    arena->held += sizeof *block + cap;
    return block;
}

/* A new head block, from which the next allocations are taken. */
static struct arena_block *block_push(struct arena *arena, size_t cap)
{
    struct arena_block *block = block_create(arena, cap);
    if (block == NULL)
        return NULL;
    block->next = arena->head;
    arena->head = block;
    return block;
}

/* A block for one allocation, inserted after the head, so that the rest of the head stays usable. */
static struct arena_block *block_insert(struct arena *arena, size_t cap)
{
    if (arena->head == NULL)
        return block_push(arena, cap);
    struct arena_block *block = block_create(arena, cap);
    if (block == NULL)
        return NULL;
    block->next = arena->head->next;
    arena->head->next = block;
    return block;
}

static struct arena_block *block_for(struct arena *arena, size_t size)
{
    struct arena_block *head = arena->head;
    if (ARENA_DEBUG)
        return block_push(arena, size);
    if (head != NULL && head->cap - head->used >= size)
        return head;
    size_t cap = ARENA_BLOCK_MIN;
    while (cap < ARENA_BLOCK_MAX && cap < arena->held / ARENA_BLOCKS_SMALL)
        cap *= 2;
    return size > cap / 4 ? block_insert(arena, size) : block_push(arena, cap);
}

/* Not zeroed, so that pages that were never used are not touched. */
static uint8_t *arena_take(struct arena *arena, size_t size)
{
    assert(arena->used <= arena->limit);
    size_t const asked = size;
    if (size > SIZE_MAX / 2)
        return NULL;
    size = size == 0 ? ARENA_ALIGN : (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (size > arena->limit - arena->used)
        return NULL;
    struct arena_block *block = block_for(arena, ARENA_DEBUG ? asked : size);
    if (block == NULL)
        return NULL;
    uint8_t *p = block->bytes + block->used;
    block->used += ARENA_DEBUG ? asked : size;
    arena->used += size;
    assert(block->used <= block->cap);
    return p;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    uint8_t *p = arena_take(arena, size);
    return p == NULL ? NULL : memset(p, 0, size);
}

thole_status arena_status(const struct arena *arena)
{
    return arena->nomem ? THOLE_NOMEM : THOLE_LIMIT;
}

void *arena_array(struct arena *arena, size_t n, size_t size)
{
    if (size != 0 && n > SIZE_MAX / size)
        return NULL;
    return arena_alloc(arena, n * size);
}

thole_status arena_dup(struct arena *arena, thole_slice from, thole_slice *ret)
{
    if (from.len == SIZE_MAX)
        return THOLE_LIMIT;
    uint8_t *p = arena_take(arena, from.len + 1);
    if (p == NULL)
        return arena_status(arena);
    if (from.len > 0)
        memcpy(p, from.ptr, from.len);
    p[from.len] = 0;
    *ret = (thole_slice){p, from.len};
    return THOLE_OK;
}

void arena_release(struct arena *arena)
{
    for (struct arena_block *block = arena->head, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    arena->head = NULL;
    arena->used = 0;
    arena->held = 0;
    arena->nomem = false;
}
