/*
 * The partition's log: finds its tail, removes void records, opens an epoch, and appends to it, many records
 * at a time. It does not know instances or rows: it takes records and returns, in order, those that are
 * committed.
 *
 * Opening: log_open() reads the tail and removes void records; log_found() returns the result; then
 * log_begin() appends the EpochOpened, which expects exactly the sequence that was read. An epoch's record n
 * is stored at the sequence of its EpochOpened + n or not at all: it expects the last sequence to be the one
 * before. It is committed when 1..n are all acknowledged (prefix rule). After the first record that is
 * refused or not answered nothing more of the epoch is committed; records before it may still be
 * acknowledged, and the state is LOST when all of them are answered.
 *
 * States: enum log_state; docs/architecture.md says which may follow which. An answer that comes in another
 * state than the one that waits for it is ignored. Outputs: READ_TAIL, DELETE_RECORDS, APPEND.
 */
#ifndef THOLE_PARTITION_LOG_H
#define THOLE_PARTITION_LOG_H
#include "log_rule.h"
#include "partition_env.h"

struct partition_log;
struct partition_log *log_create(struct env *env);
void log_destroy(struct partition_log *log); /* NULL-safe */
void log_reset(struct partition_log *log);   /* drops all state */

/* lint.state_tables draws these lines in docs/architecture.md: one state a line, with what it means. */
enum log_state {
    LOG_CLOSED,   /* log_open() may be called */
    LOG_READING,  /* waits for the tail */
    LOG_REMOVING, /* waits until the records of the tail that do not count are removed */
    LOG_FOUND,    /* the tail is known and holds no void records: log_begin() may be called */
    LOG_OPENING,  /* waits for the answer to its EpochOpened */
    LOG_OPEN,     /* this owner's epoch: log_append…() may be called */
    LOG_FAILING,  /* an append failed: waits for the answers to those before it */
    LOG_LOST,     /* the committed records are known and final: log_reset() may be called */
};
enum log_state log_state(const struct partition_log *log);
/* LOST: why. Borrowed until log_reset(). */
const char *log_why(const struct partition_log *log);
/* All invariants of the room; aborts when one does not hold. */
void log_check(const struct partition_log *log);

/* --- opening --------------------------------------------------------------------------------------- */

void log_open(struct partition_log *log);
void log_tail(struct partition_log *log, const struct in_tail *in); /* answer to READ_TAIL */
void log_deleted(struct partition_log *log);                        /* answer to DELETE_RECORDS */

struct log_tail {
    uint64_t last;            /* sequence of the stream's last record */
    struct position position; /* the inbox position in the last record that counts */
    uint64_t published;       /* as in that record */
    uint64_t deleted;         /* deletions up to here may have been removed; 0: none was */
    uint64_t looked;          /* those up to here were looked at */
};
/* FOUND; OPENING and OPEN without the position. Borrowed until log_reset(), the position until log_begin().
 */
const struct log_tail *log_found(const struct partition_log *log);

/* The context that each record carries beside its body. */
struct log_saying {
    struct position position; /* of the inbox; borrowed for the call */
    uint64_t published;
    bool refers;                /* a payload that a turn's record has twice is written once */
    struct record_link *newest; /* of the turn's or deletion's instance: is its last record, and becomes the
                                    appended one */
};
/* FOUND: opens an epoch above the one that was found, and above @p epoch_above. */
void log_begin(struct partition_log *log, uint64_t epoch_above, const struct log_saying *saying);

/* --- appending ------------------------------------------------------------------------------------- */

/* Appends a turn as one or more records; only the last carries the inbox position and returns @p lines when
 * it is committed. Returns the number of records; each has the tag. The bytes of turn.instance must stay
 * valid until all of them are committed, or log_reset(). */
size_t log_append_turn(struct partition_log *log, const struct turn *turn, const struct turn_log *lines,
                       size_t lines_len, const struct log_saying *saying, void *tag);
/* Appends one record; deletion->instance must stay valid as above. */
void log_append_deletion(struct partition_log *log, const struct deletion *deletion,
                         const struct log_saying *saying, void *tag);
void log_append_position(struct partition_log *log, const struct log_saying *saying);
/* Like log_append_position(); the record also lists dispensable records. Returns the sequence at which it is
 * stored, if it is. */
uint64_t log_append_folded(struct partition_log *log, const struct folded *folded,
                           const struct log_saying *saying);

/* Record @p n is stored at @p sequence. */
void log_appended(struct partition_log *log, uint64_t n, uint64_t sequence);
void log_append_failed(struct partition_log *log, uint64_t n, const char *why); /* NULL: nothing to say */

struct log_committed {
    uint64_t n;        /* 0: the EpochOpened */
    uint64_t sequence; /* where it is stored */
    thole_slice bytes;
    void *tag; /* NULL: of no instance */
    thole_slice instance;
    uint64_t execution;
    const struct turn_log *lines;
    size_t lines_len;
};
/* The next record that is committed: in order, each once. False: there is none. Borrowed until the next call.
 */
bool log_take_committed(struct partition_log *log, struct log_committed *ret);

/* --- facts; all 0 while it is closed ---------------------------------------------------------------- */

struct log_facts {
    uint64_t epoch, base; /* base: sequence of its EpochOpened; 0: it is not stored yet */
    uint64_t next_n;      /* of the next record */
    uint64_t committed_n; /* of the last that log_take_committed() returned */
    uint64_t floor;       /* inbox floor that committed records make durable */
    uint64_t published;   /* as the last appended record says */
    uint64_t
        /* a committed record says that all up to here are committed, so a reader of the tail knows it */
        confirmed_seq;
    bool ranges;      /* the last appended position has ranges that are not listed */
    size_t in_flight; /* appends that are not committed */
    size_t in_flight_bytes;
};
const struct log_facts *log_facts(const struct partition_log *log);
/* The rule for records that the owner reads back: see log_rule_judge(). If one of them is foreign
 * (log_rule_foreign), nothing that was read with it may be used: a rival owns the log. An idle owner finds a
 * rival's record only there. */
struct log_rule log_view(const struct partition_log *log);
bool log_is_open(const struct partition_log *log); /* OPEN: records may be appended */
#endif
