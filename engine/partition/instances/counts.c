/* Counts over committed turns: rows of activities, live orchestrations. */
#include "instances_state.h"

/*
 * Counts rows of activities. The sweeper runs while there are any, so the count must never be too low. For an
 * activity scheduled before the instance was loaded, or before the last count, it is not known whether it was
 * counted: its row may already have been deleted, with its result on the way. So the count may be too high
 * until the rows are counted again.
 */
static void count_rows(struct instances *p, struct entry *entry, uint64_t execution,
                       const struct event *event)
{
    int const more = entry_note_tries(entry, event);
    /* Where what is recorded is not checked, the same end may be recorded twice. */
    bool const unsure = entry->limit == ENTRY_KEEPS ||
                        (execution == entry->counted.execution && event->ref <= entry->counted.events);
    p->activity_changes += more != 0;
    if (more > 0)
        p->open_activities++;
    else if (more < 0 && unsure)
        p->recount = true;
    else if (more < 0 && p->open_activities > 0)
        p->open_activities--;
}

static void counts_count_name(struct instances *p, struct entry *entry, const struct event *event)
{
    if (event->kind == EVENT_STARTED)
        names_count(p, entry, event->name, event->version);
    else if (event->kind == EVENT_VERSION_CHOSEN)
        names_count(p, entry, entry->orchestration, event->version);
    else if (event_is_terminal(event->kind) && event->kind != EVENT_CONTINUED_AS_NEW)
        names_uncount(p, entry);
}

/* Once for each reason: a turn that only records what was received has the reason of the turn before. */
static void count_stop(struct instances *p, struct entry *entry, const struct turn *turn)
{
    enum blocked_kind const before = entry->counted.stopped;
    bool const ends = turn->events_len > 0 && event_is_terminal(turn->events[turn->events_len - 1].kind);
    enum blocked_kind const now = turn->ran || ends ? BLOCKED_NOT : turn->blocked;
    entry->counted.stopped = now;
    if (now == before || now == BLOCKED_NOT || now == BLOCKED_NOT_STARTED)
        return;
    struct out_stopped *const out = &env_emit(p->env, PARTITION_OUT_STOPPED)->stopped;
    *out = (struct out_stopped){.kind = now,
                                .instance = env_copy(p->env, entry->id),
                                .orchestration = env_copy(p->env, entry->orchestration),
                                .text = env_copy(p->env, turn->blocked_text),
                                .execution = turn->execution,
                                .version = entry->version};
}

void instances_count(struct instances *p, struct entry *entry, const struct turn *turns, size_t n)
{
    for (size_t t = 0; t < n && !p->env->nomem; t++)
        count_stop(p, entry, &turns[t]);
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; turns[t].execution > 0 && i < turns[t].events_len && !p->env->nomem; i++) {
            count_rows(p, entry, turns[t].execution, &turns[t].events[i]);
            counts_count_name(p, entry, &turns[t].events[i]);
        }
}

void instances_count_again(struct instances *p)
{
    p->recount = false;
    p->recounting = true;
    p->recount_changes = p->activity_changes;
    env_emit(p->env, PARTITION_OUT_READ_LIVE);
}

void instances_counted_again(struct instances *p, const struct in_live *in, bool uncommitted)
{
    if (!p->recounting)
        return;
    p->recounting = false;
    if (p->recount_changes != p->activity_changes || uncommitted) {
        p->recount = true;
        return;
    }
    p->open_activities = in->activities;
    entries_mark_counted(&p->entries);
}

void instances_live(struct instances *p, const struct in_live *in)
{
    for (size_t i = 0; i < in->names_len; i++)
        names_add(p, in->names[i], in->counts[i]);
    p->open_activities = in->activities;
}

void instances_count_is_uncertain(struct instances *p)
{
    p->recount = true;
}

bool instances_counts_wanted(const struct instances *p)
{
    return p->recount && !p->recounting;
}

bool instances_counts_exact(const struct instances *p)
{
    return !p->recount && !p->recounting;
}

uint64_t instances_open_activities(const struct instances *p)
{
    return p->open_activities;
}
