/* CloudEvents that instances emitted, as the stream keeps them: it drops what it has. */
#include "kit.h"

static bool kit_events_is_same(const struct kit_event *event, const struct emission *emission)
{
    return event->execution == emission->execution && event->event == emission->event &&
           thole_slice_equal(event->instance, emission->instance);
}

void kit_event_add(thole_test_env *env, const struct emission *emission)
{
    for (size_t i = 0; i < env->events_len; i++)
        if (kit_events_is_same(&env->events[i], emission))
            return;
    env->events = kit_grow(env, env->events, env->events_len, &env->events_cap, sizeof *env->events);
    env->events[env->events_len++] = (struct kit_event){.instance = kit_dup(env, emission->instance),
                                                        .type = kit_dup(env, emission->type),
                                                        .data = kit_dup(env, emission->data),
                                                        .execution = emission->execution,
                                                        .event = emission->event};
}
