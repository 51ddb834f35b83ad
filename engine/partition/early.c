/*
 * Execution 0: events that came before their instance did. They are recorded like any others, in turns that
 * never ran; the instance's first turn begins with them. A timer row gives them up after a while.
 */
#include "machine.h"
#include <stdio.h>
#include <stdlib.h>

void early_destroy(struct early *early)
{
    if (early == NULL)
        return;
    arena_release(&early->arena);
    free(early->events);
    free(early);
}

static struct early *early_of(struct slot *slot)
{
    if (slot->early == NULL) {
        slot->early = calloc(1, sizeof *slot->early);
        if (slot->early != NULL)
            arena_init(&slot->early->arena, EARLY_BYTES_MAX);
    }
    return slot->early;
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

thole_status early_keep(struct slot *slot, const struct event *event)
{
    struct early *early = early_of(slot);
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

static void forget(struct slot *slot)
{
    early_destroy(slot->early);
    slot->early = NULL;
    slot->state = SLOT_ABSENT;
}

void early_load(struct partition *p, struct slot *slot, const struct turn *turns, size_t n)
{
    slot->state = SLOT_ABSENT;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < turns[i].events_len; k++) {
            const struct event *event = &turns[i].events[k];
            if (event->kind == EVENT_DISCARDED) {
                forget(slot);
                continue;
            }
            /* What is over a limit now was recorded when it was not: nobody misses it more than its instance.
             */
            if (event->kind == EVENT_EVENT_RECEIVED && early_keep(slot, event) == THOLE_NOMEM)
                env_no_memory(&p->env);
            if (slot->early == NULL)
                continue;
            slot->state = SLOT_EARLY;
            slot->early->due_ms = turns[i].time_ms + p->env.options.early_event_ms;
        }
    }
}

static void append(struct partition *p, struct slot *slot, struct event *events, size_t n)
{
    char text[64];
    size_t const kept = slot->early == NULL ? 0 : slot->early->len;
    int const len = snprintf(text, sizeof text, "%zu event%s wait%s for it to start", kept,
                             kept == 1 ? "" : "s", kept == 1 ? "s" : "");
    for (size_t i = 0; i < n; i++)
        events[i].id = ++slot->events;
    slot->time_ms = p->env.now_ms > slot->time_ms ? p->env.now_ms : slot->time_ms;
    struct turn const turn = {.instance = slot->id,
                              .execution = 0,
                              .number = ++slot->turns,
                              .time_ms = slot->time_ms,
                              .blocked = BLOCKED_NOT_STARTED,
                              .blocked_text = {(const uint8_t *)text, (size_t)len},
                              .events = events,
                              .events_len = n};
    partition_append_turn(p, slot, &turn, NULL, 0);
}

void early_record(struct partition *p, struct slot *slot, struct event *events, size_t n)
{
    if (slot->state == SLOT_ABSENT) {
        if (slot->execution != 0)
            slot->turns = slot->events = 0;
        slot->execution = 0;
        slot->state = SLOT_EARLY;
        slots_touch(&p->slots, slot);
    }
    append(p, slot, events, n);
    slot->early->due_ms = slot->time_ms + p->env.options.early_event_ms;
}

/* A row that was written with another patience may fire before its time: it is to fire again. */
bool early_is_over(struct partition *p, const struct slot *slot)
{
    if (slot->early->due_ms <= p->env.now_ms)
        return true;
    struct batch_timer const timer = {
        .instance = slot->id, .timer_id = EARLY_TIMER, .due_ms = slot->early->due_ms};
    projection_wake(p->projection, &timer);
    return false;
}

void early_expire(struct partition *p, struct slot *slot)
{
    struct event discarded = {.kind = EVENT_DISCARDED, .data = THOLE_STR("nobody started it in time")};
    forget(slot);
    append(p, slot, &discarded, 1);
    slots_touch(&p->slots, slot);
}
