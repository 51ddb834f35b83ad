/* Life of an instance, its facts, live turns, delivery of received events, and the end of an execution. */
#include "instance_state.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_CAP_MIN = 8 };

thole_status instance_create(const struct instance_options *options, struct instance **ret)
{
    struct instance *in = calloc(1, sizeof *in + options->id.len + 1);
    if (in == NULL)
        return THOLE_NOMEM;
    in->options = *options;
    if (options->id.len > 0)
        memcpy(in->id, options->id.ptr, options->id.len);
    in->options.id.ptr = in->id;
    in->ctx.instance = in;
    in->next_event = 1;
    arena_init(&in->arena, options->memory_max);
    arena_init(&in->turn_arena, options->memory_max);
    *ret = in;
    return THOLE_OK;
}

void instance_destroy(struct instance *instance)
{
    if (instance == NULL)
        return;
    coro_destroy(instance->coro);
    arena_release(&instance->arena);
    arena_release(&instance->turn_arena);
    free(instance);
}

void instance_trim(struct instance *instance)
{
    arena_release(&instance->turn_arena);
    instance->events = NULL;
    instance->events_len = instance->events_cap = 0;
}

/* ---- facts ---- */

bool instance_started(const struct instance *instance)
{
    return instance->started;
}

bool instance_ended(const struct instance *instance)
{
    return instance->ended;
}

thole_slice instance_orchestration(const struct instance *instance)
{
    return instance->orchestration;
}

uint64_t instance_turns(const struct instance *instance)
{
    return instance->turns;
}

uint64_t instance_time_ms(const struct instance *instance)
{
    return instance->time_ms;
}

size_t instance_memory(const struct instance *instance)
{
    return sizeof *instance + instance->options.id.len + instance->arena.held + instance->turn_arena.held +
           (instance->coro != NULL ? (size_t)CORO_STACK_BYTES : 0);
}

bool instance_has_undelivered(const struct instance *instance)
{
    return instance->undelivered;
}

/* Between the request and the turn that delivers it, what is outstanding is as good as cancelled. */
static bool cancel_undelivered(const struct instance *in)
{
    return in->cancel_received && !in->cancel_delivered;
}

bool instance_accepts(const struct instance *instance, const struct event *received)
{
    if (instance->ended)
        return false;
    if (received->kind == EVENT_STARTED)
        return !instance->started;
    if (!instance->started)
        return false;
    if (received->kind == EVENT_CANCEL_REQUESTED)
        return !instance->cancel_received;
    if (!event_is_received(received->kind) || cancel_undelivered(instance))
        return false;
    const struct task *task = task_resolved_by(instance, received);
    return task != NULL && task->state == TASK_OUTSTANDING;
}

/* ---- failure of a turn ---- */

thole_status instance_break(struct instance *in, thole_status status, const char *fmt, ...)
{
    assert(status != THOLE_OK);
    if (in->broken != THOLE_OK)
        return in->broken;
    in->broken = status;
    if (in->reterr != NULL) {
        va_list args;
        va_start(args, fmt);
        in->reterr->status = status;
        (void)vsnprintf(in->reterr->text, sizeof in->reterr->text, fmt, args);
        va_end(args);
    }
    return status;
}

thole_status instance_full(struct instance *in)
{
    if (in->arena.nomem || in->turn_arena.nomem)
        return instance_break(in, THOLE_NOMEM, "out of memory");
    return instance_break(in, THOLE_LIMIT, "the instance's memory limit of %zu bytes is reached",
                          in->options.memory_max);
}

/* ---- events of the turn ---- */

void instance_turn_begin(struct instance *in, uint64_t time_ms, thole_error *reterr)
{
    instance_trim(in);
    in->expected = NULL;
    in->expected_len = 0;
    in->turns++;
    if (time_ms > in->time_ms)
        in->time_ms = time_ms;
    in->reterr = reterr;
}

thole_status instance_push(struct instance *in, const struct event *event)
{
    if (in->events_len == in->events_cap) {
        size_t const cap = in->events_cap == 0 ? EVENTS_CAP_MIN : in->events_cap * 2;
        struct event *events = arena_array(&in->turn_arena, cap, sizeof *events);
        if (events == NULL)
            return instance_full(in);
        if (in->events_len > 0)
            memcpy(events, in->events, in->events_len * sizeof *events);
        in->events = events;
        in->events_cap = cap;
    }
    in->events[in->events_len++] = *event;
    return THOLE_OK;
}

uint64_t instance_emit(struct instance *in, struct event *event)
{
    assert(!event_is_received(event->kind));
    if (in->broken != THOLE_OK)
        return 0;
    event->id = in->next_event;
    thole_status const status = in->replaying ? instance_match(in, event) : instance_push(in, event);
    if (status != THOLE_OK)
        return 0;
    return in->next_event++;
}

/* ---- delivery ---- */

static thole_status keep(struct instance *in, thole_slice from, thole_slice *ret)
{
    *ret = (thole_slice){NULL, 0};
    if (from.len > 0 && arena_dup(&in->arena, from, ret) != THOLE_OK)
        return instance_full(in);
    return THOLE_OK;
}

static thole_status receive_started(struct instance *in, struct event *event)
{
    if (in->started)
        return instance_break(in, THOLE_CORRUPT, "event %llu: Started a second time",
                              (unsigned long long)event->id);
    THOLE_TRY(keep(in, event->name, &in->orchestration));
    THOLE_TRY(keep(in, event->data, &in->input));
    THOLE_TRY(keep(in, event->request_id, &event->request_id));
    event->name = in->orchestration;
    event->data = in->input;
    in->started = true;
    return THOLE_OK;
}

static thole_status receive_cancel(struct instance *in, struct event *event)
{
    if (in->cancel_received) /* the first reason wins */
        return THOLE_OK;
    THOLE_TRY(keep(in, event->data, &in->cancel_reason));
    THOLE_TRY(keep(in, event->request_id, &event->request_id));
    event->data = in->cancel_reason;
    in->cancel_received = true;
    return THOLE_OK;
}

static thole_status receive_resolution(struct instance *in, struct event *event)
{
    struct task *task = task_resolved_by(in, event);
    if (task == NULL)
        return instance_break(
            in, THOLE_CORRUPT, "event %llu: %s for event %llu, which scheduled no such thing",
            (unsigned long long)event->id, event_kind_name(event->kind), (unsigned long long)event->ref);
    if (task->state != TASK_OUTSTANDING || cancel_undelivered(in))
        return THOLE_OK; /* a duplicate, or too late */
    THOLE_TRY(keep(in, event->data, &event->data));
    task_resolve(in, task, event);
    return THOLE_OK;
}

thole_status instance_receive(struct instance *in, const struct event *event)
{
    struct event own = *event;
    own.id = in->next_event++;
    thole_status status = THOLE_OK;
    if (own.kind == EVENT_STARTED)
        status = receive_started(in, &own);
    else if (!in->started)
        status = instance_break(in, THOLE_CORRUPT, "event %llu: %s before Started",
                                (unsigned long long)own.id, event_kind_name(own.kind));
    else if (own.kind == EVENT_CANCEL_REQUESTED)
        status = receive_cancel(in, &own);
    else
        status = receive_resolution(in, &own);
    if (status != THOLE_OK)
        return status;
    in->undelivered = true;
    return in->replaying ? THOLE_OK : instance_push(in, &own);
}

/* ---- running ---- */

static void code_entry(void *arg)
{
    struct instance *in = arg;
    in->returned_status = in->options.code(&in->ctx, in->input, &in->output);
    in->returned = true;
}

/* Cancels what is outstanding, before the code can ask for anything. The await that the code is suspended in
 * returns THOLE_CANCELLED, unless what it waits for was resolved before the request. */
static void deliver_cancel(struct instance *in)
{
    if (!cancel_undelivered(in))
        return;
    in->interrupted = in->waits_left > 0;
    in->cancel_delivered = true;
    in->cancel_pending = true;
    tasks_cancel_outstanding(in, CANCEL_REQUESTED, in->cancel_reason);
}

static void finish_completed(struct instance *in)
{
    tasks_cancel_outstanding(in, CANCEL_ENDED, THOLE_STR("ended"));
    struct event event = {.kind = EVENT_COMPLETED, .data = in->output};
    if (in->broken == THOLE_OK && !in->replaying && in->output.len > 0 &&
        arena_dup(&in->turn_arena, in->output, &event.data) != THOLE_OK)
        (void)instance_full(in);
    (void)instance_emit(in, &event);
}

static void finish_cancelled(struct instance *in)
{
    tasks_cancel_outstanding(in, CANCEL_REQUESTED, in->cancel_reason);
    struct event event = {.kind = EVENT_CANCELLED, .data = in->cancel_reason};
    (void)instance_emit(in, &event);
}

static void finish_failed(struct instance *in, thole_status status)
{
    tasks_cancel_outstanding(in, CANCEL_ENDED, THOLE_STR("ended"));
    struct event event = {.kind = EVENT_FAILED, .code = (uint32_t)status};
    event.data = instance_failure_text(in, status);
    (void)instance_emit(in, &event);
}

static void finish(struct instance *in)
{
    thole_status const status = in->returned_status;
    bool const unnoticed = status == THOLE_OK && !in->cancel_noticed;
    if (in->cancel_delivered && !unnoticed)
        finish_cancelled(in);
    else if (status == THOLE_OK && in->output.len <= in->options.payload_max)
        finish_completed(in);
    else
        finish_failed(in, status == THOLE_OK ? THOLE_LIMIT : status);
    in->ended = in->broken == THOLE_OK;
    coro_destroy(in->coro);
    in->coro = NULL;
}

static thole_status code_begin(struct instance *in)
{
    if (in->options.code == NULL)
        return instance_break(in, THOLE_INVALID, "this instance has no code to run");
    in->coro = coro_create(in->options.stacks, code_entry, in);
    if (in->coro == NULL)
        return instance_break(in, THOLE_NOMEM, "no stack for an orchestration (%zu are in use)",
                              stack_pool_in_use(in->options.stacks));
    return THOLE_OK;
}

thole_status instance_run(struct instance *in)
{
    assert(in->started && !in->ended);
    in->undelivered = false;
    deliver_cancel(in);
    bool const waits = in->waits_left > 0 && !in->interrupted;
    if (in->broken == THOLE_OK && in->coro == NULL)
        (void)code_begin(in);
    if (in->broken != THOLE_OK || waits)
        return in->broken;
    (void)coro_resume(in->coro);
    if (in->returned && in->broken == THOLE_OK)
        finish(in);
    return in->broken;
}

static thole_status turn_live(struct instance *in, const struct turn_in *turn)
{
    for (size_t i = 0; i < turn->received_len; i++) {
        struct event event = turn->received[i];
        if (!instance_accepts(in, &event))
            continue;
        if (event.kind == EVENT_STARTED)
            event.code = SEMANTICS_VERSION;
        THOLE_TRY(instance_receive(in, &event));
    }
    if (!in->started)
        return instance_break(in, THOLE_INVALID, "the execution has not started");
    return turn->run ? instance_run(in) : THOLE_OK;
}

thole_status instance_turn(struct instance *instance, const struct turn_in *in, struct turn_out *ret,
                           thole_error *reterr)
{
    if (instance->ended)
        return thole_fail(reterr, THOLE_INVALID, "the execution has ended");
    if (instance->broken != THOLE_OK)
        return thole_fail(reterr, instance->broken, "an earlier turn of this instance failed");
    instance->replaying = false;
    instance_turn_begin(instance, in->time_ms, reterr);
    thole_status const status = turn_live(instance, in);
    instance->reterr = NULL;
    if (status != THOLE_OK)
        return status;
    *ret = (struct turn_out){.number = instance->turns,
                             .time_ms = instance->time_ms,
                             .events = instance->events,
                             .events_len = instance->events_len,
                             .ended = instance->ended};
    return THOLE_OK;
}
