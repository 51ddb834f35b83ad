/* The records compared with the leaves that were published of them. */
#include "audit_state.h"
#include "memory.h"
#include <stdlib.h>
#include <string.h>

#define NUMBER(n) ((unsigned long long)(n))

enum { GAPS_SAID_MAX = 20 };

struct audit_gap { /* a record that is not there, whose leaf is */
    uint64_t index;
    struct record_hash instance;
};

static bool is_sealed(const struct audit *audit, uint64_t index)
{
    return audit->options.seal != NULL && audit->whole && index < seal_leaves(audit->options.seal);
}

static thole_slice key_of(const struct record_hash *instance)
{
    return (thole_slice){instance->bytes, sizeof instance->bytes};
}

bool audit_sealed_record(struct audit *audit, const struct audit_scan *scan, const struct audit_place *place)
{
    struct seal *seal = audit->options.seal;
    uint64_t const index = place->index;
    if (seal == NULL || !audit->whole)
        return false;
    struct record_hash const instance = leaf_instance(audit->options.ns, scan->instance);
    if (scan->prunes || scan->kind == RECORD_DELETED)
        audit_instances_at(&audit->removals, key_of(&instance))->sequence = index;
    if (audit->options.extends && index == seal_leaves(seal)) {
        seal_add(seal, &(struct leaf){place->hash, instance});
        return false;
    }
    if (!is_sealed(audit, index))
        return false;
    struct leaf const leaf = seal_leaf(seal, index);
    if (!record_hash_known(&leaf.record))
        return false;
    if (!record_hash_equal(&leaf.record, &place->hash))
        audit_say(audit, AUDIT_CHANGED, place->sequence, scan,
                  "it is not the record of which leaf %llu was published", NUMBER(index));
    return true;
}

void audit_sealed_hole(struct audit *audit, uint64_t first, uint64_t count)
{
    struct seal *seal = audit->options.seal;
    if (seal == NULL || !audit->whole)
        return;
    for (uint64_t index = first; index < first + count; index++) {
        if (is_sealed(audit, index)) {
            audit->gaps =
                memory_reserve(audit->gaps, &audit->gaps_cap, audit->gaps_len + 1, sizeof *audit->gaps);
            audit->gaps[audit->gaps_len++] = (struct audit_gap){index, seal_leaf(seal, index).instance};
        } else if (audit->options.extends && index == seal_leaves(seal)) {
            seal_add(seal, &(struct leaf){{{0}}, {{0}}});
        }
    }
}

/* A leaf says of which instance the record was: a deletion or pruning of that one must follow. */
static bool is_accounted_for(struct audit *audit, const struct audit_gap *gap)
{
    struct leaf const leaf = seal_leaf(audit->options.seal, gap->index);
    if (!record_hash_known(&leaf.record))
        return true; /* it was removed before it was seen */
    return record_hash_known(&gap->instance) &&
           audit_instances_at(&audit->removals, key_of(&gap->instance))->sequence > gap->index;
}

bool audit_sealed_end(struct audit *audit)
{
    const struct seal *seal = audit->options.seal;
    uint64_t missing = 0;
    for (size_t i = 0; i < audit->gaps_len; i++)
        if (!is_accounted_for(audit, &audit->gaps[i]) && ++missing <= GAPS_SAID_MAX)
            audit_say(
                audit, AUDIT_MISSING, 0, NULL,
                "the record of leaf %llu is not there, and no deletion or pruning of its instance follows",
                NUMBER(audit->gaps[i].index));
    if (missing > GAPS_SAID_MAX)
        audit_say(audit, AUDIT_MISSING, 0, NULL,
                  "%llu more records whose leaves were published are not there",
                  NUMBER(missing - GAPS_SAID_MAX));
    if (seal != NULL && audit->whole && audit->last.index + 1 < seal_signed(seal))
        audit_say(audit, AUDIT_TRUNCATED, audit->last.sequence, NULL,
                  "it is the last record, %llu of the log, but a signed checkpoint has %llu",
                  NUMBER(audit->last.index + 1), NUMBER(seal_signed(seal)));
    return missing > 0;
}
