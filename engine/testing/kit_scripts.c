/* Activities by name: what is scripted, what is counted. */
#include "kit.h"

static void look_up(const thole_program *program, struct kit_name *name)
{
    name->run = NULL;
    for (size_t i = 0; i < program->activities_len; i++)
        if (thole_slice_equal(thole_slice_from(program->activities[i].name), name->name))
            name->run = program->activities[i].run;
}

void kit_names_look_up(thole_test_env *env)
{
    for (struct kit_name *name = env->names; name != NULL; name = name->next)
        look_up(env->program, name);
}

struct kit_name *kit_name_at(thole_test_env *env, thole_slice name)
{
    struct kit_name **at = &env->names;
    while (*at != NULL && !thole_slice_equal((*at)->name, name))
        at = &(*at)->next;
    if (*at != NULL)
        return *at;
    struct kit_name *const made = kit_alloc(env, sizeof *made);
    made->name = kit_dup(env, name);
    look_up(env->program, made);
    *at = made;
    return made;
}

struct kit_script *kit_script_take(struct kit_name *name)
{
    struct kit_script *const script = name->scripts;
    if (script != NULL && script->times > 0 && --script->times == 0)
        name->scripts = script->next;
    return script;
}

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
