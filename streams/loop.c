#include "loop.h"
#include "memory.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BUFFERED_MAX = 1 << 20, /* bytes: a publisher waits while more are not written */
    WRITABLE_LOOK_MS = 100,
};

struct loop {
    pthread_t thread;
    int wakeup; /* an eventfd */
    loop_deliver_fn *deliver;
    void *arg;
    pthread_mutex_t io; /* held while nats.c reads or writes the socket */
    /* from the attach callback on, fixed */
    natsConnection *nc;
    natsSock native;
    int socket;                /* a duplicate of it: nats.c closes its own at any time */
    atomic_bool attached;      /* the two above are there */
    atomic_bool over;          /* nats.c uses its socket no more, or the loop is to end */
    atomic_bool unsent;        /* nats.c has buffered what is not written yet */
    atomic_bool emptied;       /* by the write in progress */
    atomic_bool blocked;       /* the socket takes no more: the loop's thread waits until it does */
    atomic_uint reads, drains; /* of the socket, and of what was blocked: they show that the server lives */
    /* of the thread that calls loop_is_stalled() */
    unsigned reads_seen, drains_seen, silent, stuck;
};

/* Whose messages the calling thread writes itself, at loop_end() or loop_uncork(). */
static _Thread_local struct {
    struct loop *sending, *corked, *own;
} here;

void loop_wake(struct loop *loop)
{
    uint64_t const one = 1;
    ssize_t const ignored = write(loop->wakeup, &one, sizeof one);
    (void)ignored; /* full: it is awake */
}

/* ---- nats.c's calls, with the connection's lock held ---- */

static natsStatus on_attach(void **data, void *arg, natsConnection *nc, natsSock socket)
{
    struct loop *const loop = arg;
    int const own = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    assert(!atomic_load(&loop->attached)); /* it does not reconnect */
    if (own < 0)
        return NATS_NO_MEMORY;
    loop->nc = nc;
    loop->native = socket;
    loop->socket = own;
    *data = loop;
    atomic_store(&loop->attached, true);
    loop_wake(loop);
    return NATS_OK;
}

static natsStatus on_read(void *data, bool add)
{
    struct loop *const loop = data;
    if (!add) {
        atomic_store(&loop->over, true);
        loop_wake(loop);
    }
    return NATS_OK;
}

static natsStatus on_write(void *data, bool add)
{
    struct loop *const loop = data;
    atomic_store(&loop->unsent, add);
    if (!add)
        atomic_store(&loop->emptied, true);
    if (add && here.sending != loop && here.own != loop)
        loop_wake(loop); /* a PING, a call of nats.c's that waits for an answer */
    return NATS_OK;
}

/* From nats.c 3.11 on; and from 3.9.2 on closing the socket, below: before, nats.c does these itself. */
static natsStatus on_detach(void *data)
{
    struct loop *const loop = data;
#if NATS_VERSION_NUMBER >= 0x030B00
    natsConnection_ProcessDetachedEvent(loop->nc);
#endif
    (void)loop;
    return NATS_OK;
}

natsStatus loop_set_options(struct loop *loop, natsOptions *options)
{
    return natsOptions_SetEventLoop(options, loop, on_attach, on_read, on_write, on_detach);
}

/* ---- writing ---- */

/* Who cannot have the lock leaves it to the one who has, and who looks again afterwards. nats.c must not be
 * asked to write nothing: it takes that for the end of the connection. */
static void flush(struct loop *loop)
{
    while (atomic_load(&loop->unsent) && !atomic_load(&loop->blocked) && !atomic_load(&loop->over)) {
        if (pthread_mutex_trylock(&loop->io) != 0)
            return;
        if (atomic_load(&loop->unsent) && !atomic_load(&loop->blocked)) {
            atomic_store(&loop->emptied, false);
            natsConnection_ProcessWriteEvent(loop->nc);
            atomic_store(&loop->blocked, !atomic_load(&loop->emptied));
        }
        pthread_mutex_unlock(&loop->io);
        if (atomic_load(&loop->blocked))
            loop_wake(loop);
    }
}

/* The socket takes more. */
static void unblock(struct loop *loop)
{
    atomic_fetch_add(&loop->drains, 1);
    atomic_store(&loop->blocked, false);
    flush(loop);
}

void loop_begin(struct loop *loop)
{
    here.sending = loop;
}

void loop_end(struct loop *loop)
{
    here.sending = NULL;
    if (here.own == loop || here.corked == loop)
        return;
    flush(loop);
    while (atomic_load(&loop->blocked) && !atomic_load(&loop->over) &&
           natsConnection_Buffered(loop->nc) > BUFFERED_MAX) {
        struct pollfd socket = {.fd = loop->socket, .events = POLLOUT};
        if (poll(&socket, 1, WRITABLE_LOOK_MS) > 0 && (socket.revents & POLLOUT) != 0)
            unblock(loop);
    }
}

void loop_flush(struct loop *loop)
{
    flush(loop);
}

void loop_cork(struct loop *loop)
{
    here.corked = loop;
}

void loop_uncork(struct loop *loop)
{
    here.corked = NULL;
    if (loop != NULL)
        loop_end(loop);
}

/* ---- its thread ---- */

static void read_some(struct loop *loop)
{
    pthread_mutex_lock(&loop->io);
    natsConnection_ProcessReadEvent(loop->nc);
    pthread_mutex_unlock(&loop->io);
    atomic_fetch_add(&loop->reads, 1);
    flush(loop); /* what was published meanwhile; it does not wait for those who are called now */
}

/* Returns when the socket is ready, or when it was woken up; what is ready, 0: nothing. */
static short wait_for_socket(struct loop *loop)
{
    bool const attached = atomic_load(&loop->attached);
    struct pollfd of[2] = {{.fd = loop->wakeup, .events = POLLIN}, {.fd = -1}};
    if (attached) {
        short const out = atomic_load(&loop->blocked) ? POLLOUT : 0;
        of[1] = (struct pollfd){.fd = loop->socket, .events = (short)(POLLIN | out)};
    }
    if (poll(of, 2, -1) < 0)
        return 0; /* a signal */
    if (of[0].revents != 0) {
        uint64_t ignored;
        ssize_t const got = read(loop->wakeup, &ignored, sizeof ignored);
        (void)got;
    }
    return of[1].revents;
}

static void *loop_main(void *arg)
{
    struct loop *const loop = arg;
    (void)pthread_setname_np(pthread_self(), "nats-read");
    here.own = loop;
    while (!atomic_load(&loop->over)) {
        short const ready = wait_for_socket(loop);
        if ((ready & ~POLLOUT) != 0)
            read_some(loop);
        if ((ready & POLLOUT) != 0)
            unblock(loop);
        loop->deliver(loop->arg);
        flush(loop);
    }
#if NATS_VERSION_NUMBER >= 0x030902
    if (atomic_load(&loop->attached))
        natsConnection_ProcessCloseEvent(&loop->native);
#endif
    nats_ReleaseThreadMemory();
    return NULL;
}

struct loop *loop_create(loop_deliver_fn *deliver, void *arg)
{
    int const wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wakeup < 0)
        return NULL;
    struct loop *const loop = memory_new(sizeof *loop);
    loop->wakeup = wakeup;
    loop->socket = -1;
    loop->deliver = deliver;
    loop->arg = arg;
    pthread_mutex_init(&loop->io, NULL);
    if (pthread_create(&loop->thread, NULL, loop_main, loop) != 0) {
        pthread_mutex_destroy(&loop->io);
        (void)close(wakeup);
        free(loop);
        return NULL;
    }
    return loop;
}

void loop_shut(struct loop *loop)
{
    if (atomic_load(&loop->attached)) {
        (void)shutdown(loop->socket, SHUT_RDWR); /* its thread reads the end, and nats.c closes */
        return;
    }
    atomic_store(&loop->over, true);
    loop_wake(loop);
}

void loop_join(struct loop *loop)
{
    assert(!loop_is_mine(loop));
    loop_shut(loop);
    pthread_join(loop->thread, NULL);
}

void loop_destroy(struct loop *loop)
{
    if (loop == NULL)
        return;
    if (loop->socket >= 0)
        (void)close(loop->socket);
    (void)close(loop->wakeup);
    pthread_mutex_destroy(&loop->io);
    free(loop);
}

bool loop_is_stalled(struct loop *loop, unsigned silent_max, unsigned blocked_max)
{
    unsigned const reads = atomic_load(&loop->reads), drains = atomic_load(&loop->drains);
    loop->silent = reads == loop->reads_seen ? loop->silent + 1 : 0;
    loop->stuck = atomic_load(&loop->blocked) && drains == loop->drains_seen ? loop->stuck + 1 : 0;
    loop->reads_seen = reads;
    loop->drains_seen = drains;
    return loop->silent >= silent_max || loop->stuck >= blocked_max;
}

bool loop_is_mine(const struct loop *loop)
{
    return loop != NULL && here.own == loop;
}
