/* What waits for an entry, and what it waits for. */
#include "instances_state.h"

static bool is_delete(const struct pending *pending)
{
    return pending != NULL && pending->inbox_sequence != 0 && pending->message.kind == MESSAGE_DELETE;
}

bool deletion_is_next(const struct entry *entry)
{
    return is_delete(entry->first);
}

/* What it was, and all that is told of it, has to be committed first. Its record says, too, that whoever it
 * was in the way of has heard so: else the next owner finds nobody in their way, and begins what was refused.
 */
static bool deletion_must_wait(const struct entry *entry)
{
    return (entry->in_flight > 0 || entry->refusals > 0) && is_delete(entry->first);
}

/* They are answered when what they collide with is committed: what is not committed is never told. */
static bool must_wait(const struct entry *entry)
{
    if (deletion_must_wait(entry))
        return true;
    return entry->in_flight > 0 && entry_exists(entry) && entry->first != NULL &&
           entry->first->inbox_sequence != 0 && entry->first->message.kind == MESSAGE_START;
}

bool intake_waits(const struct entry *entry)
{
    return entry->first != NULL && !entry_waits_for_history(entry->state) && !must_wait(entry);
}
