/*
 * Tries of an activity. What the policy decides is recorded (ACTIVITY_TRY_FAILED with the time of the next
 * try), so that neither a change of the policy nor of this code alters a history.
 *
 * An activity has at most one timer row: its total deadline while a try runs, the next try's time while it
 * waits for one. Its wakes may be stale, as rows are changed behind turns.
 */
#include "instance_state.h"
#include "message.h"
#include <assert.h>

#define TIMEOUT_TYPE THOLE_STR("timeout")

uint32_t task_try(const struct task *task)
{
    return task->kind == TASK_ACTIVITY && task->call != NULL ? task->call->try_number : 1;
}

bool task_timed(const struct task *task)
{
    const struct task_call *call = task->call;
    return call != NULL && (call->waiting || call->deadline_ms != 0);
}

bool retry_takes_result(const struct task *task, uint32_t try_number)
{
    bool const waiting = task->call != NULL && task->call->waiting;
    return !waiting && (try_number == 0 ? 1 : try_number) == task_try(task);
}

bool retry_is_none(const struct retry *retry)
{
    return retry->tries_max <= 1 && retry->try_timeout_ms == 0 && retry->total_timeout_ms == 0;
}

/* ---- delays ---- */

static double power(double base, uint32_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

/* Before the try that follows this one. Overflow ends in infinity, which the ceiling brings down. */
static uint64_t delay_after(const struct instance *in, const struct task *task)
{
    const struct retry *retry = &task->call->retry;
    double const factor = retry->factor_milli == 0 ? 1 : retry->factor_milli / 1000.0;
    uint64_t const max_ms = retry->max_delay_ms != 0 ? retry->max_delay_ms : TIMER_DELAY_MS_MAX;
    if (retry->first_delay_ms == 0)
        return 0;
    double const exact = (double)retry->first_delay_ms * power(factor, task->call->try_number - 1);
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

/* ---- what comes ---- */

void retry_convert_failure(const struct instance *in, const struct task *task, struct event *event)
{
    const struct task_call *call = task->call;
    if (event->code == THOLE_TIMEOUT && event->error_type.len == 0)
        event->error_type = TIMEOUT_TYPE;
    event->try_number = task_try(task);
    event->timed = task_timed(task);
    event->due_ms = 0;
    if (call == NULL || call->try_number >= call->retry.tries_max || is_final(&call->retry, event))
        return;
    uint64_t const due_ms = in->time_ms + delay_after(in, task);
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
    return call->waiting && call->next_due_ms <= now_ms ? EVENT_ACTIVITY_TRY_STARTED : EVENT_UNKNOWN;
}

void retry_convert_wake(const struct instance *in, const struct task *task, struct event *event)
{
    const struct task_call *call = task->call;
    *event = (struct event){.kind = retry_wake(task, in->time_ms), .ref = task->id};
    event->try_number = task_try(task);
    if (event->kind == EVENT_ACTIVITY_FAILED) {
        event->code = THOLE_TIMEOUT;
        event->error_type = TIMEOUT_TYPE;
        event->data = THOLE_STR("the total timeout is over");
        event->timed = true;
    } else if (event->kind == EVENT_ACTIVITY_TRY_STARTED) {
        event->try_number++;
        event->name = task->name->text;
        event->queue = call->queue;
        event->data = call->input;
        event->details = call->details;
        event->due_ms = call->deadline_ms;
        event->retry = call->per_try.try_timeout_ms == 0 ? NULL : &call->per_try;
    }
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
    return event->details.len > 0 ? instance_keep(in, event->details, &call->details) : THOLE_OK;
}

thole_status retry_try_started(struct instance *in, struct task *task, const struct event *event)
{
    struct task_call *call = task->call;
    if (call == NULL || !call->waiting || event->try_number != call->try_number + 1)
        return out_of_order(in, task, event);
    call->waiting = false;
    call->try_number++;
    return THOLE_OK;
}

/* ---- options ---- */

static bool within(double number, double max)
{
    return number >= 0 && number <= max; /* false for what is not a number */
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

static bool options_valid(const thole_call_options *options)
{
    const thole_retry *retry = &options->retry;
    return options->try_timeout_ms <= TIMER_DELAY_MS_MAX && options->total_timeout_ms <= TIMER_DELAY_MS_MAX &&
           retry->tries_max <= TRIES_MAX && retry->first_delay_ms <= TIMER_DELAY_MS_MAX &&
           retry->max_delay_ms <= TIMER_DELAY_MS_MAX && within(retry->factor, FACTOR_MAX) &&
           within(retry->jitter, 1) && types_valid(retry);
}

/* In thousandths; a small number does not become 0, which stands for another. */
static uint32_t milli(double number)
{
    uint32_t const rounded = (uint32_t)(number * 1000 + 0.5);
    return number > 0 && rounded == 0 ? 1 : rounded;
}

enum task_fault retry_from_options(const thole_call_options *options, struct retry *ret,
                                   thole_slice types[FINAL_TYPES_MAX])
{
    if (!options_valid(options))
        return FAULT_CALL_OPTIONS;
    if (options->queue.len > 0 && name_check(options->queue, "queue", NULL) != THOLE_OK)
        return FAULT_QUEUE_NAME;
    const thole_retry *retry = &options->retry;
    for (size_t i = 0; i < retry->final_types_len; i++)
        types[i] = retry->final_types[i];
    *ret = (struct retry){.try_timeout_ms = options->try_timeout_ms,
                          .total_timeout_ms = options->total_timeout_ms,
                          .tries_max = retry->tries_max,
                          .first_delay_ms = retry->first_delay_ms,
                          .max_delay_ms = retry->max_delay_ms,
                          .factor_milli = milli(retry->factor),
                          .jitter_milli = milli(retry->jitter),
                          .final_types = retry->final_types_len == 0 ? NULL : types,
                          .final_types_len = retry->final_types_len};
    return 0;
}
