/* The flow of requests: to their executors, waiting for room, retries, answers. */
#include "loader.h"
#include "lookout.h"
#include "remover.h"
#include "shard_request.h"
#include "store.h"
#include <assert.h>

enum {
    ASIDE_MAX = 64, /* low-priority requests in flight */
    BUSY_RETRY_MS = 100,
    SEND_RETRY_MS = 500,
    REFUSED_SAID_MS = 10000,
    LOADS_BYTES_MAX = 16 * 1024 * 1024, /* of histories that are being loaded */
};

/* ---- windows ---- */

static void request_flow_reply(struct request *request, const struct request_done *done)
{
    request->reply = (struct request_reply){
        .result = done->result, .sequence = done->sequence, .err_code = done->err_code, .lost = done->lost};
    if (done->result == REQUEST_ANSWERED)
        request->reply.body = request_keep(request, done->body);
    if (done->result == REQUEST_ANSWERED && done->subject.len > 0)
        request->reply.subject = request_keep(request, done->subject);
    request->status =
        done->result == REQUEST_STORED || done->result == REQUEST_ANSWERED ? THOLE_OK : THOLE_UNAVAILABLE;
    request_finish(request);
}

void request_on_reply(void *arg, const struct request_done *done)
{
    struct request *const request = (struct request *)(uintptr_t)done->token;
    assert(request != NULL && request->shard == arg && request_rule(request)->executor == EXECUTOR_WINDOW);
    request_flow_reply(request, done);
}

/* False: there is no room, it waits. A request that cannot be sent is answered like a lost one, but never
 * within the call. */
static bool send_now(struct request *request)
{
    struct window *const window = request_window(request);
    thole_error err = {0};
    if (window->waits && request_is_stale(request)) {
        request_destroy(request); /* the partition asks again after it is opened */
        return true;
    }
    thole_status const status = request_rule(request)->send(request, &err);
    if (status == THOLE_OK)
        return true; /* the window owns it now */
    if (status == THOLE_LIMIT && window->waits && requests_in_flight(window->requests) > 0) {
        request_list_append(&window->waiting, request);
        return false;
    }
    if (status != THOLE_UNAVAILABLE)
        log_limits_line(request->shard->engine->lines, clock_monotonic_ms(), LINE_NOT_SENT,
                        LOG_PARTITION(request->mail.p), "cannot send: %s", err.text);
    request_flow_reply(
        request, &(struct request_done){.result = REQUEST_UNKNOWN, .lost = status == THOLE_UNAVAILABLE});
    return true;
}

static void send_aside(struct window *window)
{
    while (window->aside.first != NULL && window->waiting.first == NULL && window->aside_out < ASIDE_MAX) {
        struct request *const request = request_list_take(&window->aside);
        request->aside = true;
        window->aside_out++;
        (void)send_now(request);
    }
}

static void send_waiting(struct window *window)
{
    while (window->waiting.first != NULL && requests_in_flight(window->requests) < window->limit)
        if (!send_now(request_list_take(&window->waiting)))
            break;
    send_aside(window);
}

/* ---- submitting ---- */

void request_submit(struct request *request)
{
    assert(!request->again && request->due_ms == 0 && request->status == THOLE_OK);
    switch (request_rule(request)->executor) {
    case EXECUTOR_LOADER: loader_submit(request->shard->engine->loader, request); break;
    case EXECUTOR_CLEANER: loader_submit(request->shard->engine->cleaner, request); break;
    case EXECUTOR_REMOVER: remover_submit(request->shard->engine->remover, request); break;
    case EXECUTOR_STORE: store_submit(request->shard->store, request); break;
    case EXECUTOR_WINDOW:
        if (request_window(request)->waiting.first == NULL)
            (void)send_now(request);
        else if (request->loads) /* a load keeps its part until it has the whole */
            request_list_prepend(&request_window(request)->waiting, request);
        else
            request_list_append(&request_window(request)->waiting, request);
        break;
    }
}

void request_put_aside(struct request *request)
{
    assert(request_window(request)->waits);
    request_list_append(&request_window(request)->aside, request);
    send_aside(request_window(request));
}

/* One that is larger than all may be goes alone. */
static bool request_flow_has_room(const struct loads *loads, size_t bytes)
{
    return loads->bytes == 0 || (loads->bytes <= LOADS_BYTES_MAX && bytes <= LOADS_BYTES_MAX - loads->bytes);
}

bool request_load_fits(const struct shard *shard, size_t bytes)
{
    return shard->loads.waiting.first == NULL && request_flow_has_room(&shard->loads, bytes);
}

static void begin_loads(struct shard *shard)
{
    struct loads *const loads = &shard->loads;
    while (loads->waiting.first != NULL && request_flow_has_room(loads, loads->waiting.first->load_bytes)) {
        struct request *const request = request_list_take(&loads->waiting);
        loads->bytes += request->load_bytes;
        request->loads = true;
        if (request_is_stale(request))
            request_destroy(request); /* the partition asks again after it is opened */
        else
            request_submit(request);
    }
}

void request_load(struct request *request, size_t bytes)
{
    request->load_bytes = bytes;
    request_list_append(&request->shard->loads.waiting, request);
    begin_loads(request->shard);
}

void request_again(struct request *request, uint64_t pause_ms)
{
    assert(!request->again && request->due_ms == 0);
    request->again = true;
    request->due_ms = pause_ms == 0 ? 0 : clock_monotonic_ms() + pause_ms;
}

static void request_flow_delay(struct request *request)
{
    struct shard *const shard = request->shard;
    assert(request->due_ms != 0 && !request->aside);
    if (shard->delayed == NULL || request->due_ms < shard->delayed_ms)
        shard->delayed_ms = request->due_ms;
    request->next = shard->delayed;
    shard->delayed = request;
}

/* Requests that are due are queued: there may be thousands. */
static void take_due(struct shard *shard, uint64_t now_ms)
{
    struct request *all = shard->delayed;
    if (all == NULL || now_ms < shard->delayed_ms)
        return;
    shard->delayed = NULL;
    for (struct request *next; all != NULL; all = next) {
        next = all->next;
        if (now_ms < all->due_ms) {
            request_flow_delay(all);
            continue;
        }
        all->due_ms = 0;
        if (request_is_stale(all))
            request_destroy(all);
        else if (request_rule(all)->executor == EXECUTOR_WINDOW)
            request_list_append(&request_window(all)->waiting, all);
        else
            request_submit(all);
    }
}

uint64_t requests_run(struct shard *shard, uint64_t now_ms)
{
    take_due(shard, now_ms);
    for (size_t i = 0; i < WINDOWS; i++)
        send_waiting(&shard->windows[i]);
    begin_loads(shard); /* last, as stale loads may have gone */
    return shard->delayed != NULL ? shard->delayed_ms : UINT64_MAX;
}

/* ---- answers ---- */

void request_input(struct owned *owned, struct request *request)
{
    shard_input(owned, &request->in);
}

/* A stream that is full or read-only: refused requests are retried until it accepts them. */
static void say_refused(const struct request *request)
{
    struct shard *const shard = request->shard;
    uint64_t const now = clock_monotonic_ms();
    if (shard->refused_ms != 0 && now < shard->refused_ms + REFUSED_SAID_MS)
        return;
    shard->refused_ms = now;
    request_rule(request)->refused(request);
}

static void send_again(struct request *request)
{
    if (request->reply.result == REQUEST_FAILED || request_is_full(request->reply.err_code))
        say_refused(request);
    request_again(request, request->reply.result == REQUEST_BUSY ? BUSY_RETRY_MS : SEND_RETRY_MS);
}

static const char *failure_text(const struct request *request)
{
    const char *const text = request_error_text(request);
    return text[0] != '\0' ? text : request_rule(request)->failed;
}

static bool is_sure(const struct request *request)
{
    return request->reply.result == REQUEST_BUSY || request->reply.result == REQUEST_FAILED;
}

static enum closed_cause request_flow_cause_of(const struct request *request)
{
    if (request->cause != CLOSED_OTHER)
        return request->cause;
    if (request_rule(request)->executor == EXECUTOR_STORE)
        return request->status == THOLE_CONFLICT ? CLOSED_ROWS_RESTORED : CLOSED_POSTGRES_REQUEST;
    if (request->reply.lost)
        return CLOSED_NATS_LOST;
    return request_is_full(request->reply.err_code) ? CLOSED_STORAGE_FULL : CLOSED_NATS_REQUEST;
}

static void request_flow_failed(struct owned *owned, struct request *request)
{
    bool const current = request_is_current(owned, request);
    enum request_failure const means = request_rule(request)->failure;
    assert(request->status != THOLE_OK && means != FAILURE_ANSWER);
    if (!request->reply.lost)
        lookout_hurry(request->shard->engine->lookout);
    if (means == FAILURE_DROP)
        log_line_of(LOG_LEVEL_DEBUG, "partition", LOG_PARTITION(owned->p), "not done: %s",
                    failure_text(request));
    else if (!current)
        return; /* the partition asks again after it is opened */
    else if (means == FAILURE_AGAIN || (means == FAILURE_AGAIN_WHEN_SURE && is_sure(request)))
        send_again(request);
    else {
        shard_cause(owned, request_flow_cause_of(request));
        shard_step_down(owned, request->reply.lost ? NATS_LOST_TEXT : failure_text(request));
    }
}

void request_answered(struct request *request)
{
    const struct request_rule *const rule = request_rule(request);
    struct owned *const owned = shard_owned(request->shard, request->mail.p);
    assert(request->mail.kind == SHARD_ANSWER && !request->again);
    request_leave_aside(request);
    shard_count_request(request);
    if (request->status != THOLE_OK && rule->failure != FAILURE_ANSWER)
        request_flow_failed(owned, request);
    else if (rule->answer != NULL)
        rule->answer(owned, request);
    if (!request->again) {
        request_destroy(request);
        return;
    }
    request->again = false;
    request->status = THOLE_OK;
    if (request->err != NULL)
        *request->err = (thole_error){0};
    if (request->due_ms == 0)
        request_submit(request);
    else
        request_flow_delay(request);
}

/* ---- the end ---- */

static void request_flow_forget(struct request *first)
{
    for (struct request *next; first != NULL; first = next) {
        next = first->next;
        request_destroy(first);
    }
}

void requests_forget(struct shard *shard)
{
    for (size_t i = 0; i < WINDOWS; i++) {
        request_flow_forget(shard->windows[i].waiting.first);
        request_flow_forget(shard->windows[i].aside.first);
    }
    request_flow_forget(shard->loads.waiting.first);
    request_flow_forget(shard->delayed);
}
