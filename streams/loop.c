#include "loop.h"
#include "clock.h"
#include "memory.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BUFFERED_MAX = 1 << 20, /* bytes: a publisher waits while more are not written */
    WRITABLE_LOOK_MS = 100,
    WAIT_MS_MAX = 3600 * 1000,
    OWN_WAITS = 2, /* the eventfd, the socket */
};

struct loop {
    pthread_t thread;
    int wakeup; /* an eventfd */
    loop_deliver_fn *deliver;
    void *arg;
    pthread_mutex_t turn; /* held by the thread that waits and delivers */
    pthread_mutex_t io;   /* held while nats.c reads or writes the socket */
    pthread_mutex_t who;  /* the five below */
    pthread_cond_t left;
    bool driven;              /* by another thread: the loop's rests */
    bool waiting;             /* another thread waits in loop_run() */
    bool shut;                /* the loop's thread is to end it */
    unsigned runs, runs_seen; /* of loop_run(); seen by the thread that calls loop_is_stalled() */
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
    assert(!atomic_load(&loop->attached)); /* a loop does not reconnect */
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

/* A thread that does not get the lock leaves the flush to the holder, which looks again afterwards. nats.c
 * must not be asked to write nothing: it takes that for the end of the connection. */
static void loop_flush_connection(struct loop *loop)
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
static void loop_unblock(struct loop *loop)
{
    atomic_fetch_add(&loop->drains, 1);
    atomic_store(&loop->blocked, false);
    loop_flush_connection(loop);
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
    loop_flush_connection(loop);
    while (atomic_load(&loop->blocked) && !atomic_load(&loop->over) &&
           natsConnection_Buffered(loop->nc) > BUFFERED_MAX) {
        struct pollfd socket = {.fd = loop->socket, .events = POLLOUT};
        if (poll(&socket, 1, WRITABLE_LOOK_MS) > 0 && (socket.revents & POLLOUT) != 0)
            loop_unblock(loop);
    }
}

void loop_flush(struct loop *loop)
{
    loop_flush_connection(loop);
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

/* ---- a turn; `turn` is held ---- */

static void read_some(struct loop *loop)
{
    pthread_mutex_lock(&loop->io);
    natsConnection_ProcessReadEvent(loop->nc);
    pthread_mutex_unlock(&loop->io);
    atomic_fetch_add(&loop->reads, 1);
    loop_flush_connection(loop); /* messages published meanwhile; they do not wait for the callbacks */
}

static void poll_until(struct pollfd *of, nfds_t n, uint64_t deadline_ms)
{
    struct timespec left = {.tv_sec = 0};
    uint64_t const now_us = deadline_ms == UINT64_MAX ? 0 : clock_monotonic_us();
    if (deadline_ms != UINT64_MAX && deadline_ms > now_us / 1000) {
        uint64_t const left_us = deadline_ms - now_us / 1000 > WAIT_MS_MAX ? WAIT_MS_MAX * UINT64_C(1000)
                                                                           : deadline_ms * 1000 - now_us;
        left = (struct timespec){.tv_sec = (time_t)(left_us / 1000000),
                                 .tv_nsec = (long)(left_us % 1000000) * 1000};
    }
    if (ppoll(of, n, deadline_ms == UINT64_MAX ? NULL : &left, NULL) < 0) /* a signal */
        for (nfds_t i = 0; i < n; i++)
            of[i].revents = 0;
}

/* Returns when the socket is ready, or when it was woken up; what is ready, 0: nothing. */
static short wait_for_socket(struct loop *loop, struct pollfd *also, size_t n, uint64_t deadline_ms)
{
    struct pollfd of[OWN_WAITS + LOOP_ALSO_MAX] = {{.fd = loop->wakeup, .events = POLLIN}, {.fd = -1}};
    assert(n <= LOOP_ALSO_MAX);
    for (size_t i = 0; i < n; i++)
        of[OWN_WAITS + i] = also[i];
    if (atomic_load(&loop->attached)) {
        short const out = atomic_load(&loop->blocked) ? POLLOUT : 0;
        of[1] = (struct pollfd){.fd = loop->socket, .events = (short)(POLLIN | out)};
    }
    poll_until(of, OWN_WAITS + n, deadline_ms);
    for (size_t i = 0; i < n; i++)
        also[i].revents = of[OWN_WAITS + i].revents;
    if (of[0].revents != 0) {
        uint64_t ignored;
        ssize_t const got = read(loop->wakeup, &ignored, sizeof ignored);
        (void)got;
    }
    return of[1].revents;
}

static void loop_take_turn(struct loop *loop, short ready)
{
    if ((ready & ~POLLOUT) != 0)
        read_some(loop);
    if ((ready & POLLOUT) != 0)
        loop_unblock(loop);
    loop->deliver(loop->arg);
    loop_flush_connection(loop);
}

/* ---- the loop's thread ---- */

/* `who` is held. */
static bool may_rest(const struct loop *loop)
{
    return loop->driven && !loop->shut && !atomic_load(&loop->over);
}

static void loop_rest(struct loop *loop)
{
    pthread_mutex_lock(&loop->who);
    while (may_rest(loop))
        pthread_cond_wait(&loop->left, &loop->who);
    pthread_mutex_unlock(&loop->who);
}

/* The thread that drives the loop from now on wakes it up. */
static bool has_turn(struct loop *loop)
{
    pthread_mutex_lock(&loop->who);
    bool const mine = !may_rest(loop) && !atomic_load(&loop->over);
    pthread_mutex_unlock(&loop->who);
    return mine;
}

static void *loop_main(void *arg)
{
    struct loop *const loop = arg;
    (void)pthread_setname_np(pthread_self(), "nats-read");
    here.own = loop;
    while (!atomic_load(&loop->over)) {
        loop_rest(loop);
        pthread_mutex_lock(&loop->turn);
        if (has_turn(loop))
            loop_take_turn(loop, wait_for_socket(loop, NULL, 0, UINT64_MAX));
        pthread_mutex_unlock(&loop->turn);
    }
#if NATS_VERSION_NUMBER >= 0x030902
    if (atomic_load(&loop->attached))
        natsConnection_ProcessCloseEvent(&loop->native);
#endif
    nats_ReleaseThreadMemory();
    return NULL;
}

/* ---- another thread that runs it ---- */

/* The loop's thread leaves its wait, and rests. */
static void loop_drive(struct loop *loop)
{
    pthread_mutex_lock(&loop->who);
    if (!loop->driven)
        loop_wake(loop);
    loop->driven = loop->waiting = true;
    loop->runs++;
    pthread_mutex_unlock(&loop->who);
}

static void loop_waited(struct loop *loop)
{
    pthread_mutex_lock(&loop->who);
    loop->waiting = false;
    pthread_mutex_unlock(&loop->who);
}

/* Also when it is over: the loop's thread ends then. */
void loop_leave(struct loop *loop)
{
    pthread_mutex_lock(&loop->who);
    loop->driven = false;
    pthread_cond_signal(&loop->left);
    pthread_mutex_unlock(&loop->who);
}

bool loop_run(struct loop *loop, struct pollfd *also, size_t n, uint64_t deadline_ms, loop_awake_fn *awake,
              void *arg)
{
    assert(here.own == NULL && here.corked == NULL);
    loop_drive(loop);
    pthread_mutex_lock(&loop->turn);
    bool const lives = !atomic_load(&loop->over);
    short const ready = lives ? wait_for_socket(loop, also, n, deadline_ms) : 0;
    loop_waited(loop);
    if (lives) {
        awake(arg);
        here.own = loop;
        loop_take_turn(loop, ready);
        here.own = NULL;
    }
    pthread_mutex_unlock(&loop->turn);
    if (atomic_load(&loop->over))
        loop_leave(loop);
    return lives;
}

void loop_wait(struct pollfd *also, size_t n, uint64_t deadline_ms)
{
    poll_until(also, n, deadline_ms);
}

/* Detects that the driving thread has not come between two looks. */
static void look_at_driver(struct loop *loop)
{
    pthread_mutex_lock(&loop->who);
    bool const away = loop->driven && !loop->waiting && loop->runs == loop->runs_seen;
    loop->runs_seen = loop->runs;
    pthread_mutex_unlock(&loop->who);
    if (away)
        loop_leave(loop);
}

/* ---- create, destroy ---- */

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
    pthread_mutex_init(&loop->turn, NULL);
    pthread_mutex_init(&loop->io, NULL);
    pthread_mutex_init(&loop->who, NULL);
    pthread_cond_init(&loop->left, NULL);
    if (pthread_create(&loop->thread, NULL, loop_main, loop) != 0) {
        loop_destroy(loop);
        return NULL;
    }
    return loop;
}

void loop_shut(struct loop *loop)
{
    pthread_mutex_lock(&loop->who);
    loop->shut = true;
    pthread_cond_signal(&loop->left);
    pthread_mutex_unlock(&loop->who);
    if (atomic_load(&loop->attached)) {
        (void)shutdown(loop->socket, SHUT_RDWR); /* nats.c's thread reads the end and closes */
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
    pthread_cond_destroy(&loop->left);
    pthread_mutex_destroy(&loop->who);
    pthread_mutex_destroy(&loop->io);
    pthread_mutex_destroy(&loop->turn);
    free(loop);
}

bool loop_is_stalled(struct loop *loop, unsigned silent_max, unsigned blocked_max)
{
    unsigned const reads = atomic_load(&loop->reads), drains = atomic_load(&loop->drains);
    loop->silent = reads == loop->reads_seen ? loop->silent + 1 : 0;
    loop->stuck = atomic_load(&loop->blocked) && drains == loop->drains_seen ? loop->stuck + 1 : 0;
    loop->reads_seen = reads;
    loop->drains_seen = drains;
    look_at_driver(loop);
    return loop->silent >= silent_max || loop->stuck >= blocked_max;
}

bool loop_is_mine(const struct loop *loop)
{
    return loop != NULL && here.own == loop;
}
