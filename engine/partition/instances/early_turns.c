/* Turns of execution 0: recording and expiring events that came before their instance. */
#include "instances_state.h"
#include <stdio.h>

void early_load(struct instances *p, struct entry *entry, const struct turn *turns, size_t n)
{
    struct early *early = NULL;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < turns[i].events_len; k++) {
            const struct event *event = &turns[i].events[k];
            if (event->kind == EVENT_DISCARDED) {
                early_destroy(early);
                early = NULL;
                continue;
            }
            /* An event over the current limit was recorded under a higher one: it is dropped.
             */
            if (event->kind == EVENT_EVENT_RECEIVED && early_keep(&early, event) == THOLE_NOMEM)
                env_no_memory(p->env);
            if (early != NULL)
                early->due_ms = turns[i].time_ms + p->env->options.early_event_ms;
        }
    }
    entry_become(&p->entries, entry, early != NULL ? ENTRY_EARLY : ENTRY_ABSENT);
    if (early != NULL)
        entry->early = early;
}

static void early_turns_append(struct instances *p, struct entry *entry, struct event *events, size_t n)
{
    size_t const kept = entry->state == ENTRY_EARLY ? entry->early->len : 0;
    int const len = snprintf(p->run.text, sizeof p->run.text, "%zu event%s wait%s for it to start", kept,
                             kept == 1 ? "" : "s", kept == 1 ? "s" : "");
    for (size_t i = 0; i < n; i++)
        events[i].id = ++entry->events;
    entry->time_ms = p->env->now_ms > entry->time_ms ? p->env->now_ms : entry->time_ms;
    p->run.kind = RUN_EARLY;
    p->run.turn = (struct turn){.instance = entry->id,
                                .execution = 0,
                                .number = ++entry->turns,
                                .time_ms = entry->time_ms,
                                .blocked = BLOCKED_NOT_STARTED,
                                .blocked_text = {(const uint8_t *)p->run.text, (size_t)len},
                                .events = events,
                                .events_len = n};
}

void early_record(struct instances *p, struct entry *entry, struct event *events, size_t n)
{
    if (entry->state == ENTRY_ABSENT) {
        if (entry->execution != 0)
            entry->turns = entry->events = 0;
        entry->execution = 0;
        entry_become(&p->entries, entry, ENTRY_EARLY);
        entry->early = p->run.in.early;
        p->run.in.early = NULL;
    }
    early_turns_append(p, entry, events, n);
    entry->early->due_ms = entry->time_ms + p->env->options.early_event_ms;
}

/* A row that was written under another early_event_ms may fire too early: it must fire again. */
bool early_is_over(struct instances *p, const struct entry *entry)
{
    if (entry->early->due_ms <= p->env->now_ms)
        return true;
    struct batch_timer const timer = {
        .instance = entry->id, .timer_id = EARLY_TIMER, .due_ms = entry->early->due_ms};
    p->run.wake = timer;
    return false;
}

void early_expire(struct instances *p, struct entry *entry)
{
    struct event *discarded = arena_array(&p->run.arena, 1, sizeof *discarded);
    if (discarded == NULL) {
        env_no_memory(p->env);
        return;
    }
    *discarded = (struct event){.kind = EVENT_DISCARDED, .data = THOLE_STR("nobody started it in time")};
    entry_become(&p->entries, entry, ENTRY_ABSENT);
    early_turns_append(p, entry, discarded, 1);
}
