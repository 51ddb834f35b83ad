/* Scripts of a test for activities: results, durations, ends; and the counters. */
#include "kit.h"

void kit_script_add(thole_test_env *env, struct kit_script **scripts, const struct kit_script *script)
{
    struct kit_script **at = scripts, *const made = kit_alloc(env, sizeof *made);
    while (*at != NULL && (*at)->times > 0)
        at = &(*at)->next; /* one without end ends here */
    *made = *script;
    made->data = kit_dup(env, script->data);
    made->type = kit_dup(env, script->type);
    *at = made;
}

static void kit_scripts_add(thole_test_env *env, const char *activity, struct kit_script script)
{
    kit_script_add(env, &kit_name_at(env, thole_slice_from(activity))->scripts, &script);
}

void thole_test_returns(thole_test_env *env, const char *name, thole_slice output, size_t times)
{
    kit_scripts_add(env, name, (struct kit_script){.kind = KIT_RETURNS, .data = output, .times = times});
}

void thole_test_fails(thole_test_env *env, const char *name, thole_slice type, thole_slice message,
                      size_t times)
{
    kit_scripts_add(env, name,
                    (struct kit_script){.kind = KIT_FAILS, .type = type, .data = message, .times = times});
}

void thole_test_hangs(thole_test_env *env, const char *name, size_t times)
{
    kit_scripts_add(env, name, (struct kit_script){.kind = KIT_HANGS, .times = times});
}

void thole_test_takes(thole_test_env *env, const char *name, uint64_t duration_ms)
{
    kit_name_at(env, thole_slice_from(name))->takes_ms = duration_ms;
}

static const struct kit_name *kit_scripts_known(const thole_test_env *env, const char *activity)
{
    const struct kit_name *name = env->names;
    while (name != NULL && !thole_slice_equal(name->name, thole_slice_from(activity)))
        name = name->next;
    return name;
}

size_t thole_test_calls(const thole_test_env *env, const char *name)
{
    const struct kit_name *const found = kit_scripts_known(env, name);
    return found == NULL ? 0 : found->calls;
}

size_t thole_test_cancels(const thole_test_env *env, const char *name)
{
    const struct kit_name *const found = kit_scripts_known(env, name);
    return found == NULL ? 0 : found->cancels;
}

thole_status thole_test_complete(thole_test_env *env, const char *name, thole_slice output)
{
    thole_test_settle(env);
    if (!kit_work_complete(env, thole_slice_from(name), output))
        return THOLE_NOT_FOUND;
    kit_pump(env);
    return THOLE_OK;
}
