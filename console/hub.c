#include "hub.h"
#include "client_internal.h"
#include "clock.h"
#include "forms.h"
#include "hub_parts.h"
#include "memory.h"
#include "notice.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- waiting events ---- */

static void hub_wake(struct feed *stream)
{
    if (!stream->asleep)
        return;
    stream->asleep = false;
    stream->owner.wake(stream->owner.arg);
}

/* The buffer is emptied only when all of it was read. */
static bool hub_has_room(const struct feed *stream, size_t len)
{
    return stream->waiting.len - stream->sent + len <= HUB_STREAM_BYTES_MAX;
}

static void hub_compact(struct feed *stream)
{
    size_t const left = stream->waiting.len - stream->sent;
    if (stream->sent < HUB_STREAM_BYTES_MAX / 2 && left > 0)
        return;
    if (left > 0)
        memmove(stream->waiting.ptr, stream->waiting.ptr + stream->sent, left);
    stream->waiting.len = left;
    stream->sent = 0;
}

static void hub_put(struct feed *stream, thole_slice text)
{
    static const char reload[] = "event: reload\ndata: {}\n\n";
    if (hub_has_room(stream, text.len + sizeof reload)) {
        buf_slice(&stream->waiting, text);
    } else if (!stream->lost) { /* the reader's state is out of date: it reads everything again */
        stream->lost = true;
        stream->resets = true;
    }
    hub_wake(stream);
}

/* An event that is half sent is sent to its end before "reload". */
static void begin_anew(struct feed *stream)
{
    thole_slice const rest = {stream->waiting.ptr + stream->sent, stream->waiting.len - stream->sent};
    const uint8_t *const end = !stream->within || rest.len < 2 ? NULL : memmem(rest.ptr, rest.len, "\n\n", 2);
    size_t const keep = end == NULL ? 0 : (size_t)(end - rest.ptr) + 2;
    stream->waiting.len = stream->sent + keep;
    buf_text(&stream->waiting, "event: reload\ndata: {}\n\n");
    stream->resets = false;
}

static bool hub_event_is_cut(const struct feed *stream)
{
    const uint8_t *const end = stream->waiting.ptr + stream->sent;
    return stream->sent < 2 || memcmp(end - 2, "\n\n", 2) != 0;
}

size_t feed_read(struct feed *stream, char *to, size_t max)
{
    struct hub *const hub = stream->hub;
    pthread_mutex_lock(&hub->lock);
    if (stream->resets)
        begin_anew(stream);
    size_t const left = stream->waiting.len - stream->sent;
    size_t n = left < max ? left : max;
    if (n > 0) {
        memcpy(to, stream->waiting.ptr + stream->sent, n);
        stream->sent += n;
        stream->within = hub_event_is_cut(stream);
        hub_compact(stream);
        stream->lost = stream->lost && stream->waiting.len > stream->sent;
        (void)pthread_cond_broadcast(&hub->changed);
    } else if (hub->closing || stream->gone) {
        n = SIZE_MAX;
    } else {
        stream->asleep = true;
        stream->owner.sleep(stream->owner.arg);
    }
    pthread_mutex_unlock(&hub->lock);
    return n;
}

bool feed_put_patiently(struct feed *stream, thole_slice text)
{
    struct hub *const hub = stream->hub;
    struct timespec const until = clock_timespec(clock_monotonic_ms() + HUB_STALLED_MS);
    int code = 0;
    pthread_mutex_lock(&hub->lock);
    while (!stream->closed && !hub->closing && !hub_has_room(stream, text.len + HUB_RESERVED_BYTES) &&
           code == 0)
        code = pthread_cond_timedwait(&hub->changed, &hub->lock, &until);
    bool const open = !stream->closed && !hub->closing;
    if (open)
        hub_put(stream, text);
    pthread_mutex_unlock(&hub->lock);
    return open;
}

bool feed_is_open(struct feed *stream)
{
    pthread_mutex_lock(&stream->hub->lock);
    bool const open = !stream->closed && !stream->hub->closing;
    pthread_mutex_unlock(&stream->hub->lock);
    return open;
}

thole_client *hub_client(struct hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    thole_client *const client = hub->client;
    pthread_mutex_unlock(&hub->lock);
    return client;
}

/* ---- opening and closing ---- */

/* Of the connection and of the thread that follows: the last one frees it. Locked. */
static void let_go(struct feed *stream)
{
    struct hub *const hub = stream->hub;
    assert(stream->users > 0);
    if (--stream->users > 0)
        return;
    hub->streams_len--;
    for (struct feed **at = &hub->streams; *at != NULL; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    buf_release(&stream->waiting);
    buf_release(&stream->instance);
    free(stream);
    (void)pthread_cond_broadcast(&hub->changed);
}

static void *hub_follow(void *arg)
{
    struct feed *const stream = arg;
    struct hub *const hub = stream->hub;
    feed_follow(stream);
    pthread_mutex_lock(&hub->lock);
    let_go(stream);
    pthread_mutex_unlock(&hub->lock);
    return NULL;
}

static thole_status begin_following(struct feed *stream, thole_error *reterr)
{
    pthread_t thread;
    if (stream->instance.len == 0)
        return THOLE_OK;
    stream->users++;
    int const code = pthread_create(&thread, NULL, hub_follow, stream);
    if (code == 0) {
        (void)pthread_detach(thread);
        return THOLE_OK;
    }
    stream->users--;
    return thole_fail(reterr, THOLE_UNAVAILABLE, "the system has no thread left: %s", strerror(code));
}

thole_status feed_open(struct hub *hub, thole_slice instance, uint64_t sequence, struct feed_owner owner,
                       struct feed **ret, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    pthread_mutex_lock(&hub->lock);
    if (hub->streams_len >= HUB_STREAMS_MAX || hub->closing) {
        pthread_mutex_unlock(&hub->lock);
        return thole_fail(reterr, THOLE_UNAVAILABLE,
                          "%d pages follow what happens; this one must reload by itself", HUB_STREAMS_MAX);
    }
    struct feed *const stream = memory_new(sizeof *stream);
    *stream = (struct feed){.hub = hub, .next = hub->streams, .owner = owner, .from = sequence, .users = 1};
    buf_init(&stream->waiting, 2 * HUB_STREAM_BYTES_MAX);
    buf_init(&stream->instance, THOLE_ID_BYTES_MAX);
    buf_slice(&stream->instance, instance);
    buf_text(&stream->waiting, "retry: 1000\n\n");
    hub->streams = stream;
    hub->streams_len++;
    status = begin_following(stream, reterr);
    if (status != THOLE_OK)
        let_go(stream);
    else
        *ret = stream;
    pthread_mutex_unlock(&hub->lock);
    return status;
}

void feed_close(struct feed *stream)
{
    struct hub *const hub = stream->hub;
    pthread_mutex_lock(&hub->lock);
    stream->closed = true;
    stream->asleep = false;
    (void)pthread_cond_broadcast(&hub->changed);
    let_go(stream);
    pthread_mutex_unlock(&hub->lock);
}

/* ---- changed instances ---- */

static void put_all(struct hub *hub, thole_slice text)
{
    for (struct feed *s = hub->streams; s != NULL; s = s->next)
        if (!s->closed)
            hub_put(s, text);
}

/* So many may be sent now; they grow back with the time. */
static bool take_allowance(struct hub *hub)
{
    uint64_t const now_ms = clock_monotonic_ms(), each_ms = 1000 / HUB_CHANGES_PER_S;
    uint64_t const grown = (now_ms - hub->allowed_ms) / each_ms;
    if (grown > 0) {
        hub->allowance =
            hub->allowance + grown < HUB_CHANGES_PER_S ? hub->allowance + grown : HUB_CHANGES_PER_S;
        hub->allowed_ms += grown * each_ms;
    }
    if (hub->allowance == 0)
        return false;
    hub->allowance--;
    return true;
}

static void put_changed(struct hub *hub, thole_slice instance)
{
    struct buf text;
    struct json json;
    buf_init(&text, 8 * THOLE_ID_BYTES_MAX);
    buf_text(&text, "event: changed\ndata: ");
    json_to_buf(&json, &text);
    json_object(&json);
    if (instance.len > 0)
        json_member(&json, "instance", instance);
    else
        json_member_bool(&json, "many", true);
    json_end(&json);
    buf_text(&text, "\n\n");
    put_all(hub, buf_bytes(&text));
    buf_release(&text);
}

void hub_changed(struct hub *hub, thole_slice instance)
{
    pthread_mutex_lock(&hub->lock);
    if (hub->many ||
        hub->allowance + (clock_monotonic_ms() - hub->allowed_ms) * HUB_CHANGES_PER_S / 1000 < 2 ||
        !take_allowance(hub))
        hub->many = true; /* one is left for that */
    else
        put_changed(hub, instance);
    pthread_mutex_unlock(&hub->lock);
}

static void hub_on_notice(void *arg, const struct delivery *delivery)
{
    struct hub *const hub = arg;
    struct event_notice notice;
    struct arena arena;
    arena_init(&arena, NOTICE_ARENA_BYTES);
    if (event_notice_parse(delivery, &arena, &notice, NULL) == THOLE_OK)
        hub_changed(hub, notice.instance);
    arena_release(&arena);
}

/* ---- the hub's thread ---- */

/* The client that all streams follow with. It stays open. */
static void connect_client(struct hub *hub)
{
    thole_client *client = NULL;
    struct buf subject;
    if (thole_client_open(hub->options, &client, NULL) != THOLE_OK)
        return;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status =
        subject_event(&subject, client->topology.ns, THOLE_STR(""), THOLE_STR(""), "", NULL);
    if (status == THOLE_OK)
        status = connection_subscribe(client->connection, buf_cstr(&subject), hub_on_notice, hub,
                                      &hub->subscription, NULL);
    buf_release(&subject);
    if (status != THOLE_OK) {
        thole_client_close(client);
        return;
    }
    pthread_mutex_lock(&hub->lock);
    hub->client = client;
    put_changed(hub, (thole_slice){NULL, 0}); /* changes that came meanwhile */
    pthread_mutex_unlock(&hub->lock);
}

/* A connection that sleeps does not notice that its reader has gone away. */
static void look_for_readers(struct hub *hub)
{
    for (struct feed *s = hub->streams; s != NULL; s = s->next)
        if (s->asleep && s->owner.gone(s->owner.arg)) {
            s->gone = true;
            hub_wake(s);
        }
}

static void hub_tick(struct hub *hub, uint64_t now_ms)
{
    if (now_ms - hub->looked_ms >= HUB_LOOK_MS) {
        hub->looked_ms = now_ms;
        look_for_readers(hub);
    }
    if (hub->many && take_allowance(hub)) {
        hub->many = false;
        put_changed(hub, (thole_slice){NULL, 0});
    }
    if (now_ms - hub->pinged_ms < HUB_PING_MS)
        return;
    hub->pinged_ms = now_ms;
    put_all(hub, THOLE_STR(": ping\n\n"));
}

static void *hub_run(void *arg)
{
    struct hub *const hub = arg;
    uint64_t tried_ms = 0;
    for (;;) {
        uint64_t const now_ms = clock_monotonic_ms();
        struct timespec const until = clock_timespec(now_ms + HUB_TICK_MS);
        int code = 0;
        if (hub->client == NULL && now_ms - tried_ms >= HUB_CONNECT_MS) {
            connect_client(hub);
            tried_ms = clock_monotonic_ms();
        }
        pthread_mutex_lock(&hub->lock);
        while (!hub->ends && code == 0)
            code = pthread_cond_timedwait(&hub->ending, &hub->lock, &until);
        bool const ends = hub->ends;
        hub_tick(hub, clock_monotonic_ms());
        pthread_mutex_unlock(&hub->lock);
        if (ends)
            return NULL;
    }
}

thole_status hub_start(const thole_client_options *options, struct hub **ret, thole_error *reterr)
{
    struct hub *const hub = memory_new(sizeof *hub);
    hub->options = options;
    hub->allowed_ms = hub->pinged_ms = clock_monotonic_ms();
    hub->allowance = HUB_CHANGES_PER_S;
    (void)pthread_mutex_init(&hub->lock, NULL);
    clock_condition_init(&hub->changed);
    clock_condition_init(&hub->ending);
    int const code = pthread_create(&hub->thread, NULL, hub_run, hub);
    if (code != 0) {
        free(hub);
        return thole_fail(reterr, THOLE_UNAVAILABLE, "the system has no thread left: %s", strerror(code));
    }
    *ret = hub;
    return THOLE_OK;
}

void hub_close(struct hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    hub->closing = true;
    for (struct feed *s = hub->streams; s != NULL; s = s->next)
        hub_wake(s);
    (void)pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

void hub_stop(struct hub *hub)
{
    if (hub == NULL)
        return;
    hub_close(hub);
    pthread_mutex_lock(&hub->lock);
    while (hub->streams_len > 0) /* threads that follow still end */
        (void)pthread_cond_wait(&hub->changed, &hub->lock);
    hub->ends = true;
    (void)pthread_cond_signal(&hub->ending);
    pthread_mutex_unlock(&hub->lock);
    (void)pthread_join(hub->thread, NULL);
    subscription_close(hub->subscription);
    thole_client_close(hub->client);
    (void)pthread_cond_destroy(&hub->changed);
    (void)pthread_cond_destroy(&hub->ending);
    (void)pthread_mutex_destroy(&hub->lock);
    free(hub);
}
