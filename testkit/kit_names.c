/* Activities by name: which function of the program it is, and which script comes next. */
#include "handlers.h"
#include "kit.h"

static void look_up(const thole_program *program, struct kit_name *name)
{
    const thole_activity_entry *entry = NULL;
    for (size_t i = 0; i < program->activities_len; i++)
        if (thole_slice_equal(thole_slice_from(program->activities[i].name), name->name))
            entry = &program->activities[i];
    name->run = entry == NULL ? NULL : entry->run;
    name->arg = entry == NULL ? NULL : entry->arg;
    name->quick = entry != NULL && handler_is_quick(entry);
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

struct kit_script *kit_script_take(struct kit_script **scripts)
{
    struct kit_script *const script = *scripts;
    if (script != NULL && script->times > 0 && --script->times == 0)
        *scripts = script->next;
    return script;
}
