/*
 * Whether a history is what was written: the check of the hashes by which each record names the ones before
 * it (record_hash.h, docs/audit.md). The room is given records one by one, in the order of the stream, and
 * says which are wrong and how. Pure: it reads nothing, and needs nothing but the records.
 *
 *   struct audit *audit = audit_create(&options);
 *   for each record: audit_take(audit, &record);
 *   audit_end(audit);
 *   audit_summary(audit), then audit_destroy(audit)
 *
 * It holds a few words for each instance of the partition, and no record. One thread at a time for each.
 */
#ifndef THOLE_AUDIT_H
#define THOLE_AUDIT_H
#include "event.h"
#include "log_place.h"
#include "seal.h"

enum audit_fault {
    AUDIT_UNREADABLE, /* the bytes are no record */
    AUDIT_CHANGED,    /* the bytes are not those that later records name */
    AUDIT_MISSING,    /* records that others name are not there, and no deletion or pruning accounts for it */
    AUDIT_ADDED,      /* stands where no record belongs */
    AUDIT_REORDERED,  /* belongs at another place of this stream */
    AUDIT_TRUNCATED,  /* the beginning, or what a checkpoint has seen, is not there */
    AUDIT_CHECKPOINT, /* checkpoints or leaves that were published are missing, or differ from those that
                         were signed */
    AUDIT_REPLAYED,   /* belongs to another stream, or to another subject */
};
const char *audit_fault_name(enum audit_fault fault); /* "unreadable", "changed", … */

struct audit_finding {
    enum audit_fault fault;
    uint64_t
        sequence; /* of the record that is wrong; of MISSING: of the first that is not there, 0: unknown */
    thole_slice instance; /* empty: of none, or not known */
    uint64_t execution;
    const char *text; /* the finding, its place, and the evidence */
};

enum audit_scope {
    AUDIT_PARTITION, /* the whole log of a partition */
    AUDIT_INSTANCE,  /* the records of one instance */
};

struct audit_options {
    enum audit_scope scope;
    thole_slice ns;
    uint32_t partition;
    thole_slice instance; /* AUDIT_INSTANCE */
    /* AUDIT_PARTITION: what was published of the log; NULL: nothing is compared. Borrowed. */
    struct seal *seal;
    bool extends; /* adds a leaf for each record that has none */
    /* Called for each fault, in order as far as it is known; slices and texts are borrowed for the call. */
    void (*found)(void *arg, const struct audit_finding *finding);
    void *arg;
};

struct audit_record {
    uint64_t sequence;
    enum record_kind kind; /* the kind that the subject names: TURN, DELETED, EPOCH_OPENED, POSITION;
                             UNKNOWN: none */
    thole_slice instance;  /* likewise; of TURN and DELETED */
    uint64_t execution;    /* likewise; of TURN */
    thole_slice bytes;
};

struct audit;
struct audit *audit_create(const struct audit_options *options); /* slices are copied */
void audit_destroy(struct audit *audit);                         /* NULL-safe */
void audit_take(struct audit *audit, const struct audit_record *record);
void audit_end(struct audit *audit); /* there are no more */
/* So far nothing is wrong, nor doubtful: what comes next decides on nothing before it. */
bool audit_is_clean(struct audit *audit);

struct log_place audit_place_of_last(const struct audit *audit); /* AUDIT_PARTITION; sequence 0: none */

struct audit_summary {
    uint64_t records;        /* records that count */
    uint64_t voids;          /* at the end of the log, that do not count */
    uint64_t removed;        /* records that deletions and prunings have removed */
    uint64_t redacted;       /* of which payloads were erased */
    uint64_t unchained;      /* written by a version without hashes */
    uint64_t chained_from;   /* sequence of the first record that names the one before; 0: none does */
    uint64_t last_sequence;  /* of the last that counts */
    uint64_t last_time_ms;   /* of the last that says a time */
    struct record_hash last; /* of the last that counts: nothing in the log names it */
    uint64_t unchained_from, unchained_until; /* records after chained_from; 0: none */
    uint64_t findings;
};
struct audit_summary audit_summary(const struct audit *audit);
#endif
