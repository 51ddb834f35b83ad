/*
 * Orchestrations that are scripted. Each instance of one is an instance like any other, with a history, but
 * runs child_orchestration() instead of the program's code. Which script is an instance's own is kept here by
 * its id and execution, so that a replay, and an engine after a crash, does the same.
 */
#include "kit.h"
#include <string.h>

#define COMPLETE THOLE_STR("complete") /* the event that ends one that hangs */

/* ---- the code ---- */

static struct kit_child_run *run_find(const struct kit_child *child, thole_slice instance, uint64_t execution)
{
    struct kit_child_run *run = child->runs;
    while (run != NULL && (run->execution != execution || !thole_slice_equal(run->instance, instance)))
        run = run->next;
    return run;
}

static const struct kit_child_run *run_begin(struct kit_child *child, thole_slice instance,
                                             uint64_t execution)
{
    struct kit_child_run *run = run_find(child, instance, execution);
    if (run != NULL)
        return run;
    run = kit_alloc(child->env, sizeof *run);
    run->instance = kit_dup(child->env, instance);
    run->execution = execution;
    run->takes_ms = child->takes_ms;
    run->script = kit_script_take(&child->scripts);
    *child->runs_last = run;
    child->runs_last = &run->next;
    child->runs_len++;
    return run;
}

static thole_status child_orchestration(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    const struct kit_child_run *const run =
        run_begin(thole_orchestration_arg(ctx), thole_instance_id(ctx), thole_execution_id(ctx));
    (void)input;
    if (run->takes_ms > 0)
        THOLE_TRY(thole_sleep(ctx, run->takes_ms));
    if (run->script != NULL && run->script->kind == KIT_RETURNS) {
        *ret_output = run->script->data;
        return THOLE_OK;
    }
    if (run->script != NULL && run->script->kind == KIT_FAILS)
        return thole_throw_as(ctx, run->script->type, "%.*s", THOLE_FMT(run->script->data));
    return thole_await(ctx, thole_event(ctx, COMPLETE), ret_output);
}

/* ---- orchestrations of the machine ---- */

static struct kit_child *child_find(const thole_test_env *env, const char *name)
{
    struct kit_child *child = env->children;
    while (child != NULL && strcmp(child->name, name) != 0)
        child = child->next;
    return child;
}

static void entry_script(thole_orchestration_entry *entry, struct kit_child *child)
{
    *entry = (thole_orchestration_entry){
        .name = child->name, .run = child_orchestration, .version = entry->version, .arg = child};
}

static bool is_registered(const thole_program *program, const char *name)
{
    for (size_t i = 0; i < program->orchestrations_len; i++)
        if (strcmp(program->orchestrations[i].name, name) == 0)
            return true;
    return false;
}

void kit_children_set(thole_test_env *env)
{
    const thole_program *const program = env->program;
    size_t n = program->orchestrations_len;
    for (const struct kit_child *child = env->children; child != NULL; child = child->next)
        n++;
    thole_orchestration_entry *const entries = kit_alloc(env, (n + 1) * sizeof *entries);
    size_t len = 0;
    for (size_t i = 0; i < program->orchestrations_len; i++) {
        struct kit_child *const child = child_find(env, program->orchestrations[i].name);
        entries[len] = program->orchestrations[i];
        if (child != NULL)
            entry_script(&entries[len], child);
        len++;
    }
    for (struct kit_child *child = env->children; child != NULL; child = child->next)
        if (!is_registered(program, child->name))
            entry_script(&entries[len++], child);
    env->options.orchestrations = entries;
    env->options.orchestrations_len = len;
}

static struct kit_child *child_at(thole_test_env *env, const char *name)
{
    struct kit_child *child = child_find(env, name);
    if (child != NULL)
        return child;
    child = kit_alloc(env, sizeof *child);
    child->env = env;
    child->name = (const char *)kit_dup(env, thole_slice_from(name)).ptr;
    child->runs_last = &child->runs;
    child->next = env->children;
    env->children = child;
    kit_children_set(env);
    kit_open(env); /* the orchestrations of a machine are an option of its creation */
    kit_pump(env);
    return child;
}

/* ---- calls of a test ---- */

static void child_add(thole_test_env *env, const char *name, struct kit_script script)
{
    kit_script_add(env, &child_at(env, name)->scripts, &script);
}

void thole_test_child_returns(thole_test_env *env, const char *name, thole_slice output, size_t times)
{
    child_add(env, name, (struct kit_script){.kind = KIT_RETURNS, .data = output, .times = times});
}

void thole_test_child_fails(thole_test_env *env, const char *name, thole_slice type, thole_slice message,
                            size_t times)
{
    child_add(env, name,
              (struct kit_script){.kind = KIT_FAILS, .type = type, .data = message, .times = times});
}

void thole_test_child_hangs(thole_test_env *env, const char *name, size_t times)
{
    child_add(env, name, (struct kit_script){.kind = KIT_HANGS, .times = times});
}

void thole_test_child_takes(thole_test_env *env, const char *name, uint64_t duration_ms)
{
    child_at(env, name)->takes_ms = duration_ms;
}

static bool run_hangs(thole_test_env *env, const struct kit_child_run *run)
{
    const struct kit_instance *const instance = kit_instance_find(env, run->instance);
    return !run->completed && (run->script == NULL || run->script->kind == KIT_HANGS) && instance != NULL &&
           instance->execution == run->execution && instance->status == THOLE_INSTANCE_RUNNING;
}

thole_status thole_test_child_complete(thole_test_env *env, const char *name, thole_slice output)
{
    const struct kit_child *const child = child_find(env, name);
    thole_test_settle(env);
    for (struct kit_child_run *run = child == NULL ? NULL : child->runs; run != NULL; run = run->next)
        if (run_hangs(env, run)) {
            run->completed = true;
            thole_test_signal(env, run->instance, COMPLETE, output);
            return THOLE_OK;
        }
    return THOLE_NOT_FOUND;
}

size_t thole_test_child_starts(const thole_test_env *env, const char *name)
{
    const struct kit_child *const child = child_find(env, name);
    return child == NULL ? 0 : child->runs_len;
}
