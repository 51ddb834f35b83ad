#include "watch.h"
#include "client_task.h"
#include "locked.h"
#include "message.h"
#include "notice.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RETRY_PAUSE_MS = 250 };

/* ---- sleeping ---- */

static uint64_t watch_earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Gives client.lock back meanwhile. */
static void watch_wait_until(struct watch *watch, uint64_t until_ms)
{
    struct timespec const until = {.tv_sec = (time_t)(until_ms / 1000),
                                   .tv_nsec = (long)(until_ms % 1000) * 1000000};
    if (watch->task == NULL) {
        (void)pthread_cond_timedwait(&watch->changed, &watch->client->lock, &until);
        return;
    }
    pthread_mutex_unlock(&watch->client->lock);
    client_task_sleep(watch->task, until_ms);
    pthread_mutex_lock(&watch->client->lock);
}

bool watch_sleep(struct watch *watch, watch_predicate *holds, uint64_t until_ms)
{
    pthread_mutex_lock(&watch->client->lock);
    assert(watch->holds == NULL); /* one thread waits */
    bool held = holds(watch);
    watch->holds = holds;
    while (!held && client_now_ms() < until_ms) {
        watch_wait_until(watch, until_ms);
        held = holds(watch);
    }
    watch->holds = NULL;
    pthread_mutex_unlock(&watch->client->lock);
    return held;
}

/* After a change, under client.lock. Most of what arrives is not what the caller waits for: it is left
 * asleep. */
static void watch_wake(struct watch *watch)
{
    assert(is_locked(&watch->client->lock));
    if (watch->holds == NULL || !watch->holds(watch))
        return;
    if (watch->task != NULL)
        client_task_wake(watch->task);
    else
        pthread_cond_signal(&watch->changed);
}

static bool has_reconnected(const struct watch *watch)
{
    return watch->reconnected;
}

void watch_pause(struct watch *watch, uint64_t until_ms)
{
    (void)watch_sleep(watch, has_reconnected, watch_earlier(until_ms, client_now_ms() + RETRY_PAUSE_MS));
    pthread_mutex_lock(&watch->client->lock);
    watch->reconnected = false;
    pthread_mutex_unlock(&watch->client->lock);
}

/* ---- callbacks on the connection's reading thread ---- */

static bool watch_is_end(const char *kind)
{
    return strcmp(kind, "completed") == 0 || strcmp(kind, "failed") == 0 || strcmp(kind, "cancelled") == 0 ||
           strcmp(kind, "terminated") == 0;
}

static bool is_deletion(const char *kind)
{
    return strcmp(kind, "deleted") == 0;
}

/* Under client.lock. */
static void watch_note(struct watch *watch, const struct event_notice *notice)
{
    bool const own = watch->request.len > 0 && thole_slice_equal(notice->request_id, watch->request);
    if (watch_is_end(notice->kind)) {
        watch->ended = notice->execution;
        if (strcmp(notice->kind, "completed") == 0 && notice->execution == watch->execution &&
            notice->execution > 0) {
            buf_clear(&watch->result);
            buf_slice(&watch->result, notice->data);
            watch->completed = buf_status(&watch->result) == THOLE_OK;
        }
    } else if (own) {
        if (strcmp(notice->kind, "started") == 0) {
            watch->accepted = true;
            watch->execution = notice->execution;
        }
        watch->accepted = watch->accepted || is_deletion(notice->kind);
        watch->rejected = watch->rejected || strcmp(notice->kind, "rejected") == 0;
        if (notice->code.len > 0)
            (void)thole_fail(&watch->refusal, THOLE_LIMIT, "%.*s (%.*s)", THOLE_FMT(notice->data),
                             THOLE_FMT(notice->code));
    }
    if (!watch->completed && (watch_is_end(notice->kind) || is_deletion(notice->kind)))
        watch->end_heard = true;
    watch_wake(watch);
}

/* False: one is in flight, or its answer has not been taken. */
static bool send_look(struct watch *watch)
{
    struct thole_client *client = watch->client;
    thole_error error = {.status = THOLE_OK};
    pthread_mutex_lock(&client->lock);
    bool const mine = watch->look == LOOK_NONE;
    if (mine) {
        watch->look = LOOK_UNDER_WAY;
        watch->look_wanted = false;
    }
    pthread_mutex_unlock(&client->lock);
    if (!mine || requests_send(client->requests, watch->api_subject, buf_bytes(&watch->api_body),
                               watch->token, &error) == THOLE_OK)
        return mine;
    pthread_mutex_lock(&client->lock);
    assert(watch->look == LOOK_UNDER_WAY); /* a message that was not sent gets no answer */
    watch->look = LOOK_FAILED;
    watch->look_error = error;
    watch_wake(watch);
    pthread_mutex_unlock(&client->lock);
    return true;
}

/* Sends the look for an end from here, so that the caller's thread wakes up to its answer. Takes and returns
 * client.lock. */
static void look_for_end(struct thole_client *client, struct watch *watch)
{
    watch->end_heard = false;
    watch->pins++;
    pthread_mutex_unlock(&client->lock);
    bool const sent = send_look(watch);
    pthread_mutex_lock(&client->lock);
    if (!sent) {
        watch->look_wanted = true;
        watch_wake(watch);
    }
    if (--watch->pins == 0)
        pthread_cond_broadcast(&watch->changed); /* watch_close() may wait for it */
}

static void notify_all(struct thole_client *client, thole_slice name, const struct event_notice *notice)
{
    pthread_mutex_lock(&client->lock);
    for (struct watch *watch = watch_table_named(&client->watches, name); watch != NULL;
         watch = watch_table_next_named(watch))
        watch_note(watch, notice);
    for (struct watch *watch = watch_table_named(&client->watches, name); watch != NULL;) {
        struct watch *const next = watch_table_next_named(watch);
        bool const looks = watch->end_heard;
        if (looks)
            look_for_end(client, watch);
        /* While the lock was away the others may have changed. */
        watch = looks ? watch_table_named(&client->watches, name) : next;
    }
    pthread_mutex_unlock(&client->lock);
}

bool watches_on_notice(struct thole_client *client, const struct delivery *delivery)
{
    enum { TOKEN_INSTANCE = 4 };
    thole_slice const name = subject_nth(delivery->subject, TOKEN_INSTANCE);
    struct event_notice notice;
    struct arena arena;
    pthread_mutex_lock(&client->lock);
    bool const watched = watch_table_named(&client->watches, name) != NULL;
    pthread_mutex_unlock(&client->lock);
    if (!watched)
        return false;
    arena_init(&arena, CLIENT_ARENA_MAX);
    if (event_notice_parse(delivery, &arena, &notice, NULL) == THOLE_OK)
        notify_all(client, name, &notice);
    arena_release(&arena);
    return true;
}

void watches_on_state(void *arg, bool connected, uint64_t epoch)
{
    struct thole_client *client = arg;
    (void)epoch;
    pthread_mutex_lock(&client->lock);
    for (struct watch *watch = client->watches.first; connected && watch != NULL; watch = watch->next) {
        watch->reconnected = true;
        watch->execution = 0;
        watch->look_wanted = true; /* a notice may have been missed */
        watch_wake(watch);
    }
    pthread_mutex_unlock(&client->lock);
}

#define NO_ANSWER "no answer to %s in time; is JetStream running?"

static void watch_take_answer(struct watch *watch, const struct request_done *done)
{
    thole_status status;
    assert(watch->look == LOOK_UNDER_WAY);
    buf_clear(&watch->look_body);
    if (done->result == REQUEST_ANSWERED)
        status = place_status(
            stream_get_answer(done->body, &watch->look_sequence, &watch->look_body, &watch->look_error),
            strrchr(watch->api_subject, '.') + 1, &watch->look_error);
    else
        status = thole_fail(&watch->look_error, THOLE_UNAVAILABLE, NO_ANSWER, watch->api_subject);
    watch->look = status == THOLE_OK ? LOOK_ANSWERED : LOOK_FAILED;
    assert(watch->look != LOOK_ANSWERED || watch->look_sequence > 0 || watch->look_body.len == 0);
}

#define NOT_ACKNOWLEDGED "the inbox stream did not acknowledge the message in time"

static void take_acknowledgement(struct watch *watch, const struct request_done *done)
{
    thole_error *error = &watch->publish_error;
    assert(!watch->stored && !watch->not_stored); /* one publish at a time, and one answer to each */
    watch->stored = done->result == REQUEST_STORED;
    watch->not_stored = !watch->stored;
    watch->twin = done->duplicate ? done->sequence : 0;
    switch (done->result) {
    case REQUEST_STORED: break;
    case REQUEST_UNKNOWN: (void)thole_fail(error, THOLE_UNAVAILABLE, NOT_ACKNOWLEDGED); break;
    case REQUEST_BUSY:
        (void)thole_fail(error, THOLE_UNAVAILABLE, "%s", request_reason(done->result, done->err_code));
        break;
    case REQUEST_ANSWERED:
    case REQUEST_REFUSED:
    case REQUEST_FAILED:
        (void)thole_fail(error,
                         done->err_code == 0 || done->err_code == REQUEST_UNDER_WAY ? THOLE_UNAVAILABLE
                                                                                    : THOLE_LIMIT,
                         "the inbox stream refused the message (err_code %" PRIu32 "): %.*s", done->err_code,
                         (int)watch_earlier(done->body.len, 200), (const char *)done->body.ptr);
        break;
    }
}

void watches_on_done(void *arg, const struct request_done *done)
{
    struct thole_client *client = arg;
    pthread_mutex_lock(&client->lock);
    assert(done->token > 0 && done->token <= client->tokens + 1);
    struct watch *const watch = watch_table_answer(&client->watches, done->token);
    if (watch != NULL) {
        if (watch->token == done->token)
            watch_take_answer(watch, done);
        else
            take_acknowledgement(watch, done);
        watch_wake(watch);
    }
    pthread_mutex_unlock(&client->lock);
}

/* ---- looking ---- */

void watch_look(struct watch *watch)
{
    (void)send_look(watch);
}

void watch_expect(struct watch *watch, uint64_t execution)
{
    pthread_mutex_lock(&watch->client->lock);
    watch->execution = execution;
    pthread_mutex_unlock(&watch->client->lock);
}

bool watch_is_worth_waking(const struct watch *watch)
{
    return watch->look == LOOK_ANSWERED || watch->look == LOOK_FAILED || watch->look_wanted ||
           watch->rejected || watch->completed;
}

static bool look_is_done(const struct watch *watch)
{
    return watch->look != LOOK_UNDER_WAY;
}

/* Copies the answer out, so that the next look may arrive. False: the look failed. */
static bool watch_take_body(struct watch *watch, struct arena *arena, uint64_t *ret_sequence,
                            thole_slice *ret_body, thole_error *reterr)
{
    struct thole_client *client = watch->client;
    pthread_mutex_lock(&client->lock);
    bool taken = watch->look == LOOK_ANSWERED;
    assert(taken || watch->look == LOOK_FAILED);
    *ret_sequence = taken ? watch->look_sequence : 0;
    if (taken && arena_dup(arena, buf_bytes(&watch->look_body), ret_body) != THOLE_OK) {
        taken = false;
        (void)thole_fail(&watch->look_error, THOLE_NOMEM, "out of memory for a history record");
    }
    if (!taken && reterr != NULL)
        *reterr = watch->look_error;
    watch->look = LOOK_NONE;
    pthread_mutex_unlock(&client->lock);
    return taken;
}

/* If the record is void, another one may follow that is not known yet. */
static thole_status watch_take_deletion(struct watch *watch, const struct record *record,
                                        uint64_t *ret_sequence, thole_error *reterr)
{
    struct log_rule owner;
    THOLE_TRY(owner_read(watch->client, watch->instance, &owner, reterr));
    if (!log_rule_surely_void(&owner, record, *ret_sequence))
        *ret_sequence = 0;
    return THOLE_OK;
}

thole_status watch_take_look(struct watch *watch, uint64_t until_ms, struct arena *arena,
                             uint64_t *ret_sequence, struct record *ret_record, thole_error *reterr)
{
    thole_error error = {.status = THOLE_OK};
    for (;;) {
        thole_slice body = {NULL, 0};
        (void)send_look(watch);
        if (!watch_sleep(watch, look_is_done, until_ms))
            return error.status != THOLE_OK
                       ? thole_fail(reterr, error.status, "%s", error.text) /* the error of the last look */
                       : thole_fail(reterr, THOLE_UNAVAILABLE, NO_ANSWER, watch->api_subject);
        if (watch_take_body(watch, arena, ret_sequence, &body, &error)) {
            memset(ret_record, 0, sizeof *ret_record);
            if (*ret_sequence == 0)
                return THOLE_OK;
            THOLE_TRY(history_decode(body, watch->instance, arena, ret_record, reterr));
            if (ret_record->kind == RECORD_DELETED)
                return watch_take_deletion(watch, ret_record, ret_sequence, reterr);
            if (ret_record->turn.execution == 0)
                *ret_sequence = 0;
            return THOLE_OK;
        }
        if (error.status != THOLE_UNAVAILABLE || client_now_ms() >= until_ms)
            return thole_fail(reterr, error.status, "%s", error.text);
        watch_pause(watch, until_ms);
    }
}

bool watch_is_decided(const struct watch *watch)
{
    return watch->accepted || watch->rejected;
}

thole_status watch_refusal(struct watch *watch, thole_error *reterr)
{
    pthread_mutex_lock(&watch->client->lock);
    thole_error const refusal = watch->refusal;
    pthread_mutex_unlock(&watch->client->lock);
    if (refusal.status == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, refusal.status, "the engine has rejected it: %s", refusal.text);
}

/* ---- publishing ---- */

static bool publish_is_done(const struct watch *watch)
{
    return watch->stored || watch->not_stored || watch->accepted || watch->rejected;
}

static bool publish_is_stored(const struct watch *watch)
{
    return watch->stored || watch->accepted || watch->rejected;
}

static bool publish_failed_or_end(const struct watch *watch)
{
    return watch->not_stored || watch_is_worth_waking(watch);
}

static void mark_not_stored(struct watch *watch, const thole_error *why)
{
    pthread_mutex_lock(&watch->client->lock);
    assert(!watch->stored); /* nothing is published twice that is known to be stored */
    watch->not_stored = why != NULL;
    if (why != NULL)
        watch->publish_error = *why;
    pthread_mutex_unlock(&watch->client->lock);
}

/* Without a message id, but for publish_once(): on three replicas a server may answer "duplicate" for a
 * message that it has lost. What the body means is what makes it one request. */
static thole_status watch_send_once(struct watch *watch, const char *subject, thole_slice body,
                                    thole_error *reterr)
{
    thole_error error = {.status = THOLE_OK};
    struct publish const publish = {.subject = subject, .body = body, .message_id = watch->message_id};
    mark_not_stored(watch, NULL);
    thole_status const status = requests_publish(watch->client->requests, &publish, watch->token + 1, &error);
    if (status == THOLE_OK)
        return THOLE_OK;
    if (status != THOLE_UNAVAILABLE && status != THOLE_LIMIT)
        return thole_fail(reterr, status, "%s", error.text);
    error.status = THOLE_UNAVAILABLE; /* sizes were checked before, so that LIMIT is a full window */
    mark_not_stored(watch, &error);
    return THOLE_OK;
}

/* Until it is stored, or not; a call that waits for the end continues to sleep, and reads the stream after @p
 * pause_ms. */
static bool sleep_until_stored(struct watch *watch, bool whole, uint64_t pause_ms, uint64_t until_ms)
{
    if (whole)
        (void)watch_sleep(watch, publish_failed_or_end, watch_earlier(until_ms, client_now_ms() + pause_ms));
    return watch_sleep(watch, publish_is_done, until_ms);
}

static thole_status publish_to(struct watch *watch, const char *subject, thole_slice body, bool whole,
                               uint64_t until_ms, uint64_t pause_ms, thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK}; /* of the last one that was not stored */
    for (;;) {
        bool const says_more = why.status != THOLE_OK && strcmp(why.text, NOT_ACKNOWLEDGED) != 0;
        THOLE_TRY(watch_send_once(watch, subject, body, reterr));
        if (!sleep_until_stored(watch, whole, pause_ms, until_ms))
            return thole_fail(reterr, THOLE_UNAVAILABLE,
                              "%s was not acknowledged in time%s%.240s; repeating it is safe", subject,
                              says_more ? ": " : "", says_more ? why.text : "");
        if (watch_sleep(watch, publish_is_stored, 0))
            return THOLE_OK;
        pthread_mutex_lock(&watch->client->lock);
        why = watch->publish_error;
        pthread_mutex_unlock(&watch->client->lock);
        if (why.status != THOLE_UNAVAILABLE || client_now_ms() >= until_ms)
            return thole_fail(reterr, why.status, "%s: %.300s", subject, why.text);
        watch_pause(watch, until_ms);
    }
}

/* The server reports a forbidden publish to the connection alone, and nothing acknowledges it. */
static thole_status publish_allowed(struct watch *watch, const char *subject, thole_slice body, bool whole,
                                    uint64_t until_ms, uint64_t pause_ms, thole_error *reterr)
{
    char ignored[1];
    struct connection *const connection = watch->client->connection;
    uint64_t const violations = connection_violations(connection, ignored, sizeof ignored);
    thole_status const status = publish_to(watch, subject, body, whole, until_ms, pause_ms, reterr);
    return connection_explain_silence(connection, violations, subject, status, reterr);
}

static thole_status watch_publish_letter(struct watch *watch, const struct letter *letter, bool whole,
                                         uint64_t until_ms, uint64_t pause_ms, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    thole_status status = place_inbox(watch->client, watch->instance, letter, &place, reterr);
    if (status == THOLE_OK)
        status = publish_allowed(watch, buf_cstr(&place.subject), buf_bytes(&letter->body), whole, until_ms,
                                 pause_ms, reterr);
    place_release(&place);
    return letter_advise(letter, status, reterr);
}

thole_status watch_publish(struct watch *watch, const struct letter *letter, uint64_t until_ms,
                           thole_error *reterr)
{
    return watch_publish_letter(watch, letter, false, until_ms, 0, reterr);
}

uint64_t watch_take_twin(struct watch *watch)
{
    pthread_mutex_lock(&watch->client->lock);
    uint64_t const twin = watch->stored ? watch->twin : 0;
    watch->twin = 0;
    watch->stored = watch->stored && twin == 0;
    pthread_mutex_unlock(&watch->client->lock);
    return twin;
}

thole_status watch_publish_and_wait(struct watch *watch, const struct letter *letter, uint64_t until_ms,
                                    uint64_t pause_ms, thole_error *reterr)
{
    return watch_publish_letter(watch, letter, true, until_ms, pause_ms, reterr);
}
