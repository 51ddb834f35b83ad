/* Opening and closing a watch, and its notices: see struct listening. */
#include "client_task.h"
#include "clock.h"
#include "watch.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    API_BODY_MAX = 2048,
    JUDGED_AFTER = 256, /* notices */
    OTHERS_MAX = 8,     /* of so many notices one must be for a watch of this client */
    LINGER_MS = 1000,
    APART_MIN_MS = 10000,
    APART_MAX_MS = 600000,
};

/* ---- listening ---- */

/* Under client.lock: whether the shared subscription had too many notices for others. */
static bool watch_open_check(struct listening *listening)
{
    if (listening->heard < JUDGED_AFTER)
        return clock_monotonic_ms() < listening->apart_until_ms;
    bool const poor = listening->heard_own < listening->heard / OTHERS_MAX;
    listening->heard = listening->heard_own = 0;
    if (poor) {
        uint64_t const twice = 2 * listening->apart_ms;
        listening->apart_ms = twice < APART_MIN_MS   ? APART_MIN_MS
                              : twice > APART_MAX_MS ? APART_MAX_MS
                                                     : twice;
        listening->apart_until_ms = clock_monotonic_ms() + listening->apart_ms;
    } else if (clock_monotonic_ms() >= listening->apart_until_ms) {
        listening->apart_ms = 0;
    }
    return clock_monotonic_ms() < listening->apart_until_ms;
}

static void on_own_notice(void *arg, const struct delivery *delivery)
{
    (void)watches_on_notice(arg, delivery);
}

static void on_any_notice(void *arg, const struct delivery *delivery)
{
    struct thole_client *const client = arg;
    bool const own = watches_on_notice(client, delivery);
    pthread_mutex_lock(&client->lock);
    if (client->listening.together_users > 0) { /* else it is about to end */
        client->listening.heard++;
        client->listening.heard_own += own;
    }
    pthread_mutex_unlock(&client->lock);
}

/* Of all instances when @p instance is empty. */
static thole_status watch_open_subscribe(struct thole_client *client, thole_slice instance,
                                         struct subscription **ret, thole_error *reterr)
{
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = subject_event(&subject, client->topology.ns, THOLE_STR(""), instance, "", reterr);
    if (status == THOLE_OK)
        status = connection_subscribe(client->connection, buf_cstr(&subject),
                                      instance.len == 0 ? on_any_notice : on_own_notice, client, ret, reterr);
    buf_release(&subject);
    return status;
}

/* Under client.lock. */
static bool left_recently(const struct listening *listening)
{
    return listening->left_ms > 0 && clock_monotonic_ms() < listening->left_ms + LINGER_MS;
}

/* Under the turn. *ret: it listens by the subscription of all, which is made when it is the second that
 * listens, or comes soon after another one. */
static thole_status watch_open_join(struct watch *watch, bool *ret, thole_error *reterr)
{
    struct thole_client *const client = watch->client;
    struct listening *const listening = &client->listening;
    thole_status status = THOLE_OK;
    pthread_mutex_lock(&client->lock);
    *ret = (listening->listeners > 1 || left_recently(listening)) && !watch_open_check(listening);
    pthread_mutex_unlock(&client->lock);
    if (*ret && listening->together == NULL)
        status = watch_open_subscribe(client, THOLE_STR(""), &listening->together, reterr);
    else if (*ret)
        subscription_wake(listening->together);
    *ret = *ret && status == THOLE_OK;
    pthread_mutex_lock(&client->lock);
    listening->together_users += *ret;
    pthread_mutex_unlock(&client->lock);
    return status;
}

static thole_status listen_to_notices(struct watch *watch, thole_error *reterr)
{
    struct thole_client *const client = watch->client;
    pthread_mutex_lock(&client->lock);
    client->listening.listeners++;
    pthread_mutex_unlock(&client->lock);
    watch->listens = true;
    pthread_mutex_lock(&client->listening.turn);
    thole_status status = watch_open_join(watch, &watch->together, reterr);
    pthread_mutex_unlock(&client->listening.turn);
    if (status == THOLE_OK && !watch->together)
        status = watch_open_subscribe(client, watch->instance, &watch->subscription, reterr);
    return status;
}

/* The last one that uses it lets the subscription of all end soon; at once, if it was poor. */
static void watch_open_leave(struct watch *watch)
{
    struct thole_client *const client = watch->client;
    struct listening *const listening = &client->listening;
    struct subscription *unused = NULL;
    pthread_mutex_lock(&listening->turn);
    pthread_mutex_lock(&client->lock);
    assert(listening->together_users > 0);
    bool const last = --listening->together_users == 0;
    if (last && clock_monotonic_ms() < listening->apart_until_ms) {
        unused = listening->together;
        listening->together = NULL;
    }
    pthread_mutex_unlock(&client->lock);
    if (last && unused == NULL)
        subscription_rest(listening->together, LINGER_MS);
    subscription_close(unused);
    pthread_mutex_unlock(&listening->turn);
    watch->together = false;
}

void watch_listen_apart(struct watch *watch)
{
    struct thole_client *const client = watch->client;
    pthread_mutex_lock(&client->lock);
    bool const apart = watch->together && watch_open_check(&client->listening);
    pthread_mutex_unlock(&client->lock);
    if (apart && watch_open_subscribe(client, watch->instance, &watch->subscription, NULL) == THOLE_OK)
        watch_open_leave(watch);
}

/* No callback for it is under way when this returns. */
static void stop_listening(struct watch *watch)
{
    struct thole_client *const client = watch->client;
    if (!watch->listens)
        return;
    subscription_close(watch->subscription);
    if (watch->together)
        watch_open_leave(watch);
    pthread_mutex_lock(&client->lock);
    assert(client->listening.listeners > 0);
    client->listening.listeners--;
    client->listening.left_ms = clock_monotonic_ms();
    pthread_mutex_unlock(&client->lock);
}

/* ---- opening and closing ---- */

static thole_status prepare_look(struct watch *watch, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    thole_status status = place_history(watch->client, watch->instance, &place, reterr);
    if (status == THOLE_OK) {
        int const n = snprintf(watch->api_subject, sizeof watch->api_subject, "$JS.API.STREAM.MSG.GET.%s",
                               buf_cstr(&place.stream));
        assert(n > 0 && (size_t)n < sizeof watch->api_subject);
        status = stream_get_request(&watch->api_body, buf_cstr(&place.subject));
    }
    place_release(&place);
    return status;
}

/* From here on notices and answers reach it on the connection's reading thread: what they use of it stands.
 */
static void watch_open_enlist(struct watch *watch)
{
    struct thole_client *client = watch->client;
    pthread_mutex_lock(&client->lock);
    client->tokens += 2;
    assert(client->watches.first == NULL || client->watches.first->token < client->tokens);
    watch->token = client->tokens;
    watch_table_add(&client->watches, watch);
    pthread_mutex_unlock(&client->lock);
}

static void watch_open_init(struct watch *watch)
{
    pthread_condattr_t monotonic;
    buf_init(&watch->api_body, API_BODY_MAX);
    buf_init(&watch->name, SUBJECT_BYTES_MAX);
    buf_init(&watch->look_body, RECORD_BYTES_MAX);
    buf_init(&watch->result, RECORD_BYTES_MAX);
    int failed = pthread_condattr_init(&monotonic);
    assert(failed == 0);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    failed = pthread_cond_init(&watch->changed, &monotonic);
    assert(failed == 0);
    (void)pthread_condattr_destroy(&monotonic);
}

thole_status watch_open(struct thole_client *client, enum watch_kind kind, thole_slice instance,
                        thole_slice request, struct watch *ret, thole_error *reterr)
{
    memset(ret, 0, sizeof *ret);
    ret->client = client;
    ret->task = client_task_current();
    ret->instance = instance;
    ret->request = request;
    watch_open_init(ret);
    thole_status status = subject_token(&ret->name, instance, reterr);
    if (status == THOLE_OK)
        status = prepare_look(ret, reterr);
    watch_open_enlist(ret);
    if (status == THOLE_OK && kind == WATCH_NOTICES)
        status = listen_to_notices(ret, reterr);
    if (status != THOLE_OK)
        watch_close(ret);
    return status;
}

void watch_close(struct watch *watch)
{
    struct thole_client *client = watch->client;
    stop_listening(watch);
    pthread_mutex_lock(&client->lock);
    assert(watch->holds == NULL);
    watch_table_remove(&client->watches, watch);
    while (watch->pins > 0)
        (void)pthread_cond_wait(&watch->changed, &client->lock);
    pthread_mutex_unlock(&client->lock);
    pthread_cond_destroy(&watch->changed);
    buf_release(&watch->api_body);
    buf_release(&watch->name);
    buf_release(&watch->look_body);
    buf_release(&watch->result);
}
