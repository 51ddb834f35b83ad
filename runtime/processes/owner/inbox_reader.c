/*
 * The reader of a partition's inbox, and a check that it keeps up.
 *
 * Its consumer is on one server. With three replicas that may be one that never catches up (seen with
 * nats-server 2.10.27 after a kill -9): it sends heartbeats, but no messages. So the stream's leader is
 * regularly asked for the next message. If the stream already had one at the last check, the partition is
 * opened again, with a consumer that may be on another server.
 */
#include "holds.h"
#include "memory.h"
#include "messages.pb-c.h"
#include "proto_json.h"
#include "reader.h"
#include "result_list.h"
#include "sender_headers.h"
#include "shard_parts.h"
#include "subject.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_MS_MIN = 1000,
    RESULTS_MIN = 64,
    RESULTS_MAX = 200000, /* results that wait in an inbox and are kept; later ones are not known */
    PART_BYTES = 1536,    /* of one result of several, roughly, beside its bytes */
    HOLDS_AWAY_MS = 5000, /* not asked again for so long when there was no answer */
};

struct inbox_mail {
    struct shard_mail mail;
    uint64_t sequence, stored_ns;
    enum reject_code refused;
    bool trace_ignored, results; /* results: several */
    size_t parts;                /* how many results; else 1 */
    size_t named_len, route_len, body_len;
    struct actor sender; /* slices are lengths alone: the texts follow the body, in order */
    uint8_t bytes[];     /* the instance and the route, or (refused, results) the subject; the body; what the
                            sender says */
};

struct inbox_reader {
    struct shard *shard;
    uint32_t p;
    uint64_t generation;
    struct ordered_reader *ordered;
    /* Of the thread that delivers. */
    uint64_t holds_away_until_ms;     /* monotonic */
    struct holds_mentioned mentioned; /* the holds that can concern messages up to `mentioned_upto` */
    uint64_t mentioned_upto;
    /* under the backlog's lock */
    bool open, closing; /* not open: no message is delivered yet */
    bool held;          /* a message waits for room */
    bool admitted;      /* the next one need not wait, as inbox_reader_has_room() has said */
    uint64_t next;      /* next expected sequence: none below it will come */
};

static bool inbox_reader_is_full(const struct backlog *backlog)
{
    return backlog->mails + backlog->held >= INBOX_BACKLOG_MAX ||
           backlog->mail_bytes + backlog->held_bytes >= INBOX_BACKLOG_BYTES_MAX;
}

static bool is_full_for(const struct inbox_reader *reader)
{
    const struct inbox_queue *const own = &shard_owned(reader->shard, reader->p)->inbox;
    return inbox_reader_is_full(&reader->shard->backlog) || own->mails >= INBOX_PARTITION_MAX ||
           own->mail_bytes >= INBOX_PARTITION_BYTES_MAX;
}

/* Bytes that a result takes there, and more once the partition has it: each result has memory of its own. */
static size_t backlog_bytes(size_t parts, size_t body_bytes)
{
    return body_bytes + (parts > 1 ? parts * PART_BYTES : 0);
}

static bool enter_backlog(struct inbox_reader *reader, uint64_t sequence, size_t parts, size_t bytes)
{
    struct backlog *const backlog = &reader->shard->backlog;
    pthread_mutex_lock(&backlog->lock);
    reader->next = sequence + 1;
    reader->held = true;
    while (!reader->closing && !reader->admitted && (!reader->open || is_full_for(reader)))
        pthread_cond_wait(&backlog->room, &backlog->lock);
    reader->held = false;
    bool const open = !reader->closing;
    if (open) {
        struct inbox_queue *const own = &shard_owned(reader->shard, reader->p)->inbox;
        backlog->mails += parts;
        backlog->mail_bytes += bytes;
        own->mails += parts;
        own->mail_bytes += bytes;
    }
    pthread_mutex_unlock(&backlog->lock);
    return open;
}

/* Whether a hold may refuse the message: then holds are looked up. */
static bool may_be_held(thole_slice subject)
{
    thole_slice const kind = subject_nth(subject, INBOX_TOKEN_KIND);
    if (!thole_slice_equal(kind, THOLE_STR("control")))
        return false;
    thole_slice const verb = subject_nth(subject, INBOX_TOKEN_KIND + 1);
    return thole_slice_equal(verb, THOLE_STR("delete")) ||
           thole_slice_equal(verb, THOLE_STR("force_delete")) || thole_slice_equal(verb, THOLE_STR("prune"));
}

/* Where many wait one look is enough for all that are stored by now: a hold that was set before one of them
 * was sent is seen. */
static bool may_be_mentioned(struct inbox_reader *reader, uint64_t sequence, const struct delivery *delivery,
                             thole_slice instance)
{
    const struct engine_host *const engine = reader->shard->engine;
    struct stream_bounds bounds;
    if (sequence > reader->mentioned_upto && delivery_pending(delivery) > 0) {
        reader->mentioned_upto = 0;
        if (stream_bounds(engine->connection, shard_owned(reader->shard, reader->p)->in_stream, &bounds,
                          NULL) == THOLE_OK &&
            holds_mentioned_read(engine->connection, engine->topology.ns, &reader->mentioned, NULL) ==
                THOLE_OK)
            reader->mentioned_upto = bounds.last;
    }
    return sequence > reader->mentioned_upto || holds_mentioned_has(&reader->mentioned, instance);
}

/* Holds count at the moment in which the message is taken: one that was set before it was sent is seen. The
 * partition's other messages wait for the answer, so without one deletions are refused for a while. */
static enum reject_code judge_hold(struct inbox_reader *reader, uint64_t sequence,
                                   const struct delivery *delivery, thole_slice instance)
{
    const struct engine_host *const engine = reader->shard->engine;
    bool held = false;
    if (!may_be_held(delivery->subject))
        return REJECT_NONE;
    if (clock_monotonic_ms() < reader->holds_away_until_ms)
        return REJECT_HOLD_UNKNOWN;
    if (!may_be_mentioned(reader, sequence, delivery, instance))
        return REJECT_NONE;
    if (holds_find(engine->connection, engine->topology.ns, instance, &held, NULL, NULL, NULL) != THOLE_OK) {
        reader->holds_away_until_ms = clock_monotonic_ms() + HOLDS_AWAY_MS;
        return REJECT_HOLD_UNKNOWN;
    }
    return held ? REJECT_HELD : REJECT_NONE;
}

static enum reject_code judge_results(thole_slice body, size_t *ret_parts)
{
    struct result_list list;
    switch (result_list_read(body, &list, ret_parts, NULL)) {
    case THOLE_OK: return REJECT_NONE;
    case THOLE_UNSUPPORTED: return REJECT_UNSUPPORTED;
    default: return REJECT_MALFORMED;
    }
}

static enum reject_code judge_subject(struct inbox_reader *reader, uint64_t sequence,
                                      const struct delivery *delivery, struct buf *ret_id,
                                      struct buf *ret_actor)
{
    thole_slice const subject = delivery->subject;
    if (subject_token_decode(subject_nth(subject, INBOX_TOKEN_INSTANCE), ret_id, NULL) != THOLE_OK ||
        subject_actor(subject, INBOX_TOKEN_BY, ret_actor, NULL) != THOLE_OK)
        return REJECT_SUBJECT;
    if (subject_partition(buf_bytes(ret_id), reader->shard->engine->topology.partitions) != reader->p)
        return REJECT_PARTITION;
    return judge_hold(reader, sequence, delivery, buf_bytes(ret_id));
}

static void inbox_reader_take_message(struct inbox_reader *reader, uint64_t sequence,
                                      const struct delivery *delivery, thole_slice body)
{
    size_t count = 1;
    bool const results = subject_is_results(delivery->subject);
    enum reject_code const listed = results ? judge_results(body, &count) : REJECT_NONE;
    if (!enter_backlog(reader, sequence, count, backlog_bytes(count, body.len)))
        return;
    struct buf id, actor;
    buf_init(&id, THOLE_ID_BYTES_MAX);
    buf_init(&actor, ACTOR_NAME_BYTES_MAX);
    enum reject_code const refused =
        results ? listed : judge_subject(reader, sequence, delivery, &id, &actor);
    bool const taken = refused == REJECT_NONE && !results;
    thole_slice const named = taken ? buf_bytes(&id) : delivery->subject;
    thole_slice const route = taken ? subject_inbox_route(delivery->subject) : (thole_slice){NULL, 0};
    bool trace_ignored;
    struct actor sender = sender_headers_read(delivery, &trace_ignored);
    if (taken && actor.len > 0) /* the subject's actor wins: NATS lets only some users publish it */
        sender.name = buf_bytes(&actor), sender.authenticated = true;
    struct inbox_mail *mail =
        shard_mail_create(SHARD_INBOX, reader->p,
                          sizeof *mail + named.len + route.len + body.len + sender.trace.parent.len +
                              sender.trace.list.len + sender.name.len + sender.client.len);
    mail->trace_ignored = trace_ignored;
    mail->mail.generation = reader->generation;
    mail->refused = refused;
    mail->results = results;
    mail->parts = count;
    mail->sequence = sequence;
    mail->stored_ns = delivery_stored_ns(delivery);
    mail->named_len = named.len;
    mail->route_len = route.len;
    mail->body_len = body.len;
    mail->sender = sender;
    thole_slice const parts[] = {named,       route,        body, sender.trace.parent, sender.trace.list,
                                 sender.name, sender.client};
    uint8_t *to = mail->bytes;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; to += parts[i].len, i++)
        if (parts[i].len > 0)
            memcpy(to, parts[i].ptr, parts[i].len);
    buf_release(&actor);
    buf_release(&id);
    shard_send(reader->shard, &mail->mail);
}

static void on_inbox_message(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct buf converted;
    inbox_reader_take_message(arg, sequence, delivery, proto_json_inbox_body(delivery->body, &converted));
    buf_release(&converted);
}

/* Another reader may take the last place meanwhile: then there is one more than the most, as this one does
 * not wait. */
static bool inbox_reader_has_room(void *arg, const struct delivery *delivery)
{
    struct inbox_reader *const reader = arg;
    struct backlog *const backlog = &reader->shard->backlog;
    pthread_mutex_lock(&backlog->lock);
    reader->admitted = reader->open && !is_full_for(reader) && !may_be_held(delivery->subject);
    bool const room = reader->admitted || reader->closing;
    pthread_mutex_unlock(&backlog->lock);
    return room;
}

static void on_reader_lost(void *arg, bool with_connection)
{
    const struct inbox_reader *reader = arg;
    struct shard_mail *mail = shard_mail_create(SHARD_INBOX_LOST, reader->p, sizeof *mail);
    mail->generation = reader->generation;
    mail->up = !with_connection;
    shard_send(reader->shard, mail);
}

static void let_messages_through(struct inbox_reader *reader)
{
    pthread_mutex_lock(&reader->shard->backlog.lock);
    reader->open = true;
    pthread_cond_broadcast(&reader->shard->backlog.room);
    pthread_mutex_unlock(&reader->shard->backlog.lock);
}

/* ---- the shard's thread: received messages ---- */

static void say_trace_ignored(const struct shard *shard, uint32_t p, thole_slice instance)
{
    log_limits_line(shard->engine->lines, clock_monotonic_ms(), LINE_TRACE_IGNORED,
                    LOG_INSTANCE(p, instance, 0),
                    "the message's traceparent or tracestate is not valid: ignored");
}

/* One after the other, as if each had come alone. */
static void take_results(struct shard *shard, uint32_t p, struct partition_in *in)
{
    thole_slice const route = subject_inbox_route(in->message.subject);
    struct result_list list;
    struct result_item item;
    size_t len = 0;
    if (result_list_read(in->message.bytes, &list, &len, NULL) != THOLE_OK)
        return; /* read before */
    in->message.parts = (uint32_t)len;
    in->message.subject = (thole_slice){NULL, 0};
    for (; result_list_next(&list, &item); in->message.part++) {
        bool const own = subject_partition(item.instance, shard->engine->topology.partitions) == p;
        in->message.refused = own ? REJECT_NONE : REJECT_PARTITION;
        in->message.instance = item.instance;
        in->message.route = route;
        in->message.bytes = item.bytes;
        shard_count_message(shard, in->message.stored_ns);
        shard_input(shard_owned(shard, p), in);
    }
}

void inbox_take(struct shard *shard, struct shard_mail *mail)
{
    struct owned *const owned = shard_owned(shard, mail->p);
    struct inbox_queue *const queue = &owned->inbox;
    const struct inbox_mail *const message = (const struct inbox_mail *)mail;
    assert(mail->kind == SHARD_INBOX);
    mail->node.next = NULL;
    if (queue->last != NULL)
        queue->last->next = &mail->node;
    else
        queue->first = &mail->node;
    queue->last = &mail->node;
    queue->messages += message->parts;
    queue->bytes += backlog_bytes(message->parts, message->body_len);
    owned->touched = true;
}

/* The oldest one. The caller frees it. */
static struct inbox_mail *take_out(struct shard *shard, struct inbox_queue *queue)
{
    struct inbox_mail *const message = (struct inbox_mail *)queue->first;
    size_t const bytes = backlog_bytes(message->parts, message->body_len);
    queue->first = message->mail.node.next;
    if (queue->first == NULL)
        queue->last = NULL;
    queue->messages -= message->parts;
    queue->bytes -= bytes;
    pthread_mutex_lock(&shard->backlog.lock);
    assert(shard->backlog.mails >= queue->mails && shard->backlog.mail_bytes >= queue->mail_bytes);
    assert(queue->mails >= message->parts && queue->mail_bytes >= bytes);
    shard->backlog.mails -= message->parts;
    shard->backlog.mail_bytes -= bytes;
    queue->mails -= message->parts;
    queue->mail_bytes -= bytes;
    pthread_mutex_unlock(&shard->backlog.lock);
    return message;
}

static void give_mail(struct shard *shard, const struct inbox_mail *message)
{
    const struct shard_mail *const mail = &message->mail;
    thole_slice const named = {message->bytes, message->named_len};
    thole_slice const route = {message->bytes + named.len, message->route_len};
    struct actor sender = message->sender;
    const uint8_t *at = route.ptr + route.len + message->body_len;
    thole_slice *const parts[] = {&sender.trace.parent, &sender.trace.list, &sender.name, &sender.client};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; at += parts[i]->len, i++)
        parts[i]->ptr = at;
    struct partition_in in = {.kind = PARTITION_IN_MESSAGE,
                              .generation = mail->generation,
                              .message = {.sequence = message->sequence,
                                          .stored_ns = message->stored_ns,
                                          .refused = message->refused,
                                          .bytes = {route.ptr + route.len, message->body_len},
                                          .sender = sender}};
    if (message->trace_ignored)
        say_trace_ignored(shard, mail->p,
                          message->refused == REJECT_NONE && !message->results ? named
                                                                               : (thole_slice){NULL, 0});
    if (message->results || message->refused != REJECT_NONE)
        in.message.subject = named;
    else
        in.message.instance = named, in.message.route = route;
    if (message->results && message->refused == REJECT_NONE) {
        take_results(shard, mail->p, &in);
        return;
    }
    shard_count_message(shard, message->stored_ns);
    shard_input(shard_owned(shard, mail->p), &in);
}

/* Of an older reader: the machine ignores it. */
static bool is_stale(const struct owned *owned, const struct mail *node)
{
    return ((const struct shard_mail *)node)->generation != partition_generation(owned->machine);
}

bool inbox_may_give(const struct owned *owned)
{
    const struct mail *const first = owned->inbox.first;
    return first != NULL && (is_stale(owned, first) || partition_room(owned->machine) > 0);
}

void inbox_give(struct shard *shard, struct owned *owned)
{
    while (inbox_may_give(owned)) {
        bool const stale = is_stale(owned, owned->inbox.first);
        struct inbox_mail *const message = take_out(shard, &owned->inbox);
        if (!stale)
            give_mail(shard, message);
        free(message);
    }
}

void inbox_drop(struct shard *shard, struct owned *owned)
{
    while (owned->inbox.first != NULL)
        free(take_out(shard, &owned->inbox));
}

void inbox_lost(struct shard *shard, const struct shard_mail *mail)
{
    shard_cause(shard_owned(shard, mail->p), mail->up ? CLOSED_INBOX : CLOSED_NATS_LOST);
    shard_input(shard_owned(shard, mail->p),
                &(struct partition_in){.kind = PARTITION_IN_STEP_DOWN,
                                       .generation = mail->generation,
                                       .step_down.text =
                                           mail->up ? "the inbox reader lost its consumer" : NATS_LOST_TEXT});
}

void inbox_held(struct shard *shard, size_t messages, size_t bytes)
{
    struct backlog *const backlog = &shard->backlog;
    pthread_mutex_lock(&backlog->lock);
    backlog->held = messages;
    backlog->held_bytes = bytes;
    if (!inbox_reader_is_full(backlog))
        pthread_cond_broadcast(&backlog->room);
    pthread_mutex_unlock(&backlog->lock);
}

/* ---- requests ---- */

void inbox_read(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_OPEN_INBOX, shard, owned, out);
    request->inbox = (struct asked_inbox){.from = out->read_inbox.from, .seen = out->read_inbox.seen};
    request_submit(request);
}

void inbox_purge(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_PURGE_INBOX, shard, owned, out);
    request->inbox = (struct asked_inbox){.from = out->purge_inbox.below, .seen = out->purge_inbox.seen};
    request_submit(request);
}

void inbox_read_results(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_READ_RESULTS, shard, owned, out);
    request->inbox = (struct asked_inbox){
        .from = out->read_results.from, .count = out->read_results.count, .seen = out->read_results.seen};
    request_submit(request);
}

static void close_reader(struct shard *shard, const struct owned *owned, struct inbox_reader *reader)
{
    struct request *request = request_create(REQ_CLOSE_INBOX, shard, owned);
    request->inbox.reader = reader;
    request_submit(request);
}

void inbox_close(struct shard *shard, struct owned *owned)
{
    if (owned->reader != NULL)
        close_reader(shard, owned, owned->reader);
    owned->reader = NULL;
    inbox_drop(shard, owned);
}

void inbox_opened(struct owned *owned, struct request *request)
{
    struct inbox_reader *const reader = request->inbox.reader;
    request->inbox.reader = NULL;
    if (request->inbox.gone_back) {
        assert(reader == NULL);
        request_input(owned, request);
    } else if (request_is_current(owned, request)) {
        assert(owned->reader == NULL);
        owned->reader = reader;
    } else {
        close_reader(request->shard, owned, reader);
    }
}

void inbox_purged(struct owned *owned, struct request *request)
{
    if (!request->inbox.gone_back || !request_is_current(owned, request))
        return;
    shard_cause(owned, CLOSED_INBOX);
    shard_step_down(owned, "the inbox went back");
}

/* ---- on a loader's thread ---- */

static const char *inbox_of(const struct request *request)
{
    return shard_owned(request->shard, request->mail.p)->in_stream;
}

/* Checks that the inbox still holds the message that the partition has seen; if not, gone_back, and a
 * warning. */
static thole_status inbox_reader_check(struct engine_host *engine, struct request *request)
{
    struct asked_inbox *const asked = &request->inbox;
    uint64_t last = 0;
    bool holds = true;
    if (asked->seen.sequence == 0)
        return THOLE_OK;
    THOLE_TRY(stream_still_holds(engine->connection, inbox_of(request), asked->seen.sequence,
                                 asked->seen.stored_ns, &holds, &last, request_error(request)));
    asked->gone_back = !holds;
    if (asked->gone_back)
        log_line_of(
            LOG_LEVEL_WARN, "partition", LOG_PARTITION(request->mail.p),
            "stream %s went back: message %llu was read from it and is not there; its last is %llu. It "
            "was recreated, or the server lost what it had acknowledged (power, backup)",
            inbox_of(request), (unsigned long long)asked->seen.sequence, (unsigned long long)last);
    return THOLE_OK;
}

/*
 * First create the reader, then check what the stream holds, then deliver the first message. If the stream
 * goes back after the check, the reader loses its consumer; if before, the check finds it, even if the stream
 * then has more messages than before. So no message of a stream that went back reaches the partition.
 */
thole_status inbox_open_load(struct engine_host *engine, struct request *request)
{
    struct inbox_reader *reader = memory_new(sizeof *reader);
    reader->shard = request->shard;
    reader->p = request->mail.p;
    reader->generation = request->mail.generation;
    reader->next = request->inbox.from;
    struct ordered_reader_options const options = {.stream = inbox_of(request),
                                                   .from = request->inbox.from,
                                                   .each = on_inbox_message,
                                                   .room = inbox_reader_has_room,
                                                   .lost = on_reader_lost,
                                                   .arg = reader,
                                                   .inflow = request->shard->inflow};
    thole_status status =
        ordered_reader_open(request->shard->connection, &options, &reader->ordered, request_error(request));
    if (status != THOLE_OK) {
        free(reader);
        return status;
    }
    status = inbox_reader_check(engine, request);
    if (status != THOLE_OK || request->inbox.gone_back) {
        inbox_reader_close(reader);
        return status;
    }
    let_messages_through(reader);
    request->inbox.reader = reader;
    return THOLE_OK;
}

thole_status inbox_close_load(struct engine_host *engine, struct request *request)
{
    (void)engine;
    inbox_reader_close(request->inbox.reader);
    return THOLE_OK;
}

void inbox_reader_close(struct inbox_reader *reader)
{
    if (reader == NULL)
        return;
    pthread_mutex_lock(&reader->shard->backlog.lock);
    reader->closing = true;
    pthread_cond_broadcast(&reader->shard->backlog.room);
    pthread_mutex_unlock(&reader->shard->backlog.lock);
    ordered_reader_close(reader->ordered);
    holds_mentioned_release(&reader->mentioned);
    free(reader);
}

/* A purge that waited while the inbox was created again must not purge the new one. */
thole_status inbox_purge_load(struct engine_host *engine, struct request *request)
{
    THOLE_TRY(inbox_reader_check(engine, request));
    if (request->inbox.gone_back)
        return THOLE_OK;
    return stream_purge_below(engine->connection, inbox_of(request), request->inbox.from,
                              request_error(request));
}

/* ---- results that wait in the inbox: a loader's thread, too ---- */

struct results {
    struct request *request;
    struct partition_result *items;
    size_t len, cap;
};

static thole_status keep_result(struct results *results, const struct message *message, uint64_t sequence)
{
    struct arena *arena = &results->request->arena;
    if (results->len == results->cap) {
        size_t const cap = results->cap == 0 ? RESULTS_MIN : results->cap * 2;
        struct partition_result *grown = arena_array(arena, cap, sizeof *grown);
        if (grown == NULL)
            return THOLE_NOMEM;
        if (results->len > 0)
            memcpy(grown, results->items, results->len * sizeof *grown);
        results->items = grown;
        results->cap = cap;
    }
    struct partition_result *to = &results->items[results->len++];
    *to = (struct partition_result){.execution = message->execution,
                                    .activity_id = message->task,
                                    .try_number = message->try_number,
                                    .sequence = results->request->inbox.gone_back ? 0 : sequence};
    return arena_dup(arena, message->instance, &to->instance);
}

/* A message that will be rejected is not taken as a result. */
static thole_status collect_result(struct results *results, uint64_t sequence, thole_slice route,
                                   const struct result_item *item)
{
    const struct nonce_key *const key = &results->request->shard->engine->topology.nonce_key;
    struct arena arena;
    struct message message;
    thole_status status = THOLE_OK;
    if (results->len == RESULTS_MAX)
        return THOLE_OK;
    arena_init(&arena, MESSAGE_BYTES_MAX * 2);
    if (message_decode(item->bytes, &arena, &message, NULL) == THOLE_OK &&
        message.kind == MESSAGE_ACTIVITY_RESULT && thole_slice_equal(item->instance, message.instance) &&
        message_route_check(&message, route, NULL) == THOLE_OK &&
        nonce_check(key, &message, message_route_sender(route), NULL) == THOLE_OK)
        status = keep_result(results, &message, sequence);
    arena_release(&arena);
    return status;
}

static thole_status collect_results(struct results *results, uint64_t sequence, thole_slice route,
                                    thole_slice body)
{
    struct result_list list;
    struct result_item item;
    size_t len;
    thole_status status = THOLE_OK;
    if (result_list_read(body, &list, &len, NULL) == THOLE_OK)
        while (status == THOLE_OK && result_list_next(&list, &item))
            status = collect_result(results, sequence, route, &item);
    return status;
}

static thole_status inbox_reader_collect(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    thole_slice const route = subject_inbox_route(subject);
    struct buf id, converted;
    thole_status status = THOLE_OK;
    body = proto_json_inbox_body(body, &converted);
    buf_init(&id, THOLE_ID_BYTES_MAX);
    if (subject_is_results(subject))
        status = collect_results(arg, sequence, route, body);
    else if (subject_token_decode(subject_nth(subject, INBOX_TOKEN_INSTANCE), &id, NULL) == THOLE_OK)
        status = collect_result(arg, sequence, route, &(struct result_item){body, buf_bytes(&id)});
    buf_release(&converted);
    buf_release(&id);
    return status;
}

thole_status results_load(struct engine_host *engine, struct request *request)
{
    const struct asked_inbox *const asked = &request->inbox;
    struct stream_bounds bounds = {0};
    struct results results = {.request = request};
    THOLE_TRY(inbox_reader_check(engine, request));
    THOLE_TRY(stream_bounds(engine->connection, inbox_of(request), &bounds, request_error(request)));
    uint64_t from = asked->from > bounds.first && !asked->gone_back ? asked->from : bounds.first;
    if (bounds.last >= asked->count && from < bounds.last - asked->count + 1)
        from = bounds.last - asked->count + 1;
    thole_status status = THOLE_OK;
    if (bounds.messages > 0 && from <= bounds.last)
        status = stream_read(engine->connection, inbox_of(request), NULL, from, bounds.last,
                             inbox_reader_collect, &results, request_error(request));
    request->in.results = (struct in_results){results.items, results.len};
    return status;
}

/* ---- checking that the reader keeps up ---- */

thole_status inbox_look_load(struct engine_host *engine, struct request *request)
{
    return stream_next(engine->connection, inbox_of(request), request->inbox.from, &request->inbox.found,
                       request_error(request));
}

static bool reads_on(struct inbox_reader *reader, uint64_t sequence, uint64_t *ret_next)
{
    bool const waits = ordered_reader_waits(reader->ordered);
    pthread_mutex_lock(&reader->shard->backlog.lock);
    bool const on = waits || reader->held || reader->next > sequence;
    *ret_next = reader->next;
    pthread_mutex_unlock(&reader->shard->backlog.lock);
    return on;
}

/* A reader that lags is noticed within two checks: half of the option's time. */
static uint64_t look_every_ms(const struct shard *shard)
{
    uint64_t const ms = shard->engine->options.sweep_ms / 4;
    return ms > LOOK_MS_MIN ? ms : LOOK_MS_MIN;
}

static void say_behind(const struct shard *shard, const struct owned *owned)
{
    log_line_of(LOG_LEVEL_WARN, "partition", LOG_PARTITION(owned->p),
                "stream %s has message %llu, and its consumer has not sent it for %llu ms: read anew. Does "
                "each replica keep up? (nats stream info %s)",
                owned->in_stream, (unsigned long long)owned->watch.unread,
                (unsigned long long)look_every_ms(shard), owned->in_stream);
}

void inbox_watch(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    struct inbox_watch *const watch = &owned->watch;
    uint64_t next;
    if (owned->reader == NULL) {
        watch->look_ms = watch->unread = 0;
        return;
    }
    if (watch->look_ms == 0)
        watch->look_ms = now_ms + look_every_ms(shard);
    if (watch->looking || now_ms < watch->look_ms)
        return;
    watch->look_ms = now_ms + look_every_ms(shard);
    if (!reads_on(owned->reader, watch->unread, &next) && watch->unread != 0) {
        say_behind(shard, owned);
        watch->unread = 0;
        shard_step_down(owned, "the inbox reader stays behind");
        return;
    }
    struct request *request = request_create(REQ_LOOK_INBOX, shard, owned);
    request->inbox.from = next;
    watch->looking = true;
    request_submit(request);
}

uint64_t inbox_watch_ms(const struct owned *owned)
{
    return owned->watch.look_ms == 0 || owned->watch.looking ? UINT64_MAX : owned->watch.look_ms;
}

/* A failure is an answer, too: not known. */
void inbox_looked(struct owned *owned, struct request *request)
{
    bool const known = request->status == THOLE_OK && request_is_current(owned, request);
    assert(owned->watch.looking);
    owned->watch.looking = false;
    owned->watch.unread = known ? request->inbox.found : 0;
}
