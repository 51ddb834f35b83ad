/*
 * Tries of an activity. Decisions of the policy are recorded (ACTIVITY_TRY_FAILED with the time of the next
 * try), so that a change of the policy or of this code does not affect recorded histories.
 *
 * An activity has at most one timer row: its total deadline while a try runs, the next try's time while it
 * waits for one, the end of its quarantine. Its wakes may be stale, since rows change after turns.
 */
#include "instance_retry.h"
#include "hash.h"
#include "instance_memory.h"
#include "message.h"
#include "range.h"
#include <assert.h>
#include <stdio.h>

#define TIMEOUT_TYPE THOLE_STR("timeout")

enum { LAST_TEXT_MAX = 300, OVER_TEXT_BYTES = 1200 };

uint32_t task_try(const struct task *task)
{
    return task->kind == TASK_ACTIVITY && task->call != NULL ? task->call->try_number : 1;
}

bool task_timed(const struct task *task)
{
    const struct task_call *call = task->call;
    if (call != NULL && call->quarantined)
        return call->next_due_ms != 0;
    return call != NULL && (call->waiting || call->deadline_ms != 0);
}

bool retry_is_quarantined(const struct task *task, uint32_t try_number)
{
    const struct task_call *call = task->kind == TASK_ACTIVITY ? task->call : NULL;
    return call != NULL && call->quarantined && (try_number == 0 || try_number == call->try_number);
}

bool retry_takes_result(const struct task *task, uint32_t try_number)
{
    bool const waiting = task->call != NULL && task->call->waiting;
    return !waiting && (try_number == 0 ? 1 : try_number) == task_try(task);
}

bool retry_is_none(const struct retry *retry)
{
    return retry->tries_max <= 1 && retry->try_timeout_ms == 0 && retry->total_timeout_ms == 0 &&
           retry->poison == POISON_QUARANTINE;
}

static thole_status keep_final_types(struct instance *in, struct retry *retry)
{
    if (retry->final_types_len == 0)
        return THOLE_OK;
    thole_slice *types = arena_array(&in->arena, retry->final_types_len, sizeof *types);
    if (types == NULL)
        return instance_full(in);
    for (size_t i = 0; i < retry->final_types_len; i++)
        THOLE_TRY(instance_keep(in, retry->final_types[i], &types[i]));
    retry->final_types = types;
    return THOLE_OK;
}

thole_status task_describe_call(struct instance *in, struct task *task, const struct event *scheduled)
{
    if (scheduled->retry == NULL || retry_is_none(scheduled->retry))
        return THOLE_OK;
    struct task_call *call = arena_alloc(&in->arena, sizeof *call);
    if (call == NULL)
        return instance_full(in);
    call->retry = *scheduled->retry;
    call->per_try = (struct retry){.try_timeout_ms = call->retry.try_timeout_ms};
    call->try_number = 1;
    uint64_t const total = call->retry.total_timeout_ms;
    if (total != 0)
        call->deadline_ms = range_sum(in->turn.time_ms, total);
    task->call = call;
    THOLE_TRY(keep_final_types(in, &call->retry));
    if (call->retry.tries_max <= 1)
        return THOLE_OK;
    THOLE_TRY(instance_keep(in, scheduled->queue, &call->queue));
    return instance_keep(in, scheduled->data, &call->input);
}

/* ---- delays ---- */

static double instance_retry_power(double base, uint32_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

/* The delay before the next try. Overflow gives infinity, which the ceiling limits. */
static uint64_t delay_after(const struct instance *in, const struct task *task)
{
    const struct retry *retry = &task->call->retry;
    double const factor = retry->factor_milli == 0 ? 1 : retry->factor_milli / 1000.0;
    uint64_t const max_ms = retry->max_delay_ms != 0 ? retry->max_delay_ms : TIMER_DELAY_MS_MAX;
    if (retry->first_delay_ms == 0)
        return 0;
    double const exact =
        (double)retry->first_delay_ms * instance_retry_power(factor, task->call->try_number - 1);
    uint64_t const delay_ms = exact < (double)max_ms ? (uint64_t)exact : max_ms;
    uint64_t const seed = hash_number(hash_bytes(2, in->options.id), in->options.execution);
    uint64_t const hash = hash_number(hash_number(seed, task->id), task->call->try_number);
    double const share = (double)(hash >> 11) / (double)(UINT64_C(1) << 53); /* 0 <= share < 1 */
    double const off = retry->jitter_milli / 1000.0 * share * (double)delay_ms;
    return off < (double)delay_ms ? delay_ms - (uint64_t)off : 0;
}

static bool is_final(const struct retry *retry, const struct event *event)
{
    for (size_t i = 0; i < retry->final_types_len; i++)
        if (thole_slice_equal(retry->final_types[i], event->error_type))
            return true;
    return event->final;
}

/* ---- received events ---- */

/* A wrong clock may have pushed the execution's time ahead, and that never goes back. What is recorded as a
 * time is counted from the clock then: the next try would wait until that time. */
static uint64_t retry_now_ms(const struct instance *in)
{
    uint64_t const ahead_ms = in->turn.time_ms - in->turn.clock_ms;
    return ahead_ms > TIME_AHEAD_MS_MAX ? in->turn.clock_ms : in->turn.time_ms;
}

/* When an activity that enters quarantine now fails; 0 = never by itself. */
static uint64_t quarantine_end_ms(const struct instance *in, const struct task_call *call)
{
    uint64_t const now_ms = retry_now_ms(in), total_ms = call == NULL ? 0 : call->deadline_ms;
    uint64_t const end_ms =
        in->options.quarantine_ms < UINT64_MAX - now_ms ? now_ms + in->options.quarantine_ms : 0;
    return total_ms != 0 && (end_ms == 0 || total_ms < end_ms) ? total_ms : end_ms;
}

static enum poison_policy poison_policy(const struct instance *in, const struct task_call *call)
{
    enum poison_policy const policy =
        call == NULL ? POISON_QUARANTINE : (enum poison_policy)call->retry.poison;
    return policy == POISON_QUARANTINE && in->options.quarantine_ms == 0 ? POISON_FAIL : policy;
}

/* Which timeout it was, how long, and what the tries before it have failed with: that is the cause. */
static void say_over(struct instance *in, const struct task *task, const char *which, uint64_t ms,
                     struct event *event)
{
    const struct task_call *call = task->call;
    char text[OVER_TEXT_BYTES];
    int n = snprintf(text, sizeof text, "the %s of %llu ms is over", which, (unsigned long long)ms);
    if (n > 0 && call->quarantined)
        n += snprintf(text + n, sizeof text - (size_t)n, "; it was in quarantine: %.*s",
                      THOLE_FMT(text_cut(call->why, LAST_TEXT_MAX)));
    else if (n > 0 && call->last_try != 0)
        n += snprintf(text + n, sizeof text - (size_t)n, "; try %u had failed%s%.*s%s: %.*s", call->last_try,
                      call->last_type.len == 0 ? "" : " (", THOLE_FMT(call->last_type),
                      call->last_type.len == 0 ? "" : ")", THOLE_FMT(call->last_text));
    thole_slice said = {(const uint8_t *)text, n > 0 && (size_t)n < sizeof text ? (size_t)n : 0};
    if (said.len > 0 && arena_dup(&in->turn.arena, said, &said) == THOLE_OK) /* else it keeps what it has */
        event->data = said;
}

/* Converts an activity that was not run because too many claims were lost. The event's queue and input are
 * kept for another try, unless the task has them already. */
static bool convert_poison(const struct instance *in, const struct task *task, struct event *event)
{
    const struct task_call *call = task->call;
    enum poison_policy const policy = poison_policy(in, call);
    event->error_type = POISON_TYPE;
    event->final = policy != POISON_RETRY;
    if (policy != POISON_QUARANTINE) {
        event->lost = 0;
        event->worker = event->queue = event->input = (thole_slice){0};
        return false;
    }
    if (call != NULL && call->retry.tries_max > 1)
        event->input = (thole_slice){0};
    event->kind = EVENT_ACTIVITY_QUARANTINED;
    event->name = task->name->text;
    event->code = 0;
    event->error_type = (thole_slice){0};
    event->try_number = task_try(task);
    event->due_ms = quarantine_end_ms(in, call);
    return true;
}

void retry_convert_failure(struct instance *in, const struct task *task, struct event *event)
{
    const struct task_call *call = task->call;
    if (event->lost > 0 && convert_poison(in, task, event))
        return;
    if (event->code == THOLE_TIMEOUT && event->error_type.len == 0)
        event->error_type = TIMEOUT_TYPE;
    if (event->code == THOLE_TIMEOUT && call != NULL && call->retry.try_timeout_ms != 0 &&
        thole_slice_equal(event->data, TIMEOUT_TYPE)) /* as workers and engines report it */
        say_over(in, task, "try's timeout", call->retry.try_timeout_ms, event);
    event->try_number = task_try(task);
    event->timed = task_timed(task);
    event->due_ms = 0;
    if (call == NULL || call->try_number >= call->retry.tries_max || is_final(&call->retry, event))
        return;
    uint64_t const due_ms = range_sum(retry_now_ms(in), delay_after(in, task));
    if (call->deadline_ms != 0 && due_ms >= call->deadline_ms)
        return;
    event->kind = EVENT_ACTIVITY_TRY_FAILED;
    event->due_ms = due_ms;
    event->timed = false;
}

enum event_kind retry_wake(const struct task *task, uint64_t now_ms)
{
    const struct task_call *call = task->call;
    if (call == NULL)
        return EVENT_UNKNOWN;
    if (call->deadline_ms != 0 && call->deadline_ms <= now_ms)
        return EVENT_ACTIVITY_FAILED;
    if (call->quarantined)
        return call->next_due_ms != 0 && call->next_due_ms <= now_ms ? EVENT_ACTIVITY_FAILED : EVENT_UNKNOWN;
    return call->waiting && call->next_due_ms <= now_ms ? EVENT_ACTIVITY_TRY_STARTED : EVENT_UNKNOWN;
}

static void start_next_try(const struct task *task, struct event *event)
{
    const struct task_call *call = task->call;
    assert(call != NULL && call->waiting);
    event->try_number = call->try_number + 1;
    event->name = task->name->text;
    event->queue = call->queue;
    event->data = call->input;
    event->details = call->details;
    event->due_ms = call->deadline_ms;
    event->retry = call->per_try.try_timeout_ms == 0 ? NULL : &call->per_try;
}

static void fail_from_quarantine(const struct task *task, struct event *event)
{
    assert(retry_is_quarantined(task, 0));
    event->code = THOLE_APP;
    event->error_type = POISON_TYPE;
    event->data = task->call->why;
}

bool retry_may_start(const struct task *task)
{
    return task->call != NULL && task->call->waiting && !task->call->quarantined;
}

void retry_convert_wake(struct instance *in, const struct task *task, struct event *event)
{
    const struct task_call *call = task->call;
    uint64_t const now_ms = retry_now_ms(in);
    bool const asked = event->due_ms == TIMER_ASKED_MS && retry_may_start(task);
    *event = (struct event){.kind = retry_wake(task, now_ms), .ref = task->id, .source = event->source};
    if (asked && event->kind == EVENT_UNKNOWN)
        event->kind = EVENT_ACTIVITY_TRY_STARTED;
    event->try_number = task_try(task);
    event->quarantined = retry_is_quarantined(task, 0);
    event->timed = event->kind == EVENT_ACTIVITY_FAILED;
    if (event->kind == EVENT_ACTIVITY_TRY_STARTED) {
        start_next_try(task, event);
    } else if (event->kind == EVENT_ACTIVITY_FAILED && event->quarantined &&
               (call->deadline_ms == 0 || call->deadline_ms > now_ms)) {
        fail_from_quarantine(task, event);
    } else if (event->kind == EVENT_ACTIVITY_FAILED) {
        event->code = THOLE_TIMEOUT;
        event->error_type = TIMEOUT_TYPE;
        event->data = THOLE_STR("the total timeout is over");
        say_over(in, task, "total timeout", call->retry.total_timeout_ms, event);
    }
}

void retry_convert_release(const struct task *task, struct event *event)
{
    *event =
        (struct event){.kind = event->kind, .ref = task->id, .quarantined = true, .source = event->source};
    event->try_number = task_try(task);
    event->timed = task_timed(task); /* only an end records it */
    if (event->kind == EVENT_ACTIVITY_FAILED)
        fail_from_quarantine(task, event);
    else
        start_next_try(task, event);
}

/* ---- recorded steps ---- */

static thole_status out_of_order(struct instance *in, const struct task *task, const struct event *event)
{
    return instance_break(in, THOLE_CORRUPT, "event %llu: %s of try %u, the activity's try is %u",
                          (unsigned long long)event->id, event_kind_name(event->kind), event->try_number,
                          task_try(task));
}

thole_status retry_try_failed(struct instance *in, struct task *task, const struct event *event)
{
    struct task_call *call = task->call;
    if (call == NULL || call->waiting || event->try_number != call->try_number ||
        call->try_number >= call->retry.tries_max)
        return out_of_order(in, task, event);
    call->waiting = true;
    call->next_due_ms = event->due_ms;
    if (event->code != THOLE_TIMEOUT) {
        call->last_try = event->try_number;
        THOLE_TRY(instance_keep(in, event->error_type, &call->last_type));
        THOLE_TRY(instance_keep(in, text_cut(event->data, LAST_TEXT_MAX), &call->last_text));
    }
    return event->details.len > 0 ? instance_keep(in, event->details, &call->details) : THOLE_OK;
}

thole_status retry_try_started(struct instance *in, struct task *task, const struct event *event)
{
    struct task_call *call = task->call;
    if (call == NULL || !call->waiting || event->try_number != call->try_number + 1)
        return out_of_order(in, task, event);
    call->waiting = call->quarantined = false;
    call->try_number++;
    assert(task->state == TASK_OUTSTANDING);
    return THOLE_OK;
}

/* A task with one try has no queue and input; they come from the event. */
static thole_status describe_next(struct instance *in, struct task *task, const struct event *event)
{
    if (task->call == NULL) {
        task->call = arena_alloc(&in->arena, sizeof *task->call);
        if (task->call == NULL)
            return instance_full(in);
        task->call->try_number = 1;
    }
    if (task->call->retry.tries_max > 1)
        return THOLE_OK;
    THOLE_TRY(instance_keep(in, event->queue, &task->call->queue));
    return instance_keep(in, event->input, &task->call->input);
}

thole_status retry_quarantined(struct instance *in, struct task *task, struct event *event)
{
    if (event->try_number != task_try(task) || (task->call != NULL && task->call->waiting))
        return out_of_order(in, task, event);
    THOLE_TRY(describe_next(in, task, event));
    struct task_call *call = task->call;
    call->waiting = call->quarantined = true;
    call->next_due_ms = event->due_ms;
    THOLE_TRY(instance_keep(in, event->data, &call->why));
    event->data = call->why;
    return event->details.len > 0 ? instance_keep(in, event->details, &call->details) : THOLE_OK;
}

/* ---- options ---- */

static bool instance_retry_in_range(double number, double max)
{
    return number >= 0 && number <= max; /* false for NaN */
}

static bool types_valid(const thole_retry *retry)
{
    if (retry->final_types_len > FINAL_TYPES_MAX ||
        (retry->final_types_len > 0 && retry->final_types == NULL))
        return false;
    for (size_t i = 0; i < retry->final_types_len; i++)
        if (retry->final_types[i].len == 0 || error_type_check(retry->final_types[i], NULL) != THOLE_OK)
            return false;
    return true;
}

static const char *values_flaw(const thole_call_options *options)
{
    const thole_retry *retry = &options->retry;
    if ((uint32_t)options->poison > POISON_RETRY)
        return "poison is none of enum thole_poison";
    if (options->try_timeout_ms > TIMER_DELAY_MS_MAX)
        return "try_timeout_ms is more than 100 years";
    if (options->total_timeout_ms > TIMER_DELAY_MS_MAX)
        return "total_timeout_ms is more than 100 years";
    if (retry->tries_max > TRIES_MAX)
        return "retry.tries_max is more than 10,000";
    if (retry->first_delay_ms > TIMER_DELAY_MS_MAX)
        return "retry.first_delay_ms is more than 100 years";
    if (retry->max_delay_ms > TIMER_DELAY_MS_MAX)
        return "retry.max_delay_ms is more than 100 years";
    if (!instance_retry_in_range(retry->factor, FACTOR_MAX))
        return "retry.factor is not between 0 and 1,000";
    if (!instance_retry_in_range(retry->jitter, 1))
        return "retry.jitter is not between 0 and 1";
    return types_valid(retry) ? NULL : "retry.final_types are not up to 64 of [A-Za-z0-9_.-]{1,64}";
}

static bool queue_valid(const thole_call_options *options)
{
    return options->queue.len == 0 || name_check(options->queue, "queue", NULL) == THOLE_OK;
}

const char *retry_options_flaw(const thole_call_options *options)
{
    const char *const flaw = values_flaw(options);
    return flaw != NULL || queue_valid(options) ? flaw : "queue is not [A-Za-z0-9_-]{1,64}";
}

/* In thousandths; a small number is rounded up to 1, since 0 has another meaning. */
static uint32_t instance_retry_milli(double number)
{
    uint32_t const rounded = (uint32_t)(number * 1000 + 0.5);
    return number > 0 && rounded == 0 ? 1 : rounded;
}

enum task_fault retry_from_options(const thole_call_options *options, struct retry *ret,
                                   thole_slice types[FINAL_TYPES_MAX])
{
    if (values_flaw(options) != NULL)
        return FAULT_CALL_OPTIONS;
    if (!queue_valid(options))
        return FAULT_QUEUE_NAME;
    const thole_retry *retry = &options->retry;
    for (size_t i = 0; i < retry->final_types_len; i++)
        types[i] = retry->final_types[i];
    *ret = (struct retry){.try_timeout_ms = options->try_timeout_ms,
                          .total_timeout_ms = options->total_timeout_ms,
                          .tries_max = retry->tries_max,
                          .first_delay_ms = retry->first_delay_ms,
                          .max_delay_ms = retry->max_delay_ms,
                          .factor_milli = instance_retry_milli(retry->factor),
                          .jitter_milli = instance_retry_milli(retry->jitter),
                          .final_types = retry->final_types_len == 0 ? NULL : types,
                          .final_types_len = retry->final_types_len,
                          .poison = (uint32_t)options->poison};
    return 0;
}
