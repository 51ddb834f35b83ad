/* What an orchestration may ask at any time, memory, and texts. */
#include "instance_state.h"
#include "message.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool instance_refuses(struct instance *in)
{
    if (in->guard == GUARD_NONE) {
        if (in->broken != THOLE_OK && in->broken_calls++ >= BROKEN_CALLS_MAX)
            instance_park(in);
        return false;
    }
    in->refused = true;
    return true;
}

thole_slice text_cut(thole_slice text, size_t bytes_max)
{
    if (text.len <= bytes_max)
        return text;
    size_t len = bytes_max;
    while (len > 0 && bytes_max - len < 3 && (text.ptr[len] & 0xc0) == 0x80)
        len--;
    return (thole_slice){text.ptr, len};
}

/* ---- facts ---- */

static thole_failure failure_of(const struct instance *in, thole_task task)
{
    const struct task *found = task_find(in, task.id);
    if (found == NULL) {
        enum task_fault const fault = task_fault_of(task);
        return (thole_failure){.status = fault_status(fault), .message = thole_slice_from(fault_text(fault))};
    }
    thole_failure failure = {.status = THOLE_OK};
    if (found->kind == TASK_ACTIVITY)
        failure.tries = task_try(found);
    if (found->state == TASK_FAILED || found->state == TASK_CANCELLED) {
        failure.status = found->state == TASK_FAILED ? (thole_status)found->code : THOLE_CANCELLED;
        failure.message = found->data;
        if (found->error_type != NULL)
            failure.type = *found->error_type;
    }
    return failure;
}

thole_failure thole_task_failure(thole_ctx *ctx, thole_task task)
{
    NOTE_CALL_SITE(ctx->instance);
    return failure_of(ctx->instance, task);
}

thole_slice thole_task_error(thole_ctx *ctx, thole_task task)
{
    NOTE_CALL_SITE(ctx->instance);
    return failure_of(ctx->instance, task).message;
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

uint32_t thole_version_id(const thole_ctx *ctx)
{
    const struct instance *in = ctx->instance;
    return in->version != 0 ? in->version : in->options.version;
}

bool thole_is_cancelled(const thole_ctx *ctx)
{
    return ctx->instance->cancel_noticed;
}

thole_slice thole_cancel_reason(const thole_ctx *ctx)
{
    return ctx->instance->cancel_noticed ? ctx->instance->cancel_reason : (thole_slice){NULL, 0};
}

bool thole_should_continue_as_new(const thole_ctx *ctx)
{
    const struct instance *in = ctx->instance;
    return in->next_event - 1 > CONTINUE_EVENTS || in->event_bytes > CONTINUE_BYTES;
}

/* ---- memory ---- */

void *thole_alloc(thole_ctx *ctx, size_t bytes)
{
    struct instance *in = ctx->instance;
    if (in->guard == GUARD_QUERY)
        return arena_alloc(&in->query.arena, bytes);
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

/* ---- failing ---- */

static thole_status throw(struct instance * in, thole_slice type, thole_slice text)
{
    if (in->guard == GUARD_QUERY) {
        in->query.thrown = text;
        return THOLE_APP;
    }
    if (!instance_refuses(in)) {
        in->threw = true;
        in->thrown = text;
        in->thrown_type = error_type_check(type, NULL) == THOLE_OK ? type : (thole_slice){NULL, 0};
    }
    return THOLE_APP;
}

thole_status thole_throw(thole_ctx *ctx, const char *fmt, ...)
{
    NOTE_CALL_SITE(ctx->instance);
    va_list args;
    va_start(args, fmt);
    thole_slice const text = format(ctx, fmt, args);
    va_end(args);
    return throw(ctx->instance, (thole_slice){NULL, 0}, text);
}

thole_status thole_throw_as(thole_ctx *ctx, thole_slice type, const char *fmt, ...)
{
    NOTE_CALL_SITE(ctx->instance);
    va_list args;
    va_start(args, fmt);
    thole_slice const text = format(ctx, fmt, args);
    va_end(args);
    return throw(ctx->instance, type, text);
}

/* ---- the log ---- */

static struct turn_log *log_line(struct instance *in)
{
    if (in->logs_len == in->logs_cap) {
        size_t const cap = in->logs_cap == 0 ? 8 : in->logs_cap * 2;
        struct turn_log *logs = arena_array(&in->turn_arena, cap, sizeof *logs);
        if (logs == NULL)
            return NULL;
        if (in->logs_len > 0)
            memcpy(logs, in->logs, in->logs_len * sizeof *logs);
        in->logs = logs;
        in->logs_cap = cap;
    }
    return &in->logs[in->logs_len];
}

/* What does not fit is lost: a log line is no reason to fail. */
void thole_log(thole_ctx *ctx, thole_log_level level, const char *fmt, ...)
{
    struct instance *in = ctx->instance;
    char text[512];
    NOTE_CALL_SITE(in);
    if (in->replaying || in->guard == GUARD_QUERY || in->broken != THOLE_OK)
        return;
    va_list args;
    va_start(args, fmt);
    int const whole = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t const len = whole < 0 ? 0 : (size_t)whole < sizeof text ? (size_t)whole : sizeof text - 1;
    struct turn_log *line = in->logs_bytes + len > LOG_BYTES_MAX ? NULL : log_line(in);
    if (line == NULL ||
        arena_dup(&in->turn_arena, (thole_slice){(const uint8_t *)text, len}, &line->text) != THOLE_OK)
        return;
    line->level = (uint32_t)level;
    in->logs_bytes += len + sizeof *line;
    in->logs_len++;
}
