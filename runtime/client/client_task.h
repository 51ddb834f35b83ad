/*
 * Tasks: calls of the client that wait without a thread. The code of a call is the same on a thread that may
 * block and on a task; only what it does where it waits differs: the thread sleeps, the task gives its loop's
 * thread back and continues when the loop turns after its answer or its time has come.
 *
 * A loop belongs to one thread at a time, which makes it turn when its descriptor is readable; tasks run
 * there alone. Waking is for any thread.
 */
#ifndef THOLE_CLIENT_TASK_H
#define THOLE_CLIENT_TASK_H
#include "client_internal.h"

struct client_task;
struct client_loop;

/* The client is borrowed. */
THOLE_NODISCARD thole_status client_loop_open(struct thole_client *client, size_t tasks_max,
                                              struct client_loop **ret, thole_error *reterr);
/* All tasks have ended and were taken. NULL-safe. */
void client_loop_close(struct client_loop *loop);
/* Readable when it is time to turn. */
int client_loop_fd(const struct client_loop *loop);
size_t client_loop_tasks(const struct client_loop *loop);
/* Runs the tasks that have a reason to. */
void client_loop_turn(struct client_loop *loop);
/* How many have ended and were not taken. */
size_t client_loop_ended(const struct client_loop *loop);
/* An ended task is forgotten: its argument, in the order of their ends. There must be one. */
void *client_loop_take_ended(struct client_loop *loop, bool *ret_abandoned);

/* Runs @p entry at once, until it waits for the first time or ends. *ret_number: of the task, never used
 * again. THOLE_LIMIT: there are tasks_max; THOLE_UNAVAILABLE: the system has no mapping for its stack. */
THOLE_NODISCARD thole_status client_task_begin(struct client_loop *loop, void (*entry)(void *arg), void *arg,
                                               uint64_t *ret_number, thole_error *reterr);
/* Ends all waits of the task, so that it ends in the next turn. False: it has ended. */
bool client_task_abandon(struct client_loop *loop, uint64_t number);
void client_task_abandon_all(struct client_loop *loop);

/* The task that runs on this thread; NULL: none. */
struct client_task *client_task_current(void);
/* By the task itself: until client_task_wake(), @p until_ms, or no reason at all. */
void client_task_sleep(struct client_task *task, uint64_t until_ms);
void client_task_wake(struct client_task *task);

/* Requests and pauses of tasks. */
extern const struct connection_waiting client_task_waiting;
#endif
