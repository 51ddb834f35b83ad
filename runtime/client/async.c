/* Requests for event loops: the calls of the client, each on a task (client_task.h). */
#include "thole/async.h"
#include "client_task.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    IN_FLIGHT_DEFAULT = 1024,
    IN_FLIGHT_MAX = CLIENT_WINDOW / 2, /* a call has at most a look and a publish in the client's window */
    ARGUMENTS_BYTES_MAX = 2 * MESSAGE_BYTES_MAX,
};

struct thole_async {
    thole_client *client;
    struct client_loop *loop;
    bool calling; /* a callback */
    bool closing;
};

enum async_kind {
    ASYNC_START,
    ASYNC_RUN,
    ASYNC_WAIT,
    ASYNC_SIGNAL,
    ASYNC_CANCEL,
    ASYNC_TERMINATE,
    ASYNC_QUERY
};

struct async_request {
    enum async_kind kind;
    thole_client *client;
    thole_completion_fn *done;
    void *arg;
    struct arena arena; /* of the arguments */
    thole_slice instance, name, data, request_id;
    const thole_start_options *start; /* NULL: none; as is end */
    const thole_end_options *end;
    uint64_t wait_ms;
    thole_completion completion;
    thole_error error;
};

/* ---- on its task ---- */

static void async_carry_out(void *arg)
{
    struct async_request *const request = arg;
    thole_client *const client = request->client;
    thole_completion *const to = &request->completion;
    thole_error *const reterr = &request->error;
    thole_slice const id = request->instance, name = request->name, data = request->data;
    switch (request->kind) {
    case ASYNC_START:
        to->status = thole_client_start_with(client, id, name, data, request->start, &to->accepted, reterr);
        break;
    case ASYNC_RUN:
        to->status = thole_client_run(client, id, name, data, request->wait_ms, &to->outcome, reterr);
        break;
    case ASYNC_WAIT:
        to->status = thole_client_wait(client, id, request->wait_ms, &to->outcome, reterr);
        break;
    case ASYNC_SIGNAL:
        to->status = thole_client_signal(client, id, name, data, request->request_id, &to->kept, reterr);
        break;
    case ASYNC_CANCEL: to->status = thole_client_cancel_with(client, id, request->end, reterr); break;
    case ASYNC_TERMINATE: to->status = thole_client_terminate_with(client, id, request->end, reterr); break;
    case ASYNC_QUERY: to->status = thole_client_query(client, id, name, data, &to->output, reterr); break;
    }
}

/* ---- the arguments ---- */

static void request_free(struct async_request *request)
{
    thole_outcome_release(&request->completion.outcome);
    thole_client_release(request->completion.output);
    arena_release(&request->arena);
    free(request);
}

static thole_status keep_sender(struct async_request *request, thole_sender *sender)
{
    thole_slice *const texts[] = {&sender->actor, &sender->client_name, &sender->traceparent,
                                  &sender->tracestate};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        THOLE_TRY(arena_dup(&request->arena, *texts[i], texts[i]));
    return THOLE_OK;
}

/* Options of another size are refused by the call, which looks no further. */
static thole_status keep_start(struct async_request *request, const thole_start_options *from)
{
    thole_start_options *const to = arena_alloc(&request->arena, sizeof *to);
    if (to == NULL)
        return arena_status(&request->arena);
    *to = (thole_start_options){.size = 0};
    request->start = to;
    if (from->size < sizeof *from)
        return THOLE_OK;
    *to = *from;
    THOLE_TRY(arena_dup(&request->arena, from->event, &to->event));
    THOLE_TRY(arena_dup(&request->arena, from->event_data, &to->event_data));
    THOLE_TRY(arena_dup(&request->arena, from->request_id, &to->request_id));
    THOLE_TRY(arena_dup(&request->arena, from->traceparent, &to->traceparent));
    THOLE_TRY(arena_dup(&request->arena, from->tracestate, &to->tracestate));
    return keep_sender(request, &to->sender);
}

static thole_status keep_end(struct async_request *request, const thole_end_options *from)
{
    thole_end_options *const to = arena_alloc(&request->arena, sizeof *to);
    if (to == NULL)
        return arena_status(&request->arena);
    *to = (thole_end_options){.size = 0};
    request->end = to;
    if (from->size < sizeof *from)
        return THOLE_OK;
    *to = *from;
    THOLE_TRY(arena_dup(&request->arena, from->reason, &to->reason));
    THOLE_TRY(arena_dup(&request->arena, from->request_id, &to->request_id));
    return keep_sender(request, &to->sender);
}

static thole_status keep_arguments(struct async_request *request, const struct async_request *given)
{
    struct arena *const arena = &request->arena;
    *request = *given;
    arena_init(arena, ARGUMENTS_BYTES_MAX);
    THOLE_TRY(arena_dup(arena, given->instance, &request->instance));
    THOLE_TRY(arena_dup(arena, given->name, &request->name));
    THOLE_TRY(arena_dup(arena, given->data, &request->data));
    THOLE_TRY(arena_dup(arena, given->request_id, &request->request_id));
    if (given->start != NULL)
        THOLE_TRY(keep_start(request, given->start));
    return given->end != NULL ? keep_end(request, given->end) : THOLE_OK;
}

/* @p given: its kind and arguments, which are borrowed. */
static thole_status make_request(thole_async *async, struct async_request given, thole_completion_fn *done,
                                 void *arg, uint64_t *ret_request, thole_error *reterr)
{
    uint64_t number = 0;
    if (done == NULL)
        return thole_fail(reterr, THOLE_INVALID, "done is NULL: there must be a function to call at the end");
    if (async->closing)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "it is being closed");
    struct async_request *const request = memory_new(sizeof *request);
    given.client = async->client;
    given.done = done;
    given.arg = arg;
    thole_status status = keep_arguments(request, &given);
    if (status != THOLE_OK)
        (void)thole_fail(reterr, status,
                         "the arguments have more than %d bytes, or there is no memory for them",
                         ARGUMENTS_BYTES_MAX);
    else
        status = client_task_begin(async->loop, async_carry_out, request, &number, reterr);
    if (status != THOLE_OK) {
        request_free(request);
        return status;
    }
    request->completion.request = number;
    if (ret_request != NULL)
        *ret_request = number;
    return THOLE_OK;
}

/* ---- the requests ---- */

thole_status thole_async_start(thole_async *async, thole_slice instance, thole_slice orchestration,
                               thole_slice input, const thole_start_options *options,
                               thole_completion_fn *done, void *arg, uint64_t *ret_request,
                               thole_error *reterr)
{
    struct async_request const start = {
        .kind = ASYNC_START, .instance = instance, .name = orchestration, .data = input, .start = options};
    return make_request(async, start, done, arg, ret_request, reterr);
}

thole_status thole_async_run(thole_async *async, thole_slice instance, thole_slice orchestration,
                             thole_slice input, uint64_t wait_ms, thole_completion_fn *done, void *arg,
                             uint64_t *ret_request, thole_error *reterr)
{
    struct async_request const run = {
        .kind = ASYNC_RUN, .instance = instance, .name = orchestration, .data = input, .wait_ms = wait_ms};
    return make_request(async, run, done, arg, ret_request, reterr);
}

thole_status thole_async_wait(thole_async *async, thole_slice instance, uint64_t wait_ms,
                              thole_completion_fn *done, void *arg, uint64_t *ret_request,
                              thole_error *reterr)
{
    struct async_request const wait = {.kind = ASYNC_WAIT, .instance = instance, .wait_ms = wait_ms};
    return make_request(async, wait, done, arg, ret_request, reterr);
}

thole_status thole_async_signal(thole_async *async, thole_slice instance, thole_slice name, thole_slice data,
                                thole_slice request_id, thole_completion_fn *done, void *arg,
                                uint64_t *ret_request, thole_error *reterr)
{
    struct async_request const signal = {
        .kind = ASYNC_SIGNAL, .instance = instance, .name = name, .data = data, .request_id = request_id};
    return make_request(async, signal, done, arg, ret_request, reterr);
}

thole_status thole_async_cancel(thole_async *async, thole_slice instance, const thole_end_options *options,
                                thole_completion_fn *done, void *arg, uint64_t *ret_request,
                                thole_error *reterr)
{
    struct async_request const cancel = {.kind = ASYNC_CANCEL, .instance = instance, .end = options};
    return make_request(async, cancel, done, arg, ret_request, reterr);
}

thole_status thole_async_terminate(thole_async *async, thole_slice instance, const thole_end_options *options,
                                   thole_completion_fn *done, void *arg, uint64_t *ret_request,
                                   thole_error *reterr)
{
    struct async_request const terminate = {.kind = ASYNC_TERMINATE, .instance = instance, .end = options};
    return make_request(async, terminate, done, arg, ret_request, reterr);
}

thole_status thole_async_query(thole_async *async, thole_slice instance, thole_slice name, thole_slice input,
                               thole_completion_fn *done, void *arg, uint64_t *ret_request,
                               thole_error *reterr)
{
    struct async_request const query = {
        .kind = ASYNC_QUERY, .instance = instance, .name = name, .data = input};
    return make_request(async, query, done, arg, ret_request, reterr);
}

bool thole_async_abandon(thole_async *async, uint64_t request)
{
    return client_task_abandon(async->loop, request);
}

/* ---- the loop ---- */

static void async_notify(thole_async *async, struct async_request *request, bool abandoned)
{
    thole_completion *const completion = &request->completion;
    completion->text = completion->status == THOLE_OK ? "" : request->error.text;
    if (abandoned && completion->status != THOLE_OK) {
        completion->status = THOLE_CANCELLED;
        completion->text = "the request was abandoned; it may have been done";
    }
    async->calling = true;
    request->done(request->arg, completion);
    async->calling = false;
    request_free(request);
}

/* Those that have ended by now: what a callback's request ends with comes the next time, or callbacks that
 * make requests would keep the loop's thread. */
static size_t tell_ended(thole_async *async)
{
    size_t told = 0;
    bool abandoned;
    for (size_t left = client_loop_ended(async->loop); left > 0; left--, told++) {
        struct async_request *const request = client_loop_take_ended(async->loop, &abandoned);
        async_notify(async, request, abandoned);
    }
    return told;
}

size_t thole_async_dispatch(thole_async *async)
{
    assert(!async->calling); /* not from a callback */
    client_loop_turn(async->loop);
    return tell_ended(async);
}

int thole_async_fd(const thole_async *async)
{
    return client_loop_fd(async->loop);
}

size_t thole_async_in_flight(const thole_async *async)
{
    return client_loop_tasks(async->loop);
}

thole_status thole_async_open(thole_client *client, const thole_async_options *options,
                              thole_async **ret_async, thole_error *reterr)
{
    thole_async_options const none = {.size = sizeof none};
    if (options == NULL)
        options = &none;
    if (options->size < sizeof none)
        return thole_fail(reterr, THOLE_INVALID, "thole_async_options.size is not set");
    if (options->in_flight_max > IN_FLIGHT_MAX)
        return thole_fail(reterr, THOLE_INVALID, "in_flight_max is %zu, at most %d are possible",
                          options->in_flight_max, IN_FLIGHT_MAX);
    size_t const in_flight_max = options->in_flight_max == 0 ? IN_FLIGHT_DEFAULT : options->in_flight_max;
    struct thole_async *const async = memory_new(sizeof *async);
    async->client = client;
    thole_status const status = client_loop_open(client, in_flight_max, &async->loop, reterr);
    if (status != THOLE_OK) {
        free(async);
        return status;
    }
    *ret_async = async;
    return THOLE_OK;
}

void thole_async_close(thole_async *async)
{
    if (async == NULL)
        return;
    assert(!async->calling);
    async->closing = true;
    client_task_abandon_all(async->loop);
    while (client_loop_tasks(async->loop) > 0)
        (void)thole_async_dispatch(async);
    client_loop_close(async->loop);
    free(async);
}
