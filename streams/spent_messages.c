/*
 * Messages that are no longer needed. nats.c frees none where natsMsg_Destroy() is called: it hands each to a
 * thread of its own and wakes that up, which costs more than all else that is done for a small message. So
 * they are collected, of all connections together, and handed over many at a time. Both threads want the same
 * lock meanwhile, and sleep for each other: with 512 at a time a seventh as often per message as with 128.
 */
#include "link.h"
#include "memory.h"
#include "sanitizers.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPENT_MAX = SANITIZED_ADDRESS ? 1 : 512, /* 1: a use after the end is to be noticed */
    SPENT_BYTES_MAX = 256 * 1024,
    BULK_MAX = SANITIZED_ADDRESS ? 1 : 8192, /* of a reader of many, for as long as it reads */
    BULK_BYTES_MAX = 4 * 1024 * 1024,
};

static struct {
    pthread_mutex_t lock;
    natsMsg *messages[SPENT_MAX];
    size_t len, bytes;
} spent = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes all of them; the lock is held. */
static size_t take_spent(natsMsg *ret[SPENT_MAX])
{
    size_t const len = spent.len;
    assert(len <= SPENT_MAX);
    memcpy(ret, spent.messages, len * sizeof *ret);
    spent.len = 0;
    spent.bytes = 0;
    return len;
}

static void spent_messages_destroy(natsMsg *const *messages, size_t len)
{
    for (size_t i = 0; i < len; i++)
        natsMsg_Destroy(messages[i]);
}

void link_message_free(natsMsg *message)
{
    natsMsg *full[SPENT_MAX];
    size_t len = 0;
    if (message == NULL)
        return;
    int const bytes = natsMsg_GetDataLength(message);
    pthread_mutex_lock(&spent.lock);
    spent.messages[spent.len++] = message;
    spent.bytes += bytes > 0 ? (size_t)bytes : 0;
    if (spent.len == SPENT_MAX || spent.bytes >= SPENT_BYTES_MAX)
        len = take_spent(full);
    pthread_mutex_unlock(&spent.lock);
    spent_messages_destroy(full, len);
}

void link_messages_free_rest(void)
{
    natsMsg *rest[SPENT_MAX];
    pthread_mutex_lock(&spent.lock);
    size_t const len = take_spent(rest);
    pthread_mutex_unlock(&spent.lock);
    spent_messages_destroy(rest, len);
}

void link_spent_add(struct link_spent *own, natsMsg *message)
{
    int const bytes = natsMsg_GetDataLength(message);
    if (own->messages == NULL)
        own->messages = memory_array(BULK_MAX, sizeof(natsMsg *));
    own->messages[own->len++] = message;
    own->bytes += bytes > 0 ? (size_t)bytes : 0;
    if (own->len < BULK_MAX && own->bytes < BULK_BYTES_MAX)
        return;
    spent_messages_destroy(own->messages, own->len);
    own->len = own->bytes = 0;
}

void link_spent_end(struct link_spent *own)
{
    spent_messages_destroy(own->messages, own->len);
    free(own->messages);
    *own = (struct link_spent){.messages = NULL};
}
