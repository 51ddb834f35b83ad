/* Messages and questions that wait for an entry, and the answers that the entry waits for. */
#include "instances_state.h"

static bool is_delete(const struct pending *pending)
{
    return pending != NULL && pending->inbox_sequence != 0 && pending->message.kind == MESSAGE_DELETE;
}

bool deletion_is_next(const struct entry *entry)
{
    return is_delete(entry->first);
}

/* All records of the instance must be committed first. All refusals of starts under its id must be stored
 * first, too: otherwise the next owner, which no longer finds the instance, would begin a start that was
 * refused.
 */
static bool deletion_must_wait(const struct entry *entry)
{
    return (entry->in_flight > 0 || entry->refusals > 0) && is_delete(entry->first);
}

/* Starts under an id in use are answered when the instance that they collide with is committed: nothing
 * uncommitted is told outside. */
static bool waiting_must_wait(const struct entry *entry)
{
    if (deletion_must_wait(entry))
        return true;
    return entry->in_flight > 0 && entry_exists(entry) && entry->first != NULL &&
           entry->first->inbox_sequence != 0 && entry->first->message.kind == MESSAGE_START;
}

bool intake_waits(const struct entry *entry)
{
    return entry->first != NULL && !entry_waits_for_history(entry->state) && !waiting_must_wait(entry);
}
