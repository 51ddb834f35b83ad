/* A connection's loop: who reads, who writes, and how it ends. nats.c is played over a pair of sockets: what
 * is published is a number of bytes, and "writing" takes as many as play.room says. */
#include "clock.h"
#include "loop.h"
#include "thole_cunit.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    int ours, peer; /* sockets */
    struct loop *loop;
    /* nats.c */
    natsEvLoop_Attach attach;
    natsEvLoop_ReadAddRemove read;
    natsEvLoop_WriteAddRemove write;
    natsEvLoop_Detach detach;
    void *data;
    pthread_mutex_t lock; /* the connection's */
    atomic_int buffered, room;
    atomic_bool closed;
    bool holds_reads; /* ProcessReadEvent() waits for the gate */
    pthread_mutex_t gate;
    /* observations */
    atomic_uint reads, writes, delivered, empty_writes;
    atomic_bool here; /* the last write was on this thread */
    atomic_bool delivered_here;
    unsigned awake;
    int wakeup;
    short ready; /* as it was told of it */
    pthread_t self;
} play;

natsStatus __wrap_natsOptions_SetEventLoop(natsOptions *options, void *loop, natsEvLoop_Attach attach,
                                           natsEvLoop_ReadAddRemove read, natsEvLoop_WriteAddRemove write,
                                           natsEvLoop_Detach detach)
{
    (void)options;
    CU_ASSERT_PTR_EQUAL(loop, play.loop);
    play.attach = attach;
    play.read = read;
    play.write = write;
    play.detach = detach;
    return NATS_OK;
}

static natsConnection *nc(void)
{
    return (natsConnection *)(void *)&play;
}

void __wrap_natsConnection_ProcessReadEvent(natsConnection *of)
{
    char byte;
    CU_ASSERT_PTR_EQUAL(of, nc());
    pthread_mutex_lock(&play.gate);
    pthread_mutex_unlock(&play.gate);
    ssize_t const n = recv(play.ours, &byte, 1, MSG_DONTWAIT);
    if (n == 0 && !atomic_exchange(&play.closed, true)) {
        CU_ASSERT_EQUAL(play.write(play.data, false) + play.read(play.data, false), NATS_OK);
#if NATS_VERSION_NUMBER < 0x030B00 /* newer ones want an answer, about a real connection */
        CU_ASSERT_EQUAL(play.detach(play.data), NATS_OK);
#endif
    }
    atomic_fetch_add(&play.reads, n == 1);
}

void __wrap_natsConnection_ProcessWriteEvent(natsConnection *of)
{
    CU_ASSERT_PTR_EQUAL(of, nc());
    pthread_mutex_lock(&play.lock);
    int const before = atomic_load(&play.buffered), room = atomic_load(&play.room);
    int const n = before < room ? before : room;
    atomic_fetch_add(&play.empty_writes, before == 0);
    atomic_fetch_sub(&play.buffered, n);
    atomic_store(&play.here, pthread_equal(pthread_self(), play.self) != 0);
    if (n == before)
        CU_ASSERT_EQUAL(play.write(play.data, false), NATS_OK);
    pthread_mutex_unlock(&play.lock);
    atomic_fetch_add(&play.writes, 1);
}

int __wrap_natsConnection_Buffered(natsConnection *of)
{
    CU_ASSERT_PTR_EQUAL(of, nc());
    return atomic_load(&play.buffered);
}

static void on_deliver(void *arg)
{
    CU_ASSERT_PTR_EQUAL(arg, &play);
    CU_ASSERT_TRUE(loop_is_mine(play.loop));
    atomic_store(&play.delivered_here, pthread_equal(pthread_self(), play.self) != 0);
    atomic_fetch_add(&play.delivered, 1);
}

/* As nats.c does: it asks to be written when there was nothing to write before. */
static void send_bytes(int n)
{
    pthread_mutex_lock(&play.lock);
    if (atomic_fetch_add(&play.buffered, n) == 0)
        CU_ASSERT_EQUAL(play.write(play.data, true), NATS_OK);
    pthread_mutex_unlock(&play.lock);
}

static void publish(int n)
{
    loop_begin(play.loop);
    send_bytes(n);
    loop_end(play.loop);
}

static void begin_unattached(void)
{
    int pair[2];
    memset(&play, 0, sizeof play);
    pthread_mutex_init(&play.lock, NULL);
    pthread_mutex_init(&play.gate, NULL);
    play.self = pthread_self();
    atomic_store(&play.room, 1 << 30);
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    play.ours = pair[0];
    play.peer = pair[1];
    play.loop = loop_create(on_deliver, &play);
    CU_ASSERT_PTR_NOT_NULL_FATAL(play.loop);
    CU_ASSERT_EQUAL_FATAL(loop_set_options(play.loop, NULL), NATS_OK);
}

static void begin(void)
{
    begin_unattached();
    CU_ASSERT_EQUAL_FATAL(play.attach(&play.data, play.loop, nc(), play.ours), NATS_OK);
}

static void end(void)
{
    loop_join(play.loop);
    loop_destroy(play.loop);
    (void)close(play.ours);
    (void)close(play.peer);
    CU_ASSERT_EQUAL(atomic_load(&play.empty_writes), 0); /* nats.c takes that for the end of the connection */
}

/* For 5 s at most. */
static bool wait_until(bool (*is_so)(unsigned n), unsigned n)
{
    for (int i = 0; i < 5000 && !is_so(n); i++)
        (void)usleep(1000);
    return is_so(n);
}

static bool has_read(unsigned n)
{
    return atomic_load(&play.reads) >= n && atomic_load(&play.delivered) >= n;
}

static bool has_written_all(unsigned n)
{
    (void)n;
    return atomic_load(&play.buffered) == 0;
}

static void peer_sends(void)
{
    CU_ASSERT_EQUAL(send(play.peer, "x", 1, 0), 1);
}

/* ---- tests ---- */

static void test_what_is_read_is_delivered(void)
{
    begin();
    peer_sends();
    CU_ASSERT_TRUE(wait_until(has_read, 1));
    end();
    CU_ASSERT_TRUE(atomic_load(&play.closed)); /* nats.c closed it, on the loop's thread */
}

static void test_publishers_write_themselves(void)
{
    begin();
    publish(10);
    CU_ASSERT_EQUAL(atomic_load(&play.buffered), 0);
    CU_ASSERT_EQUAL(atomic_load(&play.writes), 1);
    CU_ASSERT_TRUE(atomic_load(&play.here));
    end();
}

static void test_a_corked_burst_is_one_write(void)
{
    begin();
    loop_cork(play.loop);
    for (int i = 0; i < 5; i++)
        publish(10);
    CU_ASSERT_EQUAL(atomic_load(&play.writes), 0);
    loop_uncork(play.loop);
    CU_ASSERT_TRUE(wait_until(has_written_all, 0)); /* perhaps by the thread that reads just now */
    CU_ASSERT_EQUAL(atomic_load(&play.writes), 1);
    CU_ASSERT_EQUAL(atomic_load(&play.buffered), 0);
    loop_uncork(play.loop);
    CU_ASSERT_EQUAL(atomic_load(&play.writes), 1);
    publish(10);
    CU_ASSERT_EQUAL(atomic_load(&play.writes), 2);
    loop_cork(play.loop);
    loop_uncork(NULL); /* the connection has gone */
    publish(10);
    CU_ASSERT_EQUAL(atomic_load(&play.writes), 3);
    loop_cork(play.loop);
    publish(10);
    loop_flush(play.loop); /* a call that waits follows */
    CU_ASSERT_EQUAL(atomic_load(&play.writes), 4);
    send_bytes(10);
    CU_ASSERT_TRUE(wait_until(has_written_all, 0));
    loop_uncork(play.loop);
    end();
}

/* A PING of nats.c's timer, a call that waits for an answer: nobody ends them with loop_end(). */
static void test_what_nats_c_sends_is_written_by_the_loop(void)
{
    begin();
    send_bytes(10);
    CU_ASSERT_TRUE(wait_until(has_written_all, 0));
    CU_ASSERT_FALSE(atomic_load(&play.here));
    end();
}

/* The one that reads has the lock: it writes what others could not, and nobody waits for it. */
static void test_published_while_it_reads(void)
{
    begin();
    pthread_mutex_lock(&play.gate);
    peer_sends();
    (void)usleep(20000); /* in nats.c, or not yet: both are right */
    publish(10);
    pthread_mutex_unlock(&play.gate);
    CU_ASSERT_TRUE(wait_until(has_written_all, 0));
    end();
}

/* The socket here is always writable, so the loop's thread goes on until nats.c has written all. */
static void test_the_rest_is_written_later(void)
{
    begin();
    atomic_store(&play.room, 100);
    publish(1000);
    CU_ASSERT_TRUE(wait_until(has_written_all, 0));
    CU_ASSERT_EQUAL(atomic_load(&play.writes), 10);
    CU_ASSERT_FALSE(atomic_load(&play.here));
    end();
}

static void fill_socket(void)
{
    static const char zeros[4096];
    while (send(play.ours, zeros, sizeof zeros, MSG_DONTWAIT) > 0)
        ;
}

static void *drain_later(void *arg)
{
    char room[4096];
    (void)arg;
    (void)usleep(50000);
    atomic_store(&play.room, 1 << 30);
    while (recv(play.peer, room, sizeof room, MSG_DONTWAIT) > 0)
        ;
    return NULL;
}

static void test_a_publisher_waits_for_room(void)
{
    pthread_t thread;
    begin();
    fill_socket();
    atomic_store(&play.room, 0);
    publish(1000); /* little: it does not wait */
    CU_ASSERT_EQUAL(atomic_load(&play.buffered), 1000);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, drain_later, NULL), 0);
    publish(2 << 20);
    CU_ASSERT_TRUE(atomic_load(&play.buffered) <= 1 << 20);
    pthread_join(thread, NULL);
    end();
}

static void test_a_publisher_does_not_wait_for_the_dead(void)
{
    begin();
    fill_socket();
    atomic_store(&play.room, 0);
    publish(1000);
    loop_shut(play.loop);
    publish(2 << 20); /* returns */
    end();
}

static void test_when_it_is_stalled(void)
{
    begin();
    CU_ASSERT_FALSE(loop_is_stalled(play.loop, 3, 2));
    CU_ASSERT_FALSE(loop_is_stalled(play.loop, 3, 2));
    peer_sends();
    CU_ASSERT_TRUE(wait_until(has_read, 1));
    CU_ASSERT_FALSE(loop_is_stalled(play.loop, 3, 2)); /* has moved */
    CU_ASSERT_FALSE(loop_is_stalled(play.loop, 3, 2));
    CU_ASSERT_FALSE(loop_is_stalled(play.loop, 3, 2));
    CU_ASSERT_TRUE(loop_is_stalled(play.loop, 3, 2));
    end();
    begin();
    fill_socket();
    atomic_store(&play.room, 0);
    CU_ASSERT_FALSE(loop_is_stalled(play.loop, 100, 2));
    publish(10);
    CU_ASSERT_FALSE(loop_is_stalled(play.loop, 100, 2));
    CU_ASSERT_TRUE(loop_is_stalled(play.loop, 100, 2));
    end();
}

static void test_one_that_never_connects(void)
{
    begin_unattached();
    end();
    CU_ASSERT_FALSE(atomic_load(&play.closed));
    loop_destroy(NULL);
}

static void check_own(void *arg)
{
    atomic_fetch_add(&play.delivered, loop_is_mine(*(struct loop **)arg) ? 1 : 1000);
}

static void test_whose_thread_it_is(void)
{
    struct loop *loop;
    begin();
    CU_ASSERT_FALSE(loop_is_mine(play.loop));
    end();
    begin_unattached();
    end();
    memset(&play, 0, sizeof play);
    loop = loop_create(check_own, &loop);
    loop_wake(loop);
    atomic_store(&play.reads, 1);
    CU_ASSERT_TRUE(wait_until(has_read, 1));
    loop_join(loop);
    loop_destroy(loop);
    CU_ASSERT_TRUE(atomic_load(&play.delivered) < 1000);
}

/* ---- another thread runs it ---- */

static void on_awake(void *arg)
{
    CU_ASSERT_PTR_EQUAL(arg, &play);
    CU_ASSERT_FALSE(loop_is_mine(play.loop));
    play.awake++;
}

static bool run(uint64_t deadline_ms)
{
    struct pollfd also[] = {{.fd = -1}, {.fd = play.wakeup, .events = POLLIN}};
    bool const lives = loop_run(play.loop, also, ARRAY_LEN(also), deadline_ms, on_awake, &play);
    play.ready = also[1].revents;
    return lives;
}

static void begin_driven(void)
{
    begin();
    play.wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CU_ASSERT_TRUE(run(0)); /* the loop's thread rests from now on */
}

static void end_driven(void)
{
    end();
    (void)close(play.wakeup);
}

static void test_another_thread_reads(void)
{
    begin_driven();
    for (unsigned i = 1; i <= 3; i++) {
        peer_sends();
        (void)usleep(5000); /* the loop's thread would have read it */
        CU_ASSERT_EQUAL(atomic_load(&play.reads), i - 1);
        CU_ASSERT_TRUE(run(UINT64_MAX));
        CU_ASSERT_EQUAL(atomic_load(&play.reads), i);
        CU_ASSERT_TRUE(atomic_load(&play.delivered_here));
        CU_ASSERT_EQUAL(play.awake, i + 1);
        CU_ASSERT_FALSE(loop_is_mine(play.loop));
    }
    end_driven();
}

static void test_what_another_thread_waits_for(void)
{
    uint64_t const one = 1;
    begin_driven();
    uint64_t const deadline_ms = clock_monotonic_ms() + 30;
    CU_ASSERT_TRUE(run(deadline_ms));
    CU_ASSERT_EQUAL(play.ready, 0);
    CU_ASSERT_TRUE(clock_monotonic_ms() >= deadline_ms && clock_monotonic_ms() < deadline_ms + 2000);
    CU_ASSERT_EQUAL(write(play.wakeup, &one, sizeof one), sizeof one);
    CU_ASSERT_TRUE(run(UINT64_MAX));
    CU_ASSERT_EQUAL(play.ready, POLLIN);
    CU_ASSERT_TRUE(run(UINT64_MAX)); /* not read here */
    struct pollfd also[] = {{.fd = -1}, {.fd = play.wakeup, .events = POLLIN}};
    loop_wait(also, ARRAY_LEN(also), UINT64_MAX);
    CU_ASSERT_EQUAL(also[1].revents, POLLIN);
    loop_wait(also, 1, clock_monotonic_ms() + 5);
    CU_ASSERT_EQUAL(atomic_load(&play.reads), 0);
    end_driven();
}

/* Bytes that nats.c sends by itself, and the rest that a socket did not take. */
static void test_another_thread_writes(void)
{
    begin_driven();
    send_bytes(10);
    CU_ASSERT_TRUE(run(UINT64_MAX));
    CU_ASSERT_EQUAL(atomic_load(&play.buffered), 0);
    CU_ASSERT_TRUE(atomic_load(&play.here));
    atomic_store(&play.room, 100);
    publish(1000);
    while (atomic_load(&play.buffered) > 0)
        CU_ASSERT_TRUE(run(UINT64_MAX));
    CU_ASSERT_TRUE(atomic_load(&play.here));
    end_driven();
}

/* In a long computation, say; then it comes again. */
static void test_who_stays_away_is_stood_in_for(void)
{
    begin_driven();
    CU_ASSERT_FALSE(loop_is_stalled(play.loop, 100, 100)); /* the driver came since the last look */
    peer_sends();
    (void)usleep(20000);
    CU_ASSERT_EQUAL(atomic_load(&play.reads), 0);
    CU_ASSERT_FALSE(loop_is_stalled(play.loop, 100, 100));
    CU_ASSERT_TRUE(wait_until(has_read, 1));
    CU_ASSERT_FALSE(atomic_load(&play.delivered_here));
    peer_sends();
    CU_ASSERT_TRUE(wait_until(has_read, 2));
    for (unsigned i = 3; i <= 5; i++) {
        CU_ASSERT_TRUE(run(0));
        peer_sends();
        CU_ASSERT_TRUE(run(UINT64_MAX));
        CU_ASSERT_EQUAL(atomic_load(&play.reads), i);
        CU_ASSERT_TRUE(atomic_load(&play.delivered_here));
    }
    loop_leave(play.loop);
    peer_sends();
    CU_ASSERT_TRUE(wait_until(has_read, 6));
    CU_ASSERT_FALSE(atomic_load(&play.delivered_here));
    end_driven();
}

static void *run_until_its_end(void *arg)
{
    (void)arg;
    while (loop_run(play.loop, NULL, 0, UINT64_MAX, on_awake, &play))
        ;
    return NULL;
}

/* The loop's thread does not replace a waiting driver; the end wakes the driver, and the loop's thread
 * closes. */
static void test_it_ends_while_another_thread_waits(void)
{
    pthread_t thread;
    begin();
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, run_until_its_end, NULL), 0);
    peer_sends();
    CU_ASSERT_TRUE(wait_until(has_read, 1));
    (void)usleep(5000);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_FALSE(loop_is_stalled(play.loop, 100, 100));
    loop_shut(play.loop);
    pthread_join(thread, NULL);
    CU_ASSERT_TRUE(atomic_load(&play.closed));
    CU_ASSERT_FALSE(run(UINT64_MAX));
    end();
}

static const struct thole_test tests[] = {
    {"what is read is delivered", test_what_is_read_is_delivered},
    {"publishers write themselves", test_publishers_write_themselves},
    {"a corked burst is one write", test_a_corked_burst_is_one_write},
    {"what nats.c sends is written by the loop", test_what_nats_c_sends_is_written_by_the_loop},
    {"published while it reads", test_published_while_it_reads},
    {"the rest is written later", test_the_rest_is_written_later},
    {"a publisher waits for room", test_a_publisher_waits_for_room},
    {"a publisher does not wait for the dead", test_a_publisher_does_not_wait_for_the_dead},
    {"when it is stalled", test_when_it_is_stalled},
    {"one that never connects", test_one_that_never_connects},
    {"whose thread it is", test_whose_thread_it_is},
    {"another thread reads", test_another_thread_reads},
    {"what another thread waits for", test_what_another_thread_waits_for},
    {"another thread writes", test_another_thread_writes},
    {"who stays away is stood in for", test_who_stays_away_is_stood_in_for},
    {"it ends while another thread waits", test_it_ends_while_another_thread_waits},
};
THOLE_TEST_MAIN("loop", tests)
