/* Inside of the audit room: where a check stands. */
#ifndef THOLE_AUDIT_STATE_H
#define THOLE_AUDIT_STATE_H
#include "audit.h"
#include "audit_instances.h"
#include "audit_scan.h"
#include "listed.h"

struct audit_place { /* a record that was taken */
    uint64_t sequence, epoch, n;
    uint64_t index; /* among all records that count, removed ones too */
    struct record_hash hash;
    bool names; /* a record before it */
};

/* How a record names the one before it. */
enum audit_link {
    LINK_NAMES,  /* names the record */
    LINK_BROKEN, /* names another record */
    LINK_ABSENT, /* names no record */
    LINK_ACROSS, /* names a record that is missing */
};

/* Consecutive broken links: the next one that holds shows which record is wrong. */
struct audit_doubt {
    unsigned broken;
    uint64_t before, at; /* the records of the first broken link */
    bool said;           /* the records are of another stream */
};

struct audit_stray { /* records that stand where none of that number belongs: void, or forged */
    uint64_t count;
    enum audit_fault fault;
    struct audit_place first;
    bool forged;    /* no writer has stored one of them there */
    uint64_t since; /* records that were counted since */
};

struct audit_hole { /* records that are not there, and that no deletion or pruning accounts for yet */
    uint64_t from, count, named_by;
};

struct audit {
    struct audit_options options;
    uint8_t ns[THOLE_NAME_BYTES_MAX], instance[THOLE_ID_BYTES_MAX];
    struct audit_place last; /* sequence 0: none */
    uint64_t opened;         /* sequence of the EpochOpened of last.epoch */
    uint64_t base;           /* index of `opened` */
    bool whole;              /* the log was given from its beginning */
    struct audit_doubt doubt;
    struct audit_stray stray;
    struct audit_hole hole;
    uint64_t hole_at; /* the last record that showed one */
    uint64_t trouble; /* the last sequence at which something was missing, broken or without a hash */
    struct audit_instances instances;
    /* AUDIT_INSTANCE: of the last record; turn: of the next one; started: the newest */
    uint64_t execution, turn, started;
    bool deleted;       /* AUDIT_INSTANCE: the last record was its deletion */
    uint64_t next_leaf; /* AUDIT_INSTANCE: after the last one that fitted */
    struct audit_gap *gaps;
    size_t gaps_len, gaps_cap;
    struct audit_instances removals; /* by leaf_instance(): index of the last deletion or pruning */
    struct listed listed;            /* by records of this log */
    bool lists;                      /* this log has such records */
    struct audit_summary summary;
};

/* audit_say.c */
void audit_say(struct audit *audit, enum audit_fault fault, uint64_t sequence, const struct audit_scan *of,
               const char *format, ...) THOLE_PRINTF(5, 6);
/* audit_links.c: the links of a record that stands in its place. */
void audit_link(struct audit *audit, const struct audit_scan *scan, const struct audit_place *place,
                bool adjacent);
void audit_links_end(struct audit *audit);
/* audit_order.c: its place. False: it does not stand where a record of its number belongs; else
 * *ret_adjacent: nothing is between it and the last one. */
bool audit_place_of_log(struct audit *audit, const struct audit_scan *scan, const struct audit_place *place,
                        bool *ret_adjacent);
bool audit_place_of_instance(struct audit *audit, const struct audit_scan *scan,
                             const struct audit_place *place, bool *ret_adjacent);
void audit_stray(struct audit *audit, enum audit_fault fault, const struct audit_place *place);
/* audit_sealed.c. True: the leaf says whether the record is right. */
bool audit_sealed_record(struct audit *audit, const struct audit_scan *scan, const struct audit_place *place);
void audit_sealed_hole(struct audit *audit, uint64_t first,
                       uint64_t count);     /* indexes of records that are not there */
bool audit_sealed_end(struct audit *audit); /* true: some are missing */
void audit_strays_end(struct audit *audit);
void audit_account_for_holes(struct audit *audit); /* by a deletion or pruning that counts */
#endif
