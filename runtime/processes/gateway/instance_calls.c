#include "instance_calls.h"
#include "client_notes.h"
#include "clock.h"
#include "instance_views.h"
#include "memory.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    WAIT_STEP_MS = 2000,
    RANDOM_ID_BYTES = 40,
    STACK_BYTES = 512 * 1024,
    ANSWER_SPARE_BYTES = 4096,
    EXPLAIN_MS = 700,
    NOTE_BYTES_MAX = 8 * 1024
};

struct instance_calls {
    struct thole_client *client;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    size_t busy;
    atomic_bool stopping;
};

struct job {
    struct instance_calls *calls;
    struct gateway_request *request;
};

struct instance_calls *instance_calls_create(struct thole_client *client)
{
    struct instance_calls *const calls = memory_new(sizeof *calls);
    calls->client = client;
    (void)pthread_mutex_init(&calls->lock, NULL);
    (void)pthread_cond_init(&calls->idle, NULL);
    return calls;
}

static thole_slice instance_calls_bytes(ProtobufCBinaryData data)
{
    return (thole_slice){data.data, data.len};
}

/* ---- the operations ---- */

/* Of "cart~add", as in the subjects of an instance's messages. */
static bool split_event(thole_slice *orchestration, thole_slice *ret_event)
{
    const uint8_t *const at =
        orchestration->len == 0 ? NULL : memchr(orchestration->ptr, '~', orchestration->len);
    if (at == NULL)
        return false;
    size_t const len = (size_t)(at - orchestration->ptr);
    *ret_event = (thole_slice){at + 1, orchestration->len - len - 1};
    orchestration->len = len;
    return len > 0 && ret_event->len > 0;
}

static void instance_calls_start(const struct instance_calls *calls, struct gateway_request *request)
{
    const Thole__V1__StartInstance *const asked = (const Thole__V1__StartInstance *)request->message;
    thole_error error = {.status = THOLE_OK};
    Thole__V1__InstanceStarted answer;
    char id[RANDOM_ID_BYTES];
    uint64_t random[2];
    thole__v1__instance_started__init(&answer);
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        gateway_refuse(request, THOLE_UNAVAILABLE, "the system gives no random numbers");
        return;
    }
    thole_slice orchestration = thole_slice_from(request->name), event = {0};
    if (request->endpoint->kind == ENDPOINT_START_EVENT && !split_event(&orchestration, &event)) {
        gateway_refuse(request, THOLE_INVALID, "the subject does not end with <orchestration>~<event>");
        return;
    }
    if (request->endpoint->kind == ENDPOINT_START && asked->event_data.len > 0) {
        gateway_refuse(request, THOLE_INVALID,
                       "start has no event: start_event.<orchestration>~<event> delivers one");
        return;
    }
    (void)snprintf(id, sizeof id, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    const char *const instance = asked->instance[0] != '\0' ? asked->instance : id;
    bool const traced = asked->traceparent[0] != '\0';
    thole_start_options const options = {
        .size = sizeof options,
        .version = asked->version,
        .event = event,
        .event_data = instance_calls_bytes(asked->event_data),
        .require_known = asked->require_known,
        .request_id = thole_slice_from(asked->request_id),
        .traceparent = traced ? thole_slice_from(asked->traceparent) : request->sender.traceparent,
        .tracestate = traced ? thole_slice_from(asked->tracestate) : request->sender.tracestate,
        .sender = request->sender};
    thole_status const status =
        thole_client_start_with(calls->client, thole_slice_from(instance), orchestration,
                                instance_calls_bytes(asked->input), &options, NULL, &error);
    answer.instance = (char *)(uintptr_t)instance;
    gateway_answer(request, &answer.base, status, status == THOLE_OK ? "" : error.text);
}

/* Of what is accepted, and has no effect until the instance goes on; "": it goes on. */
static char *note_of(struct gateway_request *request, const struct standing *standing, thole_slice instance,
                     const char *what, bool resumes)
{
    struct buf note;
    buf_init(&note, NOTE_BYTES_MAX);
    char *const text = client_note_standing(standing, instance, what, resumes, &note)
                           ? gateway_copy_text(&request->scratch.arena, buf_bytes(&note))
                           : (char *)"";
    buf_release(&note);
    return text;
}

static void signal_instance(const struct instance_calls *calls, struct gateway_request *request)
{
    const Thole__V1__SignalInstance *const asked = (const Thole__V1__SignalInstance *)request->message;
    thole_error error = {.status = THOLE_OK};
    Thole__V1__Accepted answer;
    thole__v1__accepted__init(&answer);
    thole_signal_options const options = {
        .size = sizeof options, .request_id = thole_slice_from(asked->request_id), .sender = request->sender};
    struct standing standing;
    thole_slice const instance = thole_slice_from(asked->instance);
    thole_status const status =
        client_signal_noted(calls->client, instance, thole_slice_from(request->name),
                            instance_calls_bytes(asked->data), &options, NULL, &standing, &error);
    if (status == THOLE_OK)
        answer.note = note_of(request, &standing, instance, "the event", false);
    gateway_answer(request, &answer.base, status, status == THOLE_OK ? "" : error.text);
}

static void end_instance(const struct instance_calls *calls, struct gateway_request *request)
{
    const Thole__V1__EndInstance *const asked = (const Thole__V1__EndInstance *)request->message;
    bool const terminate = request->endpoint->kind == ENDPOINT_TERMINATE;
    thole_error error = {.status = THOLE_OK};
    Thole__V1__Accepted answer;
    thole__v1__accepted__init(&answer);
    thole_end_options const options = {.size = sizeof options,
                                       .reason = thole_slice_from(asked->reason),
                                       .request_id = thole_slice_from(asked->request_id),
                                       .sender = request->sender};
    struct standing standing = {.known = false};
    thole_slice const instance = thole_slice_from(asked->instance);
    thole_status const status =
        terminate ? thole_client_terminate_with(calls->client, instance, &options, &error)
                  : client_cancel_noted(calls->client, instance, &options, &standing, &error);
    if (status == THOLE_OK)
        answer.note = note_of(request, &standing, instance, "the cancellation", true);
    gateway_answer(request, &answer.base, status, status == THOLE_OK ? "" : error.text);
}

static void instance_calls_query(const struct instance_calls *calls, struct gateway_request *request)
{
    const Thole__V1__QueryInstance *const asked = (const Thole__V1__QueryInstance *)request->message;
    thole_error error = {.status = THOLE_OK};
    thole_slice output = {0};
    Thole__V1__QueryResult answer;
    thole__v1__query_result__init(&answer);
    thole_status const status =
        thole_client_query(calls->client, thole_slice_from(asked->instance), thole_slice_from(request->name),
                           instance_calls_bytes(asked->input), &output, &error);
    answer.output = (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)output.ptr, .len = output.len};
    gateway_answer(request, &answer.base, status, status == THOLE_OK ? "" : error.text);
    thole_client_release(output);
}

/* How an instance ended, as the status and the fields of the answer. */
static thole_status fill_outcome(const thole_outcome *outcome, Thole__V1__InstanceOutcome *answer,
                                 const char **ret_text)
{
    char *const text =
        (char *)(uintptr_t)(outcome->output.ptr != NULL ? (const char *)outcome->output.ptr : "");
    *ret_text = "";
    switch (outcome->status) {
    case THOLE_INSTANCE_COMPLETED:
        answer->state = (char *)"completed";
        answer->output = (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)outcome->output.ptr,
                                               .len = outcome->output.len};
        return THOLE_OK;
    case THOLE_INSTANCE_CANCELLED:
        answer->state = (char *)"cancelled";
        *ret_text = text;
        return THOLE_CANCELLED;
    case THOLE_INSTANCE_TERMINATED:
        answer->state = (char *)"terminated";
        *ret_text = text;
        return THOLE_CANCELLED;
    default:
        answer->state = (char *)"failed";
        *ret_text = text;
        return THOLE_APP;
    }
}

/* In steps, so that a gateway that stops need not wait long. */
static thole_status instance_calls_wait_until(struct instance_calls *calls, const char *instance,
                                              uint64_t until_ms, thole_outcome *ret, thole_error *reterr)
{
    for (;;) {
        uint64_t const now_ms = clock_monotonic_ms();
        uint64_t const left_ms = until_ms > now_ms ? until_ms - now_ms : 0;
        uint64_t const step_ms = left_ms < WAIT_STEP_MS ? left_ms : WAIT_STEP_MS;
        thole_status const status =
            thole_client_wait(calls->client, thole_slice_from(instance), step_ms, ret, reterr);
        if (status != THOLE_TIMEOUT || step_ms == left_ms)
            return status;
        if (atomic_load(&calls->stopping))
            return thole_fail(reterr, THOLE_TIMEOUT, "this gateway is stopping: ask again");
    }
}

/* Fills in the state of an instance that has not ended, and why it does not go on. */
static void fill_standing(const struct instance_view *view, Thole__V1__InstanceOutcome *answer,
                          const char **text)
{
    answer->state = view->info.state;
    answer->reason = view->info.reason;
    if (answer->reason[0] != '\0' && view->info.detail[0] != '\0')
        *text = view->info.detail;
    if (view->hindrances_len == 0)
        return;
    answer->reason = view->hindrances[0]->kind;
    answer->next_step = view->hindrances[0]->next_step;
    *text = view->hindrances[0]->text;
}

/* The explanation is a part of the time, and it may end after it. */
static thole_status wait_and_explain(struct instance_calls *calls, struct gateway_request *request,
                                     struct instance_view *view, thole_outcome *ret, thole_error *reterr)
{
    const Thole__V1__WaitInstance *const asked = (const Thole__V1__WaitInstance *)request->message;
    uint64_t const wait_ms = asked->wait_ms < INSTANCE_WAIT_MS_MAX ? asked->wait_ms : INSTANCE_WAIT_MS_MAX;
    uint64_t const until_ms = clock_monotonic_ms() + wait_ms;
    uint64_t const spare_ms = !asked->explain ? 0 : wait_ms / 3 < EXPLAIN_MS ? wait_ms / 3 : EXPLAIN_MS;
    struct arena *const arena = &request->scratch.arena;
    thole_status const status =
        instance_calls_wait_until(calls, asked->instance, until_ms - spare_ms, ret, reterr);
    if (status != THOLE_TIMEOUT)
        return status;
    (void)!instance_view_read(calls->client, asked->instance, arena, view, NULL);
    if (!asked->explain && view->rowless && strcmp(view->info.state, "running") == 0)
        view->info.state = (char *)""; /* may wait for code, or be stuck */
    if (!asked->explain)
        return status;
    instance_view_explain(calls->client, asked->instance, arena, view);
    return instance_calls_wait_until(calls, asked->instance, until_ms, ret, reterr);
}

static void wait_instance(struct instance_calls *calls, struct gateway_request *request)
{
    struct instance_view view;
    thole_error error = {.status = THOLE_OK};
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    Thole__V1__InstanceOutcome answer;
    const char *text = error.text;
    char *type = NULL;
    thole__v1__instance_outcome__init(&answer);
    thole_status status = wait_and_explain(calls, request, &view, &outcome, &error);
    if (status == THOLE_OK) {
        status = fill_outcome(&outcome, &answer, &text);
        type = memory_copy(outcome.error_type.ptr, outcome.error_type.len);
        answer.error_type = type;
    } else if (status == THOLE_TIMEOUT) {
        fill_standing(&view, &answer, &text);
    }
    gateway_answer(request, &answer.base, status, text);
    free(type);
    thole_outcome_release(&outcome);
}

static void describe_instance(const struct instance_calls *calls, struct gateway_request *request)
{
    const Thole__V1__DescribeInstance *const asked = (const Thole__V1__DescribeInstance *)request->message;
    struct arena *const arena = &request->scratch.arena;
    struct instance_view view;
    thole_error error = {.status = THOLE_OK};
    Thole__V1__InstanceDescription answer;
    thole__v1__instance_description__init(&answer);
    thole_status const status = instance_view_read(calls->client, asked->instance, arena, &view, &error);
    if (status == THOLE_OK) {
        instance_view_explain(calls->client, asked->instance, arena, &view);
        answer.info = &view.info;
        answer.hindrances = view.hindrances;
        answer.n_hindrances = view.hindrances_len;
    }
    gateway_answer(request, &answer.base, status, status == THOLE_OK ? "" : error.text);
}

static void complete_activity(const struct instance_calls *calls, struct gateway_request *request)
{
    const Thole__V1__CompleteActivity *const asked = (const Thole__V1__CompleteActivity *)request->message;
    thole_slice const token = thole_slice_from(asked->token);
    thole_error error = {.status = THOLE_OK};
    Thole__V1__Accepted answer;
    thole__v1__accepted__init(&answer);
    thole_status const status =
        asked->failure == NULL
            ? thole_client_complete(calls->client, token, instance_calls_bytes(asked->output), &error)
            : thole_client_fail(calls->client, token, thole_slice_from(asked->failure->type),
                                thole_slice_from(asked->failure->text), &error);
    gateway_answer(request, &answer.base, status, status == THOLE_OK ? "" : error.text);
}

static void list_instances(const struct instance_calls *calls, struct gateway_request *request)
{
    size_t const room = connection_max_payload(request->connection);
    instance_views_list(calls->client, request, room > ANSWER_SPARE_BYTES ? room - ANSWER_SPARE_BYTES : room);
}

/* ---- threads ---- */

static void instance_calls_carry_out(struct instance_calls *calls, struct gateway_request *request)
{
    switch (request->endpoint->kind) {
    case ENDPOINT_START:
    case ENDPOINT_START_EVENT: instance_calls_start(calls, request); break;
    case ENDPOINT_SIGNAL: signal_instance(calls, request); break;
    case ENDPOINT_CANCEL:
    case ENDPOINT_TERMINATE: end_instance(calls, request); break;
    case ENDPOINT_QUERY: instance_calls_query(calls, request); break;
    case ENDPOINT_DESCRIBE: describe_instance(calls, request); break;
    case ENDPOINT_LIST: list_instances(calls, request); break;
    case ENDPOINT_COMPLETE_ACTIVITY: complete_activity(calls, request); break;
    default: wait_instance(calls, request); break;
    }
}

static void instance_calls_one_less(struct instance_calls *calls)
{
    (void)pthread_mutex_lock(&calls->lock);
    calls->busy--;
    (void)pthread_cond_broadcast(&calls->idle);
    (void)pthread_mutex_unlock(&calls->lock);
}

static void *job_main(void *arg)
{
    struct job *const job = arg;
    struct instance_calls *const calls = job->calls;
    (void)pthread_setname_np(pthread_self(), "thole-request");
    instance_calls_carry_out(calls, job->request);
    free(job);
    instance_calls_one_less(calls);
    return NULL;
}

static bool instance_calls_one_more(struct instance_calls *calls)
{
    (void)pthread_mutex_lock(&calls->lock);
    bool const room = calls->busy < INSTANCE_CALLS_MAX && !atomic_load(&calls->stopping);
    calls->busy += room;
    (void)pthread_mutex_unlock(&calls->lock);
    return room;
}

void instance_calls_take(struct instance_calls *calls, struct gateway_request *request)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (!instance_calls_one_more(calls)) {
        gateway_refuse(request, THOLE_UNAVAILABLE, "the gateway has %d requests under way: ask again",
                       INSTANCE_CALLS_MAX);
        return;
    }
    struct job *const job = memory_new(sizeof *job);
    *job = (struct job){.calls = calls, .request = request};
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool const started = pthread_create(&thread, &attributes, job_main, job) == 0;
    (void)pthread_attr_destroy(&attributes);
    if (started)
        return;
    free(job);
    gateway_refuse(request, THOLE_UNAVAILABLE, "the gateway cannot start a thread: ask again");
    instance_calls_one_less(calls);
}

void instance_calls_destroy(struct instance_calls *calls)
{
    if (calls == NULL)
        return;
    atomic_store(&calls->stopping, true);
    (void)pthread_mutex_lock(&calls->lock);
    while (calls->busy > 0)
        (void)pthread_cond_wait(&calls->idle, &calls->lock);
    (void)pthread_mutex_unlock(&calls->lock);
    (void)pthread_cond_destroy(&calls->idle);
    (void)pthread_mutex_destroy(&calls->lock);
    free(calls);
}
