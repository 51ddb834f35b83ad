#include "queue_keeper.h"
#include "clock.h"
#include "log.h"
#include "memory.h"
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
    bool wanted, stopping, running;
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
static bool look(struct queue_keeper *keeper)
{
    uint64_t lease_ms;
    bool anew = false;
    thole_error err = {0};
    thole_status const status =
        topology_ensure_queue(keeper->connection, keeper->ns, thole_slice_from(keeper->queue),
                              keeper->lease_ms, &lease_ms, &anew, &err);
    if (anew)
        log_line(LOG_LEVEL_WARN, "worker",
                 "queue %s: its consumer was gone, or ahead of its stream (the server lost what it had "
                 "acknowledged: "
                 "power, backup), and is created again",
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

/* Waits for queue_keeper_look(), or at most @p pause_ms (0: without an end; after a look that has failed a
 * wish does not make it shorter); false: stop. */
static bool wait_wish(struct queue_keeper *keeper, uint64_t pause_ms, bool failed, bool *ret_wanted)
{
    struct timespec const due = clock_timespec(clock_monotonic_ms() + pause_ms);
    int late = 0;
    pthread_mutex_lock(&keeper->lock);
    while (!keeper->stopping && late == 0 && (failed || !keeper->wanted))
        late = pause_ms > 0 ? pthread_cond_timedwait(&keeper->changed, &keeper->lock, &due)
                            : pthread_cond_wait(&keeper->changed, &keeper->lock);
    *ret_wanted = keeper->wanted;
    keeper->wanted = false;
    bool const goes_on = !keeper->stopping;
    pthread_mutex_unlock(&keeper->lock);
    return goes_on;
}

static void *keep(void *arg)
{
    struct queue_keeper *keeper = arg;
    uint64_t const count_ms = keeper->cells == NULL ? 0 : COUNT_EVERY_MS;
    uint64_t retry_ms = 0; /* 0: the last look was well */
    bool wanted = false;
    count_depth(keeper);
    while (wait_wish(keeper, retry_ms != 0 ? retry_ms : count_ms, retry_ms != 0, &wanted)) {
        if (retry_ms == 0 && !wanted)
            count_depth(keeper);
        else if (look(keeper))
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
    metric_set(cells, METRIC_WORKER_QUEUE_OK, 0, 1); /* it was made sure of before */
}

thole_status queue_keeper_start(struct queue_keeper *keeper, struct connection *connection, const char *ns,
                                const char *queue, uint64_t lease_ms, thole_error *reterr)
{
    assert(!keeper->running && !keeper->stopping);
    keeper->connection = connection;
    keeper->ns = ns;
    keeper->queue = queue;
    keeper->lease_ms = lease_ms;
    keeper->running = pthread_create(&keeper->thread, NULL, keep, keeper) == 0;
    return keeper->running ? THOLE_OK : thole_fail(reterr, THOLE_NOMEM, "cannot start a thread");
}

void queue_keeper_look(struct queue_keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->wanted = true;
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
