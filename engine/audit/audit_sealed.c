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

static thole_slice audit_sealed_key_of(const struct record_hash *instance)
{
    return (thole_slice){instance->bytes, sizeof instance->bytes};
}

static void add_gap(struct audit *audit, uint64_t index)
{
    audit->gaps = memory_reserve(audit->gaps, &audit->gaps_cap, audit->gaps_len + 1, sizeof *audit->gaps);
    audit->gaps[audit->gaps_len++] =
        (struct audit_gap){index, seal_leaf(audit->options.seal, index).instance};
}

static bool audit_sealed_is_listed(struct audit *audit, const struct record_hash *record)
{
    return listed_has(&audit->listed, record) || seal_lists(audit->options.seal, record);
}

/* ---- the records of one instance ---- */

/* The first leaf of the instance from there on; the number of leaves: there is none. */
static uint64_t next_of_instance(const struct audit *audit, const struct record_hash *instance, uint64_t from)
{
    uint64_t const len = seal_leaves(audit->options.seal);
    for (; from < len; from++) {
        struct leaf const leaf = seal_leaf(audit->options.seal, from);
        if (record_hash_equal(&leaf.instance, instance) && record_hash_known(&leaf.record))
            break;
    }
    return from;
}

static void skip_leaves(struct audit *audit, const struct record_hash *instance, uint64_t to)
{
    uint64_t at = next_of_instance(audit, instance, audit->next_leaf);
    for (; at < to; at = next_of_instance(audit, instance, at + 1))
        add_gap(audit, at);
    audit->next_leaf = to < seal_leaves(audit->options.seal) ? to + 1 : to;
}

static bool take_of_instance(struct audit *audit, const struct audit_scan *scan,
                             const struct audit_place *place)
{
    const struct seal *seal = audit->options.seal;
    struct record_hash const instance = leaf_instance(audit->options.ns, audit->options.instance);
    uint64_t const len = seal_leaves(seal), next = next_of_instance(audit, &instance, audit->next_leaf);
    uint64_t at = next;
    while (at < len) {
        struct leaf const leaf = seal_leaf(seal, at);
        if (record_hash_equal(&leaf.record, &place->hash))
            break;
        at = next_of_instance(audit, &instance, at + 1);
    }
    if (scan->prunes || scan->kind == RECORD_DELETED)
        audit_instances_at(&audit->removals, audit_sealed_key_of(&instance))->sequence = at;
    if (at == len && scan->kind == RECORD_DELETED) {
        skip_leaves(audit, &instance, len); /* came after the last leaf, and may have removed all before it */
        return false;
    }
    if (at == len && next < len) {
        audit_say(audit, AUDIT_CHANGED, place->sequence, scan,
                  "it is not the record of which leaf %llu was published", NUMBER(next));
        at = next;
    }
    if (at == len)
        return false; /* came after the last leaf */
    skip_leaves(audit, &instance, at);
    return true;
}

/* Those that a checkpoint has and that were not given. */
static void end_of_instance(struct audit *audit)
{
    struct record_hash const instance = leaf_instance(audit->options.ns, audit->options.instance);
    uint64_t const end = seal_signed(audit->options.seal);
    uint64_t missing = 0, at = next_of_instance(audit, &instance, audit->next_leaf);
    for (; at < end; at = next_of_instance(audit, &instance, at + 1)) {
        struct leaf const leaf = seal_leaf(audit->options.seal, at);
        missing += !audit_sealed_is_listed(audit, &leaf.record); /* an expired deletion */
    }
    if (missing > 0)
        audit_say(audit, AUDIT_TRUNCATED, audit->last.sequence, NULL,
                  "it is the last record, but a signed checkpoint has %llu more of this instance",
                  NUMBER(missing));
}

/* ---- the records of a log ---- */

bool audit_sealed_record(struct audit *audit, const struct audit_scan *scan, const struct audit_place *place)
{
    struct seal *seal = audit->options.seal;
    uint64_t const index = place->index;
    if (seal != NULL && audit->options.scope == AUDIT_INSTANCE)
        return take_of_instance(audit, scan, place);
    if (seal == NULL || !audit->whole)
        return false;
    struct record_hash const instance = leaf_instance(audit->options.ns, scan->instance);
    if (scan->prunes || scan->kind == RECORD_DELETED)
        audit_instances_at(&audit->removals, audit_sealed_key_of(&instance))->sequence = index;
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
            add_gap(audit, index);
        } else if (audit->options.extends && index == seal_leaves(seal)) {
            seal_add(seal, &(struct leaf){{{0}}, {{0}}});
        }
    }
}

/* A deletion that was listed as dispensable has removed the records before it, like a deletion that still
 * exists. */
static void take_listed_deletions(struct audit *audit)
{
    for (size_t i = 0; i < audit->gaps_len; i++) {
        const struct audit_gap *const gap = &audit->gaps[i];
        struct leaf const leaf = seal_leaf(audit->options.seal, gap->index);
        if (!record_hash_known(&gap->instance) || !audit_sealed_is_listed(audit, &leaf.record))
            continue;
        struct audit_instance *const removal =
            audit_instances_at(&audit->removals, audit_sealed_key_of(&gap->instance));
        if (removal->sequence < gap->index)
            removal->sequence = gap->index;
    }
}

/* A leaf says of which instance the record was: a deletion or pruning of that one must follow. Or the record
 * itself was listed as dispensable. */
static bool is_accounted_for(struct audit *audit, const struct audit_gap *gap)
{
    struct leaf const leaf = seal_leaf(audit->options.seal, gap->index);
    if (!record_hash_known(&leaf.record))
        return true; /* was removed before any reader saw it */
    if (audit_sealed_is_listed(audit, &leaf.record))
        return true;
    return record_hash_known(&gap->instance) &&
           audit_instances_at(&audit->removals, audit_sealed_key_of(&gap->instance))->sequence > gap->index;
}

/* A checkpoint has more records than the log. */
static bool is_short(const struct audit *audit)
{
    uint64_t const records = audit->last.sequence == 0 ? 0 : audit->last.index + 1;
    return audit->options.seal != NULL && (audit->whole || records == 0) &&
           records < seal_signed(audit->options.seal);
}

bool audit_is_clean(struct audit *audit)
{
    if (audit->options.seal != NULL)
        take_listed_deletions(audit);
    bool clean = audit->summary.findings == 0 && audit->doubt.broken == 0 && audit->stray.count == 0 &&
                 audit->hole.count == 0 && !is_short(audit);
    for (size_t i = 0; clean && i < audit->gaps_len; i++)
        clean = is_accounted_for(audit, &audit->gaps[i]);
    return clean;
}

bool audit_sealed_end(struct audit *audit)
{
    const struct seal *seal = audit->options.seal;
    uint64_t missing = 0;
    if (seal != NULL)
        take_listed_deletions(audit);
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
    if (seal != NULL && audit->options.scope == AUDIT_INSTANCE)
        end_of_instance(audit);
    else if (is_short(audit))
        audit_say(audit, AUDIT_TRUNCATED, audit->last.sequence, NULL,
                  "the log ends here, but a signed checkpoint has %llu records", NUMBER(seal_signed(seal)));
    return missing > 0;
}
