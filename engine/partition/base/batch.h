/*
 * A projection batch: what one transaction of a partition's projector does, in columns so that each kind of
 * change is one set-based statement. Built by the pure partition machine, applied by projections/.
 */
#ifndef THOLE_BATCH_H
#define THOLE_BATCH_H
#include "arena.h"
#include "event.h"

enum { BATCH_ROWS_MAX = 10000 }; /* of each kind; further rows go into another batch */

struct batch_activity { /* a worker_queue row */
    thole_slice instance;
    uint64_t execution, activity_id;
    thole_slice queue, activity; /* empty in deletes */
    uint32_t try_number;         /* from 1; in deletes 0 = whatever try it is */
    uint64_t try_timeout_ms;     /* 0 = none; the claim computes the deadline from it */
    thole_slice details;         /* of the last try's heartbeat */
    thole_slice digest; /* of its work message: see work_digest.h; empty in deletes, and in rows that were
                         * written before there were any
                         */
    bool held;          /* set by who applies the batch: a worker held the row that was removed; that worker
                         * acknowledges its message
                         */
};

struct batch_timer { /* a timers row: a timer, or the next wake of an activity. Inserting replaces */
    thole_slice instance;
    uint64_t execution, timer_id;
    uint64_t due_ms; /* 0 in deletes */
};

struct batch_quarantine { /* a quarantine row. Inserting replaces */
    thole_slice instance;
    uint64_t execution, activity_id;
    thole_slice queue, activity; /* empty in deletes, as are the others */
    uint32_t try_number, lost;   /* lost: number of lost claims */
    thole_slice worker, reason;  /* worker: of the last lost claim; reason: why it is in quarantine */
    uint64_t since_ms, until_ms; /* until: when it fails; 0 = never by itself */
};

struct batch_instance { /* an instances row and its executions row: the last state in the batch */
    thole_slice instance;
    thole_slice orchestration; /* empty = unchanged (the row exists), or none yet (execution 0) */
    uint32_t version;          /* 0 = unchanged */
    uint64_t execution;        /* 0: events wait for an instance that does not exist yet */
    uint32_t status;           /* a thole_instance_status */
    uint32_t blocked;          /* an enum blocked_kind: why it does not go on; 0: it does, or has ended */
    uint64_t created_ms;       /* 0 = unchanged */
    uint64_t updated_ms;
    uint64_t began_ms;    /* of its execution, when that begins in this batch; 0 = earlier, or none does */
    thole_slice detail;   /* blocked text, head of a failure text; at most 1024 bytes */
    uint64_t turns;       /* number of the last turn */
    uint64_t history_seq; /* stream sequence of the last turn's record */
    bool custom_status_set;
    thole_slice custom_status; /* at most 1024 bytes */
    thole_slice parent;        /* instance id; empty = unchanged or none */
    bool removed;              /* the instance's rows are deleted */
};

/*
 * How far a log is projected: up to the record at seq. The mark identifies that record: the sequence alone
 * would also fit another log, for example one that lost its tail and was appended to again, or the rows of a
 * restored backup. mark 0: not known (seq 0, or written by a version without marks).
 */
struct projected {
    uint64_t seq, mark;
};
/* The mark of a record: a digest of its bytes, 1..2^63 - 1. It is stored, so the function must never change.
 */
uint64_t projected_mark(thole_slice record);

/*
 * The state of a partition's rows, as the partition's own row records it: up to where the log is projected,
 * and how many batches were applied. Within an epoch the count identifies the last batch. The watermark does
 * not: it moves with a later batch than the rows.
 */
struct rows_state {
    struct projected projected;
    uint64_t batches;
};
/* The executions `above` < execution <= `upto`. upto 0: all. */
struct executions {
    uint64_t above, upto;
};

/* The executions whose histories a HISTORY_PRUNED event removes; upto 0: none. */
struct executions executions_pruned(const struct event *event);

struct batch_deletion { /* removes all rows of an instance and of its executions up to this one */
    thole_slice instance;
    uint64_t execution;
    struct executions pruned; /* upto > 0: removes only the rows of these; history_seq is 0 */
    uint64_t history_seq;     /* of the deletion; rows that later records wrote stay. 0: only timers and
                                 activities are removed */
};

/* No row is both inserted and deleted, and no row occurs twice: the projection merges such changes. Of an
 * instance there is a row for each of its executions. Owned by the holder of the pointer. */
struct batch {
    struct arena arena; /* owns everything below */
    uint32_t partition;
    uint64_t epoch;
    struct rows_state follows;  /* the state that the database must have; else it is from another time, and
                                   not touched */
    struct projected projected; /* the partition's watermark after the same transaction */
    bool durable;               /* commits synchronously (synchronous_commit) */
    struct batch_activity *activities_added, *activities_removed;
    size_t activities_added_len, activities_removed_len;
    struct batch_timer *timers_added, *timers_removed;
    size_t timers_added_len, timers_removed_len;
    struct batch_quarantine *quarantine_added, *quarantine_removed;
    size_t quarantine_added_len, quarantine_removed_len;
    struct batch_instance *instances;
    size_t instances_len;
    struct batch_deletion *deletions; /* first: inserts may be of a later incarnation of the id */
    size_t deletions_len;
};
struct batch *batch_create(uint32_t partition, uint64_t epoch);
void batch_destroy(struct batch *batch); /* NULL-safe */
#endif
