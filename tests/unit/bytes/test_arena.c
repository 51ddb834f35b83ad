#include "arena.h"
#include "thole_cunit.h"
#include <stdalign.h>

static void zeroed_aligned_apart(void)
{
    struct arena arena;
    uint8_t *last = NULL;
    arena_init(&arena, 1 << 20);
    for (size_t size = 1; size < 300; size++) {
        uint8_t *p = arena_alloc(&arena, size);
        CU_ASSERT_PTR_NOT_NULL(p);
        CU_ASSERT_EQUAL((uintptr_t)p % alignof(max_align_t), 0);
        size_t sum = 0;
        for (size_t i = 0; i < size; i++)
            sum += p[i];
        CU_ASSERT_EQUAL(sum, 0);
        memset(p, 0xee, size);
        CU_ASSERT(last == NULL || last[0] == 0xee);
        last = p;
    }
    arena_release(&arena);
    CU_ASSERT_EQUAL(arena.used, 0);
    CU_ASSERT_EQUAL(arena.held, 0);
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(&arena, 10)); /* may be used again */
    arena_release(&arena);
}

static void large_ones_leave_the_head_alone(void)
{
    struct arena arena;
    arena_init(&arena, 10 << 20);
    uint8_t *small = arena_alloc(&arena, 16);
    uint8_t *large = arena_alloc(&arena, 1 << 20);
    uint8_t *next = arena_alloc(&arena, 16);
    CU_ASSERT(small != NULL && large != NULL && next != NULL);
    memset(large, 1, 1 << 20);
    CU_ASSERT_EQUAL(small[0] + next[0], 0);
    CU_ASSERT_EQUAL(arena.used, (1 << 20) + 32);
    CU_ASSERT(arena.held >= arena.used);
    CU_ASSERT(arena.held < arena.used + 8192);
    arena_release(&arena);
}

static void the_limit_is_exact(void)
{
    struct arena arena;
    arena_init(&arena, 64);
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(&arena, 48));
    CU_ASSERT_PTR_NULL(arena_alloc(&arena, 17));
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(&arena, 16));
    CU_ASSERT_PTR_NULL(arena_alloc(&arena, 1));
    CU_ASSERT_PTR_NULL(arena_alloc(&arena, 0));
    arena_release(&arena);
    arena_init(&arena, 0);
    CU_ASSERT_PTR_NULL(arena_alloc(&arena, 1));
    arena_release(&arena);
}

static void sizes_that_overflow(void)
{
    struct arena arena;
    thole_slice copy;
    arena_init(&arena, SIZE_MAX);
    CU_ASSERT_PTR_NULL(arena_alloc(&arena, SIZE_MAX));
    CU_ASSERT_PTR_NULL(arena_alloc(&arena, SIZE_MAX - 1));
    CU_ASSERT_PTR_NULL(arena_array(&arena, SIZE_MAX / 8 + 1, 8));
    CU_ASSERT_PTR_NULL(arena_array(&arena, (size_t)1 << 33, (size_t)1 << 33));
    CU_ASSERT_PTR_NOT_NULL(arena_array(&arena, 3, 5));
    CU_ASSERT_PTR_NOT_NULL(arena_array(&arena, 0, 5));
    CU_ASSERT_PTR_NOT_NULL(arena_array(&arena, SIZE_MAX, 0));
    CU_ASSERT_EQUAL(arena_dup(&arena, (thole_slice){(const uint8_t *)"x", SIZE_MAX}, &copy), THOLE_LIMIT);
    arena_release(&arena);
}

/* So that a sanitizer's allocator answers NULL, as malloc does. */
THOLE_API const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
THOLE_API const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void no_memory_is_not_the_limit(void)
{
    struct arena arena;
    arena_init(&arena, SIZE_MAX / 2);
    CU_ASSERT_PTR_NULL(arena_alloc(&arena, (size_t)1 << 60));
    CU_ASSERT_EQUAL(arena_status(&arena), THOLE_NOMEM);
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(&arena, 1));
    arena_release(&arena);
    arena_init(&arena, 100);
    CU_ASSERT_PTR_NULL(arena_alloc(&arena, (size_t)1 << 60));
    CU_ASSERT_EQUAL(arena_status(&arena), THOLE_LIMIT);
    arena_release(&arena);
}

static void copies_end_with_nul(void)
{
    struct arena arena;
    thole_slice copy = {NULL, 7};
    arena_init(&arena, 48);
    CU_ASSERT_EQUAL(arena_dup(&arena, THOLE_STR("abc"), &copy), THOLE_OK);
    CHECK_STR("copy", (const char *)copy.ptr, "abc");
    CU_ASSERT_EQUAL(copy.len, 3);
    CU_ASSERT_EQUAL(arena_dup(&arena, (thole_slice){NULL, 0}, &copy), THOLE_OK);
    CHECK_STR("empty", (const char *)copy.ptr, "");
    CU_ASSERT_EQUAL(arena_dup(&arena, THOLE_STR("0123456789abcdef"), &copy),
                    THOLE_LIMIT); /* 17 with the NUL */
    CU_ASSERT_EQUAL(copy.len, 0); /* untouched */
    arena_release(&arena);
}

static const struct thole_test tests[] = {
    {"zeroed, aligned, apart", zeroed_aligned_apart},
    {"large ones leave the head alone", large_ones_leave_the_head_alone},
    {"the limit is exact", the_limit_is_exact},
    {"sizes that overflow", sizes_that_overflow},
    {"no memory is not the limit", no_memory_is_not_the_limit},
    {"copies end with NUL", copies_end_with_nul},
};
THOLE_TEST_MAIN("arena", tests)
