/* The calls of an orchestration that schedule, start, raise and cancel. */
#include "instance_schedule.h"
#include "instance_cancel.h"
#include "instance_code.h"
#include "instance_events.h"
#include "instance_memory.h"
#include "instance_retry.h"
#include "instance_tasks.h"
#include "instance_turn.h"
#include "message.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static thole_task fault_task(enum task_fault fault)
{
    return (thole_task){TASK_FAULT_BIT | (uint64_t)fault};
}

/* Copies a struct with a size member, perhaps of an older version, into one with all members. */
static bool options_copy(void *to, size_t to_size, const void *from, size_t from_size)
{
    if (from_size < sizeof(size_t))
        return false;
    memcpy(to, from, from_size < to_size ? from_size : to_size);
    return true;
}

/* Adds the task first: the event borrows its copy of the name. */
static struct task *instance_schedule_schedule(struct instance *in, enum task_kind kind, struct event *event)
{
    if (in->broken != THOLE_OK)
        return NULL;
    uint64_t const id = instance_next_id(in);
    struct task *task = task_add(in, id, kind, event->name);
    if (task == NULL)
        return NULL;
    if (task->name != NULL)
        event->name = task->name->text;
    return instance_emit(in, event) == 0 ? NULL : task;
}

static thole_task instance_schedule_scheduled(const struct task *task, thole_status status)
{
    return task == NULL || status != THOLE_OK ? fault_task(FAULT_MEMORY) : (thole_task){task->id};
}

/* ---- activities ---- */

/* Logs the error in options: a failure's text cannot have it, see log_refused_type(). */
static void log_refused_options(struct instance *in, const char *what, thole_slice name, const char *flaw)
{
    char text[512];
    if (in->turn.replaying)
        return;
    (void)snprintf(text, sizeof text, "the options of %s '%.*s' are refused: %s", what, THOLE_FMT(name),
                   flaw);
    instance_log(in, THOLE_LOG_WARN, thole_slice_from(text));
}

static enum task_fault call_prepare(struct instance *in, thole_slice name, thole_slice input,
                                    const thole_call_options *given, struct event *event, struct retry *retry,
                                    thole_slice types[FINAL_TYPES_MAX])
{
    thole_call_options options = {.size = 0};
    if (name_check(name, "activity", NULL) != THOLE_OK)
        return FAULT_ACTIVITY_NAME;
    if (input.len > in->options.payload_max)
        return FAULT_ACTIVITY_INPUT;
    enum task_fault const fault = given != NULL && !options_copy(&options, sizeof options, given, given->size)
                                      ? FAULT_CALL_OPTIONS
                                      : retry_from_options(&options, retry, types);
    if (fault != 0) {
        log_refused_options(in, "a call of activity", name,
                            given->size < sizeof given->size ? "thole_call_options.size is not set"
                                                             : retry_options_flaw(given));
        return fault;
    }
    *event = (struct event){.kind = EVENT_ACTIVITY_SCHEDULED,
                            .name = name,
                            .queue = options.queue.len > 0 ? options.queue : THOLE_STR("default"),
                            .data = input,
                            .retry = retry_is_none(retry) ? NULL : retry};
    return 0;
}

/* The recorded policy counts, so that the code's may change. The event borrows the task's policy, which lives
 * as long as the execution. */
static thole_status call_describe(struct instance *in, struct task *task, const struct event *event)
{
    THOLE_TRY(task_describe_call(in, task, in->turn.replaying ? in->turn.matched : event));
    if (!in->turn.replaying && task->call != NULL)
        instance_emitted_retry(in, &task->call->retry);
    return THOLE_OK;
}

thole_task schedule_call(struct instance *in, thole_slice name, thole_slice input,
                         const thole_call_options *options)
{
    struct event event;
    struct retry retry;
    thole_slice types[FINAL_TYPES_MAX];
    options = options == NULL ? in->options.call_options : options;
    enum task_fault const fault = call_prepare(in, name, input, options, &event, &retry, types);
    if (fault != 0)
        return fault_task(fault);
    if (in->broken != THOLE_OK || instance_keep_for_turn(in, input, &event.data) != THOLE_OK ||
        (options != NULL && instance_keep_for_turn(in, event.queue, &event.queue) != THOLE_OK))
        return fault_task(FAULT_MEMORY);
    struct task *task = instance_schedule_schedule(in, TASK_ACTIVITY, &event);
    return instance_schedule_scheduled(task, task == NULL ? THOLE_LIMIT : call_describe(in, task, &event));
}

thole_task thole_call(thole_ctx *ctx, thole_slice name, thole_slice input)
{
    NOTE_CALL_SITE(ctx->instance);
    if (code_refuses(ctx->instance))
        return fault_task(FAULT_FORBIDDEN);
    return schedule_call(ctx->instance, name, input, NULL);
}

thole_task thole_call_with(thole_ctx *ctx, thole_slice name, thole_slice input,
                           const thole_call_options *options)
{
    NOTE_CALL_SITE(ctx->instance);
    if (code_refuses(ctx->instance))
        return fault_task(FAULT_FORBIDDEN);
    return schedule_call(ctx->instance, name, input, options);
}

/* ---- timers, events ---- */

thole_task schedule_timer(struct instance *in, uint64_t delay_ms)
{
    if (delay_ms > TIMER_DELAY_MS_MAX || delay_ms > UINT64_MAX - in->turn.time_ms)
        return fault_task(FAULT_TIMER_DELAY);
    struct event event = {.kind = EVENT_TIMER_CREATED, .due_ms = in->turn.time_ms + delay_ms};
    return instance_schedule_scheduled(instance_schedule_schedule(in, TASK_TIMER, &event), THOLE_OK);
}

thole_task thole_timer(thole_ctx *ctx, uint64_t delay_ms)
{
    NOTE_CALL_SITE(ctx->instance);
    return code_refuses(ctx->instance) ? fault_task(FAULT_FORBIDDEN)
                                       : schedule_timer(ctx->instance, delay_ms);
}

thole_task thole_event(thole_ctx *ctx, thole_slice name)
{
    struct instance *in = ctx->instance;
    NOTE_CALL_SITE(in);
    if (code_refuses(in))
        return fault_task(FAULT_FORBIDDEN);
    if (name_check(name, "event", NULL) != THOLE_OK)
        return fault_task(FAULT_EVENT_NAME);
    struct event event = {.kind = EVENT_EVENT_AWAITED, .name = name};
    struct task *task = instance_schedule_schedule(in, TASK_EVENT, &event);
    if (task != NULL)
        event_await(in, task);
    return instance_schedule_scheduled(task, THOLE_OK);
}

static enum task_fault raise_fault(const struct instance *in, const struct event *event)
{
    if (id_check(event->target, NULL) != THOLE_OK)
        return FAULT_RAISE_ID;
    if (name_check(event->name, "event", NULL) != THOLE_OK)
        return FAULT_RAISE_NAME;
    return event->data.len > in->options.payload_max ? FAULT_RAISE_DATA : 0;
}

void thole_raise(thole_ctx *ctx, thole_slice instance, thole_slice name, thole_slice data)
{
    struct instance *in = ctx->instance;
    struct event event = {.kind = EVENT_EVENT_SENT, .target = instance, .name = name, .data = data};
    NOTE_CALL_SITE(in);
    if (code_refuses(in) || in->broken != THOLE_OK)
        return;
    enum task_fault const fault = raise_fault(in, &event);
    if (fault != 0)
        code_fault(in, fault);
    else if (instance_keep_for_turn(in, instance, &event.target) == THOLE_OK &&
             instance_keep_for_turn(in, name, &event.name) == THOLE_OK &&
             instance_keep_for_turn(in, data, &event.data) == THOLE_OK)
        (void)instance_emit(in, &event);
}

static enum task_fault emit_fault(const struct instance *in, const struct event *event)
{
    if (event_type_check(event->name, NULL) != THOLE_OK)
        return FAULT_EMIT_TYPE;
    return event->data.len > in->options.payload_max ? FAULT_EMIT_DATA : 0;
}

/* In the log: the failure's text cannot have it, since replay compares that with the texts of histories. */
static void log_refused_type(struct instance *in, thole_slice type)
{
    enum { SHOWN_MAX = 80 };
    char text[512];
    thole_error why = {.status = THOLE_OK};
    int const shown = type.len < SHOWN_MAX ? (int)type.len : SHOWN_MAX;
    if (in->turn.replaying || event_type_check(type, &why) == THOLE_OK)
        return;
    (void)snprintf(text, sizeof text, "thole_emit: the type '%.*s' is refused: %.200s", shown,
                   (const char *)type.ptr, why.text);
    instance_log(in, THOLE_LOG_WARN, thole_slice_from(text));
}

void thole_emit(thole_ctx *ctx, thole_slice type, thole_slice data)
{
    struct instance *in = ctx->instance;
    struct event event = {.kind = EVENT_EVENT_EMITTED, .name = type, .data = data};
    NOTE_CALL_SITE(in);
    if (code_refuses(in) || in->broken != THOLE_OK)
        return;
    enum task_fault const fault = emit_fault(in, &event);
    if (fault == FAULT_EMIT_TYPE)
        log_refused_type(in, type);
    if (fault != 0)
        code_fault(in, fault);
    else if (instance_keep_for_turn(in, type, &event.name) == THOLE_OK &&
             instance_keep_for_turn(in, data, &event.data) == THOLE_OK)
        (void)instance_emit(in, &event);
}

/* ---- children and detached instances ---- */

/* "<this instance>:<execution>:<event id>" */
static enum task_fault derive_id(struct instance *in, char to[THOLE_ID_BYTES_MAX + 48], thole_slice *ret)
{
    int const len =
        snprintf(to, THOLE_ID_BYTES_MAX + 48, "%.*s:%llu:%llu", THOLE_FMT(in->options.id),
                 (unsigned long long)in->options.execution, (unsigned long long)instance_next_id(in));
    *ret = (thole_slice){(const uint8_t *)to, len < 0 ? 0 : (size_t)len};
    return ret->len > THOLE_ID_BYTES_MAX ? FAULT_CHILD_ID_DERIVED : 0;
}

/* Fills in the event except its kind. */
static enum task_fault child_prepare(struct instance *in, thole_slice orchestration, thole_slice input,
                                     const thole_child_options *given, char id[THOLE_ID_BYTES_MAX + 48],
                                     struct event *event)
{
    thole_child_options options = {.size = 0};
    if (name_check(orchestration, "orchestration", NULL) != THOLE_OK)
        return FAULT_CHILD_NAME;
    if (input.len > in->options.payload_max)
        return FAULT_CHILD_INPUT;
    if (given != NULL && !options_copy(&options, sizeof options, given, given->size)) {
        log_refused_options(in, "a child", orchestration, "thole_child_options.size is not set");
        return FAULT_CHILD_OPTIONS;
    }
    if ((unsigned)options.close > THOLE_CLOSE_TERMINATE ||
        !instance_turn_takes(in->turn.expected_len > 0 ? in->turn.expected : NULL, options.version))
        return FAULT_CHILD_OPTIONS;
    if (options.instance.len > 0 && id_check(options.instance, NULL) != THOLE_OK)
        return FAULT_CHILD_ID;
    event->name = orchestration;
    event->data = input;
    event->target = options.instance;
    event->version = options.version;
    event->code = event->kind == EVENT_CHILD_SCHEDULED ? (uint32_t)options.close : 0;
    return options.instance.len > 0 ? 0 : derive_id(in, id, &event->target);
}

static thole_status child_keep(struct instance *in, struct event *event)
{
    THOLE_TRY(in->broken);
    THOLE_TRY(instance_keep_for_turn(in, event->target, &event->target));
    return instance_keep_for_turn(in, event->data, &event->data);
}

thole_task thole_child(thole_ctx *ctx, thole_slice orchestration, thole_slice input,
                       const thole_child_options *options)
{
    struct instance *in = ctx->instance;
    struct event event = {.kind = EVENT_CHILD_SCHEDULED};
    char id[THOLE_ID_BYTES_MAX + 48];
    NOTE_CALL_SITE(in);
    if (code_refuses(in))
        return fault_task(FAULT_FORBIDDEN);
    enum task_fault const fault = child_prepare(in, orchestration, input, options, id, &event);
    if (fault != 0)
        return fault_task(fault);
    if (child_keep(in, &event) != THOLE_OK)
        return fault_task(FAULT_MEMORY);
    struct task *task = instance_schedule_schedule(in, TASK_CHILD, &event);
    return instance_schedule_scheduled(task,
                                       task == NULL ? THOLE_LIMIT : task_describe_child(in, task, &event));
}

void thole_start(thole_ctx *ctx, thole_slice orchestration, thole_slice input,
                 const thole_child_options *options)
{
    struct instance *in = ctx->instance;
    struct event event = {.kind = EVENT_DETACHED_STARTED};
    char id[THOLE_ID_BYTES_MAX + 48];
    NOTE_CALL_SITE(in);
    if (code_refuses(in) || in->broken != THOLE_OK)
        return;
    enum task_fault const fault = child_prepare(in, orchestration, input, options, id, &event);
    if (fault != 0)
        code_fault(in, fault);
    else if (child_keep(in, &event) == THOLE_OK &&
             instance_keep_for_turn(in, orchestration, &event.name) == THOLE_OK)
        (void)instance_emit(in, &event);
}

/* ---- cancelling ---- */

void thole_cancel(thole_ctx *ctx, thole_task task, thole_slice reason)
{
    struct instance *in = ctx->instance;
    thole_slice kept;
    NOTE_CALL_SITE(in);
    if (code_refuses(in) || in->broken != THOLE_OK)
        return;
    struct task *found = task_find(in, task.id);
    if (found == NULL || !task_may_be_cancelled(found))
        return;
    if (instance_keep(in, text_cut(reason, REASON_BYTES_MAX), &kept) == THOLE_OK)
        task_cancel(in, found, CANCEL_EXPLICIT, kept);
}
