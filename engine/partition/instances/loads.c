/* Asks for histories; marks inbox messages as incorporated. */
#include "instances_state.h"
#include <assert.h>

void intake_load(struct instances *p, struct entry *entry)
{
    assert(entry->state == ENTRY_LOADING || entry->state == ENTRY_RECALLED);
    struct partition_out *out = env_emit(p->env, PARTITION_OUT_LOAD);
    out->token = entry->token;
    out->load.instance = env_copy(p->env, entry->id);
}

static struct entry *loads_find(struct instances *p, thole_slice instance)
{
    struct entry *entry = entries_find(&p->entries, instance);
    if (entry != NULL)
        entries_touch(&p->entries, entry);
    return entry;
}

struct entry *intake_entry(struct instances *p, thole_slice instance)
{
    struct entry *entry = loads_find(p, instance);
    if (entry != NULL)
        return entry;
    entry = entries_add(&p->entries, instance);
    intake_load(p, entry);
    return entry;
}

/* Only for starts: their record is refused when a rival has opened the partition meanwhile. Other requests
 * may be answered without a record. */
struct entry *intake_entry_to_start(struct instances *p, thole_slice instance)
{
    if (known_ids_has(p, instance))
        return intake_entry(p, instance);
    struct entry *entry = loads_find(p, instance);
    if (entry != NULL)
        return entry;
    entry = entries_add(&p->entries, instance);
    entry_become(&p->entries, entry, ENTRY_ABSENT);
    entry_note_counted(entry);
    return entry;
}

void intake_reload(struct instances *p, struct entry *entry)
{
    assert(entry->state == ENTRY_TO_LOAD);
    if (entry->in_flight > 0)
        return;
    entry_become(&p->entries, entry, ENTRY_LOADING);
    intake_load(p, entry);
}

void intake_incorporate(struct instances *p, uint64_t inbox_sequence, uint32_t part)
{
    if (inbox_sequence != 0)
        progress_add(&p->progress, inbox_sequence, part);
}
