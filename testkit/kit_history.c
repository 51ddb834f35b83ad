/* Results: read from the history, as an auditor would. */
#include "kit.h"

static thole_slice kit_history_answered(thole_test_env *env, thole_slice text)
{
    buf_clear(&env->answer);
    buf_slice(&env->answer, text);
    return buf_bytes(&env->answer);
}

/* Data and error type of the end; false: it has not ended. */
static bool copy_end(thole_test_env *env, const struct kit_instance *instance, bool type)
{
    struct kit_turns turns;
    kit_turns_read(env, instance, &turns);
    const struct event *const end = kit_turns_end(&turns);
    if (end != NULL)
        (void)kit_history_answered(env, type ? end->error_type : end->data);
    arena_release(&turns.arena);
    return end != NULL;
}

thole_slice thole_test_output(thole_test_env *env, thole_slice id)
{
    kit_pump(env);
    const struct kit_instance *const instance = kit_instance_find(env, id);
    if (instance == NULL)
        return (thole_slice){0};
    if (instance->diverged != NULL)
        return kit_history_answered(env, thole_slice_from(instance->diverged));
    if (copy_end(env, instance, false))
        return buf_bytes(&env->answer);
    thole_slice const unknown = kit_work_unknown(env, id);
    if (instance->detail.len > 0 || unknown.len == 0)
        return kit_history_answered(env, instance->detail);
    buf_clear(&env->answer);
    kit_work_unknown_text(env, unknown, &env->answer);
    return buf_bytes(&env->answer);
}

thole_slice thole_test_error_type(thole_test_env *env, thole_slice id)
{
    kit_pump(env);
    const struct kit_instance *const instance = kit_instance_find(env, id);
    if (instance == NULL || !copy_end(env, instance, true))
        return (thole_slice){0};
    return buf_bytes(&env->answer);
}

thole_slice thole_test_custom_status(thole_test_env *env, thole_slice id)
{
    kit_pump(env);
    const struct kit_instance *const instance = kit_instance_find(env, id);
    return kit_history_answered(env, instance == NULL ? (thole_slice){0} : instance->custom_status);
}

const char *thole_test_history(thole_test_env *env, thole_slice id)
{
    struct kit_turns turns;
    kit_pump(env);
    const struct kit_instance *const instance = kit_instance_find(env, id);
    buf_clear(&env->answer);
    if (instance == NULL)
        return buf_cstr(&env->answer);
    kit_turns_read(env, instance, &turns);
    for (size_t t = 0; t < turns.len; t++)
        for (size_t i = 0; i < turns.items[t].events_len; i++) {
            event_render(&turns.items[t].events[i], &env->answer);
            buf_text(&env->answer, "\n");
        }
    arena_release(&turns.arena);
    return buf_cstr(&env->answer);
}

const char *thole_test_events(thole_test_env *env, thole_slice instance)
{
    kit_pump(env);
    buf_clear(&env->answer);
    for (size_t i = 0; i < env->events_len; i++) {
        const struct kit_event *const event = &env->events[i];
        if (!thole_slice_equal(event->instance, instance))
            continue;
        buf_slice(&env->answer, event->type);
        buf_text(&env->answer, "(");
        buf_slice(&env->answer, event->data);
        buf_text(&env->answer, ")\n");
    }
    return buf_cstr(&env->answer);
}
