/* The life of a session. */
#include "clock.h"
#include "log.h"
#include "memory.h"
#include "message.h"
#include "session_parts.h"
#include "subject.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { RENEWALS_A_LEASE = 3, SUBJECT_BYTES = 512, REPORT_BYTES = 256 };

/* ---- opening ---- */

static thole_status session_check_open(const struct gateway_request *request, thole_error *reterr)
{
    const Thole__V1__OpenSession *const asked = (const Thole__V1__OpenSession *)request->message;
    THOLE_TRY(name_check(thole_slice_from(request->name), "queue", reterr));
    THOLE_TRY(name_check(thole_slice_from(asked->worker), "worker", reterr));
    if (asked->slots < 1 || asked->slots > SESSION_SLOTS_MAX)
        return thole_fail(reterr, THOLE_INVALID, "slots is %" PRIu32 ", it must be 1 to %d", asked->slots,
                          SESSION_SLOTS_MAX);
    if (asked->n_activities < 1 || asked->n_activities > SESSION_ACTIVITIES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "activities has %zu names, it must have 1 to %d",
                          asked->n_activities, SESSION_ACTIVITIES_MAX);
    for (size_t i = 0; i < asked->n_activities; i++)
        THOLE_TRY(name_check(thole_slice_from(asked->activities[i]), "activity", reterr));
    if (asked->inbox[0] != '\0' && !subject_is_reply(thole_slice_from(asked->inbox)))
        return thole_fail(reterr, THOLE_INVALID, "inbox is not a subject below _INBOX");
    return session_check_resume(asked, reterr);
}

static void make_program(struct session *session, const Thole__V1__OpenSession *asked)
{
    session->activities = memory_array(asked->n_activities, sizeof *session->activities);
    for (size_t i = 0; i < asked->n_activities; i++)
        session->activities[i] =
            (thole_activity_entry){.name = memory_text(asked->activities[i]), .run = remote_handler};
    session->program = (thole_program){.size = sizeof session->program,
                                       .name = session->worker,
                                       .activities = session->activities,
                                       .activities_len = asked->n_activities};
}

static void make_options(struct session *session, const Thole__V1__OpenSession *asked)
{
    struct host_options *const options = &session->host_options;
    session->handlers = session_handlers;
    session->handlers.arg = session;
    session->handlers.suffix = session->suffix;
    session->handlers.host = session->worker_host;
    session->handlers.resumption = asked->resume[0] == '\0' ? NULL : &session->resumption;
    *options = *session->options.host;
    options->node = session->worker;
    options->queue = session->queue;
    options->inbox_role = GATEWAY_INBOX_ROLE;
    options->slots = asked->slots;
    options->remote = &session->handlers;
    options->crash_reporter = NULL;
    options->forkserver = NULL;
}

static bool make_id(char ret[SESSION_ID_BYTES])
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    (void)snprintf(ret, SESSION_ID_BYTES, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    return true;
}

static void init_lock(struct session *session)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&session->lock, NULL);
    (void)pthread_cond_init(&session->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

static struct session *session_create(const struct session_options *options, struct gateway_request *request)
{
    const Thole__V1__OpenSession *const asked = (const Thole__V1__OpenSession *)request->message;
    struct session *const session = memory_new(sizeof *session);
    char subject[SUBJECT_BYTES];
    session->options = *options;
    atomic_init(&session->holders, 2); /* the opener, and the session's thread */
    init_lock(session);
    session->form = request->form;
    session->open = request;
    (void)snprintf(session->worker, sizeof session->worker, "%s", asked->worker);
    (void)snprintf(session->queue, sizeof session->queue, "%s", request->name);
    session->inbox = asked->inbox[0] == '\0' ? NULL : memory_text(asked->inbox);
    session->worker_host = memory_text(asked->host);
    if (!make_id(session->id))
        memory_give_up(1, sizeof session->id);
    session_plan_resume(session, asked);
    make_program(session, asked);
    make_options(session, asked);
    (void)snprintf(subject, sizeof subject, "thole.%s.gateway.session.%s.%s", options->host->ns,
                   options->gateway, session->id);
    session->subject = memory_text(subject);
    (void)snprintf(subject, sizeof subject, "%s.next.unheard", session->subject);
    session->unheard = memory_text(subject);
    session->hears = true;
    return session;
}

static void *session_main(void *arg);

struct session *session_begin(const struct session_options *options, struct gateway_request *request)
{
    thole_error error = {.status = THOLE_OK};
    thole_status const status = session_check_open(request, &error);
    if (status != THOLE_OK) {
        gateway_refuse(request, status, "%s", error.text);
        return NULL;
    }
    struct session *const session = session_create(options, request);
    if (pthread_create(&session->thread, NULL, session_main, session) != 0) {
        session->open = NULL;
        gateway_refuse(request, THOLE_UNAVAILABLE, "the gateway cannot start a thread");
        session_release(session);
        session_release(session);
        return NULL;
    }
    (void)pthread_detach(session->thread);
    return session;
}

const char *session_id(const struct session *session)
{
    return session->id;
}

bool session_resumes(const struct gateway_request *request)
{
    const Thole__V1__OpenSession *const asked = (const Thole__V1__OpenSession *)request->message;
    return asked->resume[0] != '\0';
}

uint32_t session_slots(const struct session *session)
{
    return session->host_options.slots;
}

uint32_t session_slots_asked(const struct gateway_request *request)
{
    const Thole__V1__OpenSession *const asked = (const Thole__V1__OpenSession *)request->message;
    return asked->slots;
}

const char *session_queue(const struct session *session)
{
    return session->queue;
}

void session_hold(struct session *session)
{
    (void)atomic_fetch_add(&session->holders, 1);
}

void session_release(struct session *session)
{
    if (atomic_fetch_sub(&session->holders, 1) > 1)
        return;
    for (size_t i = 0; i < session->program.activities_len; i++)
        free((void *)(uintptr_t)session->activities[i].name);
    free(session->activities);
    session_forget_resume(session);
    free(session->subject);
    free(session->unheard);
    free(session->inbox);
    free(session->worker_host);
    (void)pthread_cond_destroy(&session->changed);
    (void)pthread_mutex_destroy(&session->lock);
    free(session);
}

void session_stop(struct session *session, uint64_t limit_ms)
{
    (void)pthread_mutex_lock(&session->lock);
    if (session->state == SESSION_STARTING) {
        session->stop_asked = true;
        session->limit_ms = limit_ms;
    } else if (session->state == SESSION_OPEN) {
        session->state = SESSION_CLOSING;
        session->limit_ms = limit_ms;
        if (session->next != NULL)
            gateway_refuse(session->next, THOLE_UNAVAILABLE,
                           "this gateway is stopping: open another session");
        session->next = NULL;
    }
    (void)pthread_cond_signal(&session->changed);
    (void)pthread_mutex_unlock(&session->lock);
}

/* ---- the session's thread ---- */

/* Connecting does not wait: a failure is an error of the request, and the worker asks again. */
static bool never_waits(void *arg)
{
    (void)arg;
    return true;
}
static const struct stop_check never_wait = {.requested = never_waits};

static void answer_open(struct session *session)
{
    Thole__V1__SessionOpened answer;
    thole__v1__session_opened__init(&answer);
    answer.session = session->id;
    answer.subject = session->subject;
    answer.lease_ms = (uint32_t)session->lease_ms;
    answer.renew_ms =
        (uint32_t)(session->host_options.renew_every_ms != 0 ? session->host_options.renew_every_ms
                                                             : session->lease_ms / RENEWALS_A_LEASE);
    answer.grace_ms = (uint32_t)session->host_options.grace_ms;
    answer.details_max = DETAILS_BYTES_MAX;
    answer.payload_max = worker_host_payload_max(session->host);
    answer.gateway = (char *)(uintptr_t)session->options.gateway;
    answer.gone = session_gone_claims(session, &answer.n_gone);
    char **const gone = answer.gone;
    gateway_answer(session->open, &answer.base, THOLE_OK, "");
    free(gone);
    session->open = NULL;
    session_forget_resume(session);
}

static void on_unheard(void *arg, const struct delivery *delivery)
{
    struct session *const session = arg;
    (void)pthread_mutex_lock(&session->lock);
    if (delivery->no_responders)
        session_is_unheard(session);
    (void)pthread_mutex_unlock(&session->lock);
}

/* Without it its worker gets tasks, too. */
static struct subscription *listen_for_unheard(struct session *session, struct worker_host *host)
{
    thole_error error = {.status = THOLE_OK};
    struct subscription *subscription = NULL;
    if (connection_subscribe(worker_host_connection(host), session->unheard, on_unheard, session,
                             &subscription, &error) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "gateway", "answers without a subscriber are not noticed: %s", error.text);
    return subscription;
}

/* Under the lock. What its worker asks for was checked before: INVALID and DENIED, which would end the
 * worker, are about this gateway, its servers or the queue. Another gateway may serve it, and this one when
 * that is mended. */
static void cannot_start(struct session *session, const thole_error *error)
{
    session->state = SESSION_OVER;
    if (error->status == THOLE_INVALID || error->status == THOLE_DENIED) {
        log_line(LOG_LEVEL_ERROR, "gateway", "queue %s cannot be served for worker %s: %s", session->queue,
                 session->worker, error->text);
        gateway_refuse(session->open, THOLE_UNAVAILABLE, "this gateway cannot serve queue %s: %s",
                       session->queue, error->text);
    } else {
        gateway_refuse(session->open, error->status == THOLE_CANCELLED ? THOLE_UNAVAILABLE : error->status,
                       "%s", error->text);
    }
    session->open = NULL;
    session_free_tasks(session);
}

static bool session_start(struct session *session)
{
    thole_error error = {.status = THOLE_OK};
    struct worker_host *host = NULL;
    uint64_t const began_ms = clock_monotonic_ms();
    thole_status status =
        worker_host_start(&session->host_options, &session->program, &never_wait, &host, &error);
    struct subscription *const unheard = status == THOLE_OK ? listen_for_unheard(session, host) : NULL;
    (void)pthread_mutex_lock(&session->lock);
    if (status != THOLE_OK) {
        error.status = status; /* also where it has no text */
        cannot_start(session, &error);
        (void)pthread_mutex_unlock(&session->lock);
        return false;
    }
    uint64_t const now_ms = clock_monotonic_ms();
    session->host = host;
    session->next_ms = now_ms;
    session->unheard_subscription = unheard;
    session->lease_ms = worker_host_lease_ms(host);
    session->heard_ms = now_ms;
    /* The sender has given up by then. A resumed session is not handed back: it is resumed once more. */
    bool const late = now_ms - began_ms > SESSION_OPEN_MS && session->resumption.len == 0;
    session->state = late || session->stop_asked ? SESSION_CLOSING : SESSION_OPEN;
    answer_open(session);
    (void)pthread_mutex_unlock(&session->lock);
    return true;
}

/* Under the lock. Returns when the worker role has stopped (true) or its worker is silent for a lease. */
static bool session_watch(struct session *session)
{
    for (;;) {
        uint64_t const now_ms = clock_monotonic_ms();
        uint64_t deadline_ms = session_expire(session, now_ms);
        if (session->stopped)
            return true;
        if (now_ms >= session->heard_ms + session->lease_ms)
            return false;
        if (session->state == SESSION_CLOSING && !session->stop_sent) {
            session->stop_sent = true;
            worker_host_stop_within(session->host, session->limit_ms);
        }
        if (session->heard_ms + session->lease_ms < deadline_ms)
            deadline_ms = session->heard_ms + session->lease_ms;
        struct timespec const until = clock_timespec(deadline_ms);
        (void)pthread_cond_timedwait(&session->changed, &session->lock, &until);
    }
}

/* Under the lock, which is released meanwhile: the worker role's loop may want it. */
static void end_host(struct session *session, bool stopped)
{
    struct worker_host *const host = session->host;
    char report[REPORT_BYTES];
    struct subscription *const unheard = session->unheard_subscription;
    session->state = SESSION_OVER;
    session->host = NULL;
    session->unheard_subscription = NULL;
    (void)pthread_mutex_unlock(&session->lock);
    subscription_close(unheard);
    if (stopped) {
        worker_host_stop(host);
    } else {
        (void)snprintf(report, sizeof report, "its worker %s has not been heard of for %" PRIu64 " ms",
                       session->worker, session->lease_ms);
        worker_host_died(host, report);
    }
    (void)pthread_mutex_lock(&session->lock);
}

static void *session_main(void *arg)
{
    struct session *const session = arg;
    Thole__V1__SessionClosed closed;
    (void)pthread_setname_np(pthread_self(), "thole-session");
    if (session_start(session)) {
        (void)pthread_mutex_lock(&session->lock);
        bool const stopped = session_watch(session);
        end_host(session, stopped);
        metric_count(session->options.cells, METRIC_GATEWAY_SESSIONS_ENDED,
                     stopped ? SESSIONS_STOPPED : SESSIONS_SILENT, 1);
        session_refuse_all(session);
        session_free_tasks(session);
        thole__v1__session_closed__init(&closed);
        if (session->close != NULL)
            gateway_answer(session->close, &closed.base, THOLE_OK, "");
        session->close = NULL;
        (void)pthread_mutex_unlock(&session->lock);
    } else {
        metric_count(session->options.cells, METRIC_GATEWAY_SESSIONS_ENDED, SESSIONS_NOT_STARTED, 1);
    }
    session->options.ended(session->options.arg, session);
    session_release(session);
    return NULL;
}
