#include "coro.h"
#include "thole_cunit.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct counter {
    struct coro *co;
    int steps, limit;
};

static void count(void *arg)
{
    struct counter *c = arg;
    while (c->steps < c->limit) {
        c->steps++;
        coro_yield(c->co);
    }
}

static struct counter *counter_create(struct stack_pool *pool, int limit)
{
    struct counter *c = calloc(1, sizeof *c);
    c->limit = limit;
    c->co = coro_create(pool, count, c);
    return c;
}

static void counter_destroy(struct counter *c)
{
    coro_destroy(c->co);
    free(c);
}

static void runs_to_the_end(void)
{
    struct stack_pool *pool = stack_pool_create(2, 4);
    struct counter *c = counter_create(pool, 3);
    CU_ASSERT_EQUAL(c->steps, 0); /* not before the first resume */
    for (int i = 1; i <= 3; i++) {
        CU_ASSERT(coro_resume(c->co));
        CU_ASSERT_EQUAL(c->steps, i);
    }
    CU_ASSERT_FALSE(coro_resume(c->co));
    CU_ASSERT_EQUAL(stack_pool_in_use(pool), 1);
    counter_destroy(c);
    CU_ASSERT_EQUAL(stack_pool_in_use(pool), 0);
    coro_destroy(NULL);
    stack_pool_destroy(pool);
    stack_pool_destroy(NULL);
}

static void dropped_before_it_ran_and_while_suspended(void)
{
    struct stack_pool *pool = stack_pool_create(2, 4);
    struct counter *never = counter_create(pool, 3), *half = counter_create(pool, 3);
    CU_ASSERT(coro_resume(half->co));
    counter_destroy(never);
    counter_destroy(half);
    CU_ASSERT_EQUAL(stack_pool_in_use(pool), 0);
    stack_pool_destroy(pool);
}

static void two_take_turns(void)
{
    struct stack_pool *pool = stack_pool_create(2, 4);
    struct counter *a = counter_create(pool, 1000), *b = counter_create(pool, 1000);
    for (int i = 0; i < 1000; i++) {
        CU_ASSERT(coro_resume(a->co) && coro_resume(b->co));
        CU_ASSERT(a->steps == i + 1 && b->steps == i + 1);
    }
    counter_destroy(a);
    counter_destroy(b);
    stack_pool_destroy(pool);
}

static void the_pool_has_a_bound_and_reuses(void)
{
    struct stack_pool *pool = stack_pool_create(1, 3);
    struct counter *c[3];
    for (int i = 0; i < 3; i++)
        c[i] = counter_create(pool, 1);
    CU_ASSERT_EQUAL(stack_pool_in_use(pool), 3);
    CU_ASSERT_PTR_NULL(coro_create(pool, count, c[0]));
    struct coro *last = c[0]->co;
    counter_destroy(c[0]);
    struct counter *again = counter_create(pool, 1);
    CU_ASSERT_PTR_EQUAL(again->co, last);
    counter_destroy(again);
    counter_destroy(c[1]); /* only one is kept */
    counter_destroy(c[2]);
    CU_ASSERT_EQUAL(stack_pool_in_use(pool), 0);
    stack_pool_destroy(pool);
}

/* ---- stacks kept by the pool ---- */

struct stander {
    struct coro *co;
    void *frame;
};

static void stand(void *arg)
{
    struct stander *s = arg;
    s->frame = __builtin_frame_address(0);
    coro_yield(s->co);
}

static bool is_mapped(const void *address)
{
    uintptr_t const page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char resident;
    return mincore((void *)((uintptr_t)address & ~(page - 1)), 1, &resident) == 0 || errno != ENOMEM;
}

/* Stacks are large: one that is kept beyond the bound costs as much as an instance that lives. */
static void no_more_are_kept_than_said(void)
{
    enum { STACKS = 4 };
    for (size_t keep = 0; keep <= STACKS; keep++) {
        struct stack_pool *pool = stack_pool_create(keep, STACKS);
        struct stander all[STACKS] = {0};
        for (size_t i = 0; i < STACKS; i++) {
            all[i].co = coro_create(pool, stand, &all[i]);
            CU_ASSERT(coro_resume(all[i].co));
            CU_ASSERT(is_mapped(all[i].frame));
        }
        for (size_t i = 0; i < STACKS; i++) {
            coro_destroy(all[i].co);
            CU_ASSERT_EQUAL(is_mapped(all[i].frame), i < keep);
        }
        stack_pool_destroy(pool);
        for (size_t i = 0; i < STACKS; i++)
            CU_ASSERT_FALSE(is_mapped(all[i].frame));
    }
}

/* ---- stacks of several sizes ---- */

enum { KIB = 1024, MIB = 1024 * KIB };

static __attribute__((noinline)) uint8_t touch(size_t bytes)
{
    enum { STEP = 16 * KIB };
    volatile uint8_t frame[STEP];
    memset((uint8_t *)frame, 1, sizeof frame);
    return (uint8_t)(frame[bytes % STEP] + (bytes > STEP ? touch(bytes - STEP) : 0));
}

struct toucher {
    struct coro *co;
    size_t bytes;
    uint8_t sum;
};

static void touch_and_wait(void *arg)
{
    struct toucher *t = arg;
    t->sum = touch(t->bytes);
    coro_yield(t->co);
}

static size_t resident_after(struct stack_pool *pool, size_t stack_bytes, size_t touched)
{
    struct toucher t = {.bytes = touched};
    t.co = coro_create_sized(pool, stack_bytes, touch_and_wait, &t);
    CU_ASSERT(coro_resume(t.co) && t.sum != 0);
    size_t const resident = coro_stack_resident(t.co);
    coro_destroy(t.co);
    return resident;
}

static void a_stack_has_the_size_that_is_asked_for(void)
{
    static const size_t rows[][2] = {/* asked for, got */
                                     {0, 64 * KIB},          {1, 64 * KIB},
                                     {64 * KIB, 64 * KIB},   {64 * KIB + 1, 128 * KIB},
                                     {1500 * 1000, 2 * MIB}, {8 * MIB, 8 * MIB}};
    struct stack_pool *pool = stack_pool_create(16, 16), *large = stack_pool_create_sized(1 * MIB, 1, 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct counter c = {.limit = 1};
        c.co = coro_create_sized(pool, rows[i][0], count, &c);
        CU_ASSERT_EQUAL(coro_stack_bytes(c.co), rows[i][1]);
        CU_ASSERT(coro_resume(c.co) && !coro_resume(c.co));
        coro_destroy(c.co);
    }
    CU_ASSERT_EQUAL(stack_pool_kept(pool), 4);
    struct counter c = {.limit = 1};
    c.co = coro_create(large, count, &c);
    CU_ASSERT_EQUAL(coro_stack_bytes(c.co), 1 * MIB);
    coro_destroy(c.co);
    stack_pool_destroy(pool);
    stack_pool_destroy(large);
}

static void what_is_used_of_a_stack_is_known(void)
{
    struct stack_pool *pool = stack_pool_create(1, 1);
    size_t const little = resident_after(pool, 4 * MIB, 1), much = resident_after(pool, 4 * MIB, 2 * MIB);
    CU_ASSERT(little > 0 && little <= 64 * KIB);
    CU_ASSERT(much >= 2 * MIB && much <= 2 * MIB + 256 * KIB);
    /* one that was used before is given back to the system, but for as much as a small one has */
    CU_ASSERT_EQUAL(stack_pool_kept(pool), 1);
    CU_ASSERT(resident_after(pool, 4 * MIB, 1) <= 128 * KIB);
    stack_pool_destroy(pool);
}

/* All sizes together: each is two mappings, whatever its size is. */
static void bounds_hold_for_all_sizes_together(void)
{
    enum { STACKS = 4 };
    static const size_t sizes[] = {64 * KIB, 256 * KIB, 1 * MIB, 8 * MIB};
    struct stack_pool *pool = stack_pool_create(2, STACKS);
    struct counter *c[STACKS];
    for (size_t round = 0; round < 8; round++) {
        for (size_t i = 0; i < STACKS; i++) {
            c[i] = calloc(1, sizeof *c[i]);
            c[i]->co = coro_create_sized(pool, sizes[(i + round) % ARRAY_LEN(sizes)], count, c[i]);
            CU_ASSERT_PTR_NOT_NULL(c[i]->co);
        }
        CU_ASSERT_PTR_NULL(coro_create_sized(pool, sizes[round % ARRAY_LEN(sizes)], count, c[0]));
        for (size_t i = 0; i < STACKS; i++)
            counter_destroy(c[i]);
        CU_ASSERT_EQUAL(stack_pool_in_use(pool), 0);
        CU_ASSERT_EQUAL(stack_pool_kept(pool), 2);
    }
    stack_pool_destroy(pool);
}

/* A burst of one size does not keep room from the size that is used afterwards. */
static void the_newer_size_is_kept(void)
{
    struct stack_pool *pool = stack_pool_create(2, 4);
    struct counter *c[2];
    for (int i = 0; i < 2; i++)
        c[i] = counter_create(pool, 1);
    counter_destroy(c[0]);
    counter_destroy(c[1]);
    struct counter large = {.limit = 1};
    large.co = coro_create_sized(pool, 1 * MIB, count, &large);
    struct coro *const first = large.co;
    coro_destroy(large.co);
    CU_ASSERT_EQUAL(stack_pool_kept(pool), 2);
    large.co = coro_create_sized(pool, 1 * MIB, count, &large);
    CU_ASSERT_PTR_EQUAL(large.co, first);
    coro_destroy(large.co);
    stack_pool_destroy(pool);
}

/* ---- a stack that is dropped in the middle of deep frames ---- */

struct digger {
    struct coro *co;
    uint64_t sum;
    int depth;
};

/* Frames of two shapes, so that what one leaves poisoned lies where the other has its variables. */
#define DIG(name, bytes)                                                                                     \
    static __attribute__((noinline)) uint64_t name(struct digger *d, int depth)                              \
    {                                                                                                        \
        volatile uint8_t frame[bytes];                                                                       \
        for (size_t i = 0; i < sizeof frame; i++)                                                            \
            frame[i] = (uint8_t)(depth + (int)i);                                                            \
        if (depth == 0)                                                                                      \
            coro_yield(d->co);                                                                               \
        uint64_t const below = depth == 0 ? 0 : name(d, depth - 1);                                          \
        return below + frame[depth];                                                                         \
    }
DIG(dig_narrow, 72)
DIG(dig_wide, 500)

static void narrow(void *arg)
{
    struct digger *d = arg;
    d->sum = dig_narrow(d, d->depth);
}

static void wide(void *arg)
{
    struct digger *d = arg;
    d->sum = dig_wide(d, d->depth);
}

/* Under AddressSanitizer the frames that were never left are poisoned: the next user must not meet that. */
static void a_dropped_stack_is_clean(void)
{
    struct stack_pool *pool = stack_pool_create(1, 1);
    uint64_t expected = 0;
    for (int depth = 0; depth <= 40; depth++)
        expected += (uint8_t)(depth + depth);
    for (int round = 0; round < 300; round++) {
        struct digger d = {.depth = 40 + round % 20};
        d.co = coro_create(pool, narrow, &d);
        CU_ASSERT(coro_resume(d.co));
        coro_destroy(d.co);
        struct digger all = {.depth = 40};
        all.co = coro_create(pool, wide, &all);
        CU_ASSERT(coro_resume(all.co));
        CU_ASSERT_FALSE(coro_resume(all.co));
        CU_ASSERT_EQUAL(all.sum, expected);
        coro_destroy(all.co);
    }
    stack_pool_destroy(pool);
}

/* ---- from thread to thread ---- */

static void *resume_some(void *arg)
{
    struct counter *c = arg;
    for (int i = 0; i < 50; i++)
        (void)coro_resume(c->co);
    return NULL;
}

static void moves_between_threads(void)
{
    struct stack_pool *pool = stack_pool_create(1, 1);
    struct counter *c = counter_create(pool, 1000);
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        CU_ASSERT_EQUAL(pthread_create(&thread, NULL, resume_some, c), 0);
        CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
        CU_ASSERT(coro_resume(c->co));
        CU_ASSERT_EQUAL(c->steps, (i + 1) * 51);
    }
    counter_destroy(c);
    stack_pool_destroy(pool);
}

static void *churn(void *arg)
{
    (void)arg;
    struct stack_pool *pool = stack_pool_create(4, 8);
    for (int i = 0; i < 200; i++) {
        struct counter *c = counter_create(pool, 3);
        for (int j = 0; j < i % 5 && coro_resume(c->co); j++)
            ;
        counter_destroy(c);
    }
    stack_pool_destroy(pool);
    return NULL;
}

static void a_pool_for_each_thread(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, churn, NULL), 0);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(pthread_join(threads[i], NULL), 0);
}

static const struct thole_test tests[] = {
    {"runs to the end", runs_to_the_end},
    {"dropped before it ran and while suspended", dropped_before_it_ran_and_while_suspended},
    {"two take turns", two_take_turns},
    {"the pool has a bound and reuses", the_pool_has_a_bound_and_reuses},
    {"no more are kept than said", no_more_are_kept_than_said},
    {"a stack has the size that is asked for", a_stack_has_the_size_that_is_asked_for},
    {"what is used of a stack is known", what_is_used_of_a_stack_is_known},
    {"bounds hold for all sizes together", bounds_hold_for_all_sizes_together},
    {"the newer size is kept", the_newer_size_is_kept},
    {"a dropped stack is clean", a_dropped_stack_is_clean},
    {"moves between threads", moves_between_threads},
    {"a pool for each thread", a_pool_for_each_thread},
};
THOLE_TEST_MAIN("coro", tests)
