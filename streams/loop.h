/*
 * Reads one natsConnection, calls its listeners, and writes what publishers could not write themselves.
 * nats.c's own threads would hand each message from the one that reads to one that delivers, and write each
 * message with a system call of its own; here nats.c only parses and buffers, through its interface for
 * external event loops (natsOptions_SetEventLoop()).
 *
 * A loop has a thread. Another thread that waits for messages may run the loop itself, with loop_run(), and
 * so needs not be woken up by the loop's thread for each message. The loop's thread rests meanwhile, and
 * continues when the other thread stays away, as in a long computation, so that a connection is always read.
 *
 * A publisher's thread writes its messages before loop_end() returns; those between loop_cork() and
 * loop_uncork() in one write.
 */
#ifndef THOLE_LOOP_H
#define THOLE_LOOP_H
#include <nats/nats.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct loop;
/* Called after each read, and after loop_wake(), by the thread that runs the loop: delivers what has come. */
typedef void loop_deliver_fn(void *arg);

/* Starts the thread; NULL: no thread or descriptor is left. It waits for the connection of
 * loop_set_options(). */
struct loop *loop_create(loop_deliver_fn *deliver, void *arg);
/* The next natsConnection_Connect() with @p options belongs to this loop; it is the only one. */
natsStatus loop_set_options(struct loop *loop, natsOptions *options);
void loop_wake(struct loop *loop);
/* Shuts the connection's socket, so that the thread closes it and ends soon. Any thread, at any time. */
void loop_shut(struct loop *loop);
/* loop_shut(), and waits until no more listener is called. Not on a thread that runs it. */
void loop_join(struct loop *loop);
/* NULL-safe. After the natsConnection has been destroyed, or has not been made. */
void loop_destroy(struct loop *loop);

/*
 * Runs the loop once, on the calling thread: waits until the socket is ready or an alarm is due, until one of
 * the descriptors @p also (at most LOOP_ALSO_MAX, as for poll(2), which sets their revents) is ready, or
 * until clock_monotonic_ms() has reached @p deadline_ms (UINT64_MAX: none; in the past: does not wait). Then
 * calls @p awake, reads, and delivers the received messages. False: the loop is over, and nothing was done.
 * One thread at a time.
 */
enum { LOOP_ALSO_MAX = 4 };
typedef void loop_awake_fn(void *arg);
bool loop_run(struct loop *loop, struct pollfd *also, size_t n, uint64_t deadline_ms, loop_awake_fn *awake,
              void *arg);
/* The caller of loop_run() does not come again, or not soon: the loop's thread goes on. */
void loop_leave(struct loop *loop);
/* The wait of loop_run() without a loop. */
void loop_wait(struct pollfd *also, size_t n, uint64_t deadline_ms);

/* Around each call of nats.c that may send. */
void loop_begin(struct loop *loop);
void loop_end(struct loop *loop);
/* To be called before a call of nats.c that waits for an answer: writes the messages that were held back,
 * since those after them would be held back too. */
void loop_flush(struct loop *loop);
/* Messages that the calling thread sends between cork and uncork are written with the uncork. */
void loop_cork(struct loop *loop);
void loop_uncork(struct loop *loop); /* NULL: its connection has gone */

/* To be called once a second, by one thread, as it also sees who stays away from loop_run(): true when
 * nothing was heard from the server in the last @p silent_max calls, though nats.c sends a PING every few
 * seconds, or it has taken nothing in the last @p blocked_max. Calls are counted and not milliseconds, so
 * that a process that was stopped meanwhile does not take the server for dead. */
bool loop_is_stalled(struct loop *loop, unsigned silent_max, unsigned blocked_max);
/* Whether the calling thread runs it now, and must not wait for an answer. */
bool loop_is_mine(const struct loop *loop);
#endif
