/* Messages that must wait. */
#include "aside.h"
#include "locked.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>

struct aside_message {
    struct aside_message *next;
    natsMsg *native;
    uint64_t epoch;
};

void aside_init(struct aside *aside, listener_fn *fn, void *arg)
{
    *aside = (struct aside){.fn = fn, .arg = arg};
    pthread_mutex_init(&aside->lock, NULL);
}

/* The lock is held. */
static void aside_append(struct aside *aside, natsMsg **message, uint64_t epoch)
{
    struct aside_message *const added = memory_new(sizeof *added);
    assert(is_locked(&aside->lock) && !aside->ending);
    *added = (struct aside_message){.native = *message, .epoch = epoch};
    *message = NULL;
    if (aside->first == NULL)
        aside->first = added;
    else
        aside->last->next = added;
    aside->last = added;
}

/* NULL, and it does not run any more: none is left. */
static struct aside_message *aside_next_message(struct aside *aside, bool *ret_wanted)
{
    pthread_mutex_lock(&aside->lock);
    struct aside_message *const first = aside->first;
    if (first != NULL)
        aside->first = first->next;
    else
        aside->running = false;
    *ret_wanted = !aside->ending;
    pthread_mutex_unlock(&aside->lock);
    return first;
}

static void *aside_main(void *arg)
{
    struct aside *const aside = arg;
    bool wanted;
    for (struct aside_message *message; (message = aside_next_message(aside, &wanted)) != NULL;
         free(message)) {
        if (wanted)
            aside->fn(aside->arg, &message->native, message->epoch);
        link_message_free(message->native);
    }
    nats_ReleaseThreadMemory();
    return NULL;
}

bool aside_follow(struct aside *aside, natsMsg **message, uint64_t epoch)
{
    pthread_mutex_lock(&aside->lock);
    bool const running = aside->running;
    if (running)
        aside_append(aside, message, epoch);
    pthread_mutex_unlock(&aside->lock);
    return running;
}

/* The lock is held. */
static bool aside_start(struct aside *aside)
{
    assert(is_locked(&aside->lock) && !aside->running);
    if (aside->owed)
        (void)pthread_join(aside->thread, NULL); /* the thread has found nothing more, and takes no lock
                                                    again */
    struct thread_name const own = link_name_begin("nats-wait");
    aside->running = aside->owed = pthread_create(&aside->thread, NULL, aside_main, aside) == 0;
    link_name_end(&own);
    return aside->running;
}

bool aside_begin(struct aside *aside, natsMsg **message, uint64_t epoch)
{
    pthread_mutex_lock(&aside->lock);
    bool const running = aside->running || aside_start(aside); /* a new thread waits for the lock */
    if (running)
        aside_append(aside, message, epoch);
    pthread_mutex_unlock(&aside->lock);
    return running;
}

bool aside_is_running(struct aside *aside)
{
    pthread_mutex_lock(&aside->lock);
    bool const running = aside->running;
    pthread_mutex_unlock(&aside->lock);
    return running;
}

void aside_release(struct aside *aside)
{
    pthread_mutex_lock(&aside->lock);
    aside->ending = true;
    pthread_mutex_unlock(&aside->lock);
    if (aside->owed)
        (void)pthread_join(aside->thread, NULL);
    assert(!aside->running && aside->first == NULL);
    pthread_mutex_destroy(&aside->lock);
}
