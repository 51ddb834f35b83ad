#include "roll_call.h"
#include "header_names.h"
#include "jscan.h"
#include "link.h"
#include "locked.h"
#include "message.h"
#include "subject.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    NUMBER_BYTES = 24,
    WORKER_NAME_BYTES_MAX = 2 * THOLE_NAME_BYTES_MAX, /* a node's name and what makes it unique */
};

thole_status roll_call_subject(struct buf *to, const char *ns, thole_error *reterr)
{
    buf_clear(to);
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    buf_printf(to, "thole.%s.workers", ns);
    return buf_status(to);
}

/* ---- answering ---- */

thole_status roll_call_answer(struct connection *connection, const struct delivery *question,
                              const struct roll_answer *answer, thole_error *reterr)
{
    char reply[SUBJECT_BYTES_MAX], slots[NUMBER_BYTES];
    struct buf names;
    if (!subject_is_reply(question->reply))
        return THOLE_OK; /* no reply subject, or one that is not an inbox */
    memcpy(reply, question->reply.ptr, question->reply.len); /* shorter, as subject_is_reply() has seen */
    reply[question->reply.len] = '\0';
    buf_init(&names, ROLL_CALL_ACTIVITIES_MAX * (THOLE_NAME_BYTES_MAX + 1));
    for (size_t i = 0; i < answer->activities_len; i++)
        buf_printf(&names, i == 0 ? "%.*s" : ",%.*s", THOLE_FMT(answer->activities[i]));
    (void)snprintf(slots, sizeof slots, "%llu", (unsigned long long)answer->slots);
    struct header const headers[] = {{HEADER_WORKER, answer->worker},
                                     {HEADER_QUEUE, answer->queue},
                                     {HEADER_SLOTS, thole_slice_from(slots)}};
    thole_status status = buf_status(&names);
    if (status == THOLE_OK)
        status = connection_publish(connection, reply, headers, sizeof headers / sizeof headers[0],
                                    buf_bytes(&names), reterr);
    buf_release(&names);
    return status;
}

static thole_status no_room(thole_error *reterr)
{
    return thole_fail(reterr, THOLE_LIMIT, "a worker's answer does not fit into the arena");
}

static thole_status parse_names(thole_slice text, struct arena *arena, struct roll_answer *ret,
                                thole_error *reterr)
{
    thole_slice kept;
    size_t count = text.len > 0 ? 1 : 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == ',';
    if (count > ROLL_CALL_ACTIVITIES_MAX)
        return thole_fail(reterr, THOLE_CORRUPT, "a worker names %zu activities", count);
    thole_slice *names = arena_array(arena, count + 1, sizeof *names);
    if (names == NULL || arena_dup(arena, text, &kept) != THOLE_OK)
        return no_room(reterr);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *comma = memchr(kept.ptr, ',', kept.len);
        names[i] = (thole_slice){kept.ptr, comma == NULL ? kept.len : (size_t)(comma - kept.ptr)};
        if (name_check(names[i], "activity", reterr) != THOLE_OK)
            return THOLE_CORRUPT;
        kept.ptr += names[i].len + (comma != NULL);
        kept.len -= names[i].len + (comma != NULL);
    }
    assert(kept.len == 0); /* exactly as many names as separated by commas */
    ret->activities = names;
    ret->activities_len = count;
    return THOLE_OK;
}

thole_status roll_answer_parse(const struct delivery *delivery, struct arena *arena, struct roll_answer *ret,
                               thole_error *reterr)
{
    struct roll_answer answer = {.slots = 0};
    thole_slice const worker = delivery_header(delivery, HEADER_WORKER),
                      queue = delivery_header(delivery, HEADER_QUEUE),
                      slots = delivery_header(delivery, HEADER_SLOTS);
    if (worker.len == 0 || worker.len > WORKER_NAME_BYTES_MAX || !json_uint(slots, &answer.slots) ||
        name_check(queue, "queue", reterr) != THOLE_OK)
        return thole_fail(reterr, THOLE_CORRUPT, "a worker's answer without its name, queue or slots");
    for (size_t i = 0; i < worker.len; i++)
        if (worker.ptr[i] <= ' ' || worker.ptr[i] >= 0x7f)
            return thole_fail(reterr, THOLE_CORRUPT, "a worker's name with byte 0x%02x", worker.ptr[i]);
    THOLE_TRY(parse_names(delivery->body, arena, &answer, reterr));
    if (arena_dup(arena, worker, &answer.worker) != THOLE_OK ||
        arena_dup(arena, queue, &answer.queue) != THOLE_OK)
        return no_room(reterr);
    *ret = answer;
    return THOLE_OK;
}

/* ---- asking ---- */

struct heard {
    struct roll_answer answer;
    struct heard *next;
};

struct calling {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct arena *arena;
    struct heard *heard; /* in the arena */
    size_t len;
    bool nobody;
    thole_status status; /* of what could not be kept */
};

/* Under the lock. */
static void roll_call_keep(struct calling *calling, const struct delivery *delivery)
{
    assert(is_locked(&calling->lock));
    if (delivery->no_responders) {
        calling->nobody = true;
        return;
    }
    struct roll_answer answer;
    struct heard *heard = NULL;
    thole_status status = roll_answer_parse(delivery, calling->arena, &answer, NULL);
    if (status == THOLE_CORRUPT)
        return; /* a name is missing */
    if (status == THOLE_OK && (heard = arena_alloc(calling->arena, sizeof *heard)) == NULL)
        status = arena_status(calling->arena);
    if (status != THOLE_OK) {
        calling->status = status;
        return;
    }
    *heard = (struct heard){.answer = answer, .next = calling->heard};
    calling->heard = heard;
    calling->len++;
}

static void roll_call_on_answer(void *arg, const struct delivery *delivery)
{
    struct calling *calling = arg;
    pthread_mutex_lock(&calling->lock);
    roll_call_keep(calling, delivery);
    pthread_cond_signal(&calling->changed);
    pthread_mutex_unlock(&calling->lock);
}

static thole_status call_out(struct connection *connection, const char *subject, const char *inbox,
                             thole_error *reterr)
{
    natsMsg *message;
    bool sent;
    THOLE_TRY(link_message(subject, inbox, NULL, 0, (thole_slice){NULL, 0}, &message, reterr));
    struct link *link = link_acquire(connection);
    thole_status const status =
        link == NULL ? thole_fail(reterr, THOLE_UNAVAILABLE, "asking the workers: not connected to NATS")
                     : link_send(link, message, &sent, reterr);
    link_release(link);
    link_message_free(message);
    return status;
}

static struct timespec clock_at(uint64_t ms)
{
    return (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * NANOS_PER_MS};
}

static void roll_call_listen(struct calling *calling)
{
    uint64_t until = link_now_ms() + ROLL_CALL_SILENCE_MS;
    size_t heard = 0;
    pthread_mutex_lock(&calling->lock);
    while (!calling->nobody && calling->status == THOLE_OK) {
        struct timespec const at = clock_at(until);
        if (calling->len > heard) {
            heard = calling->len;
            until = link_now_ms() + ROLL_CALL_QUIET_MS;
        } else if (pthread_cond_timedwait(&calling->changed, &calling->lock, &at) != 0) {
            break;
        }
    }
    pthread_mutex_unlock(&calling->lock);
}

static int roll_call_compare(thole_slice a, thole_slice b)
{
    int const order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_queue(const void *a, const void *b)
{
    const struct roll_answer *x = a, *y = b;
    int const order = roll_call_compare(x->queue, y->queue);
    return order != 0 ? order : roll_call_compare(x->worker, y->worker);
}

static thole_status roll_call_take(struct calling *calling, struct roll_answer **ret, size_t *ret_len,
                                   thole_error *reterr)
{
    if (calling->status != THOLE_OK)
        return thole_fail(reterr, calling->status, "no memory for what the workers answer");
    *ret = arena_array(calling->arena, calling->len + 1, sizeof **ret);
    if (*ret == NULL)
        return no_room(reterr);
    size_t len = 0;
    for (const struct heard *heard = calling->heard; heard != NULL; heard = heard->next)
        (*ret)[len++] = heard->answer;
    assert(len == calling->len);
    qsort(*ret, len, sizeof **ret, by_queue);
    *ret_len = len;
    return THOLE_OK;
}

/* A question that the server forbids is not answered; it only sends an error to the connection. */
static thole_status explain_silence(struct connection *connection, uint64_t violations, const char *subject,
                                    const struct calling *calling, thole_error *reterr)
{
    char text[256];
    if (calling->len > 0 || calling->nobody ||
        connection_violations(connection, text, sizeof text) == violations || strstr(text, subject) == NULL)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_DENIED, "the NATS server forbids it: %s", text);
}

thole_status roll_call(struct connection *connection, const char *ns, struct arena *arena,
                       struct roll_answer **ret, size_t *ret_len, thole_error *reterr)
{
    struct calling calling = {.arena = arena};
    struct subscription *subscription = NULL;
    pthread_condattr_t monotonic;
    char inbox[LINK_INBOX_BYTES], ignored[8];
    struct buf subject;
    uint64_t const violations = connection_violations(connection, ignored, sizeof ignored);
    connection_inbox(connection, inbox);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    pthread_mutex_init(&calling.lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    int const failed = pthread_cond_init(&calling.changed, &monotonic);
    assert(failed == 0);
    (void)failed;
    (void)pthread_condattr_destroy(&monotonic);
    thole_status status = roll_call_subject(&subject, ns, reterr);
    if (status == THOLE_OK)
        status =
            connection_subscribe(connection, inbox, roll_call_on_answer, &calling, &subscription, reterr);
    if (status == THOLE_OK)
        status = call_out(connection, buf_cstr(&subject), inbox, reterr);
    if (status == THOLE_OK)
        roll_call_listen(&calling);
    subscription_close(subscription); /* no answer comes any more */
    if (status == THOLE_OK)
        status = explain_silence(connection, violations, buf_cstr(&subject), &calling, reterr);
    if (status == THOLE_OK)
        status = roll_call_take(&calling, ret, ret_len, reterr);
    pthread_cond_destroy(&calling.changed);
    pthread_mutex_destroy(&calling.lock);
    buf_release(&subject);
    return status;
}
