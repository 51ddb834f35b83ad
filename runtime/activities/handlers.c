#include "handlers.h"
#include "fatal_signals.h"
#include "memory.h"
#include "process_pool.h"
#include <assert.h>
#include <stdlib.h>

struct handler_thread {
    struct handlers *pool;
    enum { HELD, ABANDONED, KILLED } state; /* under the pool's lock */
};

struct handlers {
    pthread_mutex_t lock;
    pthread_cond_t jobs, gone;
    struct thole_activity *first, **last;
    struct mailbox *inbox;           /* NULL once closed */
    size_t idle;                     /* threads that wait for a job */
    bool waking;                     /* one of them has been woken and has not looked yet */
    size_t threads;                  /* all that are alive */
    size_t abandoned, abandoned_max; /* of those */
    uint32_t owed;                   /* slots without a thread */
    uint32_t replaced;               /* owed slots that have got one and were not reported yet */
    bool closed;
};

static void pool_free(struct handlers *pool)
{
    (void)pthread_cond_destroy(&pool->gone);
    (void)pthread_cond_destroy(&pool->jobs);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/*
 * Under the lock. Whether to signal that there are jobs, once the lock is released: who wakes up earlier has
 * to wait for it. One idle thread is woken at a time, and wakes the next one before it runs its job. Handlers
 * that return at once are then run by the few that are awake, and none is late by more than what waking up
 * takes.
 */
static bool must_wake(struct handlers *pool)
{
    bool const wake = pool->first != NULL && pool->idle > 0 && !pool->waking;
    if (wake)
        pool->waking = true;
    return wake;
}

/* Under the lock. NULL: the pool is closed. */
static struct thole_activity *next_job(struct handlers *pool)
{
    while (pool->first == NULL && !pool->closed) {
        pool->idle++;
        (void)pthread_cond_wait(&pool->jobs, &pool->lock);
        pool->idle--;
        pool->waking = false;
    }
    struct thole_activity *const act = pool->first;
    if (act == NULL)
        return NULL;
    pool->first = act->next;
    if (pool->first == NULL)
        pool->last = &pool->first;
    assert(act->thread == NULL); /* an activity runs once at a time */
    return act;
}

/* Under the lock, after the handler has returned. False: this thread ends. */
static bool handlers_returned(struct handler_thread *thread, struct thole_activity *act)
{
    struct handlers *const pool = thread->pool;
    assert(act->thread == thread);
    assert(thread->state != ABANDONED || pool->abandoned > 0);
    act->thread = NULL;
    if (pool->closed)
        activity_destroy(act); /* abandoned, and this thread is its last owner */
    else
        mailbox_push(pool->inbox, &act->finished.mail);
    if (thread->state == HELD)
        return true;
    if (pool->owed == 0 || pool->closed)
        return false;
    pool->owed--;
    pool->replaced++;
    pool->abandoned -= thread->state == ABANDONED;
    thread->state = HELD;
    return true;
}

static void *handlers_thread_main(void *arg)
{
    struct handler_thread *const thread = arg;
    struct handlers *const pool = thread->pool;
    struct thole_activity *act;
    bool more = true;
    void *const stack = fatal_thread_begin();
    (void)pthread_setname_np(pthread_self(), "thole-handler");
    (void)pthread_mutex_lock(&pool->lock);
    while (more && (act = next_job(pool)) != NULL) {
        act->thread = thread;
        bool const wake = must_wake(pool);
        (void)pthread_mutex_unlock(&pool->lock);
        if (wake)
            (void)pthread_cond_signal(&pool->jobs);
        activity_run(act);
        (void)pthread_mutex_lock(&pool->lock);
        more = handlers_returned(thread, act);
    }
    fatal_thread_end(stack);
    assert(pool->threads > 0 && pool->abandoned <= pool->threads);
    pool->threads--;
    pool->abandoned -= thread->state == ABANDONED;
    bool const last = pool->threads == 0 && pool->inbox == NULL;
    (void)pthread_cond_signal(&pool->gone);
    (void)pthread_mutex_unlock(&pool->lock);
    free(thread);
    if (last)
        pool_free(pool);
    return NULL;
}

/* Under the lock. */
static bool handlers_start_thread(struct handlers *pool)
{
    pthread_attr_t attr;
    pthread_t id;
    struct handler_thread *const thread = memory_new(sizeof *thread);
    thread->pool = pool;
    (void)pthread_attr_init(&attr);
    /* detached: a thread that never returns could not be joined; handlers_destroy() counts instead */
    bool const started = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0 &&
                         pthread_create(&id, &attr, handlers_thread_main, thread) == 0;
    (void)pthread_attr_destroy(&attr);
    pool->threads += started;
    if (!started)
        free(thread);
    return started;
}

static struct handlers *pool_create(struct mailbox *inbox)
{
    struct handlers *const pool = memory_new(sizeof *pool);
    pool->last = &pool->first;
    pool->inbox = inbox;
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->jobs, NULL);
    (void)pthread_cond_init(&pool->gone, NULL);
    return pool;
}

thole_status handlers_create(uint32_t slots, uint32_t abandoned_max, struct mailbox *inbox,
                             struct handlers **ret, thole_error *reterr)
{
    assert(slots > 0);
    struct handlers *const pool = pool_create(inbox);
    uint32_t started = 0;
    pool->abandoned_max = abandoned_max;
    (void)pthread_mutex_lock(&pool->lock);
    while (started < slots && handlers_start_thread(pool))
        started++;
    (void)pthread_mutex_unlock(&pool->lock);
    if (started < slots) {
        handlers_destroy(pool);
        return thole_fail(reterr, THOLE_NOMEM, "only %u of %u slots got a thread; lower --slots", started,
                          slots);
    }
    *ret = pool;
    return THOLE_OK;
}

void handlers_destroy(struct handlers *pool)
{
    if (pool == NULL)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    pool->closed = true;
    (void)pthread_cond_broadcast(&pool->jobs);
    while (pool->threads > pool->abandoned)
        (void)pthread_cond_wait(&pool->gone, &pool->lock);
    pool->inbox = NULL; /* from here on the last thread frees the pool */
    bool const last = pool->threads == 0;
    (void)pthread_mutex_unlock(&pool->lock);
    if (last)
        pool_free(pool);
}

void handlers_run(struct handlers *pool, struct thole_activity *act)
{
    assert(act->run != NULL && act->thread == NULL);
    (void)pthread_mutex_lock(&pool->lock);
    assert(!pool->closed);
    act->next = NULL;
    *pool->last = act;
    pool->last = &act->next;
    bool const wake = must_wake(pool);
    (void)pthread_mutex_unlock(&pool->lock);
    if (wake)
        (void)pthread_cond_signal(&pool->jobs);
}

bool handlers_abandon(struct handlers *pool, struct thole_activity *act, bool replace)
{
    bool replaced = true; /* the handler has just returned: its thread is free */
    (void)pthread_mutex_lock(&pool->lock);
    if (act->thread != NULL && act->pool != NULL) {
        assert(act->thread->state == HELD);
        act->thread->state = KILLED;
        process_pool_kill(act);
        replaced = false;
        pool->owed += replace;
    } else if (act->thread != NULL) {
        assert(act->thread->state == HELD);
        act->thread->state = ABANDONED;
        pool->abandoned++;
        replaced = replace && pool->abandoned <= pool->abandoned_max && handlers_start_thread(pool);
        pool->owed += replace && !replaced;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return replaced;
}

uint32_t handlers_replaced(struct handlers *pool)
{
    (void)pthread_mutex_lock(&pool->lock);
    uint32_t const replaced = pool->replaced;
    pool->replaced = 0;
    (void)pthread_mutex_unlock(&pool->lock);
    return replaced;
}

bool handler_is_quick(const thole_activity_entry *entry)
{
    const thole_activity_options *const options = entry->options; /* of an older program it may be shorter */
    return options != NULL && options->size >= sizeof *options && options->quick;
}
