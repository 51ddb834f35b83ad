#include "calls.h"
#include "buf.h"
#include "clock.h"
#include "header_names.h"
#include "log.h"
#include "memory.h"
#include "message.h"
#include "sender_headers.h"
#include "subject.h"
#include "tagged_hash.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    WAIT_STEP_MS = 1000, /* a binder that stops waits at most so long for each call */
    STACK_BYTES = 512 * 1024,
    CALL_ID_BYTES = 48,
    CALL_SUBJECT_BYTES = 160,
    TOKEN_ORCHESTRATION = 3,
    TOKEN_BY = 4,
    CALL_SUBJECTS = 2, /* with and without an actor */
};

#define HEADER_WAIT "Thole-Wait-Ms"
#define HEADER_INSTANCE "Thole-Instance"
#define HEADER_ERROR_TYPE "Thole-Error-Type"
#define GROUP "thole-call"

struct calls {
    struct connection *connection;
    thole_client *client;
    struct subscription *subscriptions[CALL_SUBJECTS];
    pthread_mutex_t lock;
    pthread_cond_t fewer;
    size_t busy; /* under lock */
    atomic_bool stopping;
};

/* A request; texts are its own. */
struct call {
    struct calls *calls;
    char *orchestration, *instance, *reply, *traceparent, *tracestate;
    char *actor, *client; /* the caller's names */
    bool vouched;         /* the subject says so, else the headers */
    uint8_t *input;
    size_t input_len;
    uint64_t wait_ms;
    /* Empty: it cannot be repeated. Of the body as well: another one under the same message id is another
     * request. */
    char request_id[CALL_ID_BYTES];
    char older_id[CALL_ID_BYTES]; /* the id that older binders give a repetition of a call which they began */
};

/* ---- the answer ---- */

/* A header is one line of ASCII: some clients refuse the whole message otherwise. The body has the text. */
static void calls_make_header(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
        else if ((unsigned char)*text > 0x7f)
            *text = '?';
}

/* @p type may be empty. The body of a failure is its text. */
static void calls_answer(const struct calls *calls, const char *reply, const char *instance,
                         thole_status status, thole_slice body, thole_slice type)
{
    char code[16], said[512];
    struct buf token;
    thole_error error = {.status = THOLE_OK};
    buf_init(&token, SUBJECT_BYTES_MAX);
    (void)snprintf(code, sizeof code, "%d", (int)status);
    (void)snprintf(said, sizeof said, "%.*s", THOLE_FMT(body));
    calls_make_header(said);
    bool const named =
        instance != NULL && subject_token(&token, thole_slice_from(instance), NULL) == THOLE_OK;
    struct header headers[4] = {{HEADER_INSTANCE, buf_bytes(&token)}};
    size_t len = named;
    if (status != THOLE_OK) {
        headers[len++] = (struct header){"Nats-Service-Error", thole_slice_from(said)};
        headers[len++] = (struct header){"Nats-Service-Error-Code", thole_slice_from(code)};
    }
    if (type.len > 0)
        headers[len++] = (struct header){HEADER_ERROR_TYPE, type};
    if (connection_publish(calls->connection, reply, headers, len, body, &error) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "binder", "an answer to a call was not sent: %s", error.text);
    buf_release(&token);
}

static void calls_answer_text(const struct calls *calls, const char *reply, const char *instance,
                              thole_status status, const char *text)
{
    calls_answer(calls, reply, instance, status, thole_slice_from(text), THOLE_STR(""));
}

static void answer_outcome(const struct call *call, const thole_outcome *outcome)
{
    thole_status status = THOLE_APP;
    if (outcome->status == THOLE_INSTANCE_COMPLETED)
        status = THOLE_OK;
    else if (outcome->status == THOLE_INSTANCE_CANCELLED || outcome->status == THOLE_INSTANCE_TERMINATED)
        status = THOLE_CANCELLED;
    calls_answer(call->calls, call->reply, call->instance, status, outcome->output, outcome->error_type);
}

/* ---- running it: a thread of its own ---- */

static thole_status start_as(const struct call *call, const char *request_id, thole_error *reterr)
{
    thole_start_options const options = {.size = sizeof options,
                                         .request_id = thole_slice_from(request_id),
                                         .traceparent = thole_slice_from(call->traceparent),
                                         .tracestate = thole_slice_from(call->tracestate),
                                         .sender = {.actor = thole_slice_from(call->actor),
                                                    .client_name = thole_slice_from(call->client),
                                                    .vouched = call->vouched}};
    return thole_client_start_with(call->calls->client, thole_slice_from(call->instance),
                                   thole_slice_from(call->orchestration),
                                   (thole_slice){call->input, call->input_len}, &options, NULL, reterr);
}

/* Under an id in use: an older binder may have begun it for this very request. */
static thole_status calls_start(const struct call *call, thole_error *reterr)
{
    thole_error older = {.status = THOLE_OK};
    thole_status const status = start_as(call, call->request_id, reterr);
    if (status != THOLE_CONFLICT || call->older_id[0] == '\0')
        return status;
    if (start_as(call, call->older_id, &older) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_CONFLICT,
                      "instance \"%s\" runs or has ended already, for a request with another body or another "
                      "Nats-Msg-Id: nothing was started",
                      call->instance);
}

/* In steps, so that a binder that stops need not wait long. */
static thole_status wait_end(const struct call *call, uint64_t until_ms, thole_outcome *ret,
                             thole_error *reterr)
{
    for (;;) {
        uint64_t const now_ms = clock_monotonic_ms();
        uint64_t const left_ms = until_ms > now_ms ? until_ms - now_ms : 0;
        uint64_t const step_ms = left_ms < WAIT_STEP_MS ? left_ms : WAIT_STEP_MS;
        thole_status const status =
            thole_client_wait(call->calls->client, thole_slice_from(call->instance), step_ms, ret, reterr);
        bool const waits =
            status == THOLE_TIMEOUT || status == THOLE_NOT_FOUND; /* not there: not taken yet */
        if (!waits)
            return status;
        if (atomic_load(&call->calls->stopping))
            return thole_fail(reterr, THOLE_TIMEOUT, "this binder is stopping: repeat the request");
        if (step_ms == left_ms)
            return thole_fail(reterr, THOLE_TIMEOUT,
                              "it has not ended within %" PRIu64
                              " ms, and goes on: repeat the request with the "
                              "same Nats-Msg-Id, or wait for the instance",
                              call->wait_ms);
    }
}

static void calls_run(const struct call *call)
{
    uint64_t const until_ms = clock_monotonic_ms() + call->wait_ms;
    thole_error error = {.status = THOLE_OK};
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_status status = calls_start(call, &error);
    if (status == THOLE_OK)
        status = wait_end(call, until_ms, &outcome, &error);
    if (status == THOLE_OK)
        answer_outcome(call, &outcome);
    else
        calls_answer_text(call->calls, call->reply, call->instance, status, error.text);
    thole_outcome_release(&outcome);
}

static void call_free(struct call *call)
{
    free(call->orchestration);
    free(call->instance);
    free(call->reply);
    free(call->traceparent);
    free(call->tracestate);
    free(call->actor);
    free(call->client);
    free(call->input);
    free(call);
}

static void calls_one_less(struct calls *calls)
{
    (void)pthread_mutex_lock(&calls->lock);
    calls->busy--;
    (void)pthread_cond_broadcast(&calls->fewer);
    (void)pthread_mutex_unlock(&calls->lock);
}

static void *call_main(void *arg)
{
    struct call *const call = arg;
    struct calls *const calls = call->calls;
    (void)pthread_setname_np(pthread_self(), "thole-call");
    calls_run(call);
    call_free(call);
    calls_one_less(calls);
    return NULL;
}

/* ---- reading it ---- */

static char *calls_text_of(thole_slice slice)
{
    return memory_copy(slice.ptr, slice.len);
}

/* Encoded, so that any id can be a header. The sender has a header in hand, and no subject. */
static thole_status calls_read_instance(struct call *call, thole_slice wanted, thole_error *reterr)
{
    static const char subject[] = "subject token ";
    thole_error why = {.status = THOLE_OK};
    struct buf decoded;
    buf_init(&decoded, THOLE_ID_BYTES_MAX);
    thole_status status = subject_token_decode(wanted, &decoded, &why);
    if (status == THOLE_OK)
        call->instance = calls_text_of(buf_bytes(&decoded));
    else
        status = thole_fail(reterr, status,
                            "header " HEADER_INSTANCE " %.300s: the id must be encoded as in subjects, "
                            "[A-Za-z0-9_-] as they are and %%20 for a blank",
                            strncmp(why.text, subject, strlen(subject)) == 0 ? why.text + strlen(subject)
                                                                             : why.text);
    buf_release(&decoded);
    return status;
}

/* "call-" and 32 digits: of the orchestration and the message id, or random ones. */
static thole_status make_ids(struct call *call, thole_slice wanted, thole_slice message_id,
                             thole_error *reterr)
{
    char id[CALL_ID_BYTES];
    uint64_t random[2];
    if (message_id.len > 0) {
        struct buf of;
        buf_init(&of, message_id.len + THOLE_NAME_BYTES_MAX + 2);
        buf_printf(&of, "%s.", call->orchestration);
        buf_slice(&of, message_id);
        struct tagged_hash const hash = tagged_hash_make("thole call 1", buf_bytes(&of));
        struct tagged_hash const body =
            tagged_hash_make(hash.text, (thole_slice){call->input, call->input_len});
        buf_release(&of);
        (void)snprintf(call->request_id, sizeof call->request_id, "call.%s", body.text);
        (void)snprintf(call->older_id, sizeof call->older_id, "call.%s", hash.text);
        (void)snprintf(id, sizeof id, "call-%s", hash.text);
    } else if (getrandom(random, sizeof random, 0) == (ssize_t)sizeof random) {
        (void)snprintf(id, sizeof id, "call-%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    } else {
        return thole_fail(reterr, THOLE_UNAVAILABLE, "the system gives no random numbers");
    }
    if (wanted.len == 0) {
        call->instance = memory_text(id);
        return THOLE_OK;
    }
    return calls_read_instance(call, wanted, reterr);
}

static thole_status read_wait(thole_slice text, uint64_t *ret, thole_error *reterr)
{
    *ret = 0;
    for (size_t i = 0; i < text.len && *ret <= CALL_WAIT_MS_MAX; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return thole_fail(reterr, THOLE_INVALID, HEADER_WAIT " is no number");
        *ret = *ret * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    if (text.len == 0)
        *ret = CALL_WAIT_MS_DEFAULT;
    if (*ret > CALL_WAIT_MS_MAX)
        *ret = CALL_WAIT_MS_MAX;
    return THOLE_OK;
}

/* An actor in the subject wins over that of the headers: NATS lets only some publish it. */
static thole_status calls_read_sender(struct call *call, const struct delivery *delivery, thole_error *reterr)
{
    struct actor const sender = sender_headers_read(delivery, NULL);
    struct buf vouched;
    buf_init(&vouched, ACTOR_NAME_BYTES_MAX);
    thole_status const status = subject_actor(delivery->subject, TOKEN_BY, &vouched, reterr);
    call->vouched = vouched.len > 0;
    call->traceparent = calls_text_of(sender.trace.parent);
    call->tracestate = calls_text_of(sender.trace.list);
    call->actor = calls_text_of(call->vouched ? buf_bytes(&vouched) : sender.name);
    call->client = calls_text_of(sender.client);
    buf_release(&vouched);
    return status;
}

static thole_status read_call(struct call *call, const struct delivery *delivery, thole_error *reterr)
{
    call->reply = calls_text_of(delivery->reply);
    call->orchestration = calls_text_of(subject_nth(delivery->subject, TOKEN_ORCHESTRATION));
    call->input = (uint8_t *)calls_text_of(delivery->body);
    call->input_len = delivery->body.len;
    THOLE_TRY(calls_read_sender(call, delivery, reterr));
    THOLE_TRY(name_check(thole_slice_from(call->orchestration), "orchestration", reterr));
    THOLE_TRY(read_wait(delivery_header(delivery, HEADER_WAIT), &call->wait_ms, reterr));
    return make_ids(call, delivery_header(delivery, HEADER_INSTANCE),
                    delivery_header(delivery, "Nats-Msg-Id"), reterr);
}

static bool calls_one_more(struct calls *calls)
{
    (void)pthread_mutex_lock(&calls->lock);
    bool const room = calls->busy < CALLS_MAX && !atomic_load(&calls->stopping);
    calls->busy += room;
    (void)pthread_mutex_unlock(&calls->lock);
    return room;
}

static bool calls_start_thread(struct call *call)
{
    pthread_attr_t attributes;
    pthread_t thread;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool const started = pthread_create(&thread, &attributes, call_main, call) == 0;
    (void)pthread_attr_destroy(&attributes);
    return started;
}

/* thole.<ns>.call.<orchestration>[.by.<actor>]; on the connection's reading thread. Nothing is sent to a
 * reply subject that is no inbox.
 */
static void on_call(void *arg, const struct delivery *delivery)
{
    struct calls *const calls = arg;
    thole_error error = {.status = THOLE_OK};
    if (!subject_is_reply(delivery->reply))
        return;
    struct call *const call = memory_new(sizeof *call);
    call->calls = calls;
    thole_status const status = read_call(call, delivery, &error);
    if (status != THOLE_OK) {
        calls_answer_text(calls, call->reply, NULL, status, error.text);
    } else if (!calls_one_more(calls)) {
        calls_answer_text(calls, call->reply, NULL, THOLE_UNAVAILABLE,
                          "this binder has too many calls: ask again");
    } else if (calls_start_thread(call)) {
        return;
    } else {
        calls_answer_text(calls, call->reply, NULL, THOLE_UNAVAILABLE,
                          "this binder cannot start a thread: ask again");
        calls_one_less(calls);
    }
    call_free(call);
}

/* ---- open and close ---- */

thole_status calls_open(struct connection *connection, thole_client *client, const char *ns,
                        struct calls **ret, thole_error *reterr)
{
    char subject[CALL_SUBJECT_BYTES];
    struct calls *const calls = memory_new(sizeof *calls);
    calls->connection = connection;
    calls->client = client;
    (void)pthread_mutex_init(&calls->lock, NULL);
    (void)pthread_cond_init(&calls->fewer, NULL);
    for (size_t i = 0; i < CALL_SUBJECTS; i++) {
        (void)snprintf(subject, sizeof subject, "thole.%s.call.*%s", ns, i == 0 ? "" : ".by.*");
        thole_status const status =
            connection_serve(connection, subject, GROUP, on_call, calls, &calls->subscriptions[i], reterr);
        if (status != THOLE_OK) {
            calls_close(calls);
            return status;
        }
    }
    *ret = calls;
    return THOLE_OK;
}

void calls_close(struct calls *calls)
{
    if (calls == NULL)
        return;
    for (size_t i = 0; i < CALL_SUBJECTS; i++)
        subscription_close(calls->subscriptions[i]);
    atomic_store(&calls->stopping, true);
    (void)pthread_mutex_lock(&calls->lock);
    while (calls->busy > 0)
        (void)pthread_cond_wait(&calls->fewer, &calls->lock);
    (void)pthread_mutex_unlock(&calls->lock);
    (void)pthread_cond_destroy(&calls->fewer);
    (void)pthread_mutex_destroy(&calls->lock);
    free(calls);
}
