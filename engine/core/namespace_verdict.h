/*
 * Whether the state of a namespace in NATS and Postgres is new, the former one, or has lost parts. To be
 * asked before a program makes a stream or a bucket, opens a log or starts to serve: a missing part may have
 * been lost. Pure.
 */
#ifndef THOLE_NAMESPACE_VERDICT_H
#define THOLE_NAMESPACE_VERDICT_H
#include "thole/types.h"

enum { NAMESPACE_ID_BYTES = 36 }; /* the identity of a namespace: a UUID */
struct namespace_id {
    char text[NAMESPACE_ID_BYTES + 1]; /* "": there is none */
};
/* A UUID of version 4. */
struct namespace_id namespace_id_make(const uint8_t random[16]);
/* False: @p text is no UUID in small letters. */
bool namespace_id_read(thole_slice text, struct namespace_id *ret);
bool namespace_id_is(const struct namespace_id *a, const struct namespace_id *b);

/* ---- one stream or bucket ---- */

enum namespace_part {
    PART_CONFIG,   /* settings; without them an id has no partition */
    PART_SECRET,   /* the key of nonces: activities under way are known by it */
    PART_INBOX,    /* acknowledged messages that no history has yet */
    PART_HISTORY,  /* the histories */
    PART_NODES,    /* heartbeats */
    PART_CRASHES,  /* how often code has crashed */
    PART_WORK,     /* messages of activities: engines queue them again */
    PART_REJECTED, /* the newest messages that could not be taken */
};
enum part_verdict {
    PART_THERE, /* exists: use it; it may need an upgrade */
    PART_NEW,   /* new: make it */
    PART_LOST,  /* lost: it existed, and its contents are nowhere else; never make it silently */
};
/* @p made: the namespace was set up completely, so each of its parts was there. */
enum part_verdict part_judge(enum namespace_part part, bool there, bool made);
/* The data lost with a lost part: ends a sentence. */
const char *part_loss(enum namespace_part part);

/* ---- the stores that not every namespace has ---- */

/* The maker of a store marks it in the settings before its first use. So a store that is missing was lost, or
 * was never made. */
enum namespace_store {
    STORE_HOLDS,    /* legal holds */
    STORE_BINDINGS, /* rules of thole bind */
    STORE_AUDIT,    /* signed checkpoints */
    STORE_RESTORED, /* histories from archives */
    STORE_EVENTS,   /* CloudEvents */
    NAMESPACE_STORES
};
struct store_mark {
    bool made;     /* the store was there */
    uint64_t last; /* and had this sequence, or a later one; kept for HOLDS and BINDINGS alone */
};
enum store_verdict {
    STORE_NEVER,    /* there is none, and there never was */
    STORE_UNMARKED, /* exists, without a mark: an earlier version made it */
    STORE_FITS,
    STORE_GONE,
    STORE_OLDER, /* ends before its former contents: another store, or an older one */
};
enum store_verdict store_judge(const struct store_mark *mark, bool there, uint64_t last);
bool store_is_lost(enum store_verdict verdict);
/* "holds", "bindings", … */
const char *store_name(enum namespace_store store);
/* The data lost with a lost store: ends a sentence. */
const char *store_loss(enum namespace_store store);

/* ---- the log of a partition ---- */

/* Postgres's knowledge of the log: sequences and marks (batch.h) of two records, 0: none. The kept one had
 * been in the log for ten minutes or more while the log was written and read. */
struct log_known {
    uint64_t projected, projected_mark, kept, kept_mark;
    uint64_t written_ms; /* when Postgres last heard of the log; by its clock */
};
/* NATS's part of the comparison. The marks of the records at these two sequences; 0: no such record, or not
 * looked at. */
struct log_there {
    bool there; /* the stream */
    uint64_t last, projected_mark, kept_mark;
};
enum log_fit {
    LOG_FIT_SAME,  /* nothing says that it lacks anything */
    LOG_FIT_CUT,   /* lacks its last records, none of them older than some 15 minutes: a server that lost
                     its power loses those that it had not synced */
    LOG_FIT_OLDER, /* lacks records that had been kept for long: another store, or an older one */
    LOG_FIT_GONE,  /* there is no stream */
};
enum log_fit log_fit_judge(const struct log_known *known, const struct log_there *there);
/* Of a CUT log: how many records it lacks, at least. */
uint64_t log_fit_lacks(const struct log_known *known, const struct log_there *there);

/* ---- the namespace ---- */

struct namespace_sides {
    bool made;                          /* NATS has its settings, and says that the set-up was completed */
    bool orphans;                       /* NATS has a history, and no settings */
    struct namespace_id nats, postgres; /* the identities */
    uint64_t owned;                     /* partitions in Postgres that have had an owner */
    uint32_t lost, older;               /* parts of NATS that are LOST, logs that are OLDER or GONE */
};
enum namespace_verdict {
    NAMESPACE_NEW,     /* there was nothing: it is to be set up */
    NAMESPACE_SAME,    /* unchanged; an identity that one side lacks is the other's */
    NAMESPACE_EMPTIED, /* Postgres has nothing of it: its rows are made again */
    NAMESPACE_OTHER,   /* Postgres has the rows of another one */
    NAMESPACE_LOST,    /* NATS has nothing of it, or lacks parts of it */
    NAMESPACE_OLDER,   /* NATS has less than it had */
};
enum namespace_verdict namespace_judge(const struct namespace_sides *sides);
/* "new", "same", … */
const char *namespace_verdict_name(enum namespace_verdict verdict);
/* Whether engines may serve it. */
bool namespace_verdict_serves(enum namespace_verdict verdict);
#endif
