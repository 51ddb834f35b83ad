/*
 * Deleting an instance: a deletion record is written, then its rows are removed, then the records before the
 * deletion (projection/removals.c). The id may be used again. The new incarnation continues the numbers of
 * executions, so that messages for the old one (results, wakes, repeated messages, keys) do not match.
 */
#include "instances_state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- the request --------------------------------------------------------------------------------- */

/* There is nothing to delete, or the instance that the client meant was deleted before. */
static bool is_over(const struct entry *entry, const struct message *m)
{
    return entry->state == ENTRY_ABSENT || (m->execution != 0 && m->execution <= entry->tombstone);
}

static bool deletion_drop(struct instances *p, struct entry *entry, const char *kind)
{
    struct pending *pending = entry_take(&p->entries, entry);
    struct deletion const said = {.instance = entry->id,
                                  .execution = entry->execution,
                                  .orchestration = entry->orchestration,
                                  .request_id = pending->message.request_id};
    if (kind != NULL)
        env_notice_deletion(p->env, &said, kind);
    intake_incorporate(p, pending->inbox_sequence, pending->part);
    pending_destroy(pending);
    return false;
}

/* Terminates the instance first, in a turn of its own. The request keeps its place and is taken again after
 * that turn. */
static bool deletion_terminate(struct instances *p, struct entry *entry, struct intake *in)
{
    const struct message *m = &entry->first->message;
    struct event const event = {.kind = EVENT_TERMINATE_REQUESTED,
                                .data = m->data,
                                .request_id = m->request_id,
                                .source = pending_source(entry->first)};
    if (entry_instance(entry) != NULL && entry->state != ENTRY_CONTINUED &&
        !instance_accepts(entry_instance(entry), &event))
        return deletion_drop(p, entry, "rejected");
    in->events[in->len++] = event;
    return true;
}

bool deletion_take(struct instances *p, struct entry *entry, struct intake *in)
{
    const struct message *m = &entry->first->message;
    assert(in->len == 0);
    if (is_over(entry, m)) /* for an id that never existed there is no notice */
        return deletion_drop(p, entry, entry->tombstone > 0 ? "deleted" : NULL);
    if (entry->state != ENTRY_ENDED && entry->state != ENTRY_EARLY)
        return m->force ? deletion_terminate(p, entry, in) : deletion_drop(p, entry, "rejected");
    in->deletes = true;
    in->taken = entry_take(&p->entries, entry);
    in->taken->next = NULL; /* later messages stay queued */
    return true;
}

void deletion_note(struct entry *entry, const struct deletion *d)
{
    entry->tombstone = d->execution;
    entry->time_ms = d->time_ms;
    entry_remember(&entry->request_id, d->started_by);
    entry_remember(&entry->parent.instance, d->parent.instance);
    entry->parent.execution = d->parent.execution;
    entry->parent.event = d->parent.event;
}
