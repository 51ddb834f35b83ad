/*
 * Activities. A worker_queue row, its message and its worker are one thing here. What the program registers
 * runs on a stack of its own, so that thole_activity_wait() can let virtual time go by; everything is on the
 * caller's thread.
 */
#include "kit.h"
#include "memory.h"
#include "values.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAITS_IN_VAIN_MAX = 1000, GRACE_MS = 10000 /* as a worker's by default */ };

static uint64_t kit_work_due_ms(uint64_t now_ms, uint64_t delay_ms)
{
    return delay_ms < UINT64_MAX - now_ms ? now_ms + delay_ms : UINT64_MAX;
}

static bool is_begun(const struct kit_work *w)
{
    return w->state == KIT_WORK_DELAYED || w->state == KIT_WORK_WAITING || w->state == KIT_WORK_RUNNING ||
           w->state == KIT_WORK_HANGING;
}

/* ---- rows and messages ---- */

static struct kit_work *kit_work_find(const thole_test_env *env, thole_slice instance, uint64_t execution,
                                      uint64_t id)
{
    struct kit_work *w = env->work;
    while (w != NULL && (w->gone || w->alone != NULL || w->row.activity_id != id ||
                         w->row.execution != execution || !thole_slice_equal(w->row.instance, instance)))
        w = w->next;
    return w;
}

void kit_work_added(thole_test_env *env, const struct batch_activity *row)
{
    struct kit_work *w = kit_work_find(env, row->instance, row->execution, row->activity_id);
    if (w != NULL && w->row.try_number == row->try_number)
        return; /* projected again */
    if (w != NULL)
        w->gone = true;
    w = kit_alloc(env, sizeof *w);
    w->env = env;
    w->row = *row;
    w->row.instance = kit_instance_at(env, row->instance)->id;
    w->row.queue = kit_dup(env, row->queue);
    w->row.activity = kit_name_at(env, row->activity)->name;
    w->row.details = kit_dup(env, row->details);
    w->deadline_ms = UINT64_MAX;
    *env->work_last = w;
    env->work_last = &w->next;
}

void kit_work_removed(thole_test_env *env, const struct batch_activity *key)
{
    struct kit_work *const w = kit_work_find(env, key->instance, key->execution, key->activity_id);
    if (w != NULL)
        w->gone = true;
}

void kit_work_deleted(thole_test_env *env, thole_slice instance, uint64_t execution)
{
    for (struct kit_work *w = env->work; w != NULL; w = w->next)
        w->gone |=
            w->alone == NULL && w->row.execution <= execution && thole_slice_equal(w->row.instance, instance);
}

void kit_work_published(thole_test_env *env, const struct out_publish_work *work)
{
    struct kit_work *const w = kit_work_find(env, work->instance, work->execution, work->activity_id);
    if (w == NULL || w->state != KIT_WORK_ROW)
        return;
    w->input = kit_dup(env, work->input);
    w->trace = (struct trace){kit_dup(env, work->trace.parent), kit_dup(env, work->trace.list)};
    w->state = KIT_WORK_QUEUED;
}

size_t kit_work_rows(const thole_test_env *env)
{
    size_t n = 0;
    for (const struct kit_work *w = env->work; w != NULL; w = w->next)
        n += !w->gone && w->alone == NULL;
    return n;
}

struct kit_work *kit_work_alone(thole_test_env *env, const struct kit_work *filled)
{
    struct kit_work *const w = kit_alloc(env, sizeof *w);
    *w = *filled;
    w->env = env;
    w->state = KIT_WORK_QUEUED;
    w->deadline_ms = UINT64_MAX;
    *env->work_last = w;
    env->work_last = &w->next;
    return w;
}

/* Those whose row is gone and that do not run. */
static void kit_work_sweep(thole_test_env *env)
{
    struct kit_work **at = &env->work;
    while (*at != NULL)
        if ((*at)->gone && (*at)->co == NULL)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    env->work_last = at;
}

static bool is_unknown(thole_test_env *env, const struct kit_work *w)
{
    const struct kit_name *const name = kit_name_at(env, w->row.activity);
    return w->state == KIT_WORK_QUEUED && !w->gone && name->run == NULL && name->scripts == NULL;
}

thole_slice kit_work_unknown(thole_test_env *env, thole_slice instance)
{
    for (const struct kit_work *w = env->work; w != NULL; w = w->next)
        if (is_unknown(env, w) && (instance.len == 0 || thole_slice_equal(w->row.instance, instance)))
            return w->row.activity;
    return (thole_slice){0};
}

void kit_work_unknown_text(const thole_test_env *env, thole_slice activity, struct buf *to)
{
    enum { NAMES_MAX = 1000 };
    const thole_program *const program = env->program;
    const char *names[NAMES_MAX];
    char wanted[THOLE_NAME_BYTES_MAX + 1];
    size_t const n = program->activities_len < NAMES_MAX ? program->activities_len : NAMES_MAX;
    for (size_t i = 0; i < n; i++)
        names[i] = program->activities[i].name;
    (void)snprintf(wanted, sizeof wanted, "%.*s", THOLE_FMT(activity));
    const char *near = word_suggest(wanted, names, n);
    buf_printf(to, "activity '%s' is not registered in this program", wanted);
    if (near != NULL)
        buf_printf(to, "; did you mean '%s'?", near);
    else
        buf_text(to, "; if another program has it, give it a script: thole_test_returns()");
}

bool kit_work_say_unknown(thole_test_env *env, thole_slice instance)
{
    thole_slice const unknown = kit_work_unknown(env, instance);
    struct buf text;
    if (unknown.len == 0)
        return false;
    struct kit_name *const name = kit_name_at(env, unknown);
    if (!name->said) {
        buf_init(&text, 1024);
        kit_work_unknown_text(env, unknown, &text);
        (void)fprintf(stderr, "thole test kit: %s\n", buf_cstr(&text));
        buf_release(&text);
    }
    name->said = true;
    return true;
}

/* ---- one that runs alone ---- */

static void alone_report(const struct kit_work *w, const struct message *result)
{
    struct kit_alone *const alone = w->alone;
    thole_test_activity_result *const to = &alone->result;
    bool const stopped = result->status != THOLE_OK && alone->fired_ms != 0 &&
                         alone->cancel_kind == THOLE_CANCEL_SHUTDOWN; /* would run again */
    to->status = stopped ? THOLE_CANCELLED : (thole_status)result->status;
    if (to->status == THOLE_OK) {
        to->output = kit_dup(w->env, result->data);
    } else if (to->status != THOLE_CANCELLED) {
        to->message = kit_dup(w->env, result->data);
        to->error_type = kit_dup(w->env, result->error_type);
        to->final = result->final;
    }
    alone->reported = true;
}

static void alone_later(const struct kit_work *w)
{
    thole_slice token;
    w->alone->result.status = thole_activity_later(w->act, &token); /* the one that it was given */
    w->alone->result.output = kit_dup(w->env, token);
    w->alone->reported = true;
}

static void alone_returned(const struct kit_work *w)
{
    struct kit_alone *const alone = w->alone;
    uint64_t const now_ms = w->env->now_ms;
    alone->result.returned = w->abandoned ? THOLE_UNAVAILABLE : w->act->status;
    alone->result.heartbeats = w->act->noted_count;
    if (w->act->noted_count > 0)
        alone->result.details = kit_dup(w->env, buf_bytes(&w->act->noted));
    alone->result.took_ms = now_ms - alone->begun_ms;
    alone->result.noticed_ms = alone->fired_ms == 0 ? 0 : now_ms - alone->fired_ms;
}

/* ---- ends ---- */

/* The row goes with the result, as a worker's transaction has it. */
static void kit_work_report(struct kit_work *w, struct message *result)
{
    if (w->alone != NULL) {
        alone_report(w, result);
        w->gone = true;
        return;
    }
    result->kind = MESSAGE_ACTIVITY_RESULT;
    result->instance = w->row.instance;
    result->execution = w->row.execution;
    result->task = w->row.activity_id;
    result->try_number = w->row.try_number;
    result->source.place.attempt = w->attempt;
    result->source.place.worker = THOLE_STR("test");
    if (result->status != THOLE_OK && result->details.len == 0)
        result->details =
            w->act != NULL && w->act->noted_count > 0 ? buf_bytes(&w->act->noted) : w->row.details;
    w->gone = true;
    kit_inbox_send(w->env, result, SENDER_WORKER);
}

static void kit_work_fire(struct kit_work *w, thole_cancel_kind kind, thole_slice reason)
{
    if (w->co == NULL)
        return;
    activity_fire(w->act,
                  &(struct activity_cancel){.kind = kind,
                                            .reason = reason,
                                            .grace_end_ms = kit_work_due_ms(w->env->now_ms, GRACE_MS)});
    w->wake_ms = w->env->now_ms; /* ends the wait at once */
    if (w->alone != NULL && w->alone->fired_ms == 0)
        w->alone->fired_ms = w->env->now_ms;
}

static void kit_work_notify(struct kit_work *w, thole_cancel_kind kind, thole_slice reason)
{
    if (!is_begun(w) || w->told)
        return;
    w->told = true;
    kit_name_at(w->env, w->row.activity)->cancels++;
    kit_work_fire(w, kind, reason);
}

void kit_work_cancelled(thole_test_env *env, const struct cancel_notice *push)
{
    if (push->early)
        return; /* no time passes until the row is gone */
    for (struct kit_work *w = env->work; w != NULL; w = w->next)
        for (size_t i = 0; i < push->activity_ids_len; i++)
            if (w->gone && w->alone == NULL && w->row.activity_id == push->activity_ids[i] &&
                w->row.execution == push->execution && thole_slice_equal(w->row.instance, push->instance))
                kit_work_notify(w, cancel_kind_find(push->kind), push->reason);
    kit_work_sweep(env);
}

static void time_out(struct kit_work *w)
{
    struct message result = {
        .status = THOLE_TIMEOUT, .data = THOLE_STR("timeout"), .error_type = THOLE_STR("timeout")};
    kit_work_notify(w, THOLE_CANCEL_TIMEOUT, (thole_slice){0});
    kit_work_report(w, &result);
}

/* The result does not count any more, except that a stopping worker still stores a success. */
static void alone_cancel(struct kit_work *w)
{
    thole_cancel_kind const kind = w->alone->cancel_kind;
    thole_slice const reason = w->alone->cancel_reason;
    w->alone->cancel_at_ms = UINT64_MAX;
    kit_work_notify(w, kind, reason.len > 0 ? reason : thole_slice_from(thole_cancel_kind_name(kind)));
    if (kind != THOLE_CANCEL_SHUTDOWN)
        kit_work_report(w, &(struct message){.status = THOLE_CANCELLED});
}

static bool alone_cancel_due(const struct kit_work *w)
{
    return w->alone != NULL && !w->gone && w->co != NULL && w->alone->cancel_at_ms <= w->env->now_ms;
}

bool kit_work_complete(thole_test_env *env, thole_slice name, thole_slice output)
{
    struct kit_work *w = env->work;
    while (w != NULL && (w->gone || w->alone != NULL || !(is_begun(w) || w->state == KIT_WORK_LATER) ||
                         !thole_slice_equal(w->row.activity, name)))
        w = w->next;
    if (w == NULL)
        return false;
    kit_work_fire(w, THOLE_CANCEL_LEASE_LOST, THOLE_STR("completed"));
    kit_work_report(w, &(struct message){.status = THOLE_OK, .data = output});
    return true;
}

/* ---- the program's own ---- */

static void kit_work_forget(struct kit_work *w)
{
    if (w->alone != NULL)
        alone_returned(w);
    if (w->act->noted_count > 0) /* a renewal has stored them */
        w->row.details = kit_dup(w->env, buf_bytes(&w->act->noted));
    coro_destroy(w->co);
    activity_destroy(w->act);
    w->co = NULL;
    w->act = NULL;
}

static void kit_work_returned(struct kit_work *w)
{
    struct thole_activity *const act = w->act;
    if (w->gone || w->dropped || !kit_step(w->env)) { /* … or the worker dies before it can say so */
        kit_work_forget(w);
        return;
    }
    if (act->status == THOLE_LATER && w->alone != NULL) {
        alone_later(w);
        w->gone = true;
    } else if (act->status == THOLE_LATER) {
        w->state = KIT_WORK_LATER;
    } else {
        char text[ACTIVITY_RESULT_TEXT_BYTES];
        struct message result = {0};
        activity_result(act, w->env->options.payload_max, text, &result);
        kit_work_report(w, &result);
    }
    kit_work_forget(w);
}

static void run_on(struct kit_work *w)
{
    thole_test_env *const env = w->env;
    assert(env->running == NULL);
    env->running = w;
    w->state = KIT_WORK_RUNNING;
    bool const more = coro_resume(w->co);
    env->running = NULL;
    if (!more)
        kit_work_returned(w);
    else if (w->abandoned)
        kit_work_forget(w);
}

static thole_status kit_work_wait_for(void *arg, uint64_t wait_ms)
{
    struct kit_work *const w = arg;
    if (thole_activity_cancelled(w->act)) {
        if (++w->waits_in_vain < WAITS_IN_VAIN_MAX)
            return THOLE_CANCELLED;
        w->abandoned = true;
    }
    w->state = KIT_WORK_WAITING;
    w->wake_ms = kit_work_due_ms(w->env->now_ms, wait_ms);
    coro_yield(w->co);
    return thole_activity_cancelled(w->act) ? THOLE_CANCELLED : THOLE_OK;
}

static uint64_t virtual_now_ms(void *arg)
{
    return ((const struct kit_work *)arg)->env->now_ms;
}

static const struct activity_time virtual_time = {.now_ms = virtual_now_ms, .wait = kit_work_wait_for};

static void kit_work_entry(void *arg)
{
    activity_run(((struct kit_work *)arg)->act);
}

static void run_own(struct kit_work *w, const struct kit_name *name)
{
    thole_test_env *const env = w->env;
    struct work_message *const message = memory_new(sizeof *message);
    message->item = (struct work_item){.queue = w->row.queue,
                                       .instance = w->row.instance,
                                       .activity = w->row.activity,
                                       .input = w->input,
                                       .trace = w->trace,
                                       .execution = w->row.execution,
                                       .activity_id = w->row.activity_id,
                                       .try_number = w->row.try_number};
    w->act = activity_create(message, env->now_ms);
    w->act->run = name->run;
    w->act->arg = name->arg;
    w->act->quick = name->quick;
    w->act->time = &virtual_time;
    w->act->time_arg = w;
    const struct kit_instance *const instance = kit_instance_at(env, w->row.instance);
    struct activity_parties const parties = {instance->orchestration, instance->version, THOLE_STR("test")};
    kit_must(activity_begin(w->act, w->attempt, w->deadline_ms, w->row.details, &parties) == THOLE_OK);
    w->waits_in_vain = 0;
    w->abandoned = w->told = false;
    w->co = coro_create(env->activity_stacks, kit_work_entry, w);
    kit_must(w->co != NULL);
    if (alone_cancel_due(w))
        alone_cancel(w);
    run_on(w);
}

/* ---- one thing after the other ---- */

static void kit_work_perform(struct kit_work *w)
{
    const struct kit_script *const script = w->script;
    if (script == NULL) {
        run_own(w, kit_name_at(w->env, w->row.activity));
        return;
    }
    switch (script->kind) {
    case KIT_RETURNS: kit_work_report(w, &(struct message){.status = THOLE_OK, .data = script->data}); break;
    case KIT_FAILS:
        kit_work_report(
            w, &(struct message){.status = THOLE_APP, .data = script->data, .error_type = script->type});
        break;
    case KIT_HANGS: w->state = KIT_WORK_HANGING; break;
    }
}

static void begin_alone(struct kit_work *w)
{
    struct kit_alone *const alone = w->alone;
    uint64_t const now_ms = w->env->now_ms;
    if (alone->begun_ms == 0 && alone->cancel_at_ms != UINT64_MAX)
        alone->cancel_at_ms = kit_work_due_ms(now_ms, alone->cancel_at_ms);
    alone->begun_ms = now_ms;
    alone->fired_ms = 0;
    w->state = KIT_WORK_RUNNING;
    run_own(w, kit_name_at(w->env, w->row.activity));
}

static void kit_work_begin(struct kit_work *w)
{
    thole_test_env *const env = w->env;
    struct kit_name *const name = kit_name_at(env, w->row.activity);
    name->calls++;
    w->attempt++;
    if (w->deadline_ms == UINT64_MAX && w->row.try_timeout_ms > 0)
        w->deadline_ms = kit_work_due_ms(env->now_ms, w->row.try_timeout_ms);
    if (w->alone != NULL) {
        begin_alone(w);
        return;
    }
    w->script = kit_script_take(&name->scripts);
    w->state = KIT_WORK_DELAYED;
    w->wake_ms = kit_work_due_ms(env->now_ms, name->takes_ms);
    if (name->takes_ms == 0)
        kit_work_perform(w);
}

static bool kit_work_due(struct kit_work *w)
{
    uint64_t const now_ms = w->env->now_ms;
    if (w->state == KIT_WORK_QUEUED)
        return w->alone != NULL || !is_unknown(w->env, w);
    return alone_cancel_due(w) ||
           ((w->state == KIT_WORK_DELAYED || w->state == KIT_WORK_WAITING) && w->wake_ms <= now_ms) ||
           (!w->gone && w->deadline_ms <= now_ms);
}

bool kit_work_step(thole_test_env *env)
{
    kit_work_sweep(env);
    struct kit_work *w = env->work;
    while (w != NULL && !kit_work_due(w))
        w = w->next;
    if (w == NULL)
        return false;
    if (!kit_step(env))
        return true;
    if (w->state != KIT_WORK_QUEUED && alone_cancel_due(w))
        alone_cancel(w);
    else if (w->state == KIT_WORK_QUEUED && w->deadline_ms > env->now_ms)
        kit_work_begin(w);
    else if (w->state == KIT_WORK_WAITING && w->wake_ms <= env->now_ms)
        run_on(w);
    else if (w->state == KIT_WORK_DELAYED && w->wake_ms <= env->now_ms)
        kit_work_perform(w);
    else
        time_out(w);
    return true;
}

uint64_t kit_work_next_ms(const thole_test_env *env)
{
    uint64_t next = UINT64_MAX;
    for (const struct kit_work *w = env->work; w != NULL; w = w->next) {
        if ((w->state == KIT_WORK_DELAYED || w->state == KIT_WORK_WAITING) && w->wake_ms < next)
            next = w->wake_ms;
        if (!w->gone && w->deadline_ms < next)
            next = w->deadline_ms;
        if (!w->gone && w->alone != NULL && w->co != NULL && w->alone->cancel_at_ms < next)
            next = w->alone->cancel_at_ms;
    }
    return next;
}

/* ---- the death of workers ---- */

void kit_work_crash(thole_test_env *env, bool for_ever)
{
    for (struct kit_work *w = env->work; w != NULL; w = w->next) {
        if (w->co !=
            NULL) { /* fires the token, so that the handler can free its memory; its return is dropped */
            w->dropped = true;
            kit_work_fire(w, THOLE_CANCEL_LEASE_LOST, THOLE_STR("lost"));
            run_on(w);
            w->dropped = false;
        }
        if (is_begun(w))
            w->state = KIT_WORK_QUEUED;
        w->gone |= for_ever;
    }
    kit_work_sweep(env);
}
