#include "remover.h"
#include "clock.h"
#include "jscan.h"
#include "memory.h"
#include "pace.h"
#include "reader.h"
#include "record_head.h"
#include "removing.h"
#include "shard_request.h"
#include "subject.h"
#include "subject_list.h"
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IN_FLIGHT_MAX = 64,  /* requests to the server, of all removals, while one of them is urgent */
    IN_FLIGHT_FREE = 16, /* while nobody waits longer for it */
    IN_FLIGHT_PACED = 4, /* while others wait longer for their answers */
    JOBS_MAX = 64,       /* removals under way; others wait */
    ANSWER_TIMEOUT_MS = 10000,
    REQUEST_BYTES_MAX = 4096,
    API_BYTES = STREAM_NAME_BYTES_MAX + 32,
    MICROS = 1000 * 1000,
    NANOS_OF_MICRO = 1000,
};

struct job { /* a removal */
    struct job *next;
    struct request *request;
    struct removing *removing;
    struct buf prefix; /* of its subjects: all but the execution */
    uint64_t offset;   /* of the list's next page */
    size_t out;        /* requests in flight */
    thole_status status;
};

struct flight {      /* a request to the server, and its answer */
    struct job *job; /* NULL: free */
    struct removing_ask ask;
    enum request_result result;
    struct removing_record record;
    thole_slice body; /* allocated; of LIST and DELETE */
};

struct remover {
    struct engine_host *engine;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* Under the lock. */
    struct request_list waiting;
    uint32_t answered[IN_FLIGHT_MAX]; /* flights */
    size_t answered_len;
    bool stopping;
    /* The thread's; a flight belongs to the connection's thread until it is answered. */
    struct requests *window;
    struct flight flights[IN_FLIGHT_MAX];
    size_t flights_len; /* in use */
    struct job *jobs;
    size_t jobs_len, urgent_len;
    struct buf subject, body;
    struct pace pace;
    uint64_t burst_us; /* when it began; monotonic, 0: there is none */
    uint64_t rests_us; /* until then; monotonic, 0: it does not */
    /* Waits of others: written by shards. */
    atomic_bool removes;
    atomic_uint_least64_t alone_us;            /* while nothing is removed, in the mean */
    atomic_uint_least64_t beside_n, beside_us; /* beside this burst */
};

/* ---- pace ---- */

void remover_hear_wait(struct remover *remover, uint64_t us)
{
    if (remover == NULL)
        return;
    uint64_t const alone_us = atomic_load_explicit(&remover->alone_us, memory_order_relaxed);
    if (!atomic_load_explicit(&remover->removes, memory_order_relaxed)) {
        atomic_store_explicit(&remover->alone_us, pace_mean_us(alone_us, us), memory_order_relaxed);
        return;
    }
    uint64_t const most_us = PACE_OUTLIER * alone_us;
    atomic_fetch_add_explicit(&remover->beside_us, us < most_us ? us : most_us, memory_order_relaxed);
    atomic_fetch_add_explicit(&remover->beside_n, 1, memory_order_relaxed);
}

static void burst_begin(struct remover *remover, uint64_t now_us)
{
    remover->burst_us = now_us;
    remover->rests_us = 0;
}

/* After a burst: it rests, or goes on. */
static void burst_end(struct remover *remover, uint64_t now_us)
{
    uint64_t const us = atomic_exchange(&remover->beside_us, 0), n = atomic_exchange(&remover->beside_n, 0);
    pace_judge(&remover->pace, n, us, atomic_load(&remover->alone_us));
    uint64_t const rest_us = pace_rest_us(&remover->pace, now_us - remover->burst_us);
    burst_begin(remover, now_us);
    if (rest_us > 0)
        remover->rests_us = now_us + rest_us;
}

/* Whether requests may be sent now. */
static bool burst_goes(struct remover *remover)
{
    uint64_t const now_us = clock_monotonic_us();
    remover->pace.urgent = remover->urgent_len > 0;
    bool const rested = remover->rests_us != 0 && (remover->pace.urgent || now_us >= remover->rests_us);
    if (remover->burst_us == 0 || rested)
        burst_begin(remover, now_us);
    else if (remover->rests_us == 0 && now_us >= remover->burst_us + PACE_BURST_US)
        burst_end(remover, now_us);
    return remover->rests_us == 0;
}

/* ---- subjects ---- */

static_assert(REMOVING_DELETIONS == EXECUTION_DELETED, "subject_history() takes it for an execution");

static bool execution_of_subject(const struct job *job, thole_slice subject, uint64_t *ret)
{
    thole_slice const prefix = buf_bytes(&job->prefix);
    if (subject.len <= prefix.len || memcmp(subject.ptr, prefix.ptr, prefix.len) != 0)
        return false;
    thole_slice const last = {subject.ptr + prefix.len, subject.len - prefix.len};
    if (!thole_slice_equal(last, THOLE_STR(SUBJECT_DELETED)))
        return json_uint(last, ret) && *ret < EXECUTION_DELETED;
    *ret = REMOVING_DELETIONS;
    return true;
}

static const char *remover_stream(const struct job *job)
{
    return shard_owned(job->request->shard, job->request->mail.p)->hist_stream;
}

static thole_status remover_subject(struct remover *remover, const struct job *job, uint64_t execution)
{
    return subject_history(&remover->subject, remover->engine->topology.ns, job->request->mail.p,
                           job->request->removal.instance, execution, request_error(job->request));
}

/* ---- answers: the connection's thread ---- */

static void record_read(struct flight *flight, const struct request_done *done)
{
    struct record_head head;
    uint64_t execution = 0;
    if (done->sequence == 0)
        return;
    if (flight->ask.kind == REMOVING_AT && done->sequence != flight->ask.sequence)
        return; /* not what was asked for: nothing is known */
    flight->record.sequence = done->sequence;
    flight->record.of_instance = execution_of_subject(flight->job, done->subject, &execution);
    flight->record.execution = execution;
    flight->record.before = record_head_read(done->body, &head) ? head.before.sequence : 0;
}

static void remover_on_done(void *arg, const struct request_done *done)
{
    struct remover *const remover = arg;
    struct flight *const flight = &remover->flights[done->token];
    assert(done->token < IN_FLIGHT_MAX && flight->job != NULL);
    flight->result = done->result;
    flight->record = (struct removing_record){.sequence = 0};
    if (flight->ask.kind != REMOVING_LIST && flight->ask.kind != REMOVING_DELETE)
        record_read(flight, done);
    else if (done->result == REQUEST_ANSWERED && done->body.len > 0)
        flight->body = (thole_slice){memory_copy(done->body.ptr, done->body.len), done->body.len};
    pthread_mutex_lock(&remover->lock);
    assert(remover->answered_len < IN_FLIGHT_MAX);
    remover->answered[remover->answered_len++] = (uint32_t)done->token;
    pthread_cond_signal(&remover->wake);
    pthread_mutex_unlock(&remover->lock);
}

/* ---- answers: the remover's thread ---- */

static void note_count(void *arg, thole_slice subject, uint64_t messages)
{
    struct job *const job = arg;
    uint64_t execution;
    if (execution_of_subject(job, subject, &execution))
        removing_item(job->removing, execution, messages);
}

/* Takes a list of subjects. The record that asks for the removal, or a later deletion, is stored: an empty
 * list is invalid. */
static thole_status remover_take_list(struct job *job, thole_slice body)
{
    uint64_t here = 0, total = 0;
    thole_error *const err = request_error(job->request);
    THOLE_TRY(stream_counts_answer(body, job->request->removal.below, note_count, job, &here, &total, err));
    bool const whole = job->offset == 0;
    job->offset += here;
    if (total == 0 || here == 0)
        return thole_fail(err, THOLE_UNAVAILABLE, "the server does not list the records that are there");
    if (job->offset < total)
        return THOLE_OK; /* the next page */
    removing_listed(job->removing, whole && here == total);
    job->offset = 0;
    return THOLE_OK;
}

static thole_status take_deleted(struct job *job, const struct flight *flight)
{
    bool was_there = false;
    THOLE_TRY(
        stream_delete_answer(flight->body, remover_stream(job), &was_there, request_error(job->request)));
    removing_deleted(job->removing, flight->ask.n, was_there);
    return THOLE_OK;
}

static thole_status remover_take_answer(struct job *job, const struct flight *flight)
{
    if (flight->result != REQUEST_ANSWERED)
        return thole_fail(request_error(job->request), THOLE_UNAVAILABLE,
                          "nats-server did not answer in time");
    switch (flight->ask.kind) {
    case REMOVING_LIST: return remover_take_list(job, flight->body);
    case REMOVING_DELETE: return take_deleted(job, flight);
    case REMOVING_LAST:
    case REMOVING_FIRST:
    case REMOVING_AT: removing_found(job->removing, flight->ask.unit, &flight->record); return THOLE_OK;
    case REMOVING_SCAN: break;
    }
    assert(false);
    return THOLE_INVALID;
}

static void remover_land(struct remover *remover, struct flight *flight)
{
    struct job *const job = flight->job;
    assert(job != NULL && job->out > 0 && remover->flights_len > 0);
    if (job->status == THOLE_OK)
        job->status = remover_take_answer(job, flight);
    job->out--;
    free((void *)(uintptr_t)flight->body.ptr);
    *flight = (struct flight){.job = NULL};
    remover->flights_len--;
}

/* ---- requests ---- */

static thole_status send_get(struct remover *remover, const struct job *job, const struct removing_ask *ask,
                             uint64_t token)
{
    char api[API_BYTES];
    thole_status status = THOLE_OK;
    (void)snprintf(api, sizeof api, "$JS.API.DIRECT.GET.%s", remover_stream(job));
    if (ask->kind == REMOVING_AT)
        status = stream_sequence_request(&remover->body, ask->sequence);
    else
        THOLE_TRY(remover_subject(remover, job, ask->execution));
    if (ask->kind == REMOVING_LAST)
        status = stream_get_request(&remover->body, buf_cstr(&remover->subject));
    if (ask->kind == REMOVING_FIRST)
        status = stream_first_request(&remover->body, buf_cstr(&remover->subject));
    THOLE_TRY(status);
    return requests_get(remover->window, api, buf_bytes(&remover->body), token, request_error(job->request));
}

static thole_status send_list(struct remover *remover, const struct job *job, uint64_t token)
{
    char api[API_BYTES];
    (void)snprintf(api, sizeof api, "$JS.API.STREAM.INFO.%s", remover_stream(job));
    THOLE_TRY(remover_subject(remover, job, EXECUTIONS_ALL));
    THOLE_TRY(stream_counts_request(&remover->body, buf_cstr(&remover->subject), job->offset));
    return requests_send(remover->window, api, buf_bytes(&remover->body), token, request_error(job->request));
}

/* Over one connection: as a rule the answer to the last one comes after all were carried out. What was not is
 * listed again. */
static thole_status remover_send_deletes(struct remover *remover, const struct job *job,
                                         const struct removing_ask *ask, uint64_t token)
{
    thole_error *const err = request_error(job->request);
    assert(ask->n > 0 && ask->n <= REMOVING_GROUP);
    for (size_t i = 0; i + 1 < ask->n; i++)
        THOLE_TRY(
            stream_delete_tell(remover->engine->connection, remover_stream(job), ask->sequences[i], err));
    return stream_delete_send(remover->window, remover_stream(job), ask->sequences[ask->n - 1], token, err);
}

static void send_ask(struct remover *remover, struct job *job, const struct removing_ask *ask)
{
    uint64_t token = 0;
    while (remover->flights[token].job != NULL)
        token++;
    assert(token < IN_FLIGHT_MAX);
    remover->flights[token] = (struct flight){.job = job, .ask = *ask};
    remover->flights_len++;
    job->out++;
    if (ask->kind == REMOVING_LIST)
        job->status = send_list(remover, job, token);
    else if (ask->kind == REMOVING_DELETE)
        job->status = remover_send_deletes(remover, job, ask, token);
    else
        job->status = send_get(remover, job, ask, token);
    if (job->status == THOLE_OK)
        return;
    remover->flights[token] = (struct flight){.job = NULL}; /* no answer will come */
    remover->flights_len--;
    job->out--;
}

/* ---- a scan ---- */

struct scan {
    struct job *job;
    const struct removing_ask *ask;
};

static thole_status on_scanned(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    const struct scan *const scan = arg;
    uint64_t execution;
    (void)body;
    if (!execution_of_subject(scan->job, subject, &execution) || execution != scan->ask->execution)
        return THOLE_OK;
    return removing_met(scan->job->removing, scan->ask->unit, sequence) ? THOLE_OK : THOLE_CANCELLED;
}

static void scan_records(struct remover *remover, struct job *job, const struct removing_ask *ask)
{
    struct scan scan = {job, ask};
    thole_error *const err = request_error(job->request);
    thole_status status = remover_subject(remover, job, ask->execution);
    if (status == THOLE_OK)
        status = stream_read(remover->engine->connection, remover_stream(job), buf_cstr(&remover->subject), 1,
                             ask->sequence, on_scanned, &scan, err);
    if (status == THOLE_OK || status == THOLE_CANCELLED)
        removing_scanned(job->removing, ask->unit, status == THOLE_OK);
    else
        job->status = status;
}

/* ---- jobs ---- */

static void job_begin(struct remover *remover, struct request *request)
{
    struct job *const job = memory_new(sizeof *job);
    *job = (struct job){.next = remover->jobs, .request = request};
    buf_init(&job->prefix, SUBJECT_BYTES_MAX);
    job->removing = removing_create(request->removal.executions, request->removal.below);
    for (size_t i = 0; i < request->removal.places_len; i++)
        removing_know(job->removing, request->removal.places[i]);
    job->status = remover_subject(remover, job, EXECUTIONS_ALL);
    thole_slice const all = buf_bytes(&remover->subject);
    if (job->status == THOLE_OK)
        buf_append(&job->prefix, all.ptr, all.len - 1);
    remover->jobs = job;
    remover->jobs_len++;
    remover->urgent_len += request->removal.urgent;
}

static void job_end(struct remover *remover, struct job *job)
{
    if (job->status == THOLE_OK && removing_state(job->removing) == REMOVING_STUCK)
        job->status = thole_fail(request_error(job->request), THOLE_UNAVAILABLE,
                                 "nats-server lists records, and does not remove them");
    remover->urgent_len -= job->request->removal.urgent;
    job->request->status = job->status;
    request_finish(job->request);
    removing_destroy(job->removing);
    buf_release(&job->prefix);
    free(job);
    remover->jobs_len--;
}

static bool job_is_over(const struct job *job)
{
    return job->out == 0 && (job->status != THOLE_OK || removing_state(job->removing) != REMOVING_GOES);
}

static void end_jobs(struct remover *remover)
{
    for (struct job **at = &remover->jobs, *job; (job = *at) != NULL;) {
        if (job_is_over(job)) {
            *at = job->next;
            job_end(remover, job);
        } else {
            at = &job->next;
        }
    }
}

/* The next request of the removal. False: there is none before an answer. */
static bool job_send(struct remover *remover, struct job *job)
{
    struct removing_ask ask = {.kind = REMOVING_LIST};
    bool const page = job->offset > 0;
    if (job->status != THOLE_OK || (page && job->out > 0) || (!page && !removing_next(job->removing, &ask)))
        return false;
    if (ask.kind == REMOVING_SCAN)
        scan_records(remover, job, &ask);
    else
        send_ask(remover, job, &ask);
    return true;
}

/* Of each in turn, so that a long one does not hold up the others. */
static void send_asks(struct remover *remover)
{
    size_t const most = remover->pace.urgent           ? IN_FLIGHT_MAX
                        : pace_is_free(&remover->pace) ? IN_FLIGHT_FREE
                                                       : IN_FLIGHT_PACED;
    for (bool sent = true; sent;) {
        sent = false;
        for (struct job *job = remover->jobs; job != NULL && remover->flights_len < most; job = job->next)
            sent |= job_send(remover, job);
    }
}

/* ---- the thread ---- */

/* Under the lock. False: it has rested. */
static bool remover_wait(struct remover *remover)
{
    struct timespec const until = {(time_t)(remover->rests_us / MICROS),
                                   (long)(remover->rests_us % MICROS) * NANOS_OF_MICRO};
    if (remover->rests_us == 0)
        return pthread_cond_wait(&remover->wake, &remover->lock) == 0;
    return pthread_cond_timedwait(&remover->wake, &remover->lock, &until) == 0;
}

/* False: it is to end. */
static bool remover_take_mail(struct remover *remover, uint32_t *ret_answered, size_t *ret_len)
{
    pthread_mutex_lock(&remover->lock);
    while (!remover->stopping && remover->answered_len == 0 &&
           (remover->waiting.first == NULL || remover->jobs_len == JOBS_MAX))
        if (!remover_wait(remover))
            break;
    bool const goes_on = !remover->stopping;
    *ret_len = remover->answered_len;
    memcpy(ret_answered, remover->answered, *ret_len * sizeof *ret_answered);
    remover->answered_len = 0;
    struct request *request;
    while (goes_on && remover->jobs_len < JOBS_MAX &&
           (request = request_list_take(&remover->waiting)) != NULL)
        job_begin(remover, request);
    pthread_mutex_unlock(&remover->lock);
    return goes_on;
}

static void *remover_main(void *arg)
{
    struct remover *const remover = arg;
    uint32_t answered[IN_FLIGHT_MAX];
    size_t len;
    (void)pthread_setname_np(pthread_self(), "thole-remover");
    while (remover_take_mail(remover, answered, &len)) {
        for (size_t i = 0; i < len; i++)
            remover_land(remover, &remover->flights[answered[i]]);
        if (burst_goes(remover)) {
            connection_cork(remover->engine->connection);
            send_asks(remover);
            connection_uncork(remover->engine->connection);
        }
        end_jobs(remover);
        if (remover->jobs_len == 0) /* waits of others are measured without removals from now on */
            remover->burst_us = remover->rests_us = 0;
        atomic_store(&remover->removes, remover->jobs_len > 0);
    }
    return NULL;
}

thole_status remover_start(struct engine_host *engine, struct remover **ret, thole_error *reterr)
{
    struct remover *const remover = memory_new(sizeof *remover);
    remover->engine = engine;
    pthread_mutex_init(&remover->lock, NULL);
    clock_condition_init(&remover->wake);
    buf_init(&remover->subject, SUBJECT_BYTES_MAX);
    buf_init(&remover->body, REQUEST_BYTES_MAX);
    thole_status status = requests_open(engine->connection, IN_FLIGHT_MAX, ANSWER_TIMEOUT_MS, remover_on_done,
                                        remover, &remover->window, reterr);
    if (status == THOLE_OK && pthread_create(&remover->thread, NULL, remover_main, remover) != 0)
        status = thole_fail(reterr, THOLE_NOMEM, "cannot start a thread for removals");
    remover->running = status == THOLE_OK;
    if (status != THOLE_OK)
        remover_stop(remover);
    else
        *ret = remover;
    return status;
}

void remover_submit(struct remover *remover, struct request *request)
{
    pthread_mutex_lock(&remover->lock);
    request_list_append(&remover->waiting, request);
    pthread_cond_signal(&remover->wake);
    pthread_mutex_unlock(&remover->lock);
}

static void remover_give_up(struct request *request)
{
    request->status = thole_fail(request_error(request), THOLE_UNAVAILABLE, "the engine stops");
    request_finish(request);
}

void remover_stop(struct remover *remover)
{
    if (remover == NULL)
        return;
    pthread_mutex_lock(&remover->lock);
    remover->stopping = true;
    pthread_cond_broadcast(&remover->wake);
    pthread_mutex_unlock(&remover->lock);
    if (remover->running)
        pthread_join(remover->thread, NULL);
    requests_close(remover->window);
    for (size_t i = 0; i < IN_FLIGHT_MAX; i++)
        free((void *)(uintptr_t)remover->flights[i].body.ptr);
    for (struct job *job = remover->jobs, *next; job != NULL; job = next) {
        next = job->next;
        job->status = THOLE_UNAVAILABLE;
        job_end(remover, job);
    }
    for (struct request *request; (request = request_list_take(&remover->waiting)) != NULL;)
        remover_give_up(request);
    buf_release(&remover->subject);
    buf_release(&remover->body);
    pthread_mutex_destroy(&remover->lock);
    pthread_cond_destroy(&remover->wake);
    free(remover);
}
