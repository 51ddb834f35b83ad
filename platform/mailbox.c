#include "mailbox.h"
#include "clock.h"
#include "memory.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

void mailbox_init(struct mailbox *mb)
{
    pthread_condattr_t attr;
    *mb = (struct mailbox){.wakeup = -1};
    mb->last = &mb->first;
    int failed = pthread_mutex_init(&mb->lock, NULL) | pthread_condattr_init(&attr) |
                 pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) | pthread_cond_init(&mb->filled, &attr) |
                 pthread_cond_init(&mb->drained, &attr);
    if (failed != 0) /* Linux needs nothing for these; where it does, it is memory */
        memory_give_up(1, sizeof *mb);
    (void)pthread_condattr_destroy(&attr);
}

thole_status mailbox_open_wakeup(struct mailbox *mb, thole_error *reterr)
{
    assert(mb->wakeup < 0);
    mb->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return mb->wakeup >= 0
               ? THOLE_OK
               : thole_fail(reterr, THOLE_NOMEM, "no descriptor for a thread: %s", strerror(errno));
}

void mailbox_release(struct mailbox *mb)
{
    assert(mb->held == 0 && !mb->sleeping);
    if (mb->wakeup >= 0)
        (void)close(mb->wakeup);
    (void)pthread_cond_destroy(&mb->drained);
    (void)pthread_cond_destroy(&mb->filled);
    (void)pthread_mutex_destroy(&mb->lock);
}

/* Under the lock. */
static void mailbox_wake(struct mailbox *mb)
{
    uint64_t const one = 1;
    if (mb->wakeup < 0) {
        (void)pthread_cond_signal(&mb->filled);
    } else if (!mb->woken) {
        ssize_t const wrote = write(mb->wakeup, &one, sizeof one);
        assert(wrote == sizeof one);
        (void)wrote;
        mb->woken = true;
    }
}

/* Under the lock. */
static void mailbox_append(struct mailbox *mb, struct mail *node)
{
    assert(node != NULL);
    node->next = NULL;
    *mb->last = node;
    mb->last = &node->next;
    mb->len++;
    if (mb->sleeping)
        mailbox_wake(mb);
}

void mailbox_push(struct mailbox *mb, struct mail *node)
{
    (void)pthread_mutex_lock(&mb->lock);
    mailbox_append(mb, node);
    (void)pthread_mutex_unlock(&mb->lock);
}

bool mailbox_offer(struct mailbox *mb, struct mail *node, size_t max)
{
    (void)pthread_mutex_lock(&mb->lock);
    bool const room = !mb->closed && mb->len < max;
    if (room)
        mailbox_append(mb, node);
    (void)pthread_mutex_unlock(&mb->lock);
    return room;
}

bool mailbox_put(struct mailbox *mb, struct mail *node, size_t max)
{
    assert(max > 0);
    (void)pthread_mutex_lock(&mb->lock);
    mb->held++;
    while (!mb->closed && mb->len >= max)
        (void)pthread_cond_wait(&mb->drained, &mb->lock);
    mb->held--;
    bool const open = !mb->closed;
    if (open)
        mailbox_append(mb, node);
    (void)pthread_mutex_unlock(&mb->lock);
    return open;
}

struct mail *mailbox_take_all(struct mailbox *mb)
{
    (void)pthread_mutex_lock(&mb->lock);
    struct mail *const first = mb->first;
    mb->first = NULL;
    mb->last = &mb->first;
    mb->len = 0;
    if (mb->held > 0)
        (void)pthread_cond_broadcast(&mb->drained);
    (void)pthread_mutex_unlock(&mb->lock);
    return first;
}

bool mailbox_wait(struct mailbox *mb, uint64_t deadline_ms)
{
    struct timespec const end = clock_timespec(deadline_ms == UINT64_MAX ? 0 : deadline_ms);
    (void)pthread_mutex_lock(&mb->lock);
    assert(!mb->sleeping && mb->wakeup < 0); /* one owner */
    mb->sleeping = true;
    while (mb->first == NULL && !mb->closed) {
        if (deadline_ms == UINT64_MAX)
            (void)pthread_cond_wait(&mb->filled, &mb->lock);
        else if (clock_monotonic_ms() >= deadline_ms)
            break;
        else
            (void)pthread_cond_timedwait(&mb->filled, &mb->lock, &end);
    }
    mb->sleeping = false;
    bool const filled = mb->first != NULL;
    (void)pthread_mutex_unlock(&mb->lock);
    return filled;
}

bool mailbox_rest(struct mailbox *mb)
{
    (void)pthread_mutex_lock(&mb->lock);
    assert(!mb->sleeping && mb->wakeup >= 0);
    mb->sleeping = mb->first == NULL && !mb->closed;
    bool const rests = mb->sleeping;
    (void)pthread_mutex_unlock(&mb->lock);
    return rests;
}

int mailbox_wakeup(const struct mailbox *mb)
{
    return mb->wakeup;
}

void mailbox_awake(void *arg)
{
    struct mailbox *const mb = arg;
    uint64_t count;
    (void)pthread_mutex_lock(&mb->lock);
    mb->sleeping = false;
    if (mb->woken) {
        ssize_t const got = read(mb->wakeup, &count, sizeof count);
        assert(got == sizeof count);
        (void)got;
    }
    mb->woken = false;
    (void)pthread_mutex_unlock(&mb->lock);
}

void mailbox_close(struct mailbox *mb)
{
    (void)pthread_mutex_lock(&mb->lock);
    mb->closed = true;
    if (mb->sleeping)
        mailbox_wake(mb);
    (void)pthread_cond_broadcast(&mb->filled);
    (void)pthread_cond_broadcast(&mb->drained);
    (void)pthread_mutex_unlock(&mb->lock);
}

bool mailbox_is_closed(struct mailbox *mb)
{
    (void)pthread_mutex_lock(&mb->lock);
    bool const closed = mb->closed;
    (void)pthread_mutex_unlock(&mb->lock);
    return closed;
}

size_t mailbox_len(struct mailbox *mb)
{
    (void)pthread_mutex_lock(&mb->lock);
    size_t const len = mb->len;
    (void)pthread_mutex_unlock(&mb->lock);
    return len;
}
