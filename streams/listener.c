/* Listeners are opened, replaced and closed. */
#include "listener.h"
#include "loop.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>

thole_status listener_open(struct link *link, const char *subject, const char *group, listener_fn *fn,
                           void *arg, struct listener **ret, thole_error *reterr)
{
    natsSubscription *native = NULL;
    uint64_t early = 0;
    loop_begin(link->loop);
    natsStatus const status = group != NULL
                                  ? natsConnection_QueueSubscribeSync(&native, link->nc, subject, group)
                                  : natsConnection_SubscribeSync(&native, link->nc, subject);
    loop_end(link->loop);
    if (status != NATS_OK)
        return link_fail(status, "subscribe to", subject, reterr);
    (void)natsSubscription_SetPendingLimits(native, -1, -1);
    struct listener *listener = memory_new(sizeof *listener);
    pthread_mutex_init(&listener->lock, NULL);
    atomic_init(&listener->refs, 1);
    listener->fn = fn;
    listener->arg = arg;
    listener->link = link;
    link_retain(link);
    listener->native = native;
    link_listeners_add(&link->listeners, listener);
    if (natsSubscription_QueuedMsgs(native, &early) == NATS_OK && early > 0)
        loop_wake(link->loop); /* they came before it was in the list */
    *ret = listener;
    return THOLE_OK;
}

/* The listener's lock is held and is released. */
static void listener_finish(struct listener *listener)
{
    assert(listener->native != NULL && !listener->muted); /* closed only once */
    listener->muted = true;
    struct link *const link = listener->link;
    link_listeners_remove(&link->listeners, listener);
    pthread_mutex_unlock(&listener->lock);
    connection_retire(link->connection, listener->native, link->epoch);
    link_release(link);
    listener_unref(listener);
}

/* Waits for a call of fn in progress; none comes afterwards. */
static void listener_close(struct listener *listener)
{
    pthread_mutex_lock(&listener->lock);
    listener_finish(listener);
}

void listeners_replace(struct listeners *listeners, struct listener *listener)
{
    struct listener **at = &listeners->newest;
    while (*at != NULL) {
        struct listener *old = *at;
        if (pthread_mutex_trylock(&old->lock) == 0) {
            *at = old->older;
            listener_finish(old);
        } else { /* perhaps we are in its fn: it ends afterwards, but nothing more is sent to it */
            (void)natsSubscription_Unsubscribe(old->native);
            at = &old->older;
        }
    }
    if (listener != NULL) {
        assert(listener->older == NULL && listener != listeners->newest);
        assert(listeners->newest == NULL || listeners->newest->link->epoch <= listener->link->epoch);
        assert(listeners->newest == NULL ||
               listeners->newest->link->connection == listener->link->connection);
        listener->older = listeners->newest;
        listeners->newest = listener;
    }
}

void listeners_close(struct listeners *listeners)
{
    while (listeners->newest != NULL) {
        struct listener *listener = listeners->newest;
        listeners->newest = listener->older;
        listener_close(listener);
    }
}

void listeners_drain(struct listeners *listeners, uint64_t wait_ms)
{
    for (struct listener *listener = listeners->newest; listener != NULL; listener = listener->older) {
        if (natsSubscription_DrainTimeout(listener->native, (int64_t)wait_ms) == NATS_OK)
            (void)natsSubscription_WaitForDrainCompletion(listener->native, (int64_t)wait_ms);
    }
}
