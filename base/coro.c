/*
 * Coroutines on ucontext. A coroutine and its stack are one object that the pool keeps for reuse.
 *
 * The sanitizers must be told of every switch, and of a stack that is dropped: ASan holds a "fake stack" for
 * each fiber and poisons parts of the real one; TSan holds a fiber. Without them all of that is compiled out.
 *
 * The two switch functions must not be inlined: a compiler may keep the address of a thread-local variable
 * across a call, and after the switch another thread may be running.
 */
#include "coro.h"
#include "memory.h"
#include "sanitizers.h"
#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if SANITIZED_ADDRESS
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define NO_ASAN __attribute__((no_sanitize_address))
#else
#define NO_ASAN
#endif
#if SANITIZED_THREAD
#include <sanitizer/tsan_interface.h>
#endif
#define NOINLINE __attribute__((noinline))

struct coro {
    ucontext_t self, caller;
    void (*entry)(void *);
    void *arg;
    struct stack_pool *pool;
    struct coro *next_free;
    uint8_t *map; /* guard, then stack */
    uint8_t *stack;
    size_t size; /* index in the pool's list of sizes */
    bool done, running;
#if SANITIZED_ADDRESS
    void *fake_caller, *fake_self;
    const void *caller_bottom;
    size_t caller_size;
#endif
#if SANITIZED_THREAD
    void *tsan_self, *tsan_caller;
#endif
};

enum { SIZES = 8 };
static_assert((size_t)CORO_STACK_BYTES << (SIZES - 1) == CORO_STACK_BYTES_MAX, "the sizes of stacks");

struct stack_pool {
    struct coro *free[SIZES];
    size_t free_len[SIZES];
    struct coro *running; /* NULL: none; read by signal handlers of the pool's thread */
    size_t kept, keep_max;
    size_t in_use, stacks_max;
    size_t stack_bytes; /* of a coroutine that asks for no size */
};

static size_t size_bytes(size_t size)
{
    return (size_t)CORO_STACK_BYTES << size;
}

static size_t coro_size_of(size_t stack_bytes)
{
    size_t size = 0;
    assert(stack_bytes <= CORO_STACK_BYTES_MAX);
    while (size_bytes(size) < stack_bytes)
        size++;
    return size;
}

struct stack_pool *stack_pool_create(size_t keep_max, size_t stacks_max)
{
    return stack_pool_create_sized(CORO_STACK_BYTES, keep_max, stacks_max);
}

struct stack_pool *stack_pool_create_sized(size_t stack_bytes, size_t keep_max, size_t stacks_max)
{
    struct stack_pool *pool = memory_new(sizeof *pool);
    pool->stack_bytes = stack_bytes;
    pool->keep_max = keep_max;
    pool->stacks_max = stacks_max;
    return pool;
}

size_t stack_pool_in_use(const struct stack_pool *pool)
{
    return pool->in_use;
}

size_t stack_pool_kept(const struct stack_pool *pool)
{
    return pool->kept;
}

size_t coro_stack_bytes(const struct coro *co)
{
    return size_bytes(co->size);
}

static void stack_unmap(struct coro *co)
{
    (void)munmap(co->map, CORO_GUARD_BYTES + coro_stack_bytes(co));
    free(co);
}

/* The one of this size that was kept last; NULL: none is. */
static struct coro *kept_take(struct stack_pool *pool, size_t size)
{
    struct coro *const co = pool->free[size];
    if (co == NULL)
        return NULL;
    assert(pool->free_len[size] > 0 && pool->kept > 0);
    pool->free[size] = co->next_free;
    pool->free_len[size]--;
    pool->kept--;
    return co;
}

void stack_pool_destroy(struct stack_pool *pool)
{
    if (pool == NULL)
        return;
    assert(pool->in_use == 0);
    for (size_t size = 0; size < SIZES; size++)
        for (struct coro *co; (co = kept_take(pool, size)) != NULL;)
            stack_unmap(co);
    assert(pool->kept == 0);
    free(pool);
}

bool coro_has(const struct coro *co, const void *address)
{
    uintptr_t const stack = (uintptr_t)co->stack, at = (uintptr_t)address;
#if SANITIZED_ADDRESS
    void *const fake =
        __asan_get_current_fake_stack(); /* where ASan keeps locals to find uses after return */
    if (fake != NULL && __asan_addr_is_in_fake_stack(fake, (void *)at, NULL, NULL) != NULL)
        return true;
#endif
    return at >= stack && at - stack < coro_stack_bytes(co);
}

size_t coro_stack_resident(const struct coro *co)
{
    enum { PAGES_AT_ONCE = 64 };
    unsigned char resident[PAGES_AT_ONCE];
    size_t const page = (size_t)sysconf(_SC_PAGESIZE), pages = coro_stack_bytes(co) / page;
    size_t n = 0;
    for (size_t at = 0; at < pages; at += PAGES_AT_ONCE) {
        size_t const some = pages - at < PAGES_AT_ONCE ? pages - at : PAGES_AT_ONCE;
        if (mincore(co->stack + at * page, some * page, resident) != 0)
            return coro_stack_bytes(co);
        for (size_t i = 0; i < some; i++)
            n += resident[i] & 1;
    }
    return n * page;
}

bool stack_pool_overflown(const struct stack_pool *pool, const void *address)
{
    const struct coro *const co = pool->running;
    return co != NULL && (uintptr_t)address - (uintptr_t)co->map < CORO_GUARD_BYTES;
}

bool stack_pool_runs_on(const struct stack_pool *pool, const void *address)
{
    const struct coro *const co = pool->running;
    return co != NULL && (uintptr_t)address - (uintptr_t)co->stack < coro_stack_bytes(co);
}

size_t stack_pool_running_bytes(const struct stack_pool *pool)
{
    return pool->running == NULL ? 0 : coro_stack_bytes(pool->running);
}

static struct coro *stack_map(struct stack_pool *pool, size_t size)
{
    /* not memory_new(): an abort within a turn would be counted as a crash of the code */
    struct coro *co = calloc(1, sizeof *co);
    if (co == NULL)
        return NULL;
    co->pool = pool;
    co->size = size;
    co->map = mmap(NULL, CORO_GUARD_BYTES + size_bytes(size), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (co->map == MAP_FAILED) {
        free(co);
        return NULL;
    }
    co->stack = co->map + CORO_GUARD_BYTES;
    if (mprotect(co->map, CORO_GUARD_BYTES, PROT_NONE) != 0) {
        stack_unmap(co);
        return NULL;
    }
    return co;
}

static struct coro *stack_take(struct stack_pool *pool, size_t size)
{
    if (pool->in_use >= pool->stacks_max)
        return NULL;
    struct coro *co = kept_take(pool, size);
    if (co == NULL)
        co = stack_map(pool, size);
    if (co != NULL)
        pool->in_use++;
    return co;
}

/* The size of which most are kept. */
static size_t most_kept(const struct stack_pool *pool)
{
    size_t most = 0;
    for (size_t size = 1; size < SIZES; size++)
        if (pool->free_len[size] > pool->free_len[most])
            most = size;
    return most;
}

/* A full pool keeps the newer one of two stacks, so that sizes that are not used any more make room. */
static void stack_give(struct coro *co)
{
    struct stack_pool *pool = co->pool;
    assert(pool->in_use > 0);
    pool->in_use--;
    size_t const most = most_kept(pool);
    if (pool->kept >= pool->keep_max && (pool->kept == 0 || most == co->size)) {
        stack_unmap(co);
        return;
    }
    if (pool->kept >= pool->keep_max)
        stack_unmap(kept_take(pool, most));
    if (co->size > 0) /* a large one may be full of what was there: as much is kept as of a small one */
        (void)madvise(co->stack, coro_stack_bytes(co) - CORO_STACK_BYTES, MADV_DONTNEED);
    co->next_free = pool->free[co->size];
    pool->free[co->size] = co;
    pool->free_len[co->size]++;
    pool->kept++;
}

/* Host to coroutine; returns when the coroutine yields or ends. */
NOINLINE NO_ASAN static void switch_in(struct coro *co)
{
#if SANITIZED_ADDRESS
    __sanitizer_start_switch_fiber(&co->fake_caller, co->stack, coro_stack_bytes(co));
#endif
#if SANITIZED_THREAD
    co->tsan_caller = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(co->tsan_self, 0);
#endif
    (void)swapcontext(&co->caller, &co->self);
#if SANITIZED_ADDRESS
    __sanitizer_finish_switch_fiber(co->fake_caller, NULL, NULL);
#endif
}

/* Coroutine to host; returns when it is resumed, never after the end of its entry. */
NOINLINE NO_ASAN static void switch_out(struct coro *co)
{
#if SANITIZED_ADDRESS
    /* NULL at the end: ASan then frees the fiber's fake stack. */
    __sanitizer_start_switch_fiber(co->done ? NULL : &co->fake_self, co->caller_bottom, co->caller_size);
#endif
#if SANITIZED_THREAD
    __tsan_switch_to_fiber(co->tsan_caller, 0);
#endif
    (void)swapcontext(&co->self, &co->caller);
#if SANITIZED_ADDRESS
    __sanitizer_finish_switch_fiber(co->fake_self, &co->caller_bottom, &co->caller_size);
#endif
}

/* makecontext passes ints only. */
static void coro_trampoline(unsigned hi, unsigned lo)
{
    struct coro *co = (struct coro *)(((uintptr_t)hi << 32) | (uintptr_t)lo);
#if SANITIZED_ADDRESS
    __sanitizer_finish_switch_fiber(NULL, &co->caller_bottom, &co->caller_size);
#endif
    co->entry(co->arg);
    co->done = true;
    switch_out(co);
    abort(); /* a finished coroutine is never resumed */
}

struct coro *coro_create(struct stack_pool *pool, void (*entry)(void *arg), void *arg)
{
    return coro_create_sized(pool, 0, entry, arg);
}

struct coro *coro_create_sized(struct stack_pool *pool, size_t stack_bytes, void (*entry)(void *arg),
                               void *arg)
{
    assert(pool != NULL && entry != NULL);
    struct coro *co = stack_take(pool, coro_size_of(stack_bytes == 0 ? pool->stack_bytes : stack_bytes));
    if (co == NULL)
        return NULL;
    if (getcontext(&co->self) != 0) {
        stack_give(co);
        return NULL;
    }
    co->entry = entry;
    co->arg = arg;
    co->done = false;
    co->running = false;
    co->next_free = NULL;
    co->self.uc_stack.ss_sp = co->stack;
    co->self.uc_stack.ss_size = coro_stack_bytes(co);
    co->self.uc_link = NULL;
    uintptr_t const p = (uintptr_t)co;
    makecontext(&co->self, (void (*)(void))coro_trampoline, 2, (unsigned)((uint64_t)p >> 32), (unsigned)p);
#if SANITIZED_ADDRESS
    co->fake_self = NULL;
#endif
#if SANITIZED_THREAD
    co->tsan_self = __tsan_create_fiber(0);
#endif
    return co;
}

bool coro_resume(struct coro *co)
{
    assert(!co->done);
    assert(!co->running);
    struct coro *const outer = co->pool->running;
    co->running = true;
    co->pool->running = co;
    switch_in(co);
    co->pool->running = outer;
    co->running = false;
    return !co->done;
}

void coro_yield(struct coro *co)
{
    assert(co->running);
    assert(!co->done);
    switch_out(co);
}

/*
 * Frees what the sanitizers hold for a fiber that will not run again. ASan frees a fake stack only when its
 * own fiber ends, so this claims to be that fiber, without leaving the caller's stack. The real stack has
 * poisoned frames that were never left: they are cleared for the next user of the stack. (ASan's swapcontext
 * clears them too, but that is not documented.)
 */
NOINLINE NO_ASAN static void sanitizers_drop(struct coro *co)
{
#if SANITIZED_ADDRESS
    if (!co->done && co->fake_self != NULL) {
        void *mine = NULL;
        const void *bottom = NULL;
        size_t size = 0;
        __sanitizer_start_switch_fiber(&mine, co->stack, coro_stack_bytes(co));
        __sanitizer_finish_switch_fiber(co->fake_self, &bottom, &size);
        __sanitizer_start_switch_fiber(NULL, bottom, size);
        __sanitizer_finish_switch_fiber(mine, NULL, NULL);
        co->fake_self = NULL;
    }
    __asan_unpoison_memory_region(co->stack, coro_stack_bytes(co));
#endif
#if SANITIZED_THREAD
    __tsan_destroy_fiber(co->tsan_self);
#endif
    (void)co;
}

void coro_destroy(struct coro *co)
{
    if (co == NULL)
        return;
    assert(!co->running);
    sanitizers_drop(co);
    stack_give(co);
}
