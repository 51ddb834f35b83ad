/* What a test says of activities: scripts, durations, ends; and what is counted. */
#include "kit.h"

static void add(thole_test_env *env, const char *activity, struct kit_script script)
{
    struct kit_name *const name = kit_name_at(env, thole_slice_from(activity));
    struct kit_script **at = &name->scripts, *const made = kit_alloc(env, sizeof *made);
    while (*at != NULL && (*at)->times > 0)
        at = &(*at)->next; /* one without end ends here */
    *made = script;
    *at = made;
}

void thole_test_returns(thole_test_env *env, const char *name, thole_slice output, size_t times)
{
    add(env, name, (struct kit_script){.kind = KIT_RETURNS, .data = kit_dup(env, output), .times = times});
}

void thole_test_fails(thole_test_env *env, const char *name, thole_slice type, thole_slice message,
                      size_t times)
{
    add(env, name,
        (struct kit_script){
            .kind = KIT_FAILS, .type = kit_dup(env, type), .data = kit_dup(env, message), .times = times});
}

void thole_test_hangs(thole_test_env *env, const char *name, size_t times)
{
    add(env, name, (struct kit_script){.kind = KIT_HANGS, .times = times});
}

void thole_test_takes(thole_test_env *env, const char *name, uint64_t duration_ms)
{
    kit_name_at(env, thole_slice_from(name))->takes_ms = duration_ms;
}

static const struct kit_name *known(const thole_test_env *env, const char *activity)
{
    const struct kit_name *name = env->names;
    while (name != NULL && !thole_slice_equal(name->name, thole_slice_from(activity)))
        name = name->next;
    return name;
}

size_t thole_test_calls(const thole_test_env *env, const char *name)
{
    const struct kit_name *const found = known(env, name);
    return found == NULL ? 0 : found->calls;
}

size_t thole_test_cancels(const thole_test_env *env, const char *name)
{
    const struct kit_name *const found = known(env, name);
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
