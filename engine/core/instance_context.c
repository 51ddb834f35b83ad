/* Functions for orchestrations: facts, memory, texts, log. */
#include "instance_code.h"
#include "instance_failure.h"
#include "instance_memory.h"
#include "instance_query.h"
#include "instance_retry.h"
#include "instance_tasks.h"
#include "instance_turn.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    return ctx->instance->turn.time_ms;
}

thole_slice thole_instance_id(const thole_ctx *ctx)
{
    return ctx->instance->options.id;
}

uint64_t thole_execution_id(const thole_ctx *ctx)
{
    return ctx->instance->options.execution;
}

thole_slice thole_orchestration_name(const thole_ctx *ctx)
{
    return ctx->instance->facts.orchestration;
}

void *thole_orchestration_arg(const thole_ctx *ctx)
{
    return ctx->instance->options.arg;
}

uint32_t thole_version_id(const thole_ctx *ctx)
{
    const struct instance *in = ctx->instance;
    return in->facts.version != 0 ? in->facts.version : in->options.version;
}

bool thole_is_cancelled(const thole_ctx *ctx)
{
    return ctx->instance->cancel.noticed;
}

thole_slice thole_cancel_reason(const thole_ctx *ctx)
{
    return ctx->instance->cancel.noticed ? ctx->instance->cancel.reason : (thole_slice){NULL, 0};
}

bool thole_should_continue_as_new(const thole_ctx *ctx)
{
    const struct instance *in = ctx->instance;
    return in->turn.next_event - 1 > CONTINUE_EVENTS || in->turn.event_bytes > CONTINUE_BYTES;
}

/* ---- memory ---- */

void *thole_alloc(thole_ctx *ctx, size_t bytes)
{
    struct instance *in = ctx->instance;
    if (in->code.guard == GUARD_QUERY)
        return arena_alloc(&in->queries.current.arena, bytes);
    void *p = arena_alloc(&in->arena, bytes);
    if (p == NULL)
        (void)instance_full(in);
    return p;
}

thole_status thole_on_drop(thole_ctx *ctx, thole_drop_fn *release, void *arg)
{
    struct instance *in = ctx->instance;
    NOTE_CALL_SITE(in);
    if (code_refuses(in) || release == NULL)
        return THOLE_INVALID;
    thole_status const status = code_on_drop(in, release, arg);
    if (status != THOLE_OK)
        (void)instance_full(in);
    return status;
}

THOLE_PRINTF(2, 0) static thole_slice instance_context_format(thole_ctx *ctx, const char *fmt, va_list args)
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

const char *thole_cstr(thole_ctx *ctx, thole_slice text)
{
    char *const copy = thole_alloc(ctx, text.len + 1);
    if (copy != NULL && text.len > 0)
        memcpy(copy, text.ptr, text.len);
    return copy;
}

thole_slice thole_format(thole_ctx *ctx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    thole_slice const text = instance_context_format(ctx, fmt, args);
    va_end(args);
    return text;
}

/* ---- failing ---- */

static thole_status instance_context_throw(struct instance *in, thole_slice type, thole_slice text)
{
    if (in->code.guard == GUARD_QUERY)
        query_throw(in, text);
    else if (!code_refuses(in))
        code_throw(in, type, text);
    return THOLE_APP;
}

thole_status thole_throw(thole_ctx *ctx, const char *fmt, ...)
{
    NOTE_CALL_SITE(ctx->instance);
    va_list args;
    va_start(args, fmt);
    thole_slice const text = instance_context_format(ctx, fmt, args);
    va_end(args);
    return instance_context_throw(ctx->instance, (thole_slice){NULL, 0}, text);
}

thole_status thole_throw_as(thole_ctx *ctx, thole_slice type, const char *fmt, ...)
{
    NOTE_CALL_SITE(ctx->instance);
    va_list args;
    va_start(args, fmt);
    thole_slice const text = instance_context_format(ctx, fmt, args);
    va_end(args);
    return instance_context_throw(ctx->instance, type, text);
}

thole_failure thole_thrown(const thole_ctx *ctx)
{
    const struct code *const code = &ctx->instance->code;
    return (thole_failure){
        .status = code->threw ? THOLE_APP : THOLE_OK, .type = code->thrown_type, .message = code->thrown};
}

/* ---- the log ---- */

void thole_log(thole_ctx *ctx, thole_log_level level, const char *fmt, ...)
{
    struct instance *in = ctx->instance;
    char text[512];
    NOTE_CALL_SITE(in);
    if (in->turn.replaying || in->code.guard == GUARD_QUERY || in->broken != THOLE_OK)
        return;
    va_list args;
    va_start(args, fmt);
    int const whole = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t const len = whole < 0 ? 0 : (size_t)whole < sizeof text ? (size_t)whole : sizeof text - 1;
    instance_log(in, (uint32_t)level, (thole_slice){(const uint8_t *)text, len});
}
