/* Tells the watcher that what an orchestration has registered with thole_on_drop() is called: code of it that
 * runs when its instance leaves memory. */
#include "instances_state.h"

struct code_run watched_drop_run(const struct instance *instance, uint32_t partition)
{
    const struct instance_options *const options = instance_options_of(instance);
    return (struct code_run){.kind = CODE_DROP,
                             .partition = partition,
                             .version = instance_version(instance),
                             .execution = options->execution,
                             .event = instance_events(instance),
                             .instance = options->id,
                             .orchestration = instance_orchestration(instance),
                             .code = options->code};
}

void watched_drops(void *arg, const struct instance *instance, bool begins)
{
    const struct instances *const p = arg;
    const struct code_watch *const watch = p->env->options.watch;
    if (watch == NULL)
        return;
    if (!begins) {
        watch->ended(watch->arg);
        return;
    }
    struct code_run const run = watched_drop_run(instance, p->env->options.partition);
    watch->begins(watch->arg, &run);
}
