/*
 * A projection batch: what one transaction of a partition's projector does, in columns so that each kind of
 * change is one set-based statement. Built by the pure partition machine, applied by projections/.
 */
#ifndef THOLE_BATCH_H
#define THOLE_BATCH_H
#include "arena.h"
#include "event.h"

enum { BATCH_ROWS_MAX = 10000 }; /* of each kind; the machine starts another batch beyond */

struct batch_activity { /* a worker_queue row */
    thole_slice instance;
    uint64_t execution, activity_id;
    thole_slice queue, activity; /* empty in deletes */
    uint32_t try_number;         /* from 1; in deletes 0 = whatever try it is */
    uint64_t try_timeout_ms;     /* 0 = none; the claim makes a deadline of it */
    thole_slice details;         /* of the last try's heartbeat */
    bool held; /* a removed row, by who applies the batch: a worker had it, so its message needs no withdrawal
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
    uint32_t try_number, lost;   /* lost: how many of its claims */
    thole_slice worker, reason;  /* of the last of them; why it is there */
    uint64_t since_ms, until_ms; /* until: when it fails; 0 = it does not by itself */
};

struct batch_instance { /* an instances row and its executions row: the last state in the batch */
    thole_slice instance;
    thole_slice orchestration; /* empty = unchanged (the row exists), or none yet (execution 0) */
    uint32_t version;          /* 0 = unchanged */
    uint64_t execution;        /* 0: events wait for an instance that does not exist yet */
    uint32_t status;           /* a thole_instance_status */
    uint64_t created_ms;       /* 0 = unchanged */
    uint64_t updated_ms;
    thole_slice detail;   /* blocked text, head of a failure text; at most 1024 bytes */
    uint64_t turns;       /* number of the last turn */
    uint64_t history_seq; /* stream sequence of the last turn's record */
    bool custom_status_set;
    thole_slice custom_status; /* at most 1024 bytes */
    thole_slice parent;        /* instance id; empty = unchanged or none */
    bool removed;              /* the instance's rows go */
};

/*
 * How far a log is projected: to the record at seq, which is known by its mark. The sequence alone would say
 * the same of another log: one that lost its tail and went on, or one from which a restored backup of the
 * rows was made. mark 0: not known (seq 0, or written before there were marks).
 */
struct projected {
    uint64_t seq, mark;
};
/* The mark of a record: a digest of its bytes, 1..2^63 - 1. It is stored: never another for the same bytes.
 */
uint64_t projected_mark(thole_slice record);
/* Those above one, up to another. upto 0: all that there are. */
struct executions {
    uint64_t above, upto;
};

/* The executions whose histories go because of a HISTORY_PRUNED; upto 0: none. */
struct executions executions_pruned(const struct event *event);

struct batch_deletion { /* all rows of an instance: of its executions up to that one */
    thole_slice instance;
    uint64_t execution;
    struct executions pruned; /* upto > 0: nothing but the rows of these; then history_seq is 0 */
    uint64_t history_seq; /* of the deletion: what the rows say of later records stays. 0: only its timers and
                             activities go */
};

/* Inserts and deletes never name the same row: the machine nets them. Owned by whoever holds it. */
struct batch {
    struct arena arena; /* owns everything below */
    uint32_t partition;
    uint64_t epoch;
    struct projected projected; /* moves the partition's up to this in the same transaction; 0 = leaves it */
    bool durable;               /* the transaction waits until the server's disk has it */
    struct batch_activity *activities_added, *activities_removed;
    size_t activities_added_len, activities_removed_len;
    struct batch_timer *timers_added, *timers_removed;
    size_t timers_added_len, timers_removed_len;
    struct batch_quarantine *quarantine_added, *quarantine_removed;
    size_t quarantine_added_len, quarantine_removed_len;
    struct batch_instance *instances;
    size_t instances_len;
    struct batch_deletion *deletions; /* first of all: what is inserted may be of a later life of the id */
    size_t deletions_len;
};
struct batch *batch_create(uint32_t partition, uint64_t epoch);
void batch_destroy(struct batch *batch); /* NULL-safe */
#endif
