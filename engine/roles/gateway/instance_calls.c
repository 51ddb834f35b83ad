#include "instance_calls.h"
#include "clock.h"
#include "memory.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { WAIT_STEP_MS = 2000, RANDOM_ID_BYTES = 40, STACK_BYTES = 512 * 1024 };

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

static thole_slice bytes(ProtobufCBinaryData data)
{
    return (thole_slice){data.data, data.len};
}

/* ---- the operations ---- */

static void start(const struct instance_calls *calls, struct gateway_request *request)
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
    (void)snprintf(id, sizeof id, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    const char *const instance = asked->instance[0] != '\0' ? asked->instance : id;
    bool const traced = asked->traceparent[0] != '\0';
    thole_start_options const options = {
        .size = sizeof options,
        .version = asked->version,
        .request_id = thole_slice_from(asked->request_id),
        .traceparent = traced ? thole_slice_from(asked->traceparent) : request->sender.traceparent,
        .tracestate = traced ? thole_slice_from(asked->tracestate) : request->sender.tracestate,
        .sender = request->sender};
    thole_status const status =
        thole_client_start_with(calls->client, thole_slice_from(instance), thole_slice_from(request->name),
                                bytes(asked->input), &options, NULL, &error);
    answer.instance = (char *)(uintptr_t)instance;
    gateway_answer(request, &answer.base, status, status == THOLE_OK ? "" : error.text);
}

static void signal_instance(const struct instance_calls *calls, struct gateway_request *request)
{
    const Thole__V1__SignalInstance *const asked = (const Thole__V1__SignalInstance *)request->message;
    thole_error error = {.status = THOLE_OK};
    Thole__V1__Accepted answer;
    thole__v1__accepted__init(&answer);
    thole_signal_options const options = {
        .size = sizeof options, .request_id = thole_slice_from(asked->request_id), .sender = request->sender};
    thole_status const status =
        thole_client_signal_with(calls->client, thole_slice_from(asked->instance),
                                 thole_slice_from(request->name), bytes(asked->data), &options, NULL, &error);
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
    thole_status const status = (terminate ? thole_client_terminate_with : thole_client_cancel_with)(
        calls->client, thole_slice_from(asked->instance), &options, &error);
    gateway_answer(request, &answer.base, status, status == THOLE_OK ? "" : error.text);
}

static void query(const struct instance_calls *calls, struct gateway_request *request)
{
    const Thole__V1__QueryInstance *const asked = (const Thole__V1__QueryInstance *)request->message;
    thole_error error = {.status = THOLE_OK};
    thole_slice output = {0};
    Thole__V1__QueryResult answer;
    thole__v1__query_result__init(&answer);
    thole_status const status =
        thole_client_query(calls->client, thole_slice_from(asked->instance), thole_slice_from(request->name),
                           bytes(asked->input), &output, &error);
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
static thole_status wait_for(struct instance_calls *calls, const Thole__V1__WaitInstance *asked,
                             thole_outcome *ret, thole_error *reterr)
{
    uint64_t const wait_ms = asked->wait_ms < INSTANCE_WAIT_MS_MAX ? asked->wait_ms : INSTANCE_WAIT_MS_MAX;
    uint64_t const until_ms = clock_monotonic_ms() + wait_ms;
    for (;;) {
        uint64_t const now_ms = clock_monotonic_ms();
        uint64_t const left_ms = until_ms > now_ms ? until_ms - now_ms : 0;
        uint64_t const step_ms = left_ms < WAIT_STEP_MS ? left_ms : WAIT_STEP_MS;
        thole_status const status =
            thole_client_wait(calls->client, thole_slice_from(asked->instance), step_ms, ret, reterr);
        if (status != THOLE_TIMEOUT || step_ms == left_ms)
            return status;
        if (atomic_load(&calls->stopping))
            return thole_fail(reterr, THOLE_TIMEOUT, "this gateway is stopping: ask again");
    }
}

static void wait_instance(struct instance_calls *calls, struct gateway_request *request)
{
    const Thole__V1__WaitInstance *const asked = (const Thole__V1__WaitInstance *)request->message;
    thole_error error = {.status = THOLE_OK};
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    Thole__V1__InstanceOutcome answer;
    const char *text = error.text;
    char *type = NULL;
    thole__v1__instance_outcome__init(&answer);
    thole_status status = wait_for(calls, asked, &outcome, &error);
    if (status == THOLE_OK) {
        status = fill_outcome(&outcome, &answer, &text);
        type = memory_copy(outcome.error_type.ptr, outcome.error_type.len);
        answer.error_type = type;
    } else if (status == THOLE_TIMEOUT) {
        answer.state = (char *)"running";
    }
    gateway_answer(request, &answer.base, status, text);
    free(type);
    thole_outcome_release(&outcome);
}

/* ---- threads ---- */

static void carry_out(struct instance_calls *calls, struct gateway_request *request)
{
    switch (request->endpoint->kind) {
    case ENDPOINT_START: start(calls, request); break;
    case ENDPOINT_SIGNAL: signal_instance(calls, request); break;
    case ENDPOINT_CANCEL:
    case ENDPOINT_TERMINATE: end_instance(calls, request); break;
    case ENDPOINT_QUERY: query(calls, request); break;
    default: wait_instance(calls, request); break;
    }
}

static void one_less(struct instance_calls *calls)
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
    carry_out(calls, job->request);
    free(job);
    one_less(calls);
    return NULL;
}

static bool one_more(struct instance_calls *calls)
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
    if (!one_more(calls)) {
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
    one_less(calls);
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
