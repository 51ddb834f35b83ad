/*
 * Asymmetric stackful coroutines (ucontext) on pooled, guarded stacks, with ASan and TSan fiber hooks.
 * One owner thread at a time; never resumed re-entrantly.
 */
#ifndef THOLE_CORO_H
#define THOLE_CORO_H
#include "thole/types.h"

/* An overflow must hit the guard below the stack, even with a large local array. A guard takes addresses, not
 * memory. */
enum {
    CORO_STACK_BYTES = 64 * 1024,
    CORO_STACK_BYTES_MAX = 8 * 1024 * 1024,
    CORO_GUARD_BYTES = 1024 * 1024,
};

/*
 * Keeps up to keep_max free stacks for reuse and refuses more than stacks_max in use (vm.max_map_count): both
 * count the stacks of all sizes together. A size is CORO_STACK_BYTES times a power of two; what is asked for
 * is rounded up to one, as addresses cost nothing.
 */
struct stack_pool;
struct stack_pool *stack_pool_create(size_t keep_max, size_t stacks_max); /* of CORO_STACK_BYTES each */
/* A pool whose coroutines have stacks of @p stack_bytes, at most CORO_STACK_BYTES_MAX, unless they ask for
 * others. */
struct stack_pool *stack_pool_create_sized(size_t stack_bytes, size_t keep_max, size_t stacks_max);
void stack_pool_destroy(struct stack_pool *pool); /* all coroutines must be destroyed first; NULL-safe */
size_t stack_pool_in_use(const struct stack_pool *pool);
size_t stack_pool_kept(const struct stack_pool *pool); /* free ones */

/* Whether the address is in the guard of the stack that is running now, that is, it overflowed.
 * Async-signal-safe, on the pool's thread. */
bool stack_pool_overflown(const struct stack_pool *pool, const void *address);
/* Whether the address is on the stack of the coroutine that runs now. Likewise. */
bool stack_pool_runs_on(const struct stack_pool *pool, const void *address);
/* Size of the stack of the coroutine that runs now; 0: none does. Likewise. */
size_t stack_pool_running_bytes(const struct stack_pool *pool);

struct coro;
/* NULL: stacks_max are in use, or the system has no mapping left for another. */
struct coro *coro_create(struct stack_pool *pool, void (*entry)(void *arg), void *arg);
/* Like coro_create(), with a stack of @p stack_bytes, at most CORO_STACK_BYTES_MAX; 0: of the pool's size. */
struct coro *coro_create_sized(struct stack_pool *pool, size_t stack_bytes, void (*entry)(void *arg),
                               void *arg);
size_t coro_stack_bytes(const struct coro *co); /* as rounded up */
/* Bytes of its stack that take memory now. Asks the system. */
size_t coro_stack_resident(const struct coro *co);
/* Runs until the next yield or the end of entry; false once entry has returned. */
bool coro_resume(struct coro *co);
void coro_yield(struct coro *co);
/* Whether the address is on its stack. Only while it runs. */
bool coro_has(const struct coro *co, const void *address);
/* Legal while suspended: the stack is dropped, not unwound, and goes back to the pool. NULL-safe. */
void coro_destroy(struct coro *co);
#endif
