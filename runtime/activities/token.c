#include "token.h"
#include "clock.h"
#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(atomic_uint) == sizeof(uint32_t), "a futex is 32 bits");

void token_init(struct token *token)
{
    memset(token, 0, sizeof *token);
    atomic_init(&token->fired, 0);
    atomic_init(&token->grace_end_ms, UINT64_MAX);
}

bool token_fired(const struct token *token)
{
    return atomic_load_explicit(&token->fired, memory_order_acquire) != 0;
}

void token_fire(struct token *token, const struct activity_cancel *cancel)
{
    thole_slice const kind = thole_slice_from(thole_cancel_kind_name(cancel->kind));
    thole_slice const reason = cancel->reason.len > 0 ? cancel->reason : kind;
    size_t const len = reason.len < sizeof token->reason ? reason.len : sizeof token->reason;
    assert(cancel->kind != THOLE_CANCEL_NONE);
    memcpy(token->reason, reason.ptr, len);
    token->reason_len = (uint32_t)len;
    token->kind = (uint32_t)cancel->kind;
    atomic_store(&token->grace_end_ms, cancel->grace_end_ms);
    atomic_store_explicit(&token->fired, 1, memory_order_release);
    (void)syscall(SYS_futex, &token->fired, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Not FUTEX_PRIVATE: the waiter may be in another process. A wait may end early; callers check again. */
void token_wait(struct token *token, uint64_t end_ms)
{
    uint64_t now_ms;
    while (!token_fired(token) && (now_ms = clock_monotonic_ms()) < end_ms) {
        uint64_t const wait_ms = end_ms - now_ms < INT_MAX ? end_ms - now_ms : INT_MAX;
        struct timespec const span = {.tv_sec = (time_t)(wait_ms / 1000),
                                      .tv_nsec = (long)(wait_ms % 1000) * 1000000};
        (void)syscall(SYS_futex, &token->fired, FUTEX_WAIT, 0, &span, NULL, 0);
    }
}
