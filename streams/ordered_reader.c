/*
 * The ordered reader: an ephemeral push consumer without acknowledgements, created again from the next
 * sequence when messages may be missing, unless the owner has a `lost` callback. It replaces nats.c's ordered
 * consumer: see link.h.
 *
 * Each consumer ("run") has a name and an inbox of its own; they identify messages of an earlier one.
 */
#include "api.h"
#include "aside.h"
#include "inflow.h"
#include "jscan.h"
#include "locked.h"
#include "memory.h"
#include "push_consumer.h"
#include "reader.h"
#include "subject.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEARTBEAT_MS = 2000,
    SILENCE_MS = 2 * HEARTBEAT_MS + 1000, /* two missed heartbeats */
    CREATE_MS = 3000,                     /* the answer to a create may take this long */
    RETRY_FIRST_MS = 100,
    RETRY_MAX_MS = 2000,
    FLOW_BYTES = 256, /* of a flow control message's reply subject, with its NUL */
};

struct ordered_reader {
    struct connection *connection;
    struct attachment attachment;
    struct listeners listeners;
    char *stream, *filter;
    ordered_reader_fn *each;
    ordered_reader_room_fn *room; /* NULL: each() does not block, or may */
    ordered_reader_lost_fn *lost; /* NULL: continues with the next run */
    void *arg;
    struct aside aside; /* messages for which there was no room */
    struct inflow_part part;
    pthread_mutex_t dispatch; /* held during each() */
    pthread_mutex_t lock;     /* the rest */
    pthread_cond_t settled;
    uint64_t next; /* stream sequence; messages below it are not delivered again */
    bool last_per_subject;
    char inbox[LINK_INBOX_BYTES], name[PUSH_NAME_BYTES]; /* of the run; empty between runs */
    uint64_t consumer_sequence;                          /* of the run's last message */
    /* created: the server has confirmed the consumer; busy: each() is running */
    bool created, busy;
    enum { WAITS_NOT, WAITS_TO_CREATE, WAITS_TO_GO_ON } waits; /* for its turn: inflow.h */
    char flow[FLOW_BYTES]; /* the newest flow control message; empty: none in this run */
    bool opened, over;     /* opened: it was confirmed at least once; over: no more is delivered */
    uint64_t heard_ms, retry_ms;
    thole_status status; /* of the last create, for ordered_reader_open() */
    thole_error error;
    bool tried;
};

static void on_delivery(void *arg, natsMsg **message, uint64_t epoch);

/* ---- a run; the lock is held ---- */

static void remove_consumer(const struct ordered_reader *reader, struct link *link)
{
    if (reader->name[0] != 0 && reader->waits != WAITS_TO_CREATE)
        push_remove(link, reader->stream, reader->name);
}

static void end_run(struct ordered_reader *reader, struct link *link)
{
    assert(is_locked(&reader->lock) && (reader->name[0] == 0) == (reader->inbox[0] == 0));
    remove_consumer(reader, link);
    reader->name[0] = 0;
    reader->inbox[0] = 0;
    reader->flow[0] = 0;
    reader->created = false;
    reader->consumer_sequence = 0;
    reader->waits = WAITS_NOT;
    inflow_end(&reader->part);
}

static void ordered_reader_send_create(struct ordered_reader *reader, struct link *link)
{
    char api[PUSH_API_BYTES];
    struct buf request;
    struct push_options const options = {.stream = reader->stream,
                                         .filter = reader->filter,
                                         .name = reader->name,
                                         .deliver = reader->inbox,
                                         .from = reader->next,
                                         .last_per_subject = reader->last_per_subject,
                                         .heartbeat_ms = HEARTBEAT_MS,
                                         .expires_ms = PUSH_EXPIRES_MS};
    buf_init(&request, PUSH_JSON_MAX);
    thole_status const status = push_request(&options, api, &request, NULL);
    assert(status == THOLE_OK); /* lengths were checked when it was opened */
    (void)status;
    link_hint(link, api, reader->inbox, buf_bytes(&request));
    buf_release(&request);
    reader->waits = WAITS_NOT;
    reader->heard_ms = link_now_ms();
    connection_alarm(reader->connection, &reader->attachment, reader->heard_ms + CREATE_MS);
}

static void start_run(struct ordered_reader *reader, struct link *link)
{
    struct listener *listener = NULL;
    end_run(reader, link);
    connection_inbox(reader->connection, reader->inbox);
    push_name("reader", reader->inbox, reader->name);
    /* No wildcard: the server wakes a push consumer only when its deliver subject itself is subscribed to. */
    if (listener_open(link, reader->inbox, NULL, on_delivery, reader, &listener, NULL) != THOLE_OK) {
        link_break(link); /* no memory or no thread: the next epoch tries again */
        return;
    }
    listeners_replace(&reader->listeners, listener);
    reader->waits = WAITS_TO_CREATE;
    connection_alarm(reader->connection, &reader->attachment, 0);
    if (inflow_ask(&reader->part))
        ordered_reader_send_create(reader, link);
}

/* Like start_run(), after a pause that grows. */
static void start_later(struct ordered_reader *reader, struct link *link)
{
    end_run(reader, link);
    reader->retry_ms = reader->retry_ms == 0 ? RETRY_FIRST_MS : reader->retry_ms * 2;
    if (reader->retry_ms > RETRY_MAX_MS)
        reader->retry_ms = RETRY_MAX_MS;
    assert(reader->retry_ms >= RETRY_FIRST_MS && reader->retry_ms <= RETRY_MAX_MS);
    reader->heard_ms = link_now_ms();
    connection_alarm(reader->connection, &reader->attachment, reader->heard_ms + reader->retry_ms);
}

static void tell_lost(struct ordered_reader *reader, bool with_connection)
{
    assert(reader->lost != NULL && reader->opened); /* before that the opening fails instead */
    if (!reader->over)
        reader->lost(reader->arg, with_connection);
    reader->over = true;
}

/* Something may be missing in this run, or it may have ended. */
static void run_fails(struct ordered_reader *reader, struct link *link,
                      void (*go_on)(struct ordered_reader *reader, struct link *link))
{
    if (reader->lost == NULL || !reader->opened) {
        go_on(reader, link);
        return;
    }
    end_run(reader, link);
    connection_alarm(reader->connection, &reader->attachment, 0);
    tell_lost(reader, false);
}

/* ---- received messages; the lock is held, on the loop's thread ---- */

/* Wakes up the caller that waits for the first consumer. */
static void ordered_reader_settle(struct ordered_reader *reader, thole_status status,
                                  const thole_error *error)
{
    assert(is_locked(&reader->lock));
    reader->status = status;
    reader->error = *error;
    reader->tried = true;
    pthread_cond_broadcast(&reader->settled);
}

static void take_create(struct ordered_reader *reader, struct link *link, const struct delivery *delivery)
{
    thole_error error = {.status = THOLE_OK};
    thole_slice pending;
    uint64_t n;
    assert(!reader->created && reader->name[0] != 0); /* of this run, as its inbox says */
    thole_status const status = api_judge(delivery->body, "CONSUMER.CREATE", reader->stream, NULL, &error);
    ordered_reader_settle(reader, status, &error);
    if (status != THOLE_OK) {
        start_later(reader, link);
        return;
    }
    if (json_find(delivery->body, "num_pending", &pending) && json_uint(pending, &n) && n == 0)
        inflow_rests(&reader->part, false); /* else it would count until its first heartbeat */
    reader->created = reader->opened = true;
    reader->retry_ms = 0;
    reader->heard_ms = link_now_ms();
    if (reader->waits == WAITS_NOT) /* the reader's turn is an alarm, too */
        connection_alarm(reader->connection, &reader->attachment, reader->heard_ms + SILENCE_MS);
}

/* A flow control message, or a heartbeat that repeats it while it is not answered. */
static void ordered_reader_take_flow(struct ordered_reader *reader, struct link *link, thole_slice subject)
{
    if (subject.len == 0 || subject.len >= sizeof reader->flow)
        return;
    bool const again = thole_slice_equal(subject, thole_slice_from(reader->flow));
    if (again && reader->waits == WAITS_TO_GO_ON)
        return;
    memcpy(reader->flow, subject.ptr, subject.len);
    reader->flow[subject.len] = 0;
    if (again || inflow_ask(&reader->part))
        push_flow_reply(link, subject);
    else
        reader->waits = WAITS_TO_GO_ON;
}

static void take_control(struct ordered_reader *reader, struct link *link, const struct delivery *delivery)
{
    uint64_t sent;
    thole_slice text;
    uint32_t const status = link_status(delivery, &text);
    if (status != 100 && !reader->created) {
        take_create(reader, link, delivery);
        return;
    }
    if (status != 100) { /* for example 409 Consumer Deleted, Leadership Change */
        run_fails(reader, link, start_later);
        return;
    }
    reader->heard_ms = link_now_ms();
    ordered_reader_take_flow(reader, link, delivery->reply);
    ordered_reader_take_flow(reader, link, delivery_header(delivery, "Nats-Consumer-Stalled"));
    if (slice_uint(delivery_header(delivery, "Nats-Last-Consumer"), &sent) &&
        sent != reader->consumer_sequence)
        run_fails(reader, link, start_run); /* messages are missing */
}

/* True: hand it over. */
static bool ordered_reader_take_message(struct ordered_reader *reader, struct link *link,
                                        const struct delivery *delivery, uint64_t *ret_sequence)
{
    struct ack_meta meta;
    if (reader->over || !ack_parse(delivery->reply, &meta) ||
        !thole_slice_equal(meta.consumer, thole_slice_from(reader->name)))
        return false;
    reader->heard_ms = link_now_ms();
    if (meta.consumer_sequence != reader->consumer_sequence + 1) {
        run_fails(reader, link, start_run);
        return false;
    }
    reader->consumer_sequence = meta.consumer_sequence;
    if (meta.stream_sequence < reader->next && !reader->last_per_subject)
        return false; /* from a replica that lags */
    reader->next = meta.stream_sequence + 1;
    reader->opened = true;
    if (!reader->tried ||
        reader->status != THOLE_OK) /* the answer to the create may come after it, and each() may block */
        ordered_reader_settle(reader, THOLE_OK, &(thole_error){.status = THOLE_OK});
    *ret_sequence = meta.stream_sequence;
    return true;
}

uint64_t delivery_stored_ns(const struct delivery *delivery)
{
    struct ack_meta meta;
    return ack_parse(delivery->reply, &meta) ? meta.stored_ns : 0;
}

uint64_t delivery_pending(const struct delivery *delivery)
{
    struct ack_meta meta;
    return ack_parse(delivery->reply, &meta) ? meta.pending : 0;
}

/* No server answers the request for a consumer, all that is asked with its inbox as the reply. */
static void ordered_reader_refused(struct ordered_reader *reader, uint64_t epoch)
{
    thole_error error = {.status = THOLE_OK};
    struct link *link = link_acquire(reader->connection);
    pthread_mutex_lock(&reader->lock);
    if (link != NULL && link->epoch == epoch && reader->name[0] != 0 && !reader->created) {
        ordered_reader_settle(
            reader,
            thole_fail(&error, THOLE_UNAVAILABLE, "stream %s: JetStream does not answer", reader->stream),
            &error);
        start_later(reader, link);
    }
    pthread_mutex_unlock(&reader->lock);
    link_release(link);
}

/* On the loop's thread, or on one of its own for messages that had to wait. */
static void ordered_reader_dispatch(void *arg, natsMsg **message, uint64_t epoch)
{
    struct ordered_reader *reader = arg;
    struct delivery const delivery = link_delivery(*message);
    uint64_t sequence = 0;
    bool wanted = false;
    struct link *link = link_acquire(reader->connection);
    if (link == NULL || link->epoch != epoch) {
        link_release(link); /* lost: missed messages are read again */
        return;
    }
    pthread_mutex_lock(&reader->dispatch);
    pthread_mutex_lock(&reader->lock);
    assert(!reader->busy); /* each() is called by one thread at a time */
    if (thole_slice_equal(delivery.subject, thole_slice_from(reader->inbox)))
        take_control(reader, link, &delivery);
    else
        wanted = ordered_reader_take_message(reader, link, &delivery, &sequence);
    reader->busy = wanted;
    pthread_mutex_unlock(&reader->lock);
    link_release(link); /* each() may block and must not hold the link */
    if (wanted) {
        reader->each(reader->arg, sequence, &delivery);
        pthread_mutex_lock(&reader->lock);
        reader->busy = false;
        reader->heard_ms = link_now_ms();
        pthread_mutex_unlock(&reader->lock);
    }
    pthread_mutex_unlock(&reader->dispatch);
}

static bool ordered_reader_must_wait(struct ordered_reader *reader, natsMsg *message)
{
    struct delivery const delivery = link_delivery(message);
    struct ack_meta meta;
    return reader->room != NULL && ack_parse(delivery.reply, &meta) && !reader->room(reader->arg, &delivery);
}

/* The server has sent it, whenever it is taken. */
static void count_inflow(struct ordered_reader *reader, natsMsg *message)
{
    struct delivery const delivery = link_delivery(message);
    struct ack_meta meta;
    if (ack_parse(delivery.reply, &meta))
        inflow_came(&reader->part, delivery.subject.len + delivery.reply.len + delivery.body.len,
                    meta.pending > 0);
    else if (delivery.reply.len > 0)
        inflow_stops(&reader->part);
    else if (delivery.body.len == 0)
        inflow_rests(&reader->part, delivery_header(&delivery, "Nats-Consumer-Stalled").len > 0);
}

static void on_delivery(void *arg, natsMsg **message, uint64_t epoch)
{
    struct ordered_reader *reader = arg;
    if (*message == NULL) {
        ordered_reader_refused(reader, epoch);
        return;
    }
    if (reader->part.inflow != NULL)
        count_inflow(reader, *message);
    if (aside_follow(&reader->aside, message, epoch))
        return;
    if (!ordered_reader_must_wait(reader, *message)) {
        ordered_reader_dispatch(reader, message, epoch);
    } else if (!aside_begin(&reader->aside, message, epoch)) { /* the next epoch reads it again */
        struct link *const link = link_acquire(reader->connection);
        if (link != NULL && link->epoch == epoch)
            link_break(link);
        link_release(link);
    }
}

/* ---- following the connection ---- */

static void reader_up(void *arg, struct link *link)
{
    struct ordered_reader *reader = arg;
    pthread_mutex_lock(&reader->lock);
    if (!reader->over)
        start_run(reader, link);
    pthread_mutex_unlock(&reader->lock);
}

static void reader_down(void *arg, uint64_t epoch)
{
    struct ordered_reader *reader = arg;
    (void)epoch;
    pthread_mutex_lock(&reader->lock);
    reader->inbox[0] = 0;
    reader->name[0] = 0; /* the consumer expires */
    reader->waits = WAITS_NOT;
    inflow_end(&reader->part);
    reader->retry_ms = 0;
    connection_alarm(reader->connection, &reader->attachment, 0);
    if (reader->lost != NULL && reader->opened)
        tell_lost(reader, true);
    pthread_mutex_unlock(&reader->lock);
}

/* Called by other readers of the inflow, with its lock held. */
static void on_turn(void *arg)
{
    struct ordered_reader *const reader = arg;
    connection_alarm_by(reader->connection, &reader->attachment, link_now_ms());
}

/* True: it waits for its turn, or it was that. */
static bool ordered_reader_take_turn(struct ordered_reader *reader, struct link *link)
{
    if (reader->waits == WAITS_TO_CREATE) {
        if (inflow_ask(&reader->part))
            ordered_reader_send_create(reader, link);
        return true;
    }
    if (reader->waits == WAITS_NOT || !inflow_ask(&reader->part))
        return false;
    reader->waits = WAITS_NOT;
    push_flow_reply(link, thole_slice_from(reader->flow));
    connection_alarm_by(reader->connection, &reader->attachment, reader->heard_ms + SILENCE_MS);
    return true;
}

/* The reader's turn has come, or silence: the create was not answered, heartbeats are missing, or a pause is
 * over. */
static void reader_fire(void *arg)
{
    struct ordered_reader *reader = arg;
    struct link *link = link_acquire(reader->connection);
    pthread_mutex_lock(&reader->lock);
    uint64_t const now = link_now_ms();
    uint64_t const patience = reader->created        ? SILENCE_MS
                              : reader->name[0] == 0 ? reader->retry_ms
                                                     : CREATE_MS;
    if (link == NULL || reader->over)
        ; /* up() continues, or it is over */
    else if (ordered_reader_take_turn(reader, link))
        ;
    else if (reader->busy || aside_is_running(&reader->aside))
        connection_alarm_by(reader->connection, &reader->attachment, now + SILENCE_MS);
    else if (now < reader->heard_ms + patience)
        connection_alarm_by(reader->connection, &reader->attachment, reader->heard_ms + patience);
    else
        run_fails(reader, link, start_run);
    pthread_mutex_unlock(&reader->lock);
    link_release(link);
}

/* ---- opening and closing ---- */

static void reader_free(struct ordered_reader *reader)
{
    assert(!reader->busy && reader->listeners.newest == NULL);
    pthread_cond_destroy(&reader->settled);
    pthread_mutex_destroy(&reader->lock);
    pthread_mutex_destroy(&reader->dispatch);
    free(reader->stream);
    free(reader->filter);
    free(reader);
}

static struct ordered_reader *reader_create(struct connection *connection,
                                            const struct ordered_reader_options *options)
{
    pthread_condattr_t attr;
    struct ordered_reader *reader = memory_new(sizeof *reader);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&reader->dispatch, NULL);
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->settled, &attr);
    pthread_condattr_destroy(&attr);
    reader->connection = connection;
    reader->stream = memory_text(options->stream);
    reader->filter = options->filter == NULL ? NULL : memory_text(options->filter);
    reader->next = options->last_per_subject ? 1 : options->from == 0 ? 1 : options->from;
    reader->last_per_subject = options->last_per_subject;
    reader->each = options->each;
    reader->room = options->room;
    reader->lost = options->lost;
    reader->arg = options->arg;
    aside_init(&reader->aside, ordered_reader_dispatch, reader);
    reader->part = (struct inflow_part){.inflow = options->inflow, .turn = on_turn, .arg = reader};
    reader->attachment =
        (struct attachment){.up = reader_up, .down = reader_down, .fire = reader_fire, .arg = reader};
    return reader;
}

/* Waits for the first consumer. When there is none, each() is not called any more. */
static thole_status wait_settled(struct ordered_reader *reader, thole_error *reterr)
{
    uint64_t const due = link_now_ms() + connection_request_timeout_ms(reader->connection);
    struct timespec const at = {.tv_sec = (time_t)(due / 1000), .tv_nsec = (long)(due % 1000) * NANOS_PER_MS};
    pthread_mutex_lock(&reader->lock);
    int late = 0;
    while (!reader->tried && late == 0)
        late = pthread_cond_timedwait(&reader->settled, &reader->lock, &at);
    thole_status status = reader->status;
    if (!reader->tried)
        status = thole_fail(reterr, THOLE_UNAVAILABLE,
                            reader->waits == WAITS_TO_CREATE
                                ? "stream %s: other streams of this connection have too much to send"
                                : "stream %s: no answer to the reader's request",
                            reader->stream);
    else if (status != THOLE_OK && reterr != NULL)
        *reterr = reader->error;
    if (status != THOLE_OK)
        reader->over = true;
    pthread_mutex_unlock(&reader->lock);
    return status;
}

thole_status ordered_reader_open(struct connection *connection, const struct ordered_reader_options *options,
                                 struct ordered_reader **ret, thole_error *reterr)
{
    if (strlen(options->stream) >= STREAM_NAME_BYTES_MAX || !link_subject_is_safe(options->stream) ||
        (options->filter != NULL &&
         (strlen(options->filter) >= SUBJECT_BYTES_MAX || !link_subject_is_safe(options->filter))))
        return thole_fail(reterr, THOLE_INVALID,
                          "stream or filter is too long, empty, or has a space or control byte");
    struct ordered_reader *reader = reader_create(connection, options);
    connection_attach(connection, &reader->attachment);
    thole_status const status = wait_settled(reader, reterr);
    if (status != THOLE_OK) {
        ordered_reader_close(reader);
        return status;
    }
    *ret = reader;
    return THOLE_OK;
}

bool ordered_reader_waits(struct ordered_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    bool const waits = reader->waits != WAITS_NOT;
    pthread_mutex_unlock(&reader->lock);
    return waits;
}

void ordered_reader_close(struct ordered_reader *reader)
{
    if (reader == NULL)
        return;
    connection_detach(reader->connection, &reader->attachment);
    listeners_close(&reader->listeners);
    aside_release(&reader->aside);
    struct link *link = link_acquire(reader->connection);
    if (link != NULL)
        remove_consumer(reader, link);
    link_release(link);
    inflow_end(&reader->part);
    reader_free(reader);
}
