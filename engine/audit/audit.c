/* A check, record by record. */
#include "audit.h"
#include "audit_state.h"
#include "memory.h"
#include "record_outline.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER(n) ((unsigned long long)(n))

struct audit *audit_create(const struct audit_options *options)
{
    struct audit *audit = memory_new(sizeof *audit);
    assert(options->ns.len <= sizeof audit->ns && options->instance.len <= sizeof audit->instance);
    audit->options = *options;
    if (options->ns.len > 0)
        memcpy(audit->ns, options->ns.ptr, options->ns.len);
    if (options->instance.len > 0)
        memcpy(audit->instance, options->instance.ptr, options->instance.len);
    audit->options.ns.ptr = audit->ns;
    audit->options.instance.ptr = audit->instance;
    return audit;
}

void audit_destroy(struct audit *audit)
{
    if (audit == NULL)
        return;
    audit_instances_release(&audit->instances);
    audit_instances_release(&audit->removals);
    listed_release(&audit->listed);
    free(audit->gaps);
    free(audit);
}

struct audit_summary audit_summary(const struct audit *audit)
{
    return audit->summary;
}

struct log_place audit_place_of_last(const struct audit *audit)
{
    const struct audit_place *last = &audit->last;
    return (struct log_place){last->sequence, last->epoch, last->n, last->hash};
}

/* ---- one record ---- */

static void audit_count(struct audit *audit, const struct audit_scan *scan, const struct audit_place *place)
{
    struct audit_summary *summary = &audit->summary;
    audit->last = *place;
    summary->records++;
    summary->last_sequence = place->sequence;
    summary->last = place->hash;
    summary->redacted += scan->erased > 0;
    if (scan->time_ms > 0)
        summary->last_time_ms = scan->time_ms;
    if (scan->listed.len > 0) {
        listed_add(&audit->listed, scan->listed);
        audit->lists = true;
    }
    if (scan->prunes || scan->kind == RECORD_DELETED || scan->listed.len > 0)
        audit_account_for_holes(audit);
}

/* Whether the record is under the subject that its body names. */
static bool subject_fits(const struct audit *audit, const struct audit_record *record,
                         const struct audit_scan *scan)
{
    bool const of_one = audit->options.scope == AUDIT_INSTANCE;
    if (of_one && !thole_slice_equal(scan->instance, audit->options.instance))
        return false;
    if (record->kind == RECORD_UNKNOWN || scan->kind == RECORD_UNKNOWN)
        return true;
    return record->kind == scan->kind && thole_slice_equal(record->instance, scan->instance) &&
           (scan->kind != RECORD_TURN || record->execution == scan->execution);
}

static void audit_take_record(struct audit *audit, const struct audit_record *record,
                              const struct audit_scan *scan, struct audit_place *place)
{
    bool adjacent = true;
    bool const placed = audit->options.scope == AUDIT_PARTITION
                            ? audit_place_of_log(audit, scan, place, &adjacent)
                            : audit_place_of_instance(audit, scan, place, &adjacent);
    if (!placed)
        return;
    place->index = audit->base + scan->n;
    if (!subject_fits(audit, record, scan)) {
        audit_say(audit, AUDIT_REPLAYED, place->sequence, scan,
                  "it is of another subject than the one it is under");
        audit->trouble = place->sequence;
    }
    bool const sealed = audit_sealed_record(audit, scan, place);
    audit_link(audit, scan, place, adjacent && !sealed);
    audit_count(audit, scan, place);
}

void audit_take(struct audit *audit, const struct audit_record *record)
{
    struct audit_scan scan;
    bool const read = audit_scan(record->bytes, &scan);
    struct audit_place place = {record->sequence,
                                scan.epoch,
                                scan.n,
                                0,
                                record_hash_make(audit->options.ns, audit->options.partition, record->bytes),
                                record_hash_known(&scan.previous)};
    bool const log = audit->options.scope == AUDIT_PARTITION;
    if (record->sequence <= audit->last.sequence) {
        audit_say(audit, AUDIT_REORDERED, record->sequence, NULL, "it comes behind record #%llu",
                  NUMBER(audit->last.sequence));
        return;
    }
    if (!read && log) {
        audit_stray(audit, AUDIT_UNREADABLE, &place);
        return;
    }
    if (!read) {
        audit_say(audit, AUDIT_UNREADABLE, record->sequence, NULL, "it is no record");
        return;
    }
    if (scan.hashed > RECORD_HASHED_OUTLINE)
        audit_say(audit, AUDIT_UNREADABLE, record->sequence, &scan,
                  "its hash is of form %llu, and this version knows those up to %d", NUMBER(scan.hashed),
                  RECORD_HASHED_OUTLINE);
    audit_take_record(audit, record, &scan, &place);
}

void audit_end(struct audit *audit)
{
    audit_strays_end(audit);
    bool const missing = audit_sealed_end(audit);
    if (audit->hole.count > 0 && audit->options.scope == AUDIT_INSTANCE)
        audit_say(audit, AUDIT_MISSING, 0, NULL,
                  "executions before the one of record #%llu are not there, and no pruning follows",
                  NUMBER(audit->hole.named_by));
    else if (audit->hole.count > 0 && !missing)
        audit_say(audit, AUDIT_MISSING, audit->hole.from, NULL,
                  "%llu records are not there, as record #%llu shows, and no deletion or pruning follows",
                  NUMBER(audit->hole.count), NUMBER(audit->hole.named_by));
    audit_links_end(audit);
}
