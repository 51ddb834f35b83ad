/*
 * The cancellation token that a handler reads. For a handler on a thread it is ordinary memory; for one in a
 * process it is in a page that both share: the worker writes it and does not trust its contents. Times are
 * those of clock_monotonic_ms(), which all processes of a machine share.
 */
#ifndef THOLE_TOKEN_H
#define THOLE_TOKEN_H
#include "thole/activity.h"
#include <stdatomic.h>

enum { TOKEN_REASON_BYTES = 1024 };

struct token {
    atomic_uint fired; /* 0, then 1; waiters sleep on it (a futex) */
    uint32_t kind;     /* a thole_cancel_kind; written before fired, as are the next three */
    uint32_t reason_len;
    char reason[TOKEN_REASON_BYTES];
    atomic_uint_least64_t grace_end_ms; /* may become less; UINT64_MAX before */
};

struct activity_cancel {
    thole_cancel_kind kind;
    thole_slice reason;    /* empty: the kind's name is the reason; cut at TOKEN_REASON_BYTES */
    uint64_t grace_end_ms; /* when the slot is given up, or the process is killed */
};

/* Also resets a fired token that is not in use. */
void token_init(struct token *token);
/* Wakes all who wait. Once. A descriptor is made readable afterwards, so that its reader sees the fired
 * token.
 */
void token_fire(struct token *token, const struct activity_cancel *cancel);
bool token_fired(const struct token *token);
/* Returns when it has fired, or at @p end_ms. */
void token_wait(struct token *token, uint64_t end_ms);
#endif
