#include "queue_maker.h"
#include "engine.h"
#include "job_thread.h"
#include "log.h"
#include "memory.h"
#include "queue_wish.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WISHES_MAX = 64, IDLE_MS = 60 * 60 * 1000 /* IDLE_MS: or until a request comes */ };

struct kept_wish {
    char queue[THOLE_NAME_BYTES_MAX + 1];
    char reply[SUBJECT_BYTES_MAX];
    enum queue_wish_kind kind;
    uint64_t number;
};

struct queue_maker {
    struct engine_host *engine;
    struct job_thread thread;
    bool running;
    struct subscription *wishes, *settings;
    pthread_mutex_t lock; /* guards the rest, a ring */
    struct kept_wish ring[WISHES_MAX];
    size_t first, len;
};

/* ---- arriving: the connection's thread ---- */

/* False: there are too many; who asks does so again. */
static bool queue_maker_add(struct queue_maker *maker, const struct kept_wish *wish)
{
    (void)pthread_mutex_lock(&maker->lock);
    bool const fits = maker->len < WISHES_MAX;
    if (fits)
        maker->ring[(maker->first + maker->len++) % WISHES_MAX] = *wish;
    (void)pthread_mutex_unlock(&maker->lock);
    return fits;
}

static void on_wish(void *arg, const struct delivery *delivery)
{
    struct queue_maker *const maker = arg;
    struct queue_wish wish;
    thole_error err = {.status = THOLE_OK};
    if (queue_wish_read(delivery, &wish, &err) != THOLE_OK) {
        log_line(LOG_LEVEL_DEBUG, "queue", "a wish about a queue was ignored: %s", err.text);
        return;
    }
    struct kept_wish kept = {.kind = wish.kind, .number = wish.number};
    memcpy(kept.queue, wish.queue.ptr, wish.queue.len);           /* fits: a name */
    memcpy(kept.reply, delivery->reply.ptr, delivery->reply.len); /* fits: an inbox */
    if (queue_maker_add(maker, &kept))
        job_thread_hurry(&maker->thread);
}

/* ---- making: its own thread ---- */

static bool queue_maker_next(struct queue_maker *maker, struct kept_wish *ret)
{
    (void)pthread_mutex_lock(&maker->lock);
    bool const any = maker->len > 0;
    if (any) {
        *ret = maker->ring[maker->first];
        maker->first = (maker->first + 1) % WISHES_MAX;
        maker->len--;
    }
    (void)pthread_mutex_unlock(&maker->lock);
    return any;
}

static void queue_maker_say(const struct kept_wish *wish, bool made, uint64_t lease_ms)
{
    if (made)
        log_line(LOG_LEVEL_INFO, "queue", "queue %s: its consumer is made, with a lease of %" PRIu64 " ms",
                 wish->queue, lease_ms);
    if (wish->kind == QUEUE_WISH_LEASE)
        log_line(LOG_LEVEL_INFO, "queue", "queue %s: its lease is %" PRIu64 " ms from now on", wish->queue,
                 wish->number);
    if (wish->kind == QUEUE_WISH_LIMIT)
        log_line(LOG_LEVEL_INFO, "queue",
                 "queue %s: its limit is %" PRIu64 " activities at once from now on (0: none)", wish->queue,
                 wish->number);
}

static void queue_maker_fulfil(struct queue_maker *maker, const struct kept_wish *kept)
{
    struct engine_host *const engine = maker->engine;
    struct queue_wish const wish = {kept->kind, thole_slice_from(kept->queue), kept->number};
    thole_error err = {.status = THOLE_OK};
    uint64_t lease_ms = 0;
    bool made = false;
    thole_status const status =
        queue_wish_fulfil(engine->connection, engine->topology.ns, &wish, &lease_ms, &made, &err);
    if (status == THOLE_OK)
        queue_maker_say(kept, made, lease_ms);
    else
        log_line(LOG_LEVEL_WARN, "queue", "queue %s: its consumer is not as it was asked for: %s",
                 kept->queue, err.text);
    if (queue_wish_answer(engine->services, kept->reply, status, lease_ms, &err, NULL) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "queue", "who asked was not answered: it asks again");
}

static void *queue_maker_main(void *arg)
{
    struct queue_maker *const maker = arg;
    struct kept_wish wish;
    while (job_thread_doze(&maker->thread, IDLE_MS))
        while (!job_thread_is_stopping(&maker->thread) && queue_maker_next(maker, &wish))
            queue_maker_fulfil(maker, &wish);
    return NULL;
}

/* ---- start and end ---- */

thole_status queue_maker_start(struct engine_host *engine, struct queue_maker **ret, thole_error *reterr)
{
    char subject[QUEUE_WISH_SUBJECT_BYTES];
    if (*ret == NULL) { /* else its subscription has failed before */
        struct queue_maker *const maker = memory_new(sizeof *maker);
        maker->engine = engine;
        (void)pthread_mutex_init(&maker->lock, NULL);
        *ret = maker;
        THOLE_TRY(job_thread_start(&maker->thread, queue_maker_main, maker, "that makes queues", reterr));
        maker->running = true;
    }
    if ((*ret)->settings == NULL) {
        queue_settings_subject(engine->topology.ns, "", subject);
        THOLE_TRY(
            connection_serve(engine->services, subject, "engines", on_wish, *ret, &(*ret)->settings, reterr));
    }
    queue_wish_subject(engine->topology.ns, "", subject);
    return connection_serve(engine->services, subject, "engines", on_wish, *ret, &(*ret)->wishes, reterr);
}

void queue_maker_stop(struct queue_maker *maker)
{
    if (maker == NULL)
        return;
    subscription_close(maker->wishes);
    subscription_close(maker->settings);
    if (maker->running)
        job_thread_stop(&maker->thread);
    (void)pthread_mutex_destroy(&maker->lock);
    free(maker);
}
