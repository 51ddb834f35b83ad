/*
 * Deleting an instance: a record that says so, then its rows (see fold.c), and at last the records before it.
 *
 * They may go when
 *  - everything that follows from them has been done;
 *  - a later record that is stored says that the deletion is committed: who reads the tail then counts on
 * over the gap (opening.c);
 *  - the database will never forget that it has come so far: the record that its rows end with has to be
 * there. Until they are gone no record says that all is published (see log_saying), so a new owner looks for
 * deletions from there on, and removes what is left.
 *
 * Pruning is the same for some of the executions of an instance that goes on: not a record of its own, but an
 * event in a turn of a later execution. The first execution stays, since it says when and by whom the
 * instance was started.
 *
 * The id may be used again. Its new life goes on counting executions, so that nothing that was meant for the
 * old one (results, wakes, repeated messages, keys) fits.
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

static void tell(struct partition *p, const struct deletion *d, const char *kind)
{
    struct partition_out *out = env_emit(&p->env, PARTITION_OUT_EVENT);
    out->event_kind = kind;
    out->orchestration = env_copy(&p->env, d->orchestration.len > 0 ? d->orchestration : THOLE_STR(NAMELESS));
    out->instance = env_copy(&p->env, d->instance);
    out->execution = d->execution;
    out->request_id = env_copy(&p->env, d->request_id);
    out->data = env_copy(&p->env, d->reason);
}

void deletion_told(struct partition *p, const struct deletion *deletion)
{
    tell(p, deletion, "deleted");
}

static bool drop(struct partition *p, struct slot *slot, const char *kind)
{
    struct pending *pending = slot_take(&p->slots, slot);
    struct deletion const said = {.instance = slot->id,
                                  .execution = slot->execution,
                                  .orchestration = slot->orchestration,
                                  .request_id = pending->message.request_id};
    if (kind != NULL)
        tell(p, &said, kind);
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

/* --- the records before it ----------------------------------------------------------------------- */

struct executions deletion_pruned(const struct event *event)
{
    if (event->kind != EVENT_HISTORY_PRUNED || event->before <= event->kept + 1)
        return (struct executions){0, 0};
    return (struct executions){event->kept, event->before - 1};
}

void deletion_owed(struct partition *p, thole_slice instance, struct executions executions, uint64_t sequence)
{
    struct removals *removals = &p->removals;
    struct removal *removal = calloc(1, sizeof *removal + instance.len);
    if (removal == NULL) {
        env_no_memory(&p->env);
        return;
    }
    removal->sequence = sequence;
    removal->executions = executions;
    removal->instance_len = instance.len;
    memcpy(removal->instance, instance.ptr, instance.len);
    assert(removals->last == NULL || removals->last->sequence < removal->sequence);
    if (removals->last != NULL)
        removals->last->next = removal;
    else
        removals->first = removal;
    removals->last = removal;
    removals->len++;
}

/* Everything before this epoch counts; of this one, what a stored record says. */
static uint64_t attested(const struct partition *p)
{
    return log_facts(p->log)->confirmed_seq;
}

bool deletion_unattested(const struct partition *p)
{
    return p->removals.last != NULL && p->removals.last->sequence > attested(p);
}

bool deletion_undurable(const struct partition *p)
{
    const struct removal *last = p->removals.last;
    return last != NULL && last->sequence > p->projector.durable &&
           last->sequence <= p->projector.watermark.seq;
}

void deletion_pump(struct partition *p)
{
    struct removals *removals = &p->removals;
    for (struct removal *r = removals->first; r != NULL && removals->out < REMOVALS_OUT_MAX; r = r->next) {
        if (r->out)
            continue;
        if (r->sequence > attested(p) || r->sequence > p->projector.durable)
            return;
        r->out = true;
        removals->out++;
        struct partition_out *out = env_emit(&p->env, PARTITION_OUT_REMOVE_HISTORY);
        out->sequence = r->sequence;
        out->executions = r->executions;
        out->instance = env_copy(&p->env, (thole_slice){r->instance, r->instance_len});
    }
}

void deletion_removed(struct partition *p, const struct partition_in *in)
{
    struct removals *removals = &p->removals;
    struct removal *before = NULL, *r = removals->first;
    while (r != NULL && r->sequence != in->sequence) {
        before = r;
        r = r->next;
    }
    if (r == NULL || !r->out)
        return;
    *(before == NULL ? &removals->first : &before->next) = r->next;
    if (removals->last == r)
        removals->last = before;
    removals->len--;
    removals->out--;
    free(r);
    p->busy_ms = p->env.now_ms;
    if (in->sequence > p->projector.worth)
        p->projector.worth = in->sequence;
}

void deletion_release(struct partition *p)
{
    for (struct removal *next; p->removals.first != NULL; p->removals.first = next) {
        next = p->removals.first->next;
        free(p->removals.first);
    }
    p->removals = (struct removals){0};
}
