/* For one test program: the gateway role on its stage, and a worker elsewhere that asks it. */
#ifndef THOLE_GATEWAY_WORKER_H
#define THOLE_GATEWAY_WORKER_H
#include "gateway_host.h"
#include "json_answer.h"
#include "link.h"
#include "metrics.h"
#include "worker_stage.h"
#include <pthread.h>
#include <stdarg.h>

enum { ANSWER_BYTES = 1 << 20, NOTICES_MAX = 16, NOTICE_BYTES = 512 };

static struct stage stage;
static struct gateway_host *gateway;
static struct connection *worker; /* of the worker elsewhere */
static struct metrics *metrics;   /* NULL: of no test but one */

/* CHECK_STR() evaluates its arguments more than once. */
static void same(const char *what, const char *got, const char *want)
{
    CHECK_STR(what, got, want);
}

/* ---- the worker's side ---- */

struct worker_session {
    char subject[256], inbox[64];
    struct subscription *subscription;
    pthread_mutex_t lock;
    char notices[NOTICES_MAX][NOTICE_BYTES]; /* under lock */
    size_t notices_len;
};

static bool no_stop(void *arg)
{
    (void)arg;
    return false;
}
static const struct stop_check never = {.requested = no_stop};

static void begin(const char *ns)
{
    stage_begin(&stage, ns);
    stage.options.metrics = metrics;
    CHECK_OK(gateway_host_start(&stage.options, &never, &gateway, &stage.err), &stage.err);
    struct connection_options const options = {
        .url = stage.nats.url, .name = "worker", .connect_timeout_ms = 5000, .request_timeout_ms = 15000};
    CHECK_OK(connection_open(&options, &worker, &stage.err), &stage.err);
}

static void end(void)
{
    gateway_host_stop(gateway);
    connection_close(worker);
    stage_end(&stage);
}

/* The answer, until the next call; "" when there is none. */
static const char *ask_as(const char *type, const char *subject, thole_slice body)
{
    static struct buf answer;
    struct header const header = {"Content-Type", thole_slice_from(type)};
    buf_release(&answer);
    buf_init(&answer, ANSWER_BYTES);
    thole_status const status =
        connection_request_with(worker, subject, &header, 1, body, &answer, &stage.err);
    return status == THOLE_OK ? buf_cstr(&answer) : "";
}

static const char *ask(const char *subject, const char *fmt, ...) THOLE_PRINTF(2, 3);
static const char *ask(const char *subject, const char *fmt, ...)
{
    char body[4096];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(body, sizeof body, fmt, args);
    va_end(args);
    return ask_as("application/json", subject, thole_slice_from(body));
}

static const char *operation(const struct worker_session *session, const char *name)
{
    static char subject[300];
    (void)snprintf(subject, sizeof subject, "%s.%s", session->subject, name);
    return subject;
}

static unsigned status_of(const char *answer)
{
    CU_ASSERT_STRING_NOT_EQUAL(answer, "");
    return (unsigned)strtoul(answer_at(answer, "status"), NULL, 10);
}

static void on_notice(void *arg, const struct delivery *delivery)
{
    struct worker_session *const session = arg;
    (void)pthread_mutex_lock(&session->lock);
    if (session->notices_len < NOTICES_MAX)
        (void)snprintf(session->notices[session->notices_len++], NOTICE_BYTES, "%.*s",
                       THOLE_FMT(delivery->body));
    (void)pthread_mutex_unlock(&session->lock);
}

static size_t count_notices(struct worker_session *session)
{
    (void)pthread_mutex_lock(&session->lock);
    size_t const n = session->notices_len;
    (void)pthread_mutex_unlock(&session->lock);
    return n;
}

static bool await_notices(struct worker_session *session, size_t n, uint64_t wait_ms)
{
    uint64_t const until_ms = clock_monotonic_ms() + wait_ms;
    while (count_notices(session) < n && clock_monotonic_ms() < until_ms)
        stage_pause_ms(1);
    return count_notices(session) >= n;
}

static const char *open_subject(void)
{
    static char subject[128];
    (void)snprintf(subject, sizeof subject, "thole.%s.gateway.open.default", stage.ns);
    return subject;
}

static void open_session(struct worker_session *session, const char *name, unsigned slots)
{
    *session = (struct worker_session){.notices_len = 0};
    (void)pthread_mutex_init(&session->lock, NULL);
    (void)snprintf(session->inbox, sizeof session->inbox, "_INBOX.thole.%s", name);
    CHECK_OK(
        connection_subscribe(worker, session->inbox, on_notice, session, &session->subscription, &stage.err),
        &stage.err);
    const char *const answer = ask(open_subject(),
                                   "{\"worker\":\"%s\",\"slots\":%u,\"activities\":[\"pay\",\"ship\"],"
                                   "\"inbox\":\"%s\"}",
                                   name, slots, session->inbox);
    CU_ASSERT_EQUAL(status_of(answer), 0);
    (void)snprintf(session->subject, sizeof session->subject, "%s", answer_at(answer, "subject"));
    same("lease", answer_at(answer, "leaseMs"), "3000");
    same("renewals", answer_at(answer, "renewMs"), "1000");
    same("grace", answer_at(answer, "graceMs"), "1000");
    same("payload", answer_at(answer, "payloadMax"), "262144");
}

static void close_session(struct worker_session *session)
{
    CU_ASSERT_EQUAL(status_of(ask(operation(session, "close"), "{}")), 0);
    subscription_close(session->subscription);
    (void)pthread_mutex_destroy(&session->lock);
}

/* The worker is gone without a word. */
static void forget_session(struct worker_session *session)
{
    subscription_close(session->subscription);
    (void)pthread_mutex_destroy(&session->lock);
}

/* The first task, as its own text. */
static const char *next_task(const struct worker_session *session, unsigned wait_ms)
{
    return answer_item(ask(operation(session, "next"), "{\"max\":8,\"waitMs\":%u}", wait_ms), "tasks", 0);
}

/* The status of that outcome; 99: no answer. */
static unsigned complete(const struct worker_session *session, const char *claim, const char *outcome)
{
    const char *const answer =
        ask(operation(session, "complete"), "{\"outcomes\":[{\"claim\":\"%s\",%s}]}", claim, outcome);
    if (status_of(answer) != 0)
        return 100 + status_of(answer);
    const char *const result = answer_item(answer, "results", 0);
    same("claim", answer_at(result, "claim"), claim);
    return (unsigned)strtoul(answer_at(result, "status"), NULL, 10);
}

static const char *renew(const struct worker_session *session, const char *claims)
{
    return ask(operation(session, "renew"), "{\"running\":[%s]}", claims);
}

/* Renews one claim for so long, every 300 ms. */
static void renew_for(const struct worker_session *session, const char *claim, unsigned for_ms)
{
    char running[64];
    uint64_t const until_ms = clock_monotonic_ms() + for_ms;
    (void)snprintf(running, sizeof running, "{\"claim\":\"%s\"}", claim);
    while (clock_monotonic_ms() < until_ms) {
        CU_ASSERT_EQUAL(status_of(renew(session, running)), 0);
        stage_pause_ms(300);
    }
}
#endif
