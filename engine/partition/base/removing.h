/*
 * The removal of some of an instance's records, step by step: what to ask the stream for, and which records
 * go. The cost depends on the removed records, however large the stream is. A removal may begin again at any
 * point. Steps:
 *
 *   LIST       which executions of the instance have records, and how many: the server has an index of that
 *   LAST, AT   for each execution, the oldest first: its last record, and from there back, as each record
 *              names the place of the one before it. The place is a hint: the record there is read, and goes
 *              only if it is of that execution and before the record that asks for the removal
 *   DELETE     deletes the records found, the oldest first
 *   SCAN       reads the records of one execution in order, where the hints do not lead to all listed records
 *              (an older engine wrote no hints, a restored stream has other sequences), or where hundreds are
 *              close together, which a consumer reads faster
 *
 * The places of records may be known, from when the history was loaded. Those records go first, and are not
 * read again if the last one is where it was; then the rest is listed.
 *
 * Records that other incarnations of the id share, early events and deletions, are looked for from the
 * beginning (FIRST). An answer to a deletion costs the server more than the deletion: of REMOVING_GROUP
 * deletions only the last is answered, and the rest is listed again. The removal has ended when the list has
 * no record that goes, or all listed records are known to be removed. The oldest go first, so that a reader
 * meanwhile misses a history's beginning and nothing in its midst. Pure.
 */
#ifndef THOLE_REMOVING_H
#define THOLE_REMOVING_H
#include "batch.h"

enum {
    REMOVING_CHUNK = 4096, /* records that are looked for before they are deleted */
    REMOVING_WALKED = 256, /* of an execution with more records in a dense place they are scanned */
    REMOVING_GROUP = 16,   /* deletions with one answer */
    REMOVING_GROUPS = 4,   /* of a removal that may be unanswered */
    REMOVING_KNOWN = 64,   /* places of records that may be known */
};
/* In place of an execution: where the instance's deletions stand. */
#define REMOVING_DELETIONS (UINT64_MAX - 1)

enum removing_kind {
    REMOVING_LIST,  /* answered by removing_item() for each, then removing_listed() */
    REMOVING_LAST,  /* the last record of the execution: removing_found() */
    REMOVING_FIRST, /* likewise its first record */
    REMOVING_AT,    /* the record at `sequence`: the same */
    REMOVING_SCAN,  /* the records of the execution up to `sequence`, in order: removing_met() for each, until
                       it says no; then removing_scanned() */
    REMOVING_DELETE, /* the records at `sequences`, in this order; the last one is answered, by
                        removing_deleted() */
};
struct removing_ask {
    enum removing_kind kind;
    uint64_t execution, sequence;
    uint64_t unit; /* for the answer */
    uint64_t sequences[REMOVING_GROUP];
    size_t n; /* of them */
};

struct removing_record {
    uint64_t sequence;  /* 0: there is none */
    bool of_instance;   /* by its subject */
    uint64_t execution; /* by its subject; of a FIRST or LAST the one that was asked for */
    uint64_t before;    /* where it says that the one of its instance before it is; 0: it does not say */
};

enum removing_state { REMOVING_GOES, REMOVING_DONE, REMOVING_STUCK /* some records cannot be removed */ };

struct removing_place {
    uint64_t execution, sequence;
};
struct removing;
struct removing *removing_create(struct executions executions, uint64_t below);
void removing_destroy(struct removing *removing); /* NULL-safe */
/* Before removing_next(), at most REMOVING_KNOWN times, in order, for a deletion: there a record of that
 * execution was when it was read, since the partition was opened. No older execution has records. */
void removing_know(struct removing *removing, struct removing_place place);
enum removing_state removing_state(const struct removing *removing);
/* The next that may be asked for now; several may be unanswered at a time. False: not before an answer. */
bool removing_next(struct removing *removing, struct removing_ask *ret);

void removing_item(struct removing *removing, uint64_t execution, uint64_t records);
/* @p whole: it was one answer, so that all items were there at one time; otherwise it is listed again. */
void removing_listed(struct removing *removing, bool whole);
void removing_found(struct removing *removing, uint64_t unit, const struct removing_record *record);
bool removing_met(struct removing *removing, uint64_t unit, uint64_t sequence);
/* @p all: no record of the execution was left out. */
void removing_scanned(struct removing *removing, uint64_t unit, bool all);
/* @p was_there: the last one of these @p n, by this request. */
void removing_deleted(struct removing *removing, size_t n, bool was_there);
#endif
