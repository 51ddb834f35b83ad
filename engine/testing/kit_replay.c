/* The turns of an execution, and whether a replay of them does the same. */
#include "kit.h"
#include "turn_list.h"

enum { HISTORY_ARENA_MAX = 1024 * 1024 * 1024 };

/* ---- reading ---- */

void kit_turns_read(const thole_test_env *env, const struct kit_instance *instance, struct kit_turns *turns)
{
    struct record record;
    turns->len = 0;
    arena_init(&turns->arena, HISTORY_ARENA_MAX);
    struct turn_list list = {.records = arena_array(&turns->arena, instance->records_len + 1, sizeof record)};
    turns->items = arena_array(&turns->arena, instance->records_len + 1, sizeof *turns->items);
    kit_must(list.records != NULL && turns->items != NULL);
    for (size_t i = instance->from_before; i < instance->records_len; i++) {
        const struct kit_record *const stored = &env->records[instance->records[i]];
        if (stored->deleted)
            continue;
        kit_must(record_decode(stored->bytes, &turns->arena, &record, NULL) == THOLE_OK);
        if (record.kind == RECORD_TURN)
            turn_list_take(&list, &record);
    }
    for (size_t first = 0, parts; first < list.len; first += parts) {
        parts = turn_list_join(&list, first, &turns->arena, &turns->items[turns->len]);
        kit_must(parts > 0);
        turns->len += !turns->items[turns->len].more;
    }
}

const struct event *kit_turns_end(const struct kit_turns *turns)
{
    const struct turn *const last = turns->len == 0 ? NULL : &turns->items[turns->len - 1];
    const struct event *const event =
        last == NULL || last->events_len == 0 ? NULL : &last->events[last->events_len - 1];
    return event != NULL && event_is_terminal(event->kind) ? event : NULL;
}

/* ---- replay of what has ended ---- */

static thole_orchestration_fn *code_of(const thole_test_env *env, const struct kit_turns *turns,
                                       uint32_t *ret_version)
{
    const struct event *const started = &turns->items[0].events[0];
    uint32_t version = started->version;
    for (size_t t = 0; t < turns->len; t++)
        for (size_t i = 0; i < turns->items[t].events_len; i++)
            if (turns->items[t].events[i].kind == EVENT_VERSION_CHOSEN)
                version = turns->items[t].events[i].version;
    for (size_t i = 0; i < env->program->orchestrations_len; i++) {
        const thole_orchestration_entry *const entry = &env->program->orchestrations[i];
        *ret_version = entry->version == 0 ? 1 : entry->version;
        if (thole_slice_equal(thole_slice_from(entry->name), started->name) &&
            *ret_version == (version == 0 ? 1 : version))
            return entry->run;
    }
    return NULL;
}

static void replay(thole_test_env *env, struct kit_instance *instance, const struct kit_turns *turns)
{
    struct instance_options options = {.id = instance->id,
                                       .execution = turns->items[0].execution,
                                       .memory_max = env->options.instance_memory_max,
                                       .payload_max = env->options.payload_max,
                                       .stacks = env->stacks};
    thole_error err = {0};
    options.code = code_of(env, turns, &options.version);
    if (options.code == NULL)
        return;
    struct instance *const run = instance_create(&options);
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < turns->len && status == THOLE_OK; i++)
        status = instance_replay(run, &turns->items[i], &err);
    instance_destroy(run);
    kit_must(status != THOLE_NOMEM);
    if (status != THOLE_OK)
        instance->diverged = (const char *)kit_dup(env, thole_slice_from(err.text)).ptr;
}

void kit_history_check(thole_test_env *env, struct kit_instance *instance)
{
    struct kit_turns turns;
    if (env->options.parked_max > 0 || instance->diverged != NULL)
        return;
    kit_turns_read(env, instance, &turns);
    const struct event *const end = kit_turns_end(&turns);
    if (end != NULL && end->kind != EVENT_TERMINATED && turns.items[0].execution > 0)
        replay(env, instance, &turns);
    arena_release(&turns.arena);
}
