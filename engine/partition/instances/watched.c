/*
 * The only file that runs code of orchestrations. The watcher is called before it, with what is run, and
 * after it. The code of a crash candidate is run twice: first in a forked copy of the process, which may
 * crash.
 */
#include "instances_state.h"

static struct code_run run_of(const struct instances *p, const struct entry *entry, enum code_kind kind,
                              uint64_t event)
{
    const thole_orchestration_entry *const code = turns_code(p, entry->orchestration, entry->version);
    return (struct code_run){.kind = kind,
                             .partition = p->env->options.partition,
                             .version = entry->version,
                             .execution = entry->execution,
                             .event = event,
                             .instance = entry->id,
                             .orchestration = entry->orchestration,
                             .code = code == NULL ? NULL : code->run};
}

static void watched_begin(const struct instances *p, const struct entry *entry, enum code_kind kind,
                          uint64_t event)
{
    const struct code_watch *const watch = p->env->options.watch;
    if (watch == NULL)
        return;
    struct code_run const run = run_of(p, entry, kind, event);
    watch->begins(watch->arg, &run);
}

static void watched_end(const struct instances *p)
{
    if (p->env->options.watch != NULL)
        p->env->options.watch->ended(p->env->options.watch->arg);
}

/* Runs the code of a crash candidate in a forked process. */
static thole_status watched_attempt(const struct instances *p, const struct entry *entry, enum code_kind kind,
                                    uint64_t event, void (*body)(void *), void *arg, thole_error *reterr)
{
    const struct code_watch *const watch = p->env->options.watch;
    if (watch == NULL || watch->attempt == NULL || crash_candidates_find(p, entry->id) == NULL)
        return THOLE_OK;
    struct code_run const run = run_of(p, entry, kind, event);
    return watch->attempt(watch->arg, &run, body, arg, reterr);
}

/* ---- turns ---- */

struct turn_call {
    const struct instances *p;
    struct entry *entry;
    const struct turn_in *in;
    struct turn_out *out;
    thole_error *reterr;
    thole_status status;
};

static void call_turn(void *arg)
{
    struct turn_call *const call = arg;
    if (call->in->run)
        watched_begin(call->p, call->entry, CODE_TURN, call->entry->events + 1);
    call->status = instance_turn(call->entry->running.instance, call->in, call->out, call->reterr);
    if (call->in->run)
        watched_end(call->p);
}

thole_status watched_turn(struct instances *p, struct entry *entry, const struct turn_in *in,
                          struct turn_out *ret, thole_error *reterr)
{
    thole_error why = {0};
    struct turn_call call = {p, entry, in, ret, reterr, THOLE_OK};
    thole_status const status =
        in->run ? watched_attempt(p, entry, CODE_TURN, entry->events + 1, call_turn, &call, &why) : THOLE_OK;
    if (status == THOLE_APP)
        crash_candidates_crashed(p, entry, why.text);
    if (status != THOLE_OK)
        return thole_fail(reterr, status, "%s", why.text);
    call_turn(&call);
    return call.status;
}

/* ---- replay ---- */

struct replay_call {
    const struct instances *p;
    struct entry *entry;
    struct instance *instance;
    const struct turn *turns;
    size_t n;
    bool watched;
    thole_error *reterr;
    thole_status status;
};

static void call_replay(void *arg)
{
    struct replay_call *const call = arg;
    for (size_t i = 0; i < call->n && call->status == THOLE_OK; i++) {
        const struct turn *const turn = &call->turns[i];
        if (call->watched)
            watched_begin(call->p, call->entry, CODE_REPLAY, turn->events_len > 0 ? turn->events[0].id : 0);
        call->status = instance_replay(call->instance, turn, call->reterr);
        if (call->watched)
            watched_end(call->p);
    }
}

thole_status watched_replay(struct instances *p, struct entry *entry, struct instance *instance,
                            const thole_orchestration_entry *code, const struct turn *turns, size_t n,
                            thole_error *reterr)
{
    thole_error why = {0};
    struct replay_call call = {p, entry, instance, turns, n, code != NULL, reterr, THOLE_OK};
    thole_status const status =
        code != NULL ? watched_attempt(p, entry, CODE_REPLAY, 1, call_replay, &call, &why) : THOLE_OK;
    if (status == THOLE_APP)
        crash_candidates_crashed(p, entry, why.text);
    if (status != THOLE_OK)
        return thole_fail(reterr, status, "%s", why.text);
    call_replay(&call);
    return call.status;
}

/* ---- queries ---- */

struct query_call {
    const struct instances *p;
    struct entry *entry;
    struct instance *instance;
    thole_slice name, input, output;
    thole_error *reterr;
    thole_status status;
};

static void call_query(void *arg)
{
    struct query_call *const call = arg;
    watched_begin(call->p, call->entry, CODE_QUERY, call->entry->events);
    call->status = instance_query(call->instance, call->name, call->input, &call->output, call->reterr);
    watched_end(call->p);
}

thole_status watched_query(struct instances *p, struct entry *entry, struct instance *instance,
                           thole_slice name, thole_slice input, thole_slice *ret_output, thole_error *reterr)
{
    thole_error why = {0};
    struct query_call call = {p, entry, instance, name, input, {0}, reterr, THOLE_OK};
    thole_status const status = watched_attempt(p, entry, CODE_QUERY, entry->events, call_query, &call, &why);
    if (status != THOLE_OK)
        return thole_fail(reterr, status == THOLE_APP ? THOLE_INVALID : status, "the query crashes: %s",
                          why.text);
    call_query(&call);
    if (call.status == THOLE_OK)
        *ret_output = call.output;
    return call.status;
}
