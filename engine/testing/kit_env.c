/* Create, destroy, memory. */
#include "kit.h"
#include "memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STACKS_MAX = 100000,
    STACKS_KEEP = 64,
    ACTIVITY_STACK_BYTES = 1024 * 1024,
    ANSWER_BYTES_MAX = 64 * 1024 * 1024,
};
#define BEGINNING_MS 1000000000000u
#define HORIZON_MS (400u * 365 * 24 * 3600 * 1000ull) /* all timers are in memory */

void kit_must(bool worked)
{
    if (worked)
        return;
    (void)fputs("thole test kit: out of memory\n", stderr);
    abort();
}

void *kit_alloc(thole_test_env *env, size_t bytes)
{
    void *const memory = arena_alloc(&env->memory, bytes);
    kit_must(memory != NULL);
    return memory;
}

thole_slice kit_dup(thole_test_env *env, thole_slice from)
{
    thole_slice copy = {0};
    kit_must(from.len == 0 || arena_dup(&env->memory, from, &copy) == THOLE_OK);
    return copy;
}

void *kit_grow(thole_test_env *env, void *items, size_t len, size_t *cap, size_t size)
{
    if (len < *cap)
        return items;
    size_t const more = *cap == 0 ? 16 : *cap * 2;
    void *const grown = arena_array(&env->memory, more, size);
    kit_must(grown != NULL);
    if (len > 0)
        memcpy(grown, items, len * size);
    *cap = more;
    return grown;
}

void kit_open(thole_test_env *env)
{
    partition_destroy(env->machine);
    env->reading = false;
    env->machine = partition_create(&env->options);
    kit_must(partition_input(env->machine, &(struct partition_in){.kind = PARTITION_IN_OPEN}, env->now_ms) ==
             THOLE_OK);
}

static void set_program(thole_test_env *env, const thole_program *program)
{
    env->program = program;
    env->options.orchestrations = program->orchestrations;
    env->options.orchestrations_len = program->orchestrations_len;
    kit_names_look_up(env);
}

static void set_options(thole_test_env *env)
{
    partition_options_init(&env->options);
    env->options.node = THOLE_STR("test");
    env->options.stacks = env->stacks;
    env->options.watch = &env->crash.watch;
    env->options.parked_max = 0;
    env->options.idle_ms = 0;
    env->options.timer_horizon_ms = HORIZON_MS;
}

thole_test_env *thole_test_create(const thole_program *program)
{
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
    set_options(env);
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
    struct partition_options defaults;
    partition_options_init(&defaults);
    env->options.parked_max = defaults.parked_max;
    kit_open(env); /* what a machine may keep is said when it is made */
    kit_pump(env);
}

void thole_test_deploy(thole_test_env *env, const thole_program *program)
{
    kit_work_crash(env, false);
    set_program(env, program);
    kit_open(env);
    kit_pump(env);
}
