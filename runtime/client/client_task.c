/*
 * The loop's descriptor is a timerfd, set for the earliest time that a task waits for; it rings at once when
 * a task is woken or has ended. So there is one descriptor for both, and no thread.
 */
#include "client_task.h"
#include "clock.h"
#include "coro.h"
#include "memory.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    TASK_STACK_BYTES = 256 * 1024, /* of addresses; memory is taken for what is used of it */
    STACKS_KEPT = 64,
    ASKS_OF_TASK = 2, /* one, and those that abandoned tasks have left */
};
static const uint64_t NEVER = UINT64_MAX;

struct client_task {
    struct client_loop *loop;
    struct coro *coro; /* NULL: the slot is free */
    void (*entry)(void *arg);
    void *arg;
    uint64_t number, due_ms;
    bool ended, abandoned;
    struct client_task *next; /* of the free or the ended ones */
    /* Under the loop's lock: */
    struct client_task *next_ready;
    bool ready;     /* in the list of tasks that are to run */
    uint64_t asked; /* token of the request under way; 0: none */
    struct buf answer;
    enum request_result result;
};

struct task_list {
    struct client_task *first, **end;
};

struct client_loop {
    struct thole_client *client;
    struct stack_pool *stacks;
    struct requests *requests;
    struct client_task *tasks, *free;
    struct task_list ended;
    size_t tasks_max, tasks_len, ended_len;
    uint64_t due_ms; /* no task's time comes earlier */
    uint64_t begun;  /* number of tasks so far */
    int fd;
    pthread_mutex_t lock;
    struct client_task *ready, **ready_end;
    uint64_t asks;
    uint64_t set_ms; /* of the descriptor; 0: it rings; NEVER: it is not set */
};

/* Of the thread, which runs at most one task at a time. Read by client_task_current() alone: a task may go on
 * on another thread, and a compiler may remember where a thread's variable is, but not across this call. */
static _Thread_local struct client_task *running;

__attribute__((noinline)) struct client_task *client_task_current(void)
{
    return running;
}

uint64_t client_now_ms(void)
{
    const struct client_task *const task = client_task_current();
    return task != NULL && task->abandoned ? NEVER : clock_monotonic_ms();
}

/* ---- the descriptor; under the lock ---- */

static void set_timer(struct client_loop *loop, uint64_t at_ms)
{
    struct itimerspec when = {.it_value = {.tv_nsec = 1}}; /* long ago: at once */
    if (at_ms == NEVER)
        when.it_value.tv_nsec = 0;
    else if (at_ms > 0)
        when.it_value = clock_timespec(at_ms);
    int const failed = timerfd_settime(loop->fd, TFD_TIMER_ABSTIME, &when, NULL);
    assert(failed == 0);
    loop->set_ms = at_ms;
}

static void client_task_ring(struct client_loop *loop)
{
    if (loop->set_ms != 0)
        set_timer(loop, 0);
}

/* By the loop's thread, without the lock. */
static void set_for_due(struct client_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    if (loop->due_ms < loop->set_ms)
        set_timer(loop, loop->due_ms > 0 ? loop->due_ms : 1);
    pthread_mutex_unlock(&loop->lock);
}

static void client_task_silence(struct client_loop *loop)
{
    uint64_t times;
    if (read(loop->fd, &times, sizeof times) == (ssize_t)sizeof times || loop->set_ms == 0)
        loop->set_ms = NEVER;
}

/* ---- waking ---- */

static void make_ready(struct client_task *task)
{
    struct client_loop *const loop = task->loop;
    if (task->ready)
        return;
    task->ready = true;
    task->next_ready = NULL;
    *loop->ready_end = task;
    loop->ready_end = &task->next_ready;
    client_task_ring(loop);
}

void client_task_wake(struct client_task *task)
{
    pthread_mutex_lock(&task->loop->lock);
    make_ready(task);
    pthread_mutex_unlock(&task->loop->lock);
}

/* ---- running ---- */

static void task_main(void *arg)
{
    struct client_task *const task = arg;
    task->entry(task->arg);
}

static void client_task_append(struct task_list *list, struct client_task *task)
{
    task->next = NULL;
    *list->end = task;
    list->end = &task->next;
}

/* The reason for which it ran last is no reason any more. */
static void forget_ready(struct client_task *task)
{
    struct client_loop *const loop = task->loop;
    struct client_task **at = &loop->ready;
    while (*at != task)
        at = &(*at)->next_ready;
    *at = task->next_ready;
    if (*at == NULL)
        loop->ready_end = at;
    task->ready = false;
}

/* Nobody wakes a task that has ended: its watches are closed, its request is answered or given up. */
static void note_end(struct client_task *task)
{
    client_task_append(&task->loop->ended, task);
    task->loop->ended_len++;
    pthread_mutex_lock(&task->loop->lock);
    assert(task->asked == 0);
    if (task->ready)
        forget_ready(task);
    client_task_ring(task->loop);
    pthread_mutex_unlock(&task->loop->lock);
}

static void client_task_resume(struct client_task *task)
{
    assert(running == NULL && !task->ended); /* a task never makes its loop turn */
    running = task;
    task->ended = !coro_resume(task->coro);
    running = NULL;
    if (task->ended)
        note_end(task);
}

void client_task_sleep(struct client_task *task, uint64_t until_ms)
{
    assert(client_task_current() == task);
    if (task->abandoned)
        return;
    task->due_ms = until_ms;
    if (until_ms < task->loop->due_ms)
        task->loop->due_ms = until_ms;
    coro_yield(task->coro);
    task->due_ms = NEVER;
}

static void wake_due(struct client_loop *loop)
{
    uint64_t const now_ms = clock_monotonic_ms();
    if (now_ms < loop->due_ms)
        return;
    loop->due_ms = NEVER;
    for (size_t at = 0; at < loop->tasks_max; at++) {
        struct client_task *const task = &loop->tasks[at];
        if (task->coro == NULL || task->ended)
            continue;
        if (task->due_ms <= now_ms)
            make_ready(task);
        else if (task->due_ms < loop->due_ms)
            loop->due_ms = task->due_ms;
    }
}

void client_loop_turn(struct client_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    wake_due(loop);
    client_task_silence(loop);
    struct client_task *task = loop->ready, *next;
    loop->ready = NULL;
    loop->ready_end = &loop->ready;
    pthread_mutex_unlock(&loop->lock);
    for (; task != NULL; task = next) {
        pthread_mutex_lock(&loop->lock);
        next = task->next_ready;
        task->ready = false; /* a later event is another reason */
        pthread_mutex_unlock(&loop->lock);
        client_task_resume(task);
    }
    set_for_due(loop);
}

/* ---- begin and end ---- */

thole_status client_task_begin(struct client_loop *loop, void (*entry)(void *arg), void *arg,
                               uint64_t *ret_number, thole_error *reterr)
{
    struct client_task *const task = loop->free;
    if (task == NULL)
        return thole_fail(reterr, THOLE_LIMIT, "%zu requests are under way, which is the limit",
                          loop->tasks_max);
    task->coro = coro_create(loop->stacks, task_main, task);
    if (task->coro == NULL)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "the system has no mapping left for a stack: %s",
                          strerror(errno));
    loop->free = task->next;
    loop->tasks_len++;
    task->entry = entry;
    task->arg = arg;
    task->number = ++loop->begun * loop->tasks_max + (uint64_t)(task - loop->tasks);
    task->due_ms = NEVER;
    task->ended = task->abandoned = false;
    *ret_number = task->number;
    client_task_resume(task);
    set_for_due(loop);
    return THOLE_OK;
}

/* The thread whose task abandons one goes on with its own. */
static void client_task_detach(struct client_task *task)
{
    task->abandoned = true;
    client_task_wake(task);
}

bool client_task_abandon(struct client_loop *loop, uint64_t number)
{
    struct client_task *const task = &loop->tasks[number % loop->tasks_max];
    if (task->coro == NULL || task->number != number || task->ended)
        return false;
    client_task_detach(task);
    return true;
}

void client_task_abandon_all(struct client_loop *loop)
{
    for (size_t at = 0; at < loop->tasks_max; at++)
        if (loop->tasks[at].coro != NULL && !loop->tasks[at].ended)
            client_task_detach(&loop->tasks[at]);
}

void *client_loop_take_ended(struct client_loop *loop, bool *ret_abandoned)
{
    struct client_task *const task = loop->ended.first;
    assert(task != NULL && loop->ended_len > 0);
    loop->ended_len--;
    loop->ended.first = task->next;
    if (loop->ended.first == NULL)
        loop->ended.end = &loop->ended.first;
    coro_destroy(task->coro);
    task->coro = NULL;
    *ret_abandoned = task->abandoned;
    task->next = loop->free;
    loop->free = task;
    assert(loop->tasks_len > 0);
    loop->tasks_len--;
    return task->arg;
}

/* ---- requests and pauses of a task ---- */

/* On the connection's reading thread. The answer to a task that has been abandoned is forgotten. */
static void client_task_on_answer(void *arg, const struct request_done *done)
{
    struct client_loop *const loop = arg;
    struct client_task *const task = &loop->tasks[done->token % loop->tasks_max];
    pthread_mutex_lock(&loop->lock);
    if (task->asked == done->token) {
        task->asked = 0;
        task->result = done->result;
        if (done->result == REQUEST_ANSWERED)
            buf_slice(&task->answer, done->body);
        make_ready(task);
    }
    pthread_mutex_unlock(&loop->lock);
}

/* False: it has been abandoned. */
static bool await_answer(struct client_task *task)
{
    for (;;) {
        pthread_mutex_lock(&task->loop->lock);
        bool const answered = task->asked == 0;
        if (task->abandoned)
            task->asked = 0;
        pthread_mutex_unlock(&task->loop->lock);
        if (answered || task->abandoned)
            return answered;
        client_task_sleep(task, NEVER); /* each request is answered, at the latest when its time is over */
    }
}

static thole_status client_task_take_answer(struct client_task *task, const char *subject, struct buf *ret,
                                            thole_error *reterr)
{
    if (task->result == REQUEST_BUSY)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "request to %s: nobody is there to answer", subject);
    if (task->result != REQUEST_ANSWERED)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "request to %s: no answer in time", subject);
    buf_clear(ret);
    buf_slice(ret, buf_bytes(&task->answer));
    if (buf_status(&task->answer) != THOLE_OK || buf_status(ret) != THOLE_OK)
        return thole_fail(reterr, THOLE_LIMIT, "answer from %s is larger than %zu bytes", subject, ret->max);
    return THOLE_OK;
}

static thole_status client_task_ask(struct client_task *task, const char *subject, thole_slice body,
                                    struct buf *ret, thole_error *reterr)
{
    struct client_loop *const loop = task->loop;
    buf_init(&task->answer, ret->max);
    pthread_mutex_lock(&loop->lock);
    uint64_t const token = ++loop->asks * loop->tasks_max + (uint64_t)(task - loop->tasks);
    task->asked = token;
    pthread_mutex_unlock(&loop->lock);
    thole_status status = requests_send(loop->requests, subject, body, token, reterr);
    if (status == THOLE_LIMIT)
        status = THOLE_UNAVAILABLE; /* a full window: later there is room */
    if (status != THOLE_OK) {
        pthread_mutex_lock(&loop->lock);
        task->asked = 0;
        pthread_mutex_unlock(&loop->lock);
    } else if (await_answer(task)) {
        status = client_task_take_answer(task, subject, ret, reterr);
    } else {
        status = thole_fail(reterr, THOLE_UNAVAILABLE, "request to %s: it was abandoned", subject);
    }
    buf_release(&task->answer);
    return status;
}

static bool task_asks(const char *subject, thole_slice body, struct buf *ret, thole_status *ret_status,
                      thole_error *reterr)
{
    struct client_task *const task = client_task_current();
    if (task == NULL)
        return false;
    *ret_status = client_task_ask(task, subject, body, ret, reterr);
    return true;
}

static bool task_pauses(uint64_t ms)
{
    struct client_task *const task = client_task_current();
    if (task == NULL)
        return false;
    uint64_t const until_ms = clock_monotonic_ms() + ms;
    while (client_now_ms() < until_ms)
        client_task_sleep(task, until_ms);
    return true;
}

const struct connection_waiting client_task_waiting = {.ask = task_asks, .pause = task_pauses};

/* ---- open and close ---- */

static thole_status open_parts(struct client_loop *loop, thole_error *reterr)
{
    loop->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (loop->fd < 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no descriptor for the requests: %s", strerror(errno));
    return requests_open(loop->client->connection, ASKS_OF_TASK * loop->tasks_max, loop->client->timeout_ms,
                         client_task_on_answer, loop, &loop->requests, reterr);
}

thole_status client_loop_open(struct thole_client *client, size_t tasks_max, struct client_loop **ret,
                              thole_error *reterr)
{
    struct client_loop *const loop = memory_new(sizeof *loop);
    loop->client = client;
    loop->tasks = memory_array(tasks_max, sizeof *loop->tasks);
    loop->tasks_max = tasks_max;
    loop->stacks = stack_pool_create_sized(TASK_STACK_BYTES, STACKS_KEPT, tasks_max);
    loop->ended.end = &loop->ended.first;
    loop->ready_end = &loop->ready;
    loop->due_ms = loop->set_ms = NEVER;
    (void)pthread_mutex_init(&loop->lock, NULL);
    for (size_t at = tasks_max; at-- > 0;) {
        loop->tasks[at].loop = loop;
        loop->tasks[at].next = loop->free;
        loop->free = &loop->tasks[at];
    }
    atomic_fetch_add(&client->loops, 1);
    thole_status const status = open_parts(loop, reterr);
    if (status != THOLE_OK) {
        client_loop_close(loop);
        return status;
    }
    *ret = loop;
    return THOLE_OK;
}

void client_loop_close(struct client_loop *loop)
{
    if (loop == NULL)
        return;
    assert(loop->tasks_len == 0 && loop->ended.first == NULL);
    requests_close(loop->requests);
    if (loop->fd >= 0)
        (void)close(loop->fd);
    stack_pool_destroy(loop->stacks);
    (void)pthread_mutex_destroy(&loop->lock);
    atomic_fetch_sub(&loop->client->loops, 1);
    free(loop->tasks);
    free(loop);
}

int client_loop_fd(const struct client_loop *loop)
{
    return loop->fd;
}

size_t client_loop_tasks(const struct client_loop *loop)
{
    return loop->tasks_len;
}

size_t client_loop_ended(const struct client_loop *loop)
{
    return loop->ended_len;
}
