/* What is counted of committed turns: rows of activities, live orchestrations. */
#include "machine.h"

/*
 * How many rows there are: while there are any, somebody looks after them, so it must not be too few. Of what
 * was scheduled before the instance was loaded, or before the last count, it is not known whether it was
 * counted: its row may have been gone by then, with its result on the way. Then it may be too many, until the
 * rows are counted again.
 */
static void count_rows(struct partition *p, struct slot *slot, uint64_t execution, const struct event *event)
{
    bool nomem = false;
    int const more = slot_note_tries(slot, event, &nomem);
    /* Where nobody looks what is recorded, the same end may be recorded twice. */
    bool const unsure = slot->raw || (execution == slot->old_execution && event->ref <= slot->old_events);
    if (nomem)
        env_no_memory(&p->env);
    p->activity_changes += more != 0;
    if (more > 0)
        p->open_activities++;
    else if (more < 0 && unsure)
        p->recount = true;
    else if (more < 0 && p->open_activities > 0)
        p->open_activities--;
}

static void count_name(struct partition *p, struct slot *slot, const struct event *event)
{
    if (event->kind == EVENT_STARTED)
        names_count(p, slot, event->name, event->version);
    else if (event->kind == EVENT_VERSION_CHOSEN)
        names_count(p, slot, slot->orchestration, event->version);
    else if (event_is_terminal(event->kind) && event->kind != EVENT_CONTINUED_AS_NEW)
        names_uncount(p, slot);
}

void count_turns(struct partition *p, struct slot *slot, const struct turn *turns, size_t n)
{
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; turns[t].execution > 0 && i < turns[t].events_len && !p->env.nomem; i++) {
            count_rows(p, slot, turns[t].execution, &turns[t].events[i]);
            count_name(p, slot, &turns[t].events[i]);
        }
}

void count_again(struct partition *p)
{
    p->recount = false;
    p->recounting = true;
    p->recount_changes = p->activity_changes;
    env_emit(&p->env, PARTITION_OUT_READ_LIVE);
}

void counted_again(struct partition *p, const struct partition_in *in)
{
    if (!p->recounting)
        return;
    p->recounting = false;
    if (p->recount_changes != p->activity_changes || log_facts(p->log)->in_flight > 0) {
        p->recount = true;
        return;
    }
    p->open_activities = in->live_activities;
    slots_grow_old(&p->slots);
}
