/* The hashes: of the partition's record before, and of the instance's. */
#include "audit_state.h"
#include <inttypes.h>

#define NUMBER(n) ((unsigned long long)(n))

/* ---- which of two records is wrong ---- */

/* The link after the doubtful ones holds, or the history ends. */
static void settle_doubt(struct audit *audit)
{
    struct audit_doubt *doubt = &audit->doubt;
    if (doubt->broken == 1)
        audit_say(audit, AUDIT_CHANGED, doubt->before, NULL, "record #%llu names another record than this",
                  NUMBER(doubt->at));
    else if (doubt->broken == 2)
        audit_say(audit, AUDIT_CHANGED, doubt->at, NULL,
                  "it does not name record #%llu before it, and the record behind it does not name this",
                  NUMBER(doubt->before));
    *doubt = (struct audit_doubt){0};
}

static void break_link(struct audit *audit, uint64_t before, uint64_t at)
{
    struct audit_doubt *doubt = &audit->doubt;
    if (doubt->broken++ == 0) {
        doubt->before = before;
        doubt->at = at;
    }
    audit->trouble = at;
    if (doubt->broken < 3 || doubt->said)
        return;
    audit_say(audit, AUDIT_REPLAYED, doubt->before, NULL,
              "from here on no record names the one before it as in this namespace and partition: "
              "the records are of another stream, or all were changed");
    doubt->said = true;
}

/* ---- the record before, of the partition or of the one instance ---- */

static enum audit_link link_of(const struct audit *audit, const struct record_hash *said, bool adjacent)
{
    if (!record_hash_known(said))
        return LINK_ABSENT;
    if (!adjacent || audit->last.sequence == 0)
        return LINK_ACROSS;
    return record_hash_equal(said, &audit->last.hash) ? LINK_NAMES : LINK_BROKEN;
}

/* An epoch has one writer, which writes hashes into all of its records, but for the first record of a log, or
 * none. */
static void check_writer(struct audit *audit, const struct audit_scan *scan, const struct audit_place *place)
{
    const struct audit_place *last = &audit->last;
    bool const first = last->n == 0 && audit->summary.records == 1;
    if (last->sequence == 0 || scan->epoch != last->epoch || place->names == last->names || first)
        return;
    uint64_t const bare = place->names ? last->sequence : place->sequence;
    audit_say(audit, AUDIT_CHANGED, bare, place->names ? NULL : scan,
              "it names no record before it, as record #%llu of the same epoch does",
              NUMBER(place->names ? place->sequence : last->sequence));
    audit->trouble = place->sequence;
}

static void without_hash(struct audit *audit, const struct audit_place *place)
{
    struct audit_summary *summary = &audit->summary;
    if (audit->last.sequence == 0 || place->names)
        return;
    audit->trouble = place->sequence;
    summary->unchained++;
    if (summary->chained_from == 0)
        return;
    if (summary->unchained_from == 0)
        summary->unchained_from = place->sequence;
    summary->unchained_until = place->sequence;
}

static void link_to_last(struct audit *audit, const struct audit_scan *scan, const struct audit_place *place,
                         const struct record_hash *said, bool adjacent)
{
    const struct audit_place *last = &audit->last;
    enum audit_link const link = link_of(audit, said, adjacent);
    check_writer(audit, scan, place);
    if (link == LINK_ABSENT)
        without_hash(audit, place);
    else if (audit->summary.chained_from == 0)
        audit->summary.chained_from = last->sequence > 0 ? last->sequence : place->sequence;
    if (link == LINK_ABSENT && place->names && last->sequence > 0 && audit->options.scope == AUDIT_INSTANCE)
        audit_say(audit, AUDIT_ADDED, place->sequence, scan,
                  "it says that it is the first record of its instance, which is #%llu",
                  NUMBER(last->sequence));
    if (link == LINK_BROKEN)
        break_link(audit, last->sequence, place->sequence);
    else
        settle_doubt(audit);
}

/* ---- the record before, of the instance, in the log of its partition ---- */

static void link_of_instance(struct audit *audit, const struct audit_scan *scan,
                             const struct audit_place *place)
{
    struct audit_instance *instance = audit_instances_at(&audit->instances, scan->instance);
    const struct record_hash *said = &scan->previous_of_instance;
    bool const has = record_hash_known(&instance->newest);
    bool const removes = scan->prunes || scan->kind == RECORD_DELETED;
    if (record_hash_equal(said, &instance->newest)) {
        /* names the instance's newest record, or there is none */
    } else if (audit->trouble > instance->sequence) {
        if (record_hash_known(said) && instance->gap == 0 && audit->hole_at > instance->sequence) {
            instance->gap = place->sequence;
            instance->gap_execution = scan->execution;
            instance->gap_begins = scan->kind == RECORD_TURN && scan->turn == 1;
        }
    } else if (!record_hash_known(said) && place->names) {
        audit_say(audit, AUDIT_ADDED, place->sequence, scan,
                  "it says that it is the first record of its instance, which is #%llu",
                  NUMBER(instance->sequence));
    } else if (place->names) {
        audit_say(audit, AUDIT_CHANGED, place->sequence, scan, "%s%llu",
                  has ? "it names another record of its instance than the last one, #"
                      : "it names a record of its instance, but none is there before #",
                  NUMBER(has ? instance->sequence : place->sequence));
    }
    if (removes)
        instance->gap = 0;
    instance->newest = place->hash;
    instance->sequence = place->sequence;
}

void audit_link(struct audit *audit, const struct audit_scan *scan, const struct audit_place *place,
                bool adjacent)
{
    bool const log = audit->options.scope == AUDIT_PARTITION;
    link_to_last(audit, scan, place, log ? &scan->previous : &scan->previous_of_instance, adjacent);
    if (log && scan->instance.len > 0)
        link_of_instance(audit, scan, place);
}

void audit_links_end(struct audit *audit)
{
    settle_doubt(audit);
    for (size_t i = 0; i < audit->instances.cap; i++)
        for (const struct audit_instance *at = audit->instances.buckets[i]; at != NULL; at = at->next)
            if (at->gap > 0 && !(at->gap_begins && audit->lists))
                audit_say(
                    audit, AUDIT_MISSING, 0,
                    &(struct audit_scan){.instance = {at->id, at->id_len}, .execution = at->gap_execution},
                    "record #%llu names a record of its instance that is not there, and no deletion or "
                    "pruning of the instance follows",
                    NUMBER(at->gap));
}
