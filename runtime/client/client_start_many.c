/*
 * Many starts at once: a window of starts that wait for the stream's acknowledgement. The caller's thread
 * fills it, repeats what was not stored and tells the caller; the connection's reading thread only notes what
 * came.
 */
#include "client_internal.h"
#include "memory.h"
#include "message.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    STARTS_MAX = 2048,
    BYTES_MAX = 16 * 1024 * 1024,
    WAKE_AT =
        STARTS_MAX / 4, /* answers, for which the caller's thread is woken; else it looks every WAIT_MS */
    WAIT_MS = 2,
    REPEAT_MS = 250,
};

enum start_state { START_FREE, START_SENT, START_STORED, START_NOT_STORED, START_REFUSED, START_REPEATS };

struct start {
    enum start_state state; /* SENT: under the lock */
    uint64_t token, due_ms, again_ms;
    struct request_id request;
    struct buf instance, subject;
    struct letter letter;
    thole_error error; /* of REFUSED; of NOT_STORED the last reason */
};

struct starts {
    struct thole_client *client;
    struct requests *requests;
    thole_start_source_fn *source;
    thole_start_answer_fn *answer;
    void *arg;
    struct start all[STARTS_MAX];
    size_t free[STARTS_MAX], free_len;
    size_t waiting, bytes; /* starts that are not free, and what they hold */
    size_t repeating;      /* of them: in state REPEATS */
    uint64_t violations;   /* of permissions, before the first was sent */
    bool ended;            /* nothing more is taken from the source */
    thole_status status;   /* why it ended early */
    thole_error error;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t came[STARTS_MAX], came_len; /* under the lock: answered by the stream */
    bool asleep;
};

/* ---- the connection's reading thread ---- */

static void client_start_many_check(struct start *start, const struct request_done *done)
{
    start->state = START_NOT_STORED;
    switch (done->result) {
    case REQUEST_STORED: start->state = START_STORED; break;
    case REQUEST_UNKNOWN:
        (void)thole_fail(&start->error, THOLE_UNAVAILABLE,
                         "the inbox stream did not acknowledge the start in time");
        break;
    case REQUEST_BUSY:
        (void)thole_fail(&start->error, THOLE_UNAVAILABLE, "%s",
                         request_reason(done->result, done->err_code));
        break;
    case REQUEST_ANSWERED:
    case REQUEST_REFUSED:
    case REQUEST_FAILED:
        if (done->err_code != 0)
            start->state = START_REFUSED;
        (void)thole_fail(&start->error, done->err_code == 0 ? THOLE_UNAVAILABLE : THOLE_LIMIT,
                         "the inbox stream refused the start (err_code %" PRIu32 ")", done->err_code);
        break;
    }
}

static void client_start_many_on_done(void *arg, const struct request_done *done)
{
    struct starts *const starts = arg;
    assert(done->token < STARTS_MAX);
    struct start *const start = &starts->all[done->token];
    pthread_mutex_lock(&starts->lock);
    assert(start->state == START_SENT && starts->came_len < STARTS_MAX);
    client_start_many_check(start, done);
    starts->came[starts->came_len++] = (size_t)done->token;
    if (starts->asleep && starts->came_len >= WAKE_AT)
        pthread_cond_signal(&starts->changed);
    pthread_mutex_unlock(&starts->lock);
}

/* ---- the caller's thread ---- */

static size_t client_start_many_bytes_of(const struct start *start)
{
    return start->letter.body.len + start->subject.len + start->instance.len;
}

static void client_start_many_stop(struct starts *starts, thole_status status, const thole_error *error)
{
    starts->ended = true;
    if (starts->status != THOLE_OK)
        return;
    starts->status = status;
    starts->error = *error;
}

/* Tells the caller, and makes room. */
static void client_start_many_answer(struct starts *starts, size_t at, const thole_error *error)
{
    static const thole_error stopped = {.status = THOLE_OK, .text = "the caller has stopped it"};
    struct start *const start = &starts->all[at];
    thole_status const status = starts->answer(starts->arg, start->token, buf_bytes(&start->instance), error);
    if (status != THOLE_OK)
        client_start_many_stop(starts, status, &stopped);
    assert(starts->waiting > 0 && starts->bytes >= client_start_many_bytes_of(start));
    starts->bytes -= client_start_many_bytes_of(start);
    starts->waiting--;
    start->state = START_FREE;
    starts->free[starts->free_len++] = at;
}

/* Of many that NATS forbids only the newest is told of: it is enough that it is a start, too. */
static void client_start_many_give_up(struct starts *starts, size_t at)
{
    struct start *const start = &starts->all[at];
    char inboxes[THOLE_NAME_BYTES_MAX + 16];
    thole_error error = start->error;
    (void)snprintf(inboxes, sizeof inboxes, "thole.%s.in.", starts->client->topology.ns);
    thole_status status = connection_explain_silence(starts->client->connection, starts->violations, inboxes,
                                                     THOLE_UNAVAILABLE, &error);
    status = letter_advise(&start->letter, status, &error);
    client_start_many_stop(starts, status, &error);
    client_start_many_answer(starts, at, &error);
}

/* Not stored, or not known: repeat it, under the same request id. */
static void repeat_later(struct starts *starts, size_t at)
{
    struct start *const start = &starts->all[at];
    uint64_t const now = client_now_ms();
    if (now >= start->due_ms) {
        client_start_many_give_up(starts, at);
        return;
    }
    start->state = START_REPEATS;
    start->again_ms = now + REPEAT_MS;
    starts->repeating++;
}

static void send_start(struct starts *starts, size_t at)
{
    struct start *const start = &starts->all[at];
    thole_error error = {.status = THOLE_OK};
    struct publish const publish = {.subject = buf_cstr(&start->subject),
                                    .body = buf_bytes(&start->letter.body)};
    start->state = START_SENT; /* the answer may come before the call returns */
    thole_status const status = requests_publish(starts->requests, &publish, at, &error);
    if (status == THOLE_OK)
        return;
    start->error = error;
    if (status == THOLE_UNAVAILABLE)
        repeat_later(starts, at);
    else
        client_start_many_answer(starts, at, &error);
}

static thole_status client_start_many_prepare(struct starts *starts, const thole_start_item *given,
                                              struct start *start, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct message message = {.kind = MESSAGE_START,
                              .instance = given->instance,
                              .orchestration = given->orchestration,
                              .data = given->input,
                              .version = given->version};
    THOLE_TRY(client_check_start(starts->client, &message, reterr));
    THOLE_TRY(request_id_make(&start->request, reterr));
    message.request_id = thole_slice_from(start->request.text);
    THOLE_TRY(client_encode(starts->client, &message, &start->letter, reterr));
    thole_status status = place_inbox(starts->client, given->instance, &start->letter, &place, reterr);
    if (status == THOLE_OK)
        buf_slice(&start->subject, buf_bytes(&place.subject));
    place_release(&place);
    return status;
}

/* An invalid start is answered with as much of its id as fits. */
static void client_start_many_take(struct starts *starts, const thole_start_item *given)
{
    size_t const at = starts->free[--starts->free_len];
    struct start *const start = &starts->all[at];
    thole_error error = {.status = THOLE_OK};
    size_t const id_len = given->instance.len < THOLE_ID_BYTES_MAX ? given->instance.len : THOLE_ID_BYTES_MAX;
    start->token = given->token;
    start->due_ms = client_now_ms() + starts->client->timeout_ms;
    buf_clear(&start->instance);
    buf_clear(&start->subject);
    buf_clear(&start->letter.body);
    buf_slice(&start->instance, (thole_slice){given->instance.ptr, id_len});
    thole_status const status = client_start_many_prepare(starts, given, start, &error);
    starts->waiting++;
    starts->bytes += client_start_many_bytes_of(start);
    if (status == THOLE_OK)
        send_start(starts, at);
    else
        client_start_many_answer(starts, at, &error);
}

static void client_start_many_fill(struct starts *starts)
{
    while (!starts->ended && starts->free_len > 0 && (starts->bytes < BYTES_MAX || starts->waiting == 0)) {
        thole_start_item given = {.size = sizeof given};
        thole_error error = {.status = THOLE_OK};
        thole_status const status = starts->source(starts->arg, &given, &error);
        if (status == THOLE_OK)
            client_start_many_take(starts, &given);
        else if (status == THOLE_NOT_FOUND)
            starts->ended = true;
        else
            client_start_many_stop(starts, status, &error);
    }
}

static void client_start_many_settle(struct starts *starts, size_t at)
{
    static const thole_error stored = {.status = THOLE_OK};
    struct start *const start = &starts->all[at];
    thole_error const error = start->error;
    if (start->state == START_STORED)
        client_start_many_answer(starts, at, &stored);
    else if (start->state == START_REFUSED)
        client_start_many_answer(starts, at, &error);
    else
        repeat_later(starts, at);
}

/* Answers that came, or a moment later. */
static void settle_what_came(struct starts *starts)
{
    static const long NANOS = 1000000;
    size_t came[STARTS_MAX], len;
    uint64_t const until_ms = client_now_ms() + WAIT_MS;
    struct timespec const until = {.tv_sec = (time_t)(until_ms / 1000),
                                   .tv_nsec = (long)(until_ms % 1000) * NANOS};
    pthread_mutex_lock(&starts->lock);
    starts->asleep = true;
    if (starts->came_len < WAKE_AT && starts->waiting > 0)
        (void)pthread_cond_timedwait(&starts->changed, &starts->lock, &until);
    starts->asleep = false;
    len = starts->came_len;
    memcpy(came, starts->came, len * sizeof *came);
    starts->came_len = 0;
    pthread_mutex_unlock(&starts->lock);
    for (size_t i = 0; i < len; i++)
        client_start_many_settle(starts, came[i]);
}

static void client_start_many_repeat(struct starts *starts)
{
    uint64_t const now = client_now_ms();
    for (size_t at = 0; starts->repeating > 0 && at < STARTS_MAX; at++) {
        struct start *const start = &starts->all[at];
        pthread_mutex_lock(&starts->lock);
        bool const due = start->state == START_REPEATS && now >= start->again_ms;
        pthread_mutex_unlock(&starts->lock);
        if (due) {
            starts->repeating--;
            send_start(starts, at);
        }
    }
}

static bool client_start_many_init(struct starts *starts)
{
    pthread_condattr_t monotonic;
    for (size_t at = 0; at < STARTS_MAX; at++) {
        starts->free[starts->free_len++] = STARTS_MAX - 1 - at;
        buf_init(&starts->all[at].instance, THOLE_ID_BYTES_MAX);
        buf_init(&starts->all[at].subject, SUBJECT_BYTES_MAX);
        buf_init(&starts->all[at].letter.body, MESSAGE_BYTES_MAX);
    }
    return pthread_condattr_init(&monotonic) == 0 &&
           pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
           pthread_cond_init(&starts->changed, &monotonic) == 0 &&
           pthread_condattr_destroy(&monotonic) == 0 && pthread_mutex_init(&starts->lock, NULL) == 0;
}

static void client_start_many_release(struct starts *starts)
{
    for (size_t at = 0; at < STARTS_MAX; at++) {
        buf_release(&starts->all[at].instance);
        buf_release(&starts->all[at].subject);
        buf_release(&starts->all[at].letter.body);
    }
    pthread_cond_destroy(&starts->changed);
    pthread_mutex_destroy(&starts->lock);
    free(starts);
}

static void client_start_many_run(struct starts *starts)
{
    uint64_t repeat_ms = 0;
    for (;;) {
        client_start_many_fill(starts);
        if (starts->waiting == 0 && starts->ended)
            return;
        settle_what_came(starts);
        if (client_now_ms() >= repeat_ms) {
            client_start_many_repeat(starts);
            repeat_ms = client_now_ms() + REPEAT_MS / 5;
        }
    }
}

thole_status thole_client_start_many(thole_client *client, thole_start_source_fn *source,
                                     thole_start_answer_fn *answer_fn, void *arg, thole_error *reterr)
{
    struct starts *const starts = memory_new(sizeof *starts);
    starts->client = client;
    starts->source = source;
    starts->answer = answer_fn;
    starts->arg = arg;
    bool const ready = client_start_many_init(starts);
    assert(ready);
    char ignored[1];
    starts->violations = connection_violations(client->connection, ignored, sizeof ignored);
    thole_status status = requests_open(client->connection, STARTS_MAX, client->timeout_ms,
                                        client_start_many_on_done, starts, &starts->requests, reterr);
    if (status == THOLE_OK) {
        client_start_many_run(starts);
        status = starts->status;
        if (status != THOLE_OK)
            (void)thole_fail(reterr, status, "%s", starts->error.text);
    }
    requests_close(starts->requests);
    client_start_many_release(starts);
    return status;
}
