/* Create, destroy, what an environment is made with. */
#include "kit.h"
#include "memory.h"
#include "program_check.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    STACKS_MAX = 100000,
    STACKS_KEEP = 64,
    ACTIVITY_STACK_BYTES = 1024 * 1024,
    ANSWER_BYTES_MAX = 64 * 1024 * 1024,
};
#define BEGINNING_MS 1000000000000u
#define HORIZON_MS (400u * 365 * 24 * 3600 * 1000ull) /* all timers are in memory */

static void set_program(thole_test_env *env, const thole_program *program)
{
    env->program = program;
    kit_children_set(env);
    kit_names_look_up(env);
}

static void kit_env_set_options(thole_test_env *env)
{
    partition_options_init(&env->options);
    env->options.ns = env->options.node = THOLE_STR("test");
    env->options.nonce_key = kit_nonce_key();
    env->options.stacks = env->stacks;
    env->options.watch = &env->crash.watch;
    env->options.idle_ms = 0;
    env->options.timer_horizon_ms = HORIZON_MS;
}

static bool program_is_right(const thole_program *program)
{
    thole_error err;
    if (program_check_entries(program, &err) == THOLE_OK)
        return true;
    (void)fprintf(stderr, "thole test kit: %s\n", err.text);
    return false;
}

thole_test_env *thole_test_create(const thole_program *program)
{
    if (!program_is_right(program))
        return NULL;
    thole_test_env *const env = memory_new(sizeof *env);
    env->now_ms = BEGINNING_MS;
    env->crash_in = UINT64_MAX;
    env->work_last = &env->work;
    arena_init(&env->memory, SIZE_MAX / 2);
    buf_init(&env->answer, ANSWER_BYTES_MAX);
    buf_init(&env->query_output, ANSWER_BYTES_MAX);
    env->stacks = stack_pool_create(STACKS_KEEP, STACKS_MAX);
    env->activity_stacks = stack_pool_create_sized(ACTIVITY_STACK_BYTES, STACKS_KEEP, STACKS_MAX);
    if (!kit_crash_watch(&env->crash, env->stacks)) {
        thole_test_destroy(env);
        return NULL;
    }
    kit_env_set_options(env);
    set_program(env, program);
    kit_open(env);
    kit_pump(env);
    return env;
}

void thole_test_destroy(thole_test_env *env)
{
    if (env == NULL)
        return;
    kit_work_crash(env, true);
    partition_destroy(env->machine);
    kit_crash_release(&env->crash);
    stack_pool_destroy(env->activity_stacks);
    stack_pool_destroy(env->stacks);
    buf_release(&env->answer);
    buf_release(&env->query_output);
    arena_release(&env->memory);
    free(env);
}

void thole_test_keep_parked(thole_test_env *env)
{
    kit_pump(env);
    env->keeps_parked = true;
}

void thole_test_deploy(thole_test_env *env, const thole_program *program)
{
    kit_work_crash(env, false);
    set_program(env, program);
    kit_open(env);
    kit_pump(env);
}
