/* What an orchestration may call beside the awaits, and the words for why it failed. */
#include "instance_state.h"
#include "message.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PREFIX_BYTES = 160 };

/* ---- scheduling ---- */

static thole_task fault_task(enum task_fault fault)
{
    return (thole_task){TASK_FAULT_BIT | (uint64_t)fault};
}

/* The table's entry comes first: the event borrows its copy of the name. */
static thole_task schedule(struct instance *in, struct event *event)
{
    if (in->broken != THOLE_OK)
        return fault_task(FAULT_MEMORY);
    struct task *task = task_add(in, in->next_event, event->name);
    if (task == NULL)
        return fault_task(FAULT_MEMORY);
    event->name = task->name;
    if (instance_emit(in, event) == 0)
        return fault_task(FAULT_MEMORY);
    return (thole_task){task->id};
}

thole_task thole_call(thole_ctx *ctx, thole_slice name, thole_slice input)
{
    struct instance *in = ctx->instance;
    struct event event = {
        .kind = EVENT_ACTIVITY_SCHEDULED, .name = name, .queue = THOLE_STR("default"), .data = input};
    if (name_check(name, "activity", NULL) != THOLE_OK)
        return fault_task(FAULT_ACTIVITY_NAME);
    if (input.len > in->options.payload_max)
        return fault_task(FAULT_ACTIVITY_INPUT);
    /* A replayed turn only compares it, at once. */
    if (!in->replaying && input.len > 0 && arena_dup(&in->turn_arena, input, &event.data) != THOLE_OK) {
        (void)instance_full(in);
        return fault_task(FAULT_MEMORY);
    }
    return schedule(in, &event);
}

thole_task thole_timer(thole_ctx *ctx, uint64_t delay_ms)
{
    struct instance *in = ctx->instance;
    if (delay_ms > TIMER_DELAY_MS_MAX || delay_ms > UINT64_MAX - in->time_ms)
        return fault_task(FAULT_TIMER_DELAY);
    struct event event = {.kind = EVENT_TIMER_CREATED, .due_ms = in->time_ms + delay_ms};
    return schedule(in, &event);
}

/* At most so many bytes, not ending in the middle of a UTF-8 sequence. */
static thole_slice cut(thole_slice text, size_t bytes_max)
{
    if (text.len <= bytes_max)
        return text;
    size_t len = bytes_max;
    while (len > 0 && bytes_max - len < 3 && (text.ptr[len] & 0xc0) == 0x80)
        len--;
    return (thole_slice){text.ptr, len};
}

void thole_cancel(thole_ctx *ctx, thole_task task, thole_slice reason)
{
    struct instance *in = ctx->instance;
    struct task *found = task_find(in, task.id);
    if (found == NULL || found->state != TASK_OUTSTANDING || in->broken != THOLE_OK)
        return;
    thole_slice kept = {NULL, 0};
    if (reason.len > 0 && arena_dup(&in->arena, cut(reason, REASON_BYTES_MAX), &kept) != THOLE_OK)
        (void)instance_full(in);
    else
        task_cancel(in, found, CANCEL_EXPLICIT, kept);
}

/* ---- facts ---- */

thole_slice thole_task_error(thole_ctx *ctx, thole_task task)
{
    const struct task *found = task_find(ctx->instance, task.id);
    return found != NULL && found->state == TASK_FAILED ? found->data : (thole_slice){NULL, 0};
}

uint64_t thole_now_ms(const thole_ctx *ctx)
{
    return ctx->instance->time_ms;
}

thole_slice thole_instance_id(const thole_ctx *ctx)
{
    return ctx->instance->options.id;
}

uint64_t thole_execution_id(const thole_ctx *ctx)
{
    return ctx->instance->options.execution;
}

/* ---- memory ---- */

void *thole_alloc(thole_ctx *ctx, size_t bytes)
{
    struct instance *in = ctx->instance;
    void *p = arena_alloc(&in->arena, bytes);
    if (p == NULL)
        (void)instance_full(in);
    return p;
}

THOLE_PRINTF(2, 0) static thole_slice format(thole_ctx *ctx, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    thole_slice text = {NULL, 0};
    int const len = vsnprintf(NULL, 0, fmt, args);
    char *p = len < 0 ? NULL : thole_alloc(ctx, (size_t)len + 1);
    if (p != NULL) {
        (void)vsnprintf(p, (size_t)len + 1, fmt, again);
        text = (thole_slice){(const uint8_t *)p, (size_t)len};
    }
    va_end(again);
    return text;
}

thole_slice thole_format(thole_ctx *ctx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    thole_slice const text = format(ctx, fmt, args);
    va_end(args);
    return text;
}

thole_status thole_throw(thole_ctx *ctx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ctx->instance->thrown = format(ctx, fmt, args);
    va_end(args);
    return THOLE_APP;
}

/* ---- why it failed ---- */

static const char *why(const struct task *task)
{
    if (task->state == TASK_CANCELLED)
        return "was cancelled";
    assert(task->state == TASK_FAILED);
    return "failed";
}

/* "activity 'charge' failed", "timer 5 was cancelled". */
static void task_prefix(const struct task *task, char to[PREFIX_BYTES])
{
    if (task_is_timer(task))
        (void)snprintf(to, PREFIX_BYTES, "timer %llu %s", (unsigned long long)task->id, why(task));
    else
        (void)snprintf(to, PREFIX_BYTES, "activity '%.*s' %s", THOLE_FMT(task->name), why(task));
}

/* "prefix: text", cut to the payload limit. */
static thole_slice joined(struct instance *in, const char *prefix, thole_slice text)
{
    thole_slice const parts[] = {thole_slice_from(prefix), thole_slice_from(": "), text};
    size_t const n = text.len > 0 ? 3 : 1;
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    uint8_t *to = arena_alloc(&in->turn_arena, len);
    if (to == NULL) {
        (void)instance_full(in);
        return (thole_slice){NULL, 0};
    }
    len = 0;
    for (size_t i = 0; i < n; i++) {
        memcpy(to + len, parts[i].ptr, parts[i].len);
        len += parts[i].len;
    }
    return cut((thole_slice){to, len}, in->options.payload_max);
}

static thole_slice last_failure_text(struct instance *in)
{
    const struct last_failure *last = &in->last_failure;
    char prefix[PREFIX_BYTES];
    if (last->task != NULL) {
        thole_slice text = last->task->data;
        if (text.len == 0 && last->task->state == TASK_FAILED && last->task->code != THOLE_APP)
            text = thole_slice_from(thole_status_text((thole_status)last->task->code));
        task_prefix(last->task, prefix);
        return joined(in, prefix, text);
    }
    if (last->status == THOLE_CANCELLED)
        return thole_slice_from(thole_status_text(THOLE_CANCELLED));
    return joined(in, fault_text(last->fault), (thole_slice){NULL, 0});
}

thole_slice instance_failure_text(struct instance *in, thole_status status)
{
    char text[PREFIX_BYTES];
    if (in->returned_status == THOLE_OK) {
        (void)snprintf(text, sizeof text, "the output has %zu bytes, at most %zu are allowed", in->output.len,
                       in->options.payload_max);
        return joined(in, text, (thole_slice){NULL, 0});
    }
    if (in->thrown.len > 0)
        return cut(in->thrown, in->options.payload_max);
    if (in->last_failure.status != THOLE_OK)
        return last_failure_text(in);
    return thole_slice_from(thole_status_text(status));
}
