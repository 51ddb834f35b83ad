/*
 * Pulling from a queue. Requested and not yet delivered messages are counted over all requests together: the
 * server reports the rest at the end of each request. Since that report can be lost, requests are also
 * counted by the second in which they were sent, and dropped after their time has passed.
 */
#include "api.h"
#include "bindings.h"
#include "link.h"
#include "locked.h"
#include "memory.h"
#include "push_consumer.h"
#include "work_message.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXPIRES_MS = 30000,
    HEARTBEAT_MS = 5000,
    SILENCE_MS = 2 * HEARTBEAT_MS + 1000,
    ENDED_S =
        EXPIRES_MS / 1000 + 3, /* a request older than this has ended, with or without a message about it */
    BATCH_MAX = 1000,
    BATCH_BYTES =
        8 * 1024 * 1024, /* of one request, as the server closes a connection for which too much waits */
    RETRY_FIRST_MS = 100,
    RETRY_MAX_MS = 2000,
    DRAIN_MS = 2000,
};

struct puller {
    struct connection *connection;
    struct attachment attachment;
    struct listeners listeners;
    struct work_names names;
    char consumer[BINDING_CONSUMER_BYTES];
    puller_fn *each;
    puller_bad_fn *bad;
    puller_refused_fn *refused;
    void *arg;
    pthread_mutex_t dispatch;     /* held during each() and bad() */
    pthread_mutex_t lock;         /* the rest */
    char inbox[LINK_INBOX_BYTES]; /* empty while disconnected */
    uint64_t epoch;
    uint32_t wanted, asked;
    struct {
        uint64_t second;
        uint32_t count;
    } sent[ENDED_S + 1]; /* ring by second */
    uint64_t heard_ms, retry_ms, pause_until_ms;
    bool came;  /* a message, since a request ended as the next one did not fit */
    bool alone; /* one did not fit though none came: it is larger than its server allows now */
    bool closing;
};

/* ---- asking; the lock is held ---- */

/* Messages of requests that may not have ended. */
static uint32_t puller_alive(const struct puller *puller, uint64_t now)
{
    uint64_t const second = now / 1000;
    uint32_t count = 0;
    for (size_t i = 0; i <= ENDED_S; i++) {
        if (puller->sent[i].second + ENDED_S >= second)
            count += puller->sent[i].count;
    }
    return count;
}

static void forget_ended(struct puller *puller, uint64_t now)
{
    uint32_t const most = puller_alive(puller, now);
    if (puller->asked > most)
        puller->asked = most;
}

static void note_sent(struct puller *puller, uint64_t now, uint32_t count)
{
    uint64_t const second = now / 1000;
    size_t const at = second % (ENDED_S + 1);
    if (puller->sent[at].second != second) {
        puller->sent[at].second = second;
        puller->sent[at].count = 0;
    }
    assert(count > 0 && count <= UINT32_MAX - puller->asked);
    puller->sent[at].count += count;
    puller->asked += count;
    assert(puller->asked <= puller_alive(puller, now));
}

/* The largest there may be, with its subjects. */
static size_t message_bytes(const struct puller *puller)
{
    size_t const payload = connection_max_payload(puller->connection);
    return payload == 0 ? 1 : payload * 2;
}

/* Any message fits. */
static size_t batch_bytes(const struct puller *puller)
{
    return message_bytes(puller) > BATCH_BYTES ? message_bytes(puller) : BATCH_BYTES;
}

static void send_pull(struct puller *puller, struct link *link, uint32_t batch)
{
    struct api_body body;
    char subject[PUSH_API_BYTES], reply[LINK_INBOX_BYTES + 16];
    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.MSG.NEXT.%s.%s", puller->names.stream,
                   puller->consumer);
    (void)snprintf(reply, sizeof reply, "%s.%u", puller->inbox, batch);
    api_body_begin(&body);
    json_member_number(&body.json, "batch", batch);
    if (batch > batch_bytes(puller) / message_bytes(puller)) /* else they fit: the server tells less */
        json_member_number(&body.json, "max_bytes", batch_bytes(puller));
    json_member_number(&body.json, "expires", (uint64_t)EXPIRES_MS * NANOS_PER_MS);
    json_member_number(&body.json, "idle_heartbeat", (uint64_t)HEARTBEAT_MS * NANOS_PER_MS);
    link_hint(link, subject, reply, api_body_end(&body));
}

/* Sends a request when half of the wanted messages are not requested yet. */
static void puller_ask(struct puller *puller, struct link *link)
{
    uint64_t const now = link_now_ms();
    assert(is_locked(&puller->lock));
    if (link == NULL || puller->inbox[0] == 0 || link->epoch != puller->epoch || puller->closing)
        return;
    if (now < puller->pause_until_ms) {
        connection_alarm_by(puller->connection, &puller->attachment, puller->pause_until_ms);
        return;
    }
    forget_ended(puller, now);
    uint32_t const missing = puller->wanted > puller->asked ? puller->wanted - puller->asked : 0;
    if (missing == 0 || (puller->asked > 0 && missing < (puller->wanted + 1) / 2))
        return;
    if (puller->asked == 0)
        puller->heard_ms = now; /* silence counts from here */
    uint32_t const batch = puller->alone ? 1 : missing < BATCH_MAX ? missing : BATCH_MAX;
    assert(batch > 0 && puller->asked + batch <= puller->wanted);
    send_pull(puller, link, batch);
    note_sent(puller, now, batch);
    connection_alarm_by(puller->connection, &puller->attachment, puller->heard_ms + SILENCE_MS);
}

static void ask_later(struct puller *puller)
{
    puller->retry_ms = puller->retry_ms == 0 ? RETRY_FIRST_MS : puller->retry_ms * 2;
    if (puller->retry_ms > RETRY_MAX_MS)
        puller->retry_ms = RETRY_MAX_MS;
    puller->pause_until_ms = link_now_ms() + puller->retry_ms; /* puller_ask() sets the alarm */
}

static void forget_all(struct puller *puller)
{
    puller->asked = 0;
    memset(puller->sent, 0, sizeof puller->sent);
}

/* ---- received messages ---- */

static bool has_sent_its_bytes(uint32_t status, thole_slice text) /* the next message does not fit */
{
    return status == 409 && thole_slice_equal(text, THOLE_STR("Message Size Exceeds MaxBytes"));
}

/* The pull has expired, or all its messages or bytes were sent. */
static bool is_usual_end(uint32_t status, thole_slice text)
{
    return status == 408 || has_sent_its_bytes(status, text) ||
           (status == 409 && thole_slice_equal(text, THOLE_STR("Batch Completed")));
}

/* The end of a request, or a heartbeat; the lock is held. */
static void puller_take_status(struct puller *puller, const struct delivery *delivery)
{
    uint64_t left = 0;
    thole_slice text;
    uint32_t const status = link_status(delivery, &text);
    size_t const inbox = strlen(puller->inbox);
    if (status == 100)
        return;
    if (!slice_uint(delivery_header(delivery, "Nats-Pending-Messages"), &left) &&
        delivery->subject.len > inbox + 1)
        (void)slice_uint((thole_slice){delivery->subject.ptr + inbox + 1, delivery->subject.len - inbox - 1},
                         &left);
    puller->asked -= left < puller->asked ? (uint32_t)left : puller->asked;
    if (has_sent_its_bytes(status, text)) {
        puller->alone = !puller->came;
        puller->came = false;
    }
    if (is_usual_end(status, text)) {
        puller->retry_ms = 0;
        return;
    }
    ask_later(puller); /* 404, 409: deleted, leader changed, too many waiting */
    if (puller->refused != NULL)
        puller->refused(puller->arg);
}

/* The lock is held. True: it is wanted. */
static bool count_message(struct puller *puller, bool bad)
{
    assert(is_locked(&puller->lock) && is_locked(&puller->dispatch));
    puller->retry_ms = 0;
    puller->came = true;
    puller->alone = false;
    if (puller->asked > 0)
        puller->asked--;
    if (puller->closing || (puller->wanted == 0 && !bad))
        return false;
    if (!bad)
        puller->wanted--;
    return true;
}

static void puller_hand_over(struct puller *puller, struct work_message *message, const char *bad)
{
    pthread_mutex_lock(&puller->lock);
    bool const wanted = count_message(puller, bad != NULL);
    pthread_mutex_unlock(&puller->lock);
    if (wanted && bad == NULL) {
        puller->each(puller->arg, message);
    } else if (wanted) {
        puller->bad(puller->arg, message, bad);
    } else { /* no longer wanted: handed back at once for another worker */
        thole_status const ignored = work_message_signal(puller->connection, message, WORK_NAK, NULL);
        (void)ignored;
        work_message_destroy(message);
    }
}

/* One of the requests has no responders, and it is not known which. The lock is held. */
static void puller_take_refusal(struct puller *puller)
{
    forget_all(puller);
    ask_later(puller);
    if (puller->refused != NULL)
        puller->refused(puller->arg);
}

static void puller_take_message(struct puller *puller, natsMsg **native)
{
    const char *bad;
    struct work_message *message = work_message_create(*native, &puller->names, &bad);
    *native = NULL;
    puller_hand_over(puller, message, bad);
}

static void on_pulled(void *arg, natsMsg **native, uint64_t epoch)
{
    struct puller *puller = arg;
    struct delivery const delivery =
        *native == NULL ? (struct delivery){.no_responders = true} : link_delivery(*native);
    bool const is_status = delivery.reply.len == 0;
    pthread_mutex_lock(&puller->dispatch);
    pthread_mutex_lock(&puller->lock);
    puller->heard_ms = link_now_ms();
    bool const current = epoch == puller->epoch;
    if (current && delivery.no_responders)
        puller_take_refusal(puller);
    else if (current && is_status)
        puller_take_status(puller, &delivery);
    pthread_mutex_unlock(&puller->lock);
    if (current && !is_status)
        puller_take_message(puller, native);
    struct link *link = link_acquire(puller->connection);
    pthread_mutex_lock(&puller->lock);
    puller_ask(puller, link);
    pthread_mutex_unlock(&puller->lock);
    link_release(link);
    pthread_mutex_unlock(&puller->dispatch);
}

/* ---- following the connection ---- */

static void puller_up(void *arg, struct link *link)
{
    struct puller *puller = arg;
    char inbox[LINK_INBOX_BYTES], pattern[LINK_INBOX_BYTES + 4];
    struct listener *listener = NULL;
    connection_inbox(puller->connection, inbox);
    (void)snprintf(pattern, sizeof pattern, "%s.*", inbox);
    if (listener_open(link, pattern, NULL, on_pulled, puller, &listener, NULL) != THOLE_OK) {
        link_break(link);
        return;
    }
    listeners_replace(&puller->listeners, listener);
    pthread_mutex_lock(&puller->lock);
    assert(link->epoch > puller->epoch && !puller->closing);
    memcpy(puller->inbox, inbox, sizeof inbox);
    puller->epoch = link->epoch;
    puller->pause_until_ms = 0;
    puller->retry_ms = 0;
    forget_all(puller);
    puller_ask(puller, link);
    pthread_mutex_unlock(&puller->lock);
}

static void puller_down(void *arg, uint64_t epoch)
{
    struct puller *puller = arg;
    pthread_mutex_lock(&puller->lock);
    assert(epoch >= puller->epoch);
    puller->inbox[0] = 0;
    forget_all(puller);
    connection_alarm(puller->connection, &puller->attachment, 0);
    pthread_mutex_unlock(&puller->lock);
}

static void puller_fire(void *arg)
{
    struct puller *puller = arg;
    struct link *link = link_acquire(puller->connection);
    pthread_mutex_lock(&puller->lock);
    uint64_t const now = link_now_ms();
    if (puller->asked > 0 && now >= puller->heard_ms + SILENCE_MS)
        forget_all(puller);
    puller_ask(puller, link);
    if (puller->asked > 0)
        connection_alarm_by(puller->connection, &puller->attachment, puller->heard_ms + SILENCE_MS);
    pthread_mutex_unlock(&puller->lock);
    link_release(link);
}

static struct puller *puller_create(struct connection *connection, const struct work_names *names,
                                    const char *consumer, puller_fn *each, puller_bad_fn *bad,
                                    puller_refused_fn *refused, void *arg)
{
    struct puller *puller = memory_new(sizeof *puller);
    puller->connection = connection;
    puller->names = *names;
    (void)snprintf(puller->consumer, sizeof puller->consumer, "%s", consumer);
    puller->each = each;
    puller->bad = bad;
    puller->refused = refused;
    puller->arg = arg;
    puller->attachment =
        (struct attachment){.up = puller_up, .down = puller_down, .fire = puller_fire, .arg = puller};
    pthread_mutex_init(&puller->dispatch, NULL);
    pthread_mutex_init(&puller->lock, NULL);
    connection_attach(connection, &puller->attachment);
    return puller;
}

thole_status puller_open(struct connection *connection, const char *ns, thole_slice queue, puller_fn *each,
                         puller_bad_fn *bad, puller_refused_fn *refused, void *arg, struct puller **ret,
                         thole_error *reterr)
{
    struct work_names names;
    THOLE_TRY(work_names_make(ns, queue, &names, reterr));
    *ret = puller_create(connection, &names, names.consumer, each, bad, refused, arg);
    return THOLE_OK;
}

/* All messages come from JetStream, so none is bad: any other one cannot be acknowledged. */
static void drop_bad(void *arg, struct work_message *message, const char *text)
{
    (void)arg;
    (void)text;
    work_message_destroy(message);
}

thole_status binding_puller_open(struct connection *connection, const char *ns, thole_slice rule,
                                 thole_slice stream, puller_fn *each, puller_refused_fn *refused, void *arg,
                                 struct puller **ret, thole_error *reterr)
{
    struct work_names names = {.queue = ""};
    char consumer[BINDING_CONSUMER_BYTES];
    if (stream.len >= sizeof names.stream)
        return thole_fail(reterr, THOLE_INVALID, "the stream's name is too long");
    (void)snprintf(names.stream, sizeof names.stream, "%.*s", THOLE_FMT(stream));
    binding_consumer_name(ns, rule, consumer);
    *ret = puller_create(connection, &names, consumer, each, drop_bad, refused, arg);
    return THOLE_OK;
}

void puller_want(struct puller *puller, uint32_t free_slots)
{
    struct link *link = link_acquire(puller->connection);
    pthread_mutex_lock(&puller->lock);
    puller->wanted = free_slots;
    puller_ask(puller, link);
    pthread_mutex_unlock(&puller->lock);
    link_release(link);
}

void puller_close(struct puller *puller)
{
    if (puller == NULL)
        return;
    connection_detach(puller->connection, &puller->attachment);
    pthread_mutex_lock(&puller->lock);
    assert(!puller->closing); /* closed only once */
    puller->closing = true;   /* later deliveries are handed back */
    pthread_mutex_unlock(&puller->lock);
    listeners_drain(&puller->listeners, DRAIN_MS);
    listeners_close(&puller->listeners);
    pthread_mutex_destroy(&puller->lock);
    pthread_mutex_destroy(&puller->dispatch);
    free(puller);
}
