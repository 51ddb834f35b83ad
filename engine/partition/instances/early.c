/*
 * Execution 0: events that came before their instance did. They are recorded like any others, in turns that
 * never ran; the instance's first turn begins with them. A timer row gives them up after a while.
 */
#include "instances_state.h"
#include <stdlib.h>

void early_destroy(struct early *early)
{
    if (early == NULL)
        return;
    arena_release(&early->arena);
    free(early->events);
    free(early);
}

static struct early *early_of(struct entry *entry)
{
    if (entry->early == NULL) {
        entry->early = calloc(1, sizeof *entry->early);
        if (entry->early != NULL)
            arena_init(&entry->early->arena, EARLY_BYTES_MAX);
    }
    return entry->early;
}

static bool seen(const struct early *early, thole_slice request_id)
{
    if (request_id.len == 0)
        return false;
    for (size_t i = 0; i < early->len; i++)
        if (thole_slice_equal(early->events[i].request_id, request_id))
            return true;
    return false;
}

static thole_status copy_event(struct early *early, struct event *event)
{
    THOLE_TRY(arena_dup(&early->arena, event->name, &event->name));
    THOLE_TRY(arena_dup(&early->arena, event->data, &event->data));
    return arena_dup(&early->arena, event->request_id, &event->request_id);
}

thole_status early_keep(struct entry *entry, const struct event *event)
{
    struct early *early = early_of(entry);
    if (early == NULL)
        return THOLE_NOMEM;
    if (seen(early, event->request_id))
        return THOLE_CONFLICT;
    if (early->len == EARLY_EVENTS_MAX)
        return THOLE_LIMIT;
    struct event copy = *event;
    THOLE_TRY(copy_event(early, &copy));
    struct event *kept = row_add((void **)&early->events, &early->len, &early->cap, sizeof *early->events);
    if (kept == NULL)
        return THOLE_NOMEM;
    *kept = copy;
    return THOLE_OK;
}
