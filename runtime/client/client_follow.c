/* A history that is followed: what is stored, then what comes. A plain subscription to the subjects of the
 * instance's records says that one was published; what counts is read from the stream. */
#include "client_internal.h"
#include "clock.h"
#include <string.h>

enum {
    IDLE_MS = 1000, /* looks at the stream, and tells the caller that it may stop */
    EARLY_MS_MIN = 2,
    EARLY_MS_MAX = 256,  /* after a message: it may not be stored yet */
    AWAY_MS_MAX = 30000, /* no server answers */
};

struct follow {
    struct thole_client *client;
    thole_history_fn *each;
    void *arg;
    uint64_t execution, id; /* of the last event that was given */
    bool ended;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool published; /* under lock: a record, since the last look */
};

static void on_published(void *arg, const struct delivery *delivery)
{
    struct follow *follow = arg;
    (void)delivery;
    pthread_mutex_lock(&follow->lock);
    follow->published = true;
    pthread_cond_signal(&follow->changed);
    pthread_mutex_unlock(&follow->lock);
}

/* False: nothing was published for @p ms. */
static bool wait_published(struct follow *follow, uint64_t ms)
{
    struct timespec const until = clock_timespec(clock_monotonic_ms() + ms);
    int code = 0;
    pthread_mutex_lock(&follow->lock);
    while (!follow->published && code == 0)
        code = pthread_cond_timedwait(&follow->changed, &follow->lock, &until);
    bool const published = follow->published;
    follow->published = false;
    pthread_mutex_unlock(&follow->lock);
    return published;
}

/* A record that an owner stored before it lost the partition is stored again by the next one. */
static bool client_follow_is_known(const struct follow *follow, const thole_history_event *event)
{
    return event->execution < follow->execution ||
           (event->execution == follow->execution && event->id <= follow->id);
}

static bool client_follow_is_end(const thole_history_event *event)
{
    static const enum event_kind ends[] = {EVENT_COMPLETED, EVENT_FAILED, EVENT_CANCELLED, EVENT_TERMINATED};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(event->kind, event_kind_name(ends[i])) == 0)
            return true;
    return false;
}

static thole_status client_follow_give(void *arg, const thole_history_event *event)
{
    struct follow *follow = arg;
    if (client_follow_is_known(follow, event))
        return THOLE_OK;
    follow->execution = event->execution;
    follow->id = event->id;
    follow->ended = client_follow_is_end(event);
    return follow->each(follow->arg, event);
}

/* Until it has ended. A message that was published may be stored a moment later, or never. */
static thole_status read_on(struct follow *follow, thole_slice instance, uint64_t behind, thole_error *reterr)
{
    uint64_t last = behind, pause_ms = IDLE_MS, away_since_ms = 0;
    for (;;) {
        uint64_t const before = last;
        thole_status status =
            client_history_behind(follow->client, instance, &last, client_follow_give, follow, reterr);
        uint64_t const now_ms = clock_monotonic_ms();
        if (status != THOLE_UNAVAILABLE)
            away_since_ms = 0;
        else if (away_since_ms == 0)
            away_since_ms = now_ms;
        if (status == THOLE_UNAVAILABLE && last > 0 && now_ms - away_since_ms < AWAY_MS_MAX)
            status = THOLE_OK;
        if (status != THOLE_OK || follow->ended)
            return status;
        if (last != before || pause_ms >= EARLY_MS_MAX)
            pause_ms = IDLE_MS;
        if (wait_published(follow, pause_ms))
            pause_ms = EARLY_MS_MIN;
        else if (pause_ms < IDLE_MS)
            pause_ms *= 2;
        else
            THOLE_TRY(follow->each(follow->arg, NULL));
    }
}

static thole_status client_follow_subscribe(struct follow *follow, thole_slice instance,
                                            struct subscription **ret, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    THOLE_TRY(client_check_id(instance, reterr));
    thole_status status = place_history(follow->client, instance, &place, reterr);
    if (status == THOLE_OK)
        status = connection_subscribe(follow->client->connection, buf_cstr(&place.subject), on_published,
                                      follow, ret, reterr);
    place_release(&place);
    return status;
}

thole_status client_history_follow_behind(struct thole_client *client, thole_slice instance, uint64_t behind,
                                          thole_history_fn *each, void *arg, thole_error *reterr)
{
    struct follow follow = {.client = client, .each = each, .arg = arg};
    struct subscription *subscription = NULL;
    clock_condition_init(&follow.changed);
    (void)pthread_mutex_init(&follow.lock, NULL);
    thole_status status = client_follow_subscribe(&follow, instance, &subscription, reterr);
    if (status == THOLE_OK)
        status = read_on(&follow, instance, behind, reterr);
    subscription_close(subscription);
    pthread_cond_destroy(&follow.changed);
    pthread_mutex_destroy(&follow.lock);
    return status;
}

thole_status thole_client_history_follow(thole_client *client, thole_slice instance, thole_history_fn *each,
                                         void *arg, thole_error *reterr)
{
    return client_history_follow_behind(client, instance, 0, each, arg, reterr);
}
