/*
 * A link's life, and what comes for its listeners, on the thread of its loop.
 *
 * nats.c's subscriptions are its synchronous ones, which only gather. After each read of the socket those
 * that have something are delivered. They tell that a request had no responders, but hide the message that
 * says so.
 */
#include "clock.h"
#include "listener.h"
#include "locked.h"
#include "loop.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>

void listener_unref(struct listener *listener)
{
    int const refs = atomic_fetch_sub(&listener->refs, 1);
    assert(refs > 0);
    if (refs > 1)
        return;
    pthread_mutex_destroy(&listener->lock);
    free(listener);
}

/* ---- the link's list ---- */

void link_listeners_add(struct link_listeners *list, struct listener *listener)
{
    pthread_mutex_lock(&list->lock);
    listener->next = list->first;
    if (list->first != NULL)
        list->first->prev = listener;
    list->first = listener;
    pthread_mutex_unlock(&list->lock);
}

void link_listeners_remove(struct link_listeners *list, struct listener *listener)
{
    pthread_mutex_lock(&list->lock);
    if (list->at == listener)
        list->at = listener->next;
    if (listener->prev != NULL)
        listener->prev->next = listener->next;
    else
        list->first = listener->next;
    if (listener->next != NULL)
        listener->next->prev = listener->prev;
    pthread_mutex_unlock(&list->lock);
}

/* The next one, from list->at on, that has messages; with a reference. The lock is held. */
static struct listener *next_with_messages(struct link_listeners *list, uint64_t *ret_messages)
{
    assert(is_locked(&list->lock));
    while (list->at != NULL) {
        struct listener *const listener = list->at;
        list->at = listener->next;
        if (natsSubscription_QueuedMsgs(listener->native, ret_messages) == NATS_OK && *ret_messages > 0) {
            atomic_fetch_add(&listener->refs, 1);
            return listener;
        }
    }
    return NULL;
}

/* False: it is closed, or has nothing. */
static bool deliver_one(struct listener *listener)
{
    natsMsg *message = NULL;
    pthread_mutex_lock(&listener->lock);
    natsStatus const status =
        listener->muted ? NATS_INVALID_SUBSCRIPTION : natsSubscription_NextMsg(&message, listener->native, 0);
    bool const got = status == NATS_OK || status == NATS_NO_RESPONDERS;
    if (got)
        listener->fn(listener->arg, &message, listener->link->epoch);
    pthread_mutex_unlock(&listener->lock);
    link_message_free(message);
    return got;
}

static void link_deliver_deliver(void *arg)
{
    struct link_listeners *const list = arg;
    struct listener *listener;
    uint64_t messages;
    pthread_mutex_lock(&list->lock);
    list->at = list->first;
    while ((listener = next_with_messages(list, &messages)) != NULL) {
        pthread_mutex_unlock(&list->lock);
        while (messages > 0 && deliver_one(listener))
            messages--;
        listener_unref(listener);
        pthread_mutex_lock(&list->lock);
    }
    pthread_mutex_unlock(&list->lock);
}

/* ---- a link's life ---- */

static void free_link(struct link *link)
{
    pthread_cond_destroy(&link->reads.left);
    pthread_mutex_destroy(&link->reads.lock);
    pthread_mutex_destroy(&link->listeners.lock);
    free(link);
}

struct link *link_create(struct connection *connection)
{
    struct link *const link = memory_new(sizeof *link);
    link->connection = connection;
    link->refs = 1;
    pthread_mutex_init(&link->listeners.lock, NULL);
    pthread_mutex_init(&link->reads.lock, NULL);
    clock_condition_init(&link->reads.left);
    link->loop = loop_create(link_deliver_deliver, &link->listeners);
    if (link->loop == NULL) {
        free_link(link);
        return NULL;
    }
    return link;
}

void link_destroy(struct link *link)
{
    loop_join(link->loop);
    if (link->nc != NULL)
        natsConnection_Destroy(link->nc);
    loop_destroy(link->loop);
    assert(link->listeners.first == NULL && link->reads.here == 0);
    free_link(link);
}
