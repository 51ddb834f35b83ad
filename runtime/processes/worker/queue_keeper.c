#include "queue_keeper.h"
#include "clock.h"
#include "log.h"
#include "memory.h"
#include "queue_wish.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

enum { FIRST_RETRY_MS = 500, RETRY_MS_MAX = 15000, COUNT_EVERY_MS = 10000 };

struct queue_keeper {
    struct connection *connection;
    const char *ns, *queue;
    uint64_t lease_ms;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool wanted, asks, stopping, running;
    struct served_names *served;
    thole_slice self;
    bool denied; /* the refusal is logged once */
    struct metric_cells *cells;
};

struct queue_keeper *queue_keeper_create(void)
{
    pthread_condattr_t attr;
    struct queue_keeper *keeper = memory_new(sizeof *keeper);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&keeper->lock, NULL);
    pthread_cond_init(&keeper->changed, &attr);
    pthread_condattr_destroy(&attr);
    return keeper;
}

/* Checks once; false: not known, check again. */
static bool queue_keeper_check_queue(struct queue_keeper *keeper)
{
    uint64_t lease_ms;
    bool anew = false;
    thole_error err = {0};
    thole_status const status = queue_wish(keeper->connection, keeper->ns, thole_slice_from(keeper->queue),
                                           keeper->lease_ms, &lease_ms, &anew, &err);
    if (anew)
        log_line(LOG_LEVEL_WARN, "worker",
                 "queue %s: its consumer was gone, or ahead of its stream (the server lost what it had "
                 "acknowledged: power, backup), and is created again",
                 keeper->queue);
    if (status != THOLE_OK && status != THOLE_UNAVAILABLE)
        log_line(LOG_LEVEL_WARN, "worker", "queue %s gives no work: %s", keeper->queue, err.text);
    if (status != THOLE_OK)
        metric_add(keeper->cells, METRIC_NATS_ERRORS, metric_error_class(status), 1);
    if (status != THOLE_UNAVAILABLE)
        metric_set(keeper->cells, METRIC_WORKER_QUEUE_OK, 0, status == THOLE_OK);
    return status == THOLE_OK;
}

/* How deep the queue is, for a process with metrics; what the server does not answer stays as it was. */
static void count_depth(const struct queue_keeper *keeper)
{
    uint64_t pending, ack_pending;
    if (keeper->cells == NULL ||
        topology_queue_depth(keeper->connection, keeper->ns, thole_slice_from(keeper->queue), &pending,
                             &ack_pending, NULL) != THOLE_OK)
        return;
    metric_set(keeper->cells, METRIC_WORKER_QUEUE_MESSAGES, QUEUE_PENDING, pending);
    metric_set(keeper->cells, METRIC_WORKER_QUEUE_MESSAGES, QUEUE_ACK_PENDING, ack_pending);
}

/* Which names the workers know. Without an answer messages of names that this one does not know are handed
 * back, for other workers. */
static void queue_keeper_ask_workers(struct queue_keeper *keeper)
{
    thole_error err = {.status = THOLE_OK};
    if (keeper->served == NULL || !served_names_asks(keeper->served, clock_monotonic_ms()))
        return;
    thole_status const status = served_names_ask(keeper->served, keeper->connection, keeper->ns,
                                                 thole_slice_from(keeper->queue), keeper->self, &err);
    if (status == THOLE_DENIED && !keeper->denied)
        log_line(
            LOG_LEVEL_WARN, "worker",
            "queue %s: this user may not ask which activities other workers know, so those that no "
            "worker knows stay in the queue before the others; give it what thole doctor --nats-permissions "
            "worker prints: %s",
            keeper->queue, err.text);
    keeper->denied = status == THOLE_DENIED;
}

/* Waits for queue_keeper_look(), or until @p due_ms (0: without an end; after a failed look a request does
 * not make it shorter), and asks the workers when a caller wants to know; false: stop. */
static bool queue_keeper_wait_wish(struct queue_keeper *keeper, uint64_t due_ms, bool failed,
                                   bool *ret_wanted)
{
    struct timespec const due = clock_timespec(due_ms);
    int late = 0;
    pthread_mutex_lock(&keeper->lock);
    while (!keeper->stopping && late == 0 && (failed || !keeper->wanted)) {
        if (keeper->asks) {
            keeper->asks = false;
            pthread_mutex_unlock(&keeper->lock);
            queue_keeper_ask_workers(keeper);
            pthread_mutex_lock(&keeper->lock);
            continue;
        }
        late = due_ms > 0 ? pthread_cond_timedwait(&keeper->changed, &keeper->lock, &due)
                          : pthread_cond_wait(&keeper->changed, &keeper->lock);
    }
    *ret_wanted = keeper->wanted;
    keeper->wanted = false;
    bool const goes_on = !keeper->stopping;
    pthread_mutex_unlock(&keeper->lock);
    return goes_on;
}

static uint64_t due_in(uint64_t pause_ms)
{
    return pause_ms == 0 ? 0 : clock_monotonic_ms() + pause_ms;
}

static void *queue_keeper_keep(void *arg)
{
    struct queue_keeper *keeper = arg;
    uint64_t const count_ms = keeper->cells == NULL ? 0 : COUNT_EVERY_MS;
    uint64_t retry_ms = 0; /* 0: the last look was well */
    bool wanted = false;
    count_depth(keeper);
    while (
        queue_keeper_wait_wish(keeper, due_in(retry_ms != 0 ? retry_ms : count_ms), retry_ms != 0, &wanted)) {
        if (retry_ms == 0 && !wanted)
            count_depth(keeper);
        else if (queue_keeper_check_queue(keeper))
            retry_ms = 0;
        else if (retry_ms == 0)
            retry_ms = FIRST_RETRY_MS;
        else
            retry_ms = retry_ms * 2 < RETRY_MS_MAX ? retry_ms * 2 : RETRY_MS_MAX;
    }
    return NULL;
}

void queue_keeper_count(struct queue_keeper *keeper, struct metric_cells *cells)
{
    keeper->cells = cells;
    metric_set(cells, METRIC_WORKER_QUEUE_OK, 0, 1); /* was checked before */
}

void queue_keeper_listen(struct queue_keeper *keeper, struct served_names *served, thole_slice self)
{
    keeper->served = served;
    keeper->self = self;
}

thole_status queue_keeper_start(struct queue_keeper *keeper, struct connection *connection, const char *ns,
                                const char *queue, uint64_t lease_ms, thole_error *reterr)
{
    assert(!keeper->running && !keeper->stopping);
    keeper->connection = connection;
    keeper->ns = ns;
    keeper->queue = queue;
    keeper->lease_ms = lease_ms;
    keeper->running = pthread_create(&keeper->thread, NULL, queue_keeper_keep, keeper) == 0;
    return keeper->running ? THOLE_OK : thole_fail(reterr, THOLE_NOMEM, "cannot start a thread");
}

void queue_keeper_look(struct queue_keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->wanted = true;
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
}

void queue_keeper_ask(struct queue_keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->asks = true;
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
}

void queue_keeper_stop(struct queue_keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->stopping = true;
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
    if (keeper->running)
        (void)pthread_join(keeper->thread, NULL);
    keeper->running = false;
}

void queue_keeper_destroy(struct queue_keeper *keeper)
{
    if (keeper == NULL)
        return;
    assert(!keeper->running);
    pthread_cond_destroy(&keeper->changed);
    pthread_mutex_destroy(&keeper->lock);
    metrics_return_cells(keeper->cells);
    free(keeper);
}
