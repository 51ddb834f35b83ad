/* Functions for handlers, and the token. */
#include "activity_run.h"
#include "buf.h"
#include "clock.h"
#include "dying.h"
#include "memory.h"
#include "process_frame.h"
#include "subject.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- from delivery to return ---- */

/* <instance as in subjects>.<execution>.<activity id> */
static void activity_make_key(struct thole_activity *act)
{
    const struct work_item *const item = &act->message->item;
    struct buf token;
    buf_init(&token, ACTIVITY_KEY_BYTES);
    thole_status const status = subject_token(&token, item->instance, NULL);
    assert(status == THOLE_OK); /* read from a valid subject */
    (void)status;
    int const len = snprintf(act->key_bytes, sizeof act->key_bytes, "%s.%" PRIu64 ".%" PRIu64,
                             buf_cstr(&token), item->execution, item->activity_id);
    assert(len > 0 && (size_t)len < sizeof act->key_bytes);
    act->key = (thole_slice){(const uint8_t *)act->key_bytes, (size_t)len};
    buf_release(&token);
}

struct thole_activity *activity_create(struct work_message *message, uint64_t now_ms)
{
    struct thole_activity *const act = memory_new(sizeof *act);
    act->message = message;
    act->delivered = (struct worker_mail){.kind = WORKER_MAIL_DELIVERED, .owner = act};
    act->finished = (struct worker_mail){.kind = WORKER_MAIL_FINISHED, .owner = act};
    act->published = (struct worker_mail){.kind = WORKER_MAIL_PUBLISHED, .owner = act};
    act->arrived_ms = now_ms;
    act->deadline_ms = UINT64_MAX;
    act->token = &act->own_token;
    token_init(act->token);
    act->fd = -1;
    act->talk = -1;
    buf_init(&act->noted, DETAILS_BYTES_MAX);
    activity_make_key(act);
    (void)pthread_mutex_init(&act->lock, NULL);
    arena_init(&act->memory, ACTIVITY_MEMORY_MAX);
    return act;
}

void activity_destroy(struct thole_activity *act)
{
    if (act == NULL)
        return;
    assert(act->reach == NULL); /* no process runs it */
    work_message_destroy(act->message);
    arena_release(&act->memory);
    buf_release(&act->noted);
    if (act->fd >= 0)
        (void)close(act->fd);
    (void)pthread_mutex_destroy(&act->lock);
    free(act);
}

thole_status activity_begin(struct thole_activity *act, uint64_t attempt, uint64_t deadline_ms,
                            thole_slice details, const struct activity_parties *parties)
{
    struct arena *const memory = &act->memory;
    assert(!act->running);
    act->attempt = attempt;
    act->deadline_ms = deadline_ms;
    act->parties = (struct activity_parties){.version = parties->version};
    bool const kept = arena_dup(memory, details, &act->before) == THOLE_OK &&
                      arena_dup(memory, parties->orchestration, &act->parties.orchestration) == THOLE_OK &&
                      arena_dup(memory, parties->worker, &act->parties.worker) == THOLE_OK;
    return kept ? THOLE_OK : THOLE_NOMEM;
}

void activity_run(struct thole_activity *act)
{
    assert(act->run != NULL);
    act->output = (thole_slice){0};
    dying_runs(act->pool == NULL ? act : NULL);
    act->status = act->run(act, act->message->item.input, &act->output);
    dying_runs(NULL);
    if (act->status == THOLE_LATER && act->quick)
        act->status = thole_activity_fail_final(
            act, THOLE_STR("quick"), "an activity that is declared quick cannot be completed later");
    else if (act->status == THOLE_LATER && !act->later)
        act->status = thole_activity_fail(act, "the handler returned LATER without thole_activity_later()");
}

/* Under the lock. */
static void raise_fd(const struct thole_activity *act)
{
    uint64_t const one = 1;
    if (act->fd >= 0 && write(act->fd, &one, sizeof one) < 0)
        assert(errno == EAGAIN); /* readable already */
}

void activity_fire(struct thole_activity *act, const struct activity_cancel *cancel)
{
    (void)pthread_mutex_lock(&act->lock);
    if (!token_fired(act->token)) {
        token_fire(act->token, cancel);
        raise_fd(act);
        if (act->reach != NULL)
            process_reach_fire(act->reach, cancel);
    }
    (void)pthread_mutex_unlock(&act->lock);
}

void activity_hurry(struct thole_activity *act, uint64_t grace_end_ms)
{
    (void)pthread_mutex_lock(&act->lock);
    atomic_store(&act->token->grace_end_ms, grace_end_ms);
    if (act->reach != NULL)
        process_reach_hurry(act->reach, grace_end_ms);
    (void)pthread_mutex_unlock(&act->lock);
}

/* ---- the handler's result ---- */

static bool is_known_status(thole_status status)
{
    return strcmp(thole_status_name(status), "UNKNOWN") != 0;
}

static void timeout_result(struct message *ret)
{
    ret->status = THOLE_TIMEOUT;
    ret->data = ret->error_type = THOLE_STR("timeout");
}

static void poison_result(const struct thole_activity *act, char text[ACTIVITY_RESULT_TEXT_BYTES],
                          struct message *ret)
{
    (void)snprintf(text, ACTIVITY_RESULT_TEXT_BYTES,
                   "%" PRIu32 " workers that ran it were lost, %s the last: %s", act->lost, act->lost_worker,
                   act->lost_report[0] != '\0' ? act->lost_report : "its lease ran out without a report");
    ret->status = THOLE_APP;
    ret->data = thole_slice_from(text);
    ret->error_type = POISON_TYPE;
    ret->details = act->before;
    ret->lost = act->lost;
    ret->lost_worker = thole_slice_from(act->lost_worker);
    ret->queue = act->message->item.queue;
    ret->input = act->message->item.input;
}

void activity_result(const struct thole_activity *act, size_t payload_max,
                     char text[ACTIVITY_RESULT_TEXT_BYTES], struct message *ret)
{
    if (act->timed_out) {
        timeout_result(ret);
        return;
    }
    if (act->poisoned) {
        poison_result(act, text, ret);
        return;
    }
    thole_status status = act->status;
    thole_slice data = act->failure;
    if (status == THOLE_OK) {
        data = act->output.ptr != NULL ? act->output : (thole_slice){0};
        if (data.len > payload_max) {
            (void)snprintf(text, ACTIVITY_RESULT_TEXT_BYTES,
                           "the output has %zu bytes; at most %zu are allowed", data.len, payload_max);
            status = THOLE_LIMIT;
            data = thole_slice_from(text);
        }
    } else if (!is_known_status(status)) {
        (void)snprintf(text, ACTIVITY_RESULT_TEXT_BYTES, "the handler returned %d, which is not a status",
                       (int)status);
        status = THOLE_APP;
        data = thole_slice_from(text);
    } else if (status == THOLE_CANCELLED) { /* a result that counts was not cancelled */
        status = THOLE_APP;
        if (data.len == 0)
            data = THOLE_STR("the handler returned CANCELLED, but nothing had cancelled it");
    } else if (data.len == 0) {
        data = thole_slice_from(thole_status_text(status));
    }
    if (data.len > payload_max)
        data.len = payload_max;
    ret->status = (uint32_t)status;
    ret->data = data;
    if (status == THOLE_OK)
        return;
    ret->error_type = act->failure_type;
    ret->final = act->final;
    ret->details = act->noted_count > 0 ? buf_bytes(&act->noted) : act->before;
}

bool activity_details_since(struct thole_activity *act, uint64_t *count, struct buf *to)
{
    (void)pthread_mutex_lock(&act->lock);
    bool const newer = act->noted_count > *count;
    if (newer)
        buf_slice(to, buf_bytes(&act->noted));
    *count = act->noted_count;
    (void)pthread_mutex_unlock(&act->lock);
    return newer;
}

/* ---- include/thole/activity.h ---- */

bool thole_activity_cancelled(const thole_activity *act)
{
    return token_fired(act->token);
}

thole_status thole_activity_wait(thole_activity *act, uint64_t wait_ms)
{
    if (act->time != NULL)
        return act->time->wait(act->time_arg, wait_ms);
    uint64_t const now_ms = clock_monotonic_ms();
    token_wait(act->token, wait_ms < UINT64_MAX - now_ms ? now_ms + wait_ms : UINT64_MAX);
    return thole_activity_cancelled(act) ? THOLE_CANCELLED : THOLE_OK;
}

thole_cancel_kind thole_activity_cancel_kind(const thole_activity *act)
{
    return thole_activity_cancelled(act) ? (thole_cancel_kind)act->token->kind : THOLE_CANCEL_NONE;
}

thole_slice thole_activity_cancel_reason(const thole_activity *act)
{
    if (!thole_activity_cancelled(act))
        return (thole_slice){0};
    return (thole_slice){(const uint8_t *)act->token->reason, act->token->reason_len};
}

thole_slice thole_activity_instance(const thole_activity *act)
{
    return act->message->item.instance;
}

thole_slice thole_activity_orchestration(const thole_activity *act)
{
    return act->parties.orchestration;
}

uint32_t thole_activity_version(const thole_activity *act)
{
    return act->parties.version;
}

thole_slice thole_activity_worker(const thole_activity *act)
{
    return act->parties.worker;
}

void *thole_activity_arg(const thole_activity *act)
{
    return act->arg;
}

thole_slice thole_activity_name(const thole_activity *act)
{
    return act->message->item.activity;
}

thole_slice thole_activity_key(const thole_activity *act)
{
    return act->key;
}

uint64_t thole_activity_execution(const thole_activity *act)
{
    return act->message->item.execution;
}

uint64_t thole_activity_id(const thole_activity *act)
{
    return act->message->item.activity_id;
}

uint32_t thole_activity_try(const thole_activity *act)
{
    uint64_t const number = act->message->item.try_number;
    return number == 0 ? 1 : number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

thole_slice thole_activity_queue(const thole_activity *act)
{
    return act->message->item.queue;
}

thole_slice thole_activity_traceparent(const thole_activity *act)
{
    return act->message->item.trace.parent;
}

thole_slice thole_activity_tracestate(const thole_activity *act)
{
    return act->message->item.trace.list;
}

/* Milliseconds from now until a time of the activity's clock. */
static uint64_t left_ms(const struct thole_activity *act, uint64_t end_ms)
{
    if (end_ms == UINT64_MAX)
        return UINT64_MAX;
    uint64_t const now_ms = act->time != NULL ? act->time->now_ms(act->time_arg) : clock_monotonic_ms();
    return end_ms > now_ms ? end_ms - now_ms : 0;
}

uint64_t thole_activity_time_left_ms(const thole_activity *act)
{
    return left_ms(act, act->deadline_ms);
}

uint64_t thole_activity_grace_left_ms(const thole_activity *act)
{
    return left_ms(act, atomic_load(&act->token->grace_end_ms));
}

int thole_activity_cancel_fd(thole_activity *act)
{
    (void)pthread_mutex_lock(&act->lock);
    if (act->fd < 0) {
        act->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (token_fired(act->token))
            raise_fd(act);
    }
    int const fd = act->fd;
    (void)pthread_mutex_unlock(&act->lock);
    return fd;
}

thole_status thole_activity_heartbeat(thole_activity *act, thole_slice details)
{
    if (details.len > DETAILS_BYTES_MAX)
        return THOLE_LIMIT;
    struct buf noted;
    buf_init(&noted, DETAILS_BYTES_MAX);
    buf_slice(&noted, details);
    if (buf_status(&noted) != THOLE_OK) {
        buf_release(&noted);
        return THOLE_NOMEM;
    }
    (void)pthread_mutex_lock(&act->lock);
    buf_release(&act->noted);
    act->noted = noted;
    act->noted_count++;
    bool const heard = act->talk < 0 || frame_send(act->talk, FRAME_NOTED, buf_bytes(&act->noted));
    (void)pthread_mutex_unlock(&act->lock);
    return thole_activity_cancelled(act) || !heard ? THOLE_CANCELLED : THOLE_OK;
}

thole_slice thole_activity_details(const thole_activity *act)
{
    return act->before;
}

thole_status thole_activity_later(thole_activity *act, thole_slice *ret_token)
{
    const struct work_item *const item = &act->message->item;
    struct buf instance;
    buf_init(&instance, ACTIVITY_KEY_BYTES);
    thole_status const status = subject_token(&instance, item->instance, NULL);
    *ret_token = thole_activity_format(act, "%" PRIu32 ".%" PRIu64 ".%" PRIu64 ".%" PRIu32 ".%.*s.%s",
                                       act->partition, item->execution, item->activity_id,
                                       thole_activity_try(act), THOLE_FMT(item->nonce), buf_cstr(&instance));
    buf_release(&instance);
    act->later = true;
    return status != THOLE_OK ? status : ret_token->len > 0 ? THOLE_LATER : THOLE_NOMEM;
}

uint32_t thole_activity_attempt(const thole_activity *act)
{
    return act->attempt < UINT32_MAX ? (uint32_t)act->attempt : UINT32_MAX;
}

void *thole_activity_alloc(thole_activity *act, size_t bytes)
{
    (void)pthread_mutex_lock(&act->lock);
    void *const memory = arena_alloc(&act->memory, bytes);
    (void)pthread_mutex_unlock(&act->lock);
    return memory;
}

/* Formatted text of at most @p max bytes; what is longer is cut. */
static thole_slice activity_format(thole_activity *act, size_t max, const char *fmt, va_list args)
    THOLE_PRINTF(3, 0);
static thole_slice activity_format(thole_activity *act, size_t max, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    thole_slice text = {0};
    int const len = vsnprintf(NULL, 0, fmt, args);
    size_t const kept = len < 0 ? 0 : (size_t)len < max ? (size_t)len : max;
    char *const bytes = len < 0 ? NULL : thole_activity_alloc(act, kept + 1);
    if (bytes != NULL) {
        (void)vsnprintf(bytes, kept + 1, fmt, again);
        text = (thole_slice){(const uint8_t *)bytes, kept};
    }
    va_end(again);
    return text;
}

thole_slice thole_activity_format(thole_activity *act, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    thole_slice const text = activity_format(act, ACTIVITY_MEMORY_MAX, fmt, args);
    va_end(args);
    return text;
}

/* An invalid type is left empty: the text says what happened. */
static thole_status activity_fail(thole_activity *act, thole_slice type, bool final, const char *fmt,
                                  va_list args) THOLE_PRINTF(4, 0);
static thole_status activity_fail(thole_activity *act, thole_slice type, bool final, const char *fmt,
                                  va_list args)
{
    thole_slice const text = activity_format(act, ACTIVITY_FAILURE_BYTES_MAX, fmt, args);
    thole_slice kept = {0};
    (void)pthread_mutex_lock(&act->lock);
    if (error_type_check(type, NULL) == THOLE_OK && arena_dup(&act->memory, type, &kept) != THOLE_OK)
        kept = (thole_slice){0};
    act->failure = text;
    act->failure_type = kept;
    act->final = final;
    (void)pthread_mutex_unlock(&act->lock);
    return THOLE_APP;
}

thole_status thole_activity_fail(thole_activity *act, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    thole_status const status = activity_fail(act, (thole_slice){0}, false, fmt, args);
    va_end(args);
    return status;
}

thole_status thole_activity_fail_as(thole_activity *act, thole_slice type, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    thole_status const status = activity_fail(act, type, false, fmt, args);
    va_end(args);
    return status;
}

thole_status thole_activity_fail_final(thole_activity *act, thole_slice type, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    thole_status const status = activity_fail(act, type, true, fmt, args);
    va_end(args);
    return status;
}
