/* Publish, request, subscribe and flush over a connection. */
#include "api_prefix.h"
#include "clock.h"
#include "inbox_prefix.h"
#include "inflow.h"
#include "link.h"
#include "loop.h"
#include "memory.h"
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static thole_status not_connected(const char *what, const char *name, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_UNAVAILABLE, "%s %s: not connected to NATS", what, name);
}

void connection_inbox(struct connection *connection, char ret[LINK_INBOX_BYTES])
{
    natsInbox *inbox = NULL;
    if (natsInbox_Create(&inbox) != NATS_OK) /* no other reason to fail */
        memory_give_up(1, LINK_INBOX_BYTES);
    const char *const unique = strrchr(inbox, '.'); /* nats.c puts its own prefix before it, not ours */
    assert(unique != NULL && INBOX_OF_CONNECTION_BYTES + strlen(unique) <= LINK_INBOX_BYTES);
    (void)snprintf(ret, LINK_INBOX_BYTES, "%s%s", connection_inbox_root(connection), unique);
    natsInbox_Destroy(inbox);
}

thole_status connection_publish(struct connection *connection, const char *subject,
                                const struct header *headers, size_t headers_len, thole_slice body,
                                thole_error *reterr)
{
    return connection_publish_asking(connection, subject, NULL, headers, headers_len, body, reterr);
}

thole_status connection_publish_asking(struct connection *connection, const char *subject, const char *reply,
                                       const struct header *headers, size_t headers_len, thole_slice body,
                                       thole_error *reterr)
{
    natsMsg *message;
    bool sent;
    THOLE_TRY(link_message(subject, reply, headers, headers_len, body, &message, reterr));
    struct link *link = link_acquire(connection);
    thole_status const status =
        link == NULL ? not_connected("publish to", subject, reterr) : link_send(link, message, &sent, reterr);
    link_release(link);
    link_message_free(message);
    return status;
}

void connection_cork(struct connection *connection)
{
    struct link *const link = link_acquire(connection);
    if (link != NULL)
        loop_cork(link->loop);
    link_release(link);
}

void connection_uncork(struct connection *connection)
{
    struct link *const link = link_acquire(connection);
    loop_uncork(link == NULL ? NULL : link->loop);
    link_release(link);
}

void connection_read(struct connection *connection, struct pollfd *also, size_t n, uint64_t deadline_ms,
                     connection_awake_fn *awake, void *arg)
{
    struct link *const link = link_acquire(connection);
    bool const read = link != NULL && loop_run(link->loop, also, n, deadline_ms, awake, arg);
    link_release(link);
    if (read)
        return;
    loop_wait(also, n, deadline_ms);
    awake(arg);
}

void connection_leave(struct connection *connection)
{
    struct link *const link = link_acquire(connection);
    if (link != NULL)
        loop_leave(link->loop);
    link_release(link);
    nats_ReleaseThreadMemory();
}

thole_status connection_explain_silence(struct connection *connection, uint64_t violations_before,
                                        const char *subject, thole_status status, thole_error *reterr)
{
    enum { SAID_BYTES = 160 }; /* of the subject, which the error may have only in part */
    char text[256], said[SAID_BYTES], room[API_SUBJECT_BYTES];
    (void)snprintf(said, sizeof said, "%s",
                   api_prefix_apply(connection_api_prefix(connection), subject, room));
    if (status == THOLE_UNAVAILABLE &&
        connection_violations(connection, text, sizeof text) != violations_before &&
        strstr(text, said) != NULL)
        return thole_fail(reterr, THOLE_DENIED, "the NATS server forbids it: %s", text);
    return status;
}

/* ---- requests of threads that wait ---- */

bool link_is_read(const char *subject)
{
    static const char *const reads[] = {"$JS.API.STREAM.MSG.GET.", "$JS.API.DIRECT.GET."};
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++)
        if (strncmp(subject, reads[i], strlen(reads[i])) == 0)
            return true;
    return false;
}

/* False: nobody has left with an answer for so long. Its own time begins when it has entered. */
static bool enter_reads(struct link_reads *reads, uint64_t timeout_ms)
{
    uint64_t seen;
    int code = 0;
    pthread_mutex_lock(&reads->lock);
    do {
        struct timespec const until = clock_timespec(clock_monotonic_ms() + timeout_ms);
        for (seen = reads->departed, code = 0; reads->here == INFLOW_READS && code == 0;)
            code = pthread_cond_timedwait(&reads->left, &reads->lock, &until);
    } while (reads->here == INFLOW_READS && reads->departed != seen);
    bool const entered = reads->here < INFLOW_READS;
    reads->here += entered;
    pthread_mutex_unlock(&reads->lock);
    return entered;
}

static void leave_reads(struct link_reads *reads, bool answered)
{
    pthread_mutex_lock(&reads->lock);
    reads->here--;
    reads->departed += answered;
    pthread_cond_signal(&reads->left);
    pthread_mutex_unlock(&reads->lock);
}

static natsStatus connection_calls_exchange(struct link *link, const char *subject, natsMsg *message,
                                            natsMsg **ret)
{
    uint64_t const timeout_ms = connection_request_timeout_ms(link->connection);
    bool const reads = link_is_read(subject);
    if (reads && !enter_reads(&link->reads, timeout_ms))
        return NATS_TIMEOUT;
    natsStatus const status = natsConnection_RequestMsg(ret, link->nc, message, (int64_t)timeout_ms);
    if (reads)
        leave_reads(&link->reads, status == NATS_OK);
    return status;
}

thole_status connection_request_with(struct connection *connection, const char *subject,
                                     const struct header *headers, size_t headers_len, thole_slice body,
                                     struct buf *ret, thole_error *reterr)
{
    natsMsg *message, *answer = NULL;
    char ignored[1], room[API_SUBJECT_BYTES];
    const char *const asked = api_prefix_apply(connection_api_prefix(connection), subject, room);
    THOLE_TRY(link_message(asked, NULL, headers, headers_len, body, &message, reterr));
    struct link *link = link_acquire(connection);
    if (link == NULL) {
        link_message_free(message);
        return not_connected("request to", subject, reterr);
    }
    uint64_t const violations = connection_violations(connection, ignored, sizeof ignored);
    assert(!loop_is_mine(link->loop)); /* a loop's own thread could not read the answer */
    loop_flush(link->loop);
    natsStatus const sent = connection_calls_exchange(link, subject, message, &answer);
    link_message_free(message);
    thole_status status = link_fail(sent, "request to", subject, reterr);
    link_release(link);
    if (status != THOLE_OK)
        return connection_explain_silence(connection, violations, subject, status, reterr);
    struct delivery const delivery = link_delivery(answer);
    buf_clear(ret);
    buf_slice(ret, delivery.body);
    link_message_free(answer);
    if (buf_status(ret) != THOLE_OK)
        return thole_fail(reterr, buf_status(ret), "answer from %s is larger than %zu bytes", subject,
                          ret->max);
    return THOLE_OK;
}

thole_status connection_request(struct connection *connection, const char *subject, thole_slice body,
                                struct buf *ret, thole_error *reterr)
{
    const struct connection_waiting *const waiting = connection_waiting(connection);
    char ignored[1];
    thole_status status;
    uint64_t const violations = connection_violations(connection, ignored, sizeof ignored);
    if (waiting != NULL && waiting->ask(subject, body, ret, &status, reterr))
        return connection_explain_silence(connection, violations, subject, status, reterr);
    return connection_request_with(connection, subject, NULL, 0, body, ret, reterr);
}

void connection_pause(struct connection *connection, uint64_t ms)
{
    const struct connection_waiting *const waiting = connection_waiting(connection);
    struct timespec const pause = clock_timespec(ms);
    if (waiting == NULL || !waiting->pause(ms))
        (void)nanosleep(&pause, NULL);
}

thole_status connection_flush(struct connection *connection, thole_error *reterr)
{
    struct link *link = link_acquire(connection);
    if (link == NULL)
        return not_connected("flush", "to the server", reterr);
    assert(!loop_is_mine(link->loop)); /* a loop's own thread could not read the answer */
    loop_flush(link->loop);
    natsStatus const status =
        natsConnection_FlushTimeout(link->nc, (int64_t)connection_request_timeout_ms(connection));
    thole_status const result = link_fail(status, "flush", "to the server", reterr);
    link_release(link);
    return result;
}

struct subscription {
    struct connection *connection;
    struct attachment attachment;
    struct listeners listeners;
    pthread_mutex_t
        dispatch; /* held during each(): the last call of an epoch may overlap the first of the next */
    delivery_fn *each;
    void *arg;
    char *subject;
    char *group;         /* NULL: none */
    thole_status opened; /* of the first up() */
    thole_error error;
    atomic_bool wanted, rests;
    atomic_uint_least64_t rest_ms; /* when it is to rest, if it is not wanted by then */
};

static void subscription_message(void *arg, natsMsg **message, uint64_t epoch)
{
    struct subscription *subscription = arg;
    struct delivery const delivery =
        *message == NULL ? (struct delivery){.no_responders = true} : link_delivery(*message);
    (void)epoch;
    pthread_mutex_lock(&subscription->dispatch);
    subscription->each(subscription->arg, &delivery);
    pthread_mutex_unlock(&subscription->dispatch);
}

static void subscription_up(void *arg, struct link *link)
{
    struct subscription *subscription = arg;
    struct listener *listener = NULL;
    if (atomic_load(&subscription->wanted))
        atomic_store(&subscription->rests, false);
    if (atomic_load(&subscription->rests)) {
        listeners_replace(&subscription->listeners, NULL);
        return;
    }
    subscription->opened = listener_open(link, subscription->subject, subscription->group,
                                         subscription_message, subscription, &listener, &subscription->error);
    if (subscription->opened != THOLE_OK && subscription->opened != THOLE_INVALID)
        link_break(link); /* no memory or no thread: the next epoch tries again */
    listeners_replace(&subscription->listeners, listener);
}

static void subscription_down(void *arg, uint64_t epoch)
{
    (void)arg;
    (void)epoch;
}

/* A thread that wants it meanwhile first sets `wanted` and then looks whether the subscription rests. */
static void subscription_fire(void *arg)
{
    struct subscription *const subscription = arg;
    uint64_t const rest_ms = atomic_load(&subscription->rest_ms);
    if (atomic_load(&subscription->wanted))
        return;
    if (link_now_ms() < rest_ms) {
        connection_alarm(subscription->connection, &subscription->attachment, rest_ms);
        return;
    }
    atomic_store(&subscription->rests, true);
    if (atomic_load(&subscription->wanted))
        atomic_store(&subscription->rests, false);
    else
        listeners_replace(&subscription->listeners, NULL);
}

void subscription_rest(struct subscription *subscription, uint64_t after_ms)
{
    uint64_t const rest_ms = link_now_ms() + after_ms;
    atomic_store(&subscription->rest_ms, rest_ms);
    atomic_store(&subscription->wanted, false);
    connection_alarm_by(subscription->connection, &subscription->attachment, rest_ms);
}

void subscription_wake(struct subscription *subscription)
{
    atomic_store(&subscription->wanted, true);
    if (!atomic_load(&subscription->rests))
        return;
    connection_detach(subscription->connection, &subscription->attachment);
    connection_attach(subscription->connection, &subscription->attachment);
}

thole_status connection_subscribe(struct connection *connection, const char *subject, delivery_fn *each,
                                  void *arg, struct subscription **ret, thole_error *reterr)
{
    return connection_serve(connection, subject, NULL, each, arg, ret, reterr);
}

thole_status connection_serve(struct connection *connection, const char *subject, const char *group,
                              delivery_fn *each, void *arg, struct subscription **ret, thole_error *reterr)
{
    if (!link_subject_is_safe(subject))
        return thole_fail(reterr, THOLE_INVALID, "subject is empty or has a space or control byte");
    struct subscription *subscription = memory_new(sizeof *subscription);
    subscription->connection = connection;
    subscription->attachment = (struct attachment){
        .up = subscription_up, .down = subscription_down, .fire = subscription_fire, .arg = subscription};
    pthread_mutex_init(&subscription->dispatch, NULL);
    atomic_init(&subscription->wanted, true);
    subscription->each = each;
    subscription->arg = arg;
    subscription->subject = memory_text(subject);
    subscription->group = group == NULL ? NULL : memory_text(group);
    connection_attach(connection, &subscription->attachment);
    if (subscription->opened == THOLE_INVALID) {
        thole_error const error = subscription->error;
        subscription_close(subscription);
        return thole_fail(reterr, THOLE_INVALID, "%s", error.text);
    }
    *ret = subscription;
    return THOLE_OK;
}

void subscription_close(struct subscription *subscription)
{
    if (subscription == NULL)
        return;
    connection_detach(subscription->connection, &subscription->attachment);
    listeners_close(&subscription->listeners);
    pthread_mutex_destroy(&subscription->dispatch);
    free(subscription->subject);
    free(subscription->group);
    free(subscription);
}
