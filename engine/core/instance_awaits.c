/*
 * The awaits: the only places where an orchestration suspends.
 *
 * Awaited tasks are marked in the task table and counted, so that a resolution takes constant time however
 * many tasks are awaited, and the code is resumed only when its await can return.
 */
#include "instance_awaits.h"
#include "instance_cancel.h"
#include "instance_code.h"
#include "instance_failure.h"
#include "instance_memory.h"
#include "instance_tasks.h"
#include <assert.h>
#include <stdio.h>

enum { WON_TEXT_BYTES = 128 };

static thole_status await_cancelled(struct instance *in)
{
    cancel_notice(in);
    in->last_failure = (struct last_failure){.status = THOLE_CANCELLED};
    return THOLE_CANCELLED;
}

static thole_status await_fault(struct instance *in, enum task_fault fault, uint64_t id)
{
    in->last_failure = (struct last_failure){.status = fault_status(fault), .fault = fault, .id = id};
    return in->last_failure.status;
}

/* The checks at the begin of every await. THOLE_OK: continue. */
static thole_status await_begin(struct instance *in)
{
    if (code_refuses(in))
        return code_refused_await(in);
    if (in->broken != THOLE_OK)
        return code_broken_await(in);
    enum task_fault const fault = code_take_fault(in);
    return fault == 0 ? THOLE_OK : await_fault(in, fault, 0);
}

/* Suspends until @p waits of the marked tasks are resolved. Returns at once when a cancellation is
 * pending. */
static thole_status instance_awaits_suspend(struct instance *in, size_t waits)
{
    assert(!in->cancel.pending);
    return code_suspend(in, waits) ? THOLE_OK : await_cancelled(in);
}

/* Await of a task that was never scheduled, or is of another execution. */
static thole_status await_nothing(struct instance *in, thole_task task)
{
    return await_fault(in, task_fault_of(task), task.id & ~TASK_FAULT_BIT);
}

static thole_status instance_awaits_outcome(struct instance *in, struct task *task, thole_slice *ret_result)
{
    assert(task->state != TASK_OUTSTANDING);
    thole_status const status = task_outcome(task);
    task->reported = true;
    if (status == THOLE_OK) {
        if (ret_result != NULL)
            *ret_result = task->data;
        return THOLE_OK;
    }
    if (task->state == TASK_CANCELLED && task->code == CANCEL_REQUESTED)
        cancel_notice(in);
    in->last_failure = (struct last_failure){.status = status, .task = task};
    return status;
}

thole_status await_one(struct instance *in, thole_task task, thole_slice *ret_result)
{
    THOLE_TRY(await_begin(in));
    struct task *found = task_find(in, task.id);
    if (found == NULL)
        return await_nothing(in, task);
    if (found->state == TASK_OUTSTANDING) {
        if (in->cancel.pending)
            return await_cancelled(in);
        found->awaited = true;
        THOLE_TRY(instance_awaits_suspend(in, 1));
    }
    return instance_awaits_outcome(in, found, ret_result);
}

thole_status thole_await(thole_ctx *ctx, thole_task task, thole_slice *ret_result)
{
    NOTE_CALL_SITE(ctx->instance);
    return await_one(ctx->instance, task, ret_result);
}

bool thole_ready(thole_ctx *ctx, thole_task task)
{
    const struct instance *in = ctx->instance;
    NOTE_CALL_SITE(ctx->instance);
    const struct task *found = task_find(in, task.id);
    return found == NULL || found->state != TASK_OUTSTANDING || in->cancel.pending || in->code.fault != 0 ||
           in->broken != THOLE_OK;
}

/* ---- several ---- */

static bool is_fault(thole_task task)
{
    return (task.id & TASK_FAULT_BIT) != 0;
}

/* Checks that all are tasks of this execution, or faults. */
static thole_status tasks_check(struct instance *in, const thole_task *tasks, size_t n)
{
    if (n > TASKS_AWAITED_MAX)
        return await_nothing(in, (thole_task){0});
    for (size_t i = 0; i < n; i++) {
        if (!is_fault(tasks[i]) && task_find(in, tasks[i].id) == NULL)
            return await_nothing(in, tasks[i]);
    }
    return THOLE_OK;
}

/* Marks the outstanding tasks, each once even if it is listed more often; returns their number. */
static size_t tasks_mark(struct instance *in, const thole_task *tasks, size_t n)
{
    size_t marked = 0;
    for (size_t i = 0; i < n; i++) {
        struct task *task = task_find(in, tasks[i].id);
        if (task != NULL && task->state == TASK_OUTSTANDING && !task->awaited) {
            task->awaited = true;
            marked++;
        }
    }
    return marked;
}

/* Index of the task that was resolved earliest in history; n when none is. Tasks that were never scheduled
 * come before all; among them unknown ids before faults. Removes all marks. */
static size_t tasks_earliest(const struct instance *in, const thole_task *tasks, size_t n)
{
    size_t first = n;
    uint64_t first_at = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        struct task *task = task_find(in, tasks[i].id);
        if (task == NULL && !is_fault(tasks[i]))
            return i;
        uint64_t const at = task == NULL                      ? 0
                            : task->state == TASK_OUTSTANDING ? UINT64_MAX
                                                              : task->resolved_at;
        if (task != NULL)
            task->awaited = false;
        if (at < first_at) {
            first = i;
            first_at = at;
        }
    }
    return first;
}

static thole_status await_first(struct instance *in, const thole_task *tasks, size_t n, size_t *ret_first)
{
    THOLE_TRY(await_begin(in));
    if (n == 0 || n > TASKS_AWAITED_MAX)
        return await_nothing(in, (thole_task){0});
    size_t first = tasks_earliest(in, tasks, n);
    if (first < n && !is_fault(tasks[first]) && task_find(in, tasks[first].id) == NULL)
        return await_nothing(in, tasks[first]);
    if (first == n) {
        if (in->cancel.pending)
            return await_cancelled(in);
        (void)tasks_mark(in, tasks, n);
        THOLE_TRY(instance_awaits_suspend(in, 1)); /* interrupted: all were cancelled, no marks are left */
        first = tasks_earliest(in, tasks, n);
    }
    assert(first < n);
    struct task *task = task_find(in, tasks[first].id);
    if (task != NULL)
        task->reported = true;
    *ret_first = first;
    return THOLE_OK;
}

thole_status thole_await_first(thole_ctx *ctx, const thole_task *tasks, size_t n, size_t *ret_first)
{
    size_t first = 0;
    NOTE_CALL_SITE(ctx->instance);
    THOLE_TRY(await_first(ctx->instance, tasks, n, &first));
    if (ret_first != NULL)
        *ret_first = first;
    return THOLE_OK;
}

/* "timer 5 won", "activity 4 'charge' won": why the others are cancelled. */
static thole_slice won_text(struct instance *in, const struct task *winner)
{
    char text[WON_TEXT_BYTES];
    thole_slice kept = {NULL, 0};
    if (in->facts.semantics < SEMANTICS_LOSERS_TOLD)
        return THOLE_STR("select_loser");
    if (winner == NULL)
        return THOLE_STR("what could not be scheduled won");
    if (winner->name == NULL)
        (void)snprintf(text, sizeof text, "%s %llu won", task_kind_text(winner),
                       (unsigned long long)winner->id);
    else
        (void)snprintf(text, sizeof text, "%s %llu '%.*s' won", task_kind_text(winner),
                       (unsigned long long)winner->id, THOLE_FMT(winner->name->text));
    return instance_keep(in, thole_slice_from(text), &kept) == THOLE_OK ? kept : (thole_slice){NULL, 0};
}

/* Cancels all but the winner, which is resolved. */
static void tasks_cancel_losers(struct instance *in, const thole_task *tasks, size_t n, size_t winner)
{
    thole_slice reason = {NULL, 0};
    for (size_t i = 0; i < n; i++) {
        struct task *task = task_find(in, tasks[i].id);
        if (task == NULL || in->broken != THOLE_OK || !task_may_be_cancelled(task))
            continue;
        if (reason.len == 0)
            reason = won_text(in, task_find(in, tasks[winner].id));
        task_cancel(in, task, CANCEL_SELECT_LOSER, reason);
    }
}

thole_status thole_await_any(thole_ctx *ctx, const thole_task *tasks, size_t n, size_t *ret_winner)
{
    struct instance *in = ctx->instance;
    size_t winner = 0;
    NOTE_CALL_SITE(in);
    THOLE_TRY(await_first(in, tasks, n, &winner));
    tasks_cancel_losers(in, tasks, n, winner);
    if (in->broken != THOLE_OK)
        return code_broken_await(in);
    if (ret_winner != NULL)
        *ret_winner = winner;
    return THOLE_OK;
}

thole_status await_within(struct instance *in, const struct task *task, thole_task limit, uint64_t limit_ms,
                          thole_slice *ret_result)
{
    thole_task const tasks[] = {{task->id}, limit};
    size_t winner = 0;
    THOLE_TRY(await_first(in, tasks, 2, &winner));
    tasks_cancel_losers(in, tasks, 2, winner);
    if (in->broken != THOLE_OK)
        return code_broken_await(in);
    if (winner == 0 || is_fault(limit))
        return await_one(in, tasks[winner], ret_result);
    in->last_failure = (struct last_failure){.status = THOLE_TIMEOUT, .awaited = task, .limit_ms = limit_ms};
    return THOLE_TIMEOUT;
}

/* Fills in the results; returns the index of the first task that did not succeed, or n. */
static size_t tasks_collect(struct instance *in, const thole_task *tasks, size_t n, thole_slice *results)
{
    size_t failed = n;
    for (size_t i = 0; i < n; i++) {
        struct task *task = task_find(in, tasks[i].id);
        bool const succeeded = task != NULL && task->state == TASK_SUCCEEDED;
        if (results != NULL)
            results[i] = succeeded ? task->data : (thole_slice){NULL, 0};
        if (succeeded)
            task->reported = true;
        else if (failed == n)
            failed = i;
    }
    return failed;
}

thole_status thole_await_all(thole_ctx *ctx, const thole_task *tasks, size_t n, thole_slice *ret_results)
{
    struct instance *in = ctx->instance;
    NOTE_CALL_SITE(in);
    THOLE_TRY(await_begin(in));
    THOLE_TRY(tasks_check(in, tasks, n));
    thole_status status = THOLE_OK;
    size_t const waits = tasks_mark(in, tasks, n);
    if (waits > 0 && in->cancel.pending) {
        (void)tasks_earliest(in, tasks, n); /* removes the marks */
        status = await_cancelled(in);
    } else if (waits > 0) {
        status = instance_awaits_suspend(in, waits);
    }
    size_t const failed = tasks_collect(in, tasks, n, ret_results);
    if (status != THOLE_OK || failed == n)
        return status;
    struct task *task = task_find(in, tasks[failed].id);
    return task == NULL ? await_nothing(in, tasks[failed]) : instance_awaits_outcome(in, task, NULL);
}
