#include "row_pool.h"
#include "clock.h"
#include "memory.h"
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct waiter { /* on the stack of the thread that waits */
    struct waiter *next;
    pthread_cond_t granted_now;
    bool granted;
};

struct row_pool {
    struct row_pool_options options;
    struct metric_cells *cells; /* under lock */
    pthread_mutex_t lock;
    struct postgres **idle; /* the last one is used next */
    size_t idle_len;
    size_t opened;              /* idle or in use */
    size_t used[ROW_POOL_USES]; /* connections, open or about to be */
    struct queue {
        struct waiter *first, *last;
    } waiting[ROW_POOL_USES];
};

struct row_pool *row_pool_create(const struct row_pool_options *options)
{
    assert(options->connections >= ROW_POOL_MIN && options->connections <= ROW_POOL_MAX);
    struct row_pool *const pool = memory_new(sizeof *pool);
    pool->options = *options;
    pool->cells = metrics_cells(options->metrics);
    pool->idle = memory_array(options->connections, sizeof(struct postgres *));
    (void)pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

void row_pool_destroy(struct row_pool *pool)
{
    if (pool == NULL)
        return;
    for (size_t use = 0; use < ROW_POOL_USES; use++)
        assert(pool->used[use] == 0 && pool->waiting[use].first == NULL);
    for (size_t i = 0; i < pool->idle_len; i++)
        postgres_close(pool->idle[i]);
    metrics_return_cells(pool->cells);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool->idle);
    free(pool);
}

/* ---- choice of the next call: under the lock ---- */

static bool row_pool_has_room(const struct row_pool *pool, enum row_pool_use use)
{
    size_t const all = pool->options.connections, kept = (all + 3) / 4;
    size_t used = 0;
    for (size_t i = 0; i < ROW_POOL_USES; i++)
        used += pool->used[i];
    return used < all && (use != ROW_POOL_COMPLETION || pool->used[use] < all - kept);
}

/* Whether a waiting call takes precedence. */
static bool is_behind(const struct row_pool *pool, enum row_pool_use use)
{
    for (size_t i = 0; i <= (size_t)use; i++)
        if (pool->waiting[i].first != NULL && row_pool_has_room(pool, (enum row_pool_use)i))
            return true;
    return pool->waiting[use].first != NULL;
}

static void row_pool_grant(struct row_pool *pool)
{
    for (size_t use = 0; use < ROW_POOL_USES; use++) {
        struct queue *const queue = &pool->waiting[use];
        while (queue->first != NULL && row_pool_has_room(pool, (enum row_pool_use)use)) {
            struct waiter *const first = queue->first;
            queue->first = first->next;
            if (queue->first == NULL)
                queue->last = NULL;
            pool->used[use]++;
            first->granted = true;
            (void)pthread_cond_signal(&first->granted_now);
        }
    }
}

static void row_pool_leave(struct queue *queue, struct waiter *waiter)
{
    struct waiter *before = NULL;
    for (struct waiter *w = queue->first; w != waiter; w = w->next)
        before = w;
    *(before == NULL ? &queue->first : &before->next) = waiter->next;
    if (queue->last == waiter)
        queue->last = before;
}

/* True: it has a place. */
static bool await_place(struct row_pool *pool, enum row_pool_use use, uint64_t wait_ms)
{
    struct queue *const queue = &pool->waiting[use];
    struct waiter me = {.granted = false};
    uint64_t const until_ms = clock_monotonic_ms() + wait_ms;
    struct timespec const until = clock_timespec(until_ms);
    clock_condition_init(&me.granted_now);
    if (queue->last != NULL)
        queue->last->next = &me;
    else
        queue->first = &me;
    queue->last = &me;
    while (!me.granted && clock_monotonic_ms() < until_ms)
        (void)pthread_cond_timedwait(&me.granted_now, &pool->lock, &until);
    if (!me.granted)
        row_pool_leave(queue, &me);
    (void)pthread_cond_destroy(&me.granted_now);
    return me.granted;
}

static void row_pool_count(struct row_pool *pool)
{
    metric_set(pool->cells, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_UP, pool->opened);
}

/* ---- taking and giving ---- */

static void give_place(struct row_pool *pool, enum row_pool_use use, struct postgres *pg)
{
    (void)pthread_mutex_lock(&pool->lock);
    assert(pool->used[use] > 0);
    pool->used[use]--;
    if (pg != NULL)
        pool->idle[pool->idle_len++] = pg;
    assert(pool->idle_len <= pool->options.connections);
    row_pool_grant(pool);
    (void)pthread_mutex_unlock(&pool->lock);
}

static thole_status open_one(struct row_pool *pool, uint64_t timeout_ms, struct postgres **ret,
                             thole_error *reterr)
{
    struct postgres_options options = pool->options.postgres;
    options.connect_timeout_ms = options.statement_timeout_ms = timeout_ms;
    THOLE_TRY(postgres_open(&options, ret, reterr));
    (void)pthread_mutex_lock(&pool->lock);
    pool->opened++;
    row_pool_count(pool);
    (void)pthread_mutex_unlock(&pool->lock);
    return THOLE_OK;
}

thole_status row_pool_take(struct row_pool *pool, enum row_pool_use use, uint64_t timeout_ms,
                           struct postgres **ret, thole_error *reterr)
{
    struct postgres *pg = NULL;
    (void)pthread_mutex_lock(&pool->lock);
    bool const at_once = row_pool_has_room(pool, use) && !is_behind(pool, use);
    if (at_once)
        pool->used[use]++;
    bool const has_place = at_once || await_place(pool, use, timeout_ms);
    if (has_place && pool->idle_len > 0)
        pg = pool->idle[--pool->idle_len];
    (void)pthread_mutex_unlock(&pool->lock);
    if (!has_place)
        return thole_fail(reterr, THOLE_UNAVAILABLE,
                          "none of the %zu connections to Postgres was free for %llu ms: allow more by "
                          "--postgres-connections",
                          pool->options.connections, (unsigned long long)timeout_ms);
    if (pg != NULL) {
        postgres_set_timeout(pg, timeout_ms);
    } else {
        thole_status const status = open_one(pool, timeout_ms, &pg, reterr);
        if (status != THOLE_OK) {
            give_place(pool, use, NULL);
            return status;
        }
    }
    *ret = pg;
    return THOLE_OK;
}

void row_pool_give(struct row_pool *pool, enum row_pool_use use, struct postgres *pg)
{
    assert(pg != NULL);
    give_place(pool, use, pg);
}
