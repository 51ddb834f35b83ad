/*
 * A queue from any threads to one owner thread, first in first out, of intrusive nodes: pushing allocates
 * nothing. The node is the receiver's from the push on.
 *
 * The pushers bound the number of nodes: by calls in flight, by slots, or, for senders without a limit, with
 * mailbox_offer() (refuses) or mailbox_put() (waits).
 */
#ifndef THOLE_MAILBOX_H
#define THOLE_MAILBOX_H
#include "thole/types.h"
#include <pthread.h>

struct mail {
    struct mail *next;
};

struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t filled, drained;
    struct mail *first, **last;
    size_t len;
    bool sleeping; /* the owner waits */
    int wakeup;    /* an eventfd that wakes it; -1: `filled` does */
    bool woken;    /* the eventfd is readable */
    size_t held;   /* pushers that wait in mailbox_put() */
    bool closed;
};

void mailbox_init(struct mailbox *mb);
/* For an owner that waits for other descriptors, too; then mailbox_rest() and not mailbox_wait(). Before any
 * other thread uses it. THOLE_NOMEM: no descriptor is left. */
THOLE_NODISCARD thole_status mailbox_open_wakeup(struct mailbox *mb, thole_error *reterr);
/* No thread may use it any more. Nodes that are still inside are not freed. */
void mailbox_release(struct mailbox *mb);

/* Never blocks for long, never fails, closed or not. */
void mailbox_push(struct mailbox *mb, struct mail *node);
/* Like mailbox_push(), unless @p max nodes wait already, or the mailbox is closed: then false, and the node
 * stays the caller's. */
THOLE_NODISCARD bool mailbox_offer(struct mailbox *mb, struct mail *node, size_t max);
/* Waits for room; false only when it is closed. Never from the owner's thread. */
THOLE_NODISCARD bool mailbox_put(struct mailbox *mb, struct mail *node, size_t max);

/* Owner: everything that waits, oldest first; NULL when nothing does. Does not block. */
struct mail *mailbox_take_all(struct mailbox *mb);
/* Owner: returns when something waits (true), or when it is closed or clock_monotonic_ms() has reached
 * @p deadline_ms (then false, if nothing waits). UINT64_MAX: no deadline. */
bool mailbox_wait(struct mailbox *mb, uint64_t deadline_ms);
/* Owner, before it waits until mailbox_wakeup() can be read: false when something waits, or it is closed.
 * Afterwards, in any case, mailbox_awake(). */
bool mailbox_rest(struct mailbox *mb);
int mailbox_wakeup(const struct mailbox *mb);
void mailbox_awake(void *mb);

/* Any thread, any number of times: waits end, offers and puts are refused. */
void mailbox_close(struct mailbox *mb);
bool mailbox_is_closed(struct mailbox *mb);
size_t mailbox_len(struct mailbox *mb);
#endif
