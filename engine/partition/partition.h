/*
 * The partition: a state machine over one log, without I/O (docs/architecture.md). The host gives inputs,
 * takes outputs and carries them out; it makes no decisions. The same code runs in the simulation.
 *
 *   partition_input(p, &in, now);   any number of times: answers, messages, ownership
 *   partition_flush(p, now, rows);  runs the turns that are ready, and gives out the rows of committed
 *                                   records: a turn takes all waiting messages, a batch all records
 *   while (partition_poll(p, &out)) carry out the output
 *   sleep until partition_deadline_ms(p), the next input or, if rows wait, until the database is free
 *
 * Ownership of memory: inputs are borrowed for the call. Outputs are borrowed until the next
 * partition_poll(), or until their answer where their comment says so, or are given away (APPLY's batch).
 *
 * One recovery path: every failure (refused or unanswered append, lost connection, fenced database, a failed
 * read) is given as PARTITION_IN_STEP_DOWN or PARTITION_IN_APPEND_FAILED. The machine then drops its memory
 * and emits CLOSED; the host gives PARTITION_IN_OPEN again, after a pause, if it should still own the
 * partition. Outputs and their answers carry a generation; answers of an older one are ignored.
 *
 * Time is wall-clock milliseconds; a step back is ignored. Pure, one thread at a time.
 */
#ifndef THOLE_PARTITION_H
#define THOLE_PARTITION_H
#include "partition_io.h"

/* Defaults for all but partition, node, orchestrations, stacks. */
void partition_options_init(struct partition_options *options);
/* The smallest record_max: a record must hold the largest event (payload_max) and the longest list of inbox
 * sequences (ahead_max). */
size_t partition_record_min(const struct partition_options *options);

struct partition;
/* Asserts that the options are valid: check record_max with partition_record_min() first. */
struct partition *partition_create(const struct partition_options *options);
void partition_destroy(struct partition *partition); /* at any time; NULL-safe */

enum partition_state { PARTITION_CLOSED, PARTITION_OPENING, PARTITION_OPEN, PARTITION_CLOSING };
/* THOLE_NOMEM only; the machine is then closed (CLOSED follows). */
thole_status partition_input(struct partition *p, const struct partition_in *in, uint64_t now_ms);
/* @p rows: false: the database is busy, so rows gather, except those of a batch that is under way. True: some
 * rows wait, for a call when the database is free. */
bool partition_flush(struct partition *p, uint64_t now_ms, bool rows);
/* Takes the next output; false when there is none. */
bool partition_poll(struct partition *p, struct partition_out *ret);

/* Drops an instance from memory, as lack of memory would: its next turn begins with a replay. False: it is in
 * use, or waits for something. For tests. */
bool partition_drop(struct partition *p, thole_slice instance);
/* When to call partition_flush() next even without input, wall clock ms; UINT64_MAX = not needed. */
uint64_t partition_deadline_ms(const struct partition *p);
/* Forms of records that every engine that may own the partition next can read. None until they are
 * announced. */
struct record_forms {
    bool ranges; /* of an inbox position: else records list its sequences, and fewer messages may be given */
    bool references; /* to payloads (record_references.h): else records have none */
    bool lists;      /* of dispensable records (record_folded.h): else none is made */
};
void partition_forms_read(struct partition *partition, struct record_forms by_all);
/* Number of inbox messages that may be given now, in the order of the inbox; 0 = wait. */
size_t partition_room(const struct partition *p);
/* Messages and timers that wait for a turn. */
size_t partition_pending(const struct partition *p);
/* Memory of these, and of messages that are being rejected. */
size_t partition_pending_bytes(const struct partition *p);

enum partition_state partition_state(const struct partition *p);
uint64_t partition_epoch(const struct partition *p);
uint64_t partition_generation(const struct partition *p);
/* The state that the database's row of the partition has after the last batch of this owner. True: the row
 * must have exactly this state, since it is open and no batch is on its way. */
bool partition_rows(const struct partition *p, struct rows_state *ret);
/* No input waits, nothing is in flight, everything is projected. */
bool partition_idle(const struct partition *p);
/* At least the number of activities with a row, by committed turns: while it is not 0, the sweeper must look
 * for rows that no worker renews. Exact after the partition has been idle for a while. */
uint64_t partition_open_activities(const struct partition *p);
/* Names of the orchestrations of all live instances, "name" or "name@version" beyond version 1. Borrowed
 * until the next input. */
size_t partition_live_names(const struct partition *p, const thole_slice **ret_names);
/* Facts about the partition for an operator; all but turns are 0 while it is closed. */
struct partition_facts {
    uint64_t turns;       /* appended since it was created */
    uint64_t unprojected; /* committed records that are not projected yet */
    uint64_t open_activities;
    size_t emissions;             /* CloudEvents from the first on that is not stored */
    size_t appends, append_bytes; /* in flight */
    size_t instances;             /* in memory */
    size_t parked;                /* of these, those whose code waits for its next turn */
    size_t early, early_bytes;    /* of these, ids for which events wait; their memory */
};
struct partition_facts partition_facts(const struct partition *p);
/* Sequence of the last record that is committed, as this owner knows; 0: none of its epoch, or it is closed.
 */
uint64_t partition_committed_sequence(const struct partition *p);
/* For the simulation's checks: records 1..n of its epoch are committed, as this owner knows. */
uint64_t partition_committed_n(const struct partition *p);
/* Checks all invariants between two steps; aborts when one does not hold. Slow: visits everything. */
void partition_check(const struct partition *p);
#endif
