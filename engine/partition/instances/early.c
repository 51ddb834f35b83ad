/*
 * Execution 0: events that came before their instance. They are recorded like others, in turns that did not
 * run; the instance's first turn begins with them. A timer row makes them expire (early_event_ms).
 */
#include "instances_state.h"
#include "memory.h"
#include <stdlib.h>

void early_destroy(struct early *early)
{
    if (early == NULL)
        return;
    arena_release(&early->arena);
    free(early->events);
    free(early);
}

size_t early_memory(const struct early *early)
{
    return sizeof *early + early->arena.held + early->cap * sizeof *early->events;
}

static struct early *early_create(void)
{
    struct early *early = memory_new(sizeof *early);
    arena_init(&early->arena, EVENTS_KEPT_BYTES_MAX);
    return early;
}

static bool early_seen(const struct early *early, thole_slice request_id)
{
    if (request_id.len == 0)
        return false;
    for (size_t i = 0; i < early->len; i++)
        if (thole_slice_equal(early->events[i].request_id, request_id))
            return true;
    return false;
}

/* Of an event that a client raised: it ran nowhere. */
static thole_status copy_source(struct arena *arena, const struct event_source **at)
{
    struct event_source *const source = arena_alloc(arena, sizeof *source);
    if (source == NULL)
        return arena_status(arena);
    *source = (struct event_source){.actor = (*at)->actor};
    *at = source;
    struct actor *const copy = &source->actor;
    THOLE_TRY(arena_dup(arena, copy->name, &copy->name));
    THOLE_TRY(arena_dup(arena, copy->client, &copy->client));
    THOLE_TRY(arena_dup(arena, copy->trace.parent, &copy->trace.parent));
    return arena_dup(arena, copy->trace.list, &copy->trace.list);
}

static thole_status copy_event(struct early *early, struct event *event)
{
    if (event->source != NULL)
        THOLE_TRY(copy_source(&early->arena, &event->source));
    THOLE_TRY(arena_dup(&early->arena, event->name, &event->name));
    THOLE_TRY(arena_dup(&early->arena, event->data, &event->data));
    return arena_dup(&early->arena, event->request_id, &event->request_id);
}

thole_status early_keep(struct early **at, const struct event *event)
{
    if (*at == NULL)
        *at = early_create();
    struct early *early = *at;
    if (early_seen(early, event->request_id))
        return THOLE_CONFLICT;
    if (early->len == EVENTS_KEPT_MAX)
        return THOLE_LIMIT;
    struct event copy = *event;
    THOLE_TRY(copy_event(early, &copy));
    struct event *kept = row_add((void **)&early->events, &early->len, &early->cap, sizeof *early->events);
    *kept = copy;
    return THOLE_OK;
}
