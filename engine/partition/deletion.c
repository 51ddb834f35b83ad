/*
 * Deleting an instance: a record that says so, then its rows, and at last the records before it (see the
 * projection's removals.c). The id may be used again. Its new life goes on counting executions, so that
 * nothing that was meant for the old one (results, wakes, repeated messages, keys) fits.
 */
#include "machine.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- the request --------------------------------------------------------------------------------- */

static bool is_delete(const struct pending *pending)
{
    return pending != NULL && pending->inbox_sequence != 0 && pending->message.kind == MESSAGE_DELETE;
}

bool deletion_is_next(const struct slot *slot)
{
    return is_delete(slot->first);
}

/* There is nothing to delete, or something that the client did not mean: it was deleted before. */
static bool is_over(const struct slot *slot, const struct message *m)
{
    return slot->state == SLOT_ABSENT || (m->execution != 0 && m->execution <= slot->gone);
}

/* Its record says, too, that whoever it was in the way of has heard so: else the next owner finds nobody in
 * their way, and begins what was refused. */
bool deletion_must_wait(const struct slot *slot)
{
    return (slot->in_flight > 0 || slot->refusals > 0) && is_delete(slot->first);
}

static bool drop(struct partition *p, struct slot *slot, const char *kind)
{
    struct pending *pending = slot_take(&p->slots, slot);
    struct deletion const said = {.instance = slot->id,
                                  .execution = slot->execution,
                                  .orchestration = slot->orchestration,
                                  .request_id = pending->message.request_id};
    if (kind != NULL)
        env_notice_deletion(&p->env, &said, kind);
    intake_incorporate(p, pending->inbox_sequence);
    pending_destroy(pending);
    return false;
}

/* It is terminated first, in a turn of its own. The request stays in its place and comes again behind it. */
static bool terminate(struct partition *p, struct slot *slot, struct intake *in)
{
    const struct message *m = &slot->first->message;
    struct event const event = {
        .kind = EVENT_TERMINATE_REQUESTED, .data = m->data, .request_id = m->request_id};
    if (slot->instance != NULL && !instance_accepts(slot->instance, &event))
        return drop(p, slot, "rejected");
    in->events[in->len++] = event;
    return true;
}

bool deletion_take(struct partition *p, struct slot *slot, struct intake *in)
{
    const struct message *m = &slot->first->message;
    assert(in->len == 0);
    if (is_over(slot, m)) /* of what never was there is nothing to tell */
        return drop(p, slot, slot->gone > 0 ? "deleted" : NULL);
    if (slot->state != SLOT_ENDED && slot->state != SLOT_EARLY)
        return m->force ? terminate(p, slot, in) : drop(p, slot, "rejected");
    in->deletes = true;
    in->taken = slot_take(&p->slots, slot);
    in->taken->next = NULL; /* what waits behind it stays where it is */
    return true;
}

/* --- the record ---------------------------------------------------------------------------------- */

void deletion_note(struct slot *slot, const struct deletion *d)
{
    slot->gone = d->execution;
    slot->time_ms = d->time_ms;
    slot_remember(slot, d->started_by, &slot->request_id);
    slot_remember(slot, d->parent.instance, &slot->parent.instance);
    slot->parent.execution = d->parent.execution;
    slot->parent.event = d->parent.event;
}

void deletion_record(struct partition *p, struct slot *slot, const struct intake *in)
{
    const struct message *m = &in->taken->message;
    struct deletion const deletion = {.instance = slot->id,
                                      .execution = slot->state == SLOT_EARLY ? slot->gone : slot->execution,
                                      .time_ms =
                                          p->env.now_ms > slot->time_ms ? p->env.now_ms : slot->time_ms,
                                      .orchestration = slot->orchestration,
                                      .reason = m->data,
                                      .request_id = m->request_id,
                                      .started_by = slot->request_id,
                                      .parent = slot->parent};
    struct arena life = slot->arena; /* the record borrows from it */
    intake_done(p, in);
    early_destroy(slot->early);
    instance_destroy(slot->instance);
    slot_renew(slot);
    slot->state = SLOT_ABSENT;
    deletion_note(slot, &deletion);
    partition_append_deletion(p, slot, &deletion);
    suspects_over(p, slot);
    arena_release(&life);
    slots_touch(&p->slots, slot);
}
