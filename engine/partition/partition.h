/*
 * The partition: a state machine over one log, sans-I/O (design §4). The host feeds inputs, takes outputs and
 * does what they say; it decides nothing. The same code runs in the simulation.
 *
 *   partition_input(p, &in, now);   any number of times: answers, messages, ownership
 *   partition_flush(p, now);        runs the turns that are ready (so that a turn takes all that waits)
 *   while (partition_poll(p, &out)) do what out says
 *   sleep until partition_deadline_ms(p) or the next input
 *
 * Ownership of memory: inputs are borrowed for the call. Outputs are borrowed until the next partition_poll()
 * or, where it says so, until their answer, or are given away (APPLY's batch).
 *
 * One recovery path: whatever goes wrong (refused or unanswered append, lost connection, fenced database, a
 * failed read) is PARTITION_IN_STEP_DOWN or PARTITION_IN_APPEND_FAILED. The machine then drops its memory and
 * says CLOSED; the host gives PARTITION_IN_OPEN again, after a pause, if it should still own the partition.
 * Outputs and their answers carry a generation; answers of an older one are ignored.
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
/* Options that are wrong are a mistake of the caller's: look at record_max first. */
struct partition *partition_create(const struct partition_options *options);
void partition_destroy(struct partition *partition); /* at any time; NULL-safe */

enum partition_state { PARTITION_CLOSED, PARTITION_OPENING, PARTITION_OPEN, PARTITION_CLOSING };
/* THOLE_NOMEM only; the machine is then closed (CLOSED follows). */
thole_status partition_input(struct partition *p, const struct partition_in *in, uint64_t now_ms);
void partition_flush(struct partition *p, uint64_t now_ms);
/* Takes the next output; false when there is none. */
bool partition_poll(struct partition *p, struct partition_out *ret);

/* When to call partition_flush() next even without input, wall clock ms; UINT64_MAX = not needed. */
uint64_t partition_deadline_ms(const struct partition *p);
/* How many more inbox messages are welcome now: 0 = hold them back. */
size_t partition_room(const struct partition *p);
/* Messages and timers that wait for a turn. */
size_t partition_pending(const struct partition *p);

enum partition_state partition_state(const struct partition *p);
uint64_t partition_epoch(const struct partition *p);
uint64_t partition_generation(const struct partition *p);
/* Nothing to do: no input waiting, nothing in flight, everything projected. */
bool partition_idle(const struct partition *p);
/* At least as many as there are activities with a row, as far as is committed: while there are any, somebody
 * must look after those that no worker reports on. Exact once the partition has been idle for a while. */
uint64_t partition_open_activities(const struct partition *p);
/* Names of the orchestrations of all live instances, "name" or "name@version" beyond version 1. Borrowed
 * until the next input. */
size_t partition_live_names(const struct partition *p, const thole_slice **ret_names);
/* For the simulation's checks: what this writer holds for committed: records 1..n of its epoch. */
uint64_t partition_committed_n(const struct partition *p);
/* All invariants, between two steps; aborts when one does not hold. Slow: it goes through everything. */
void partition_check(const struct partition *p);
#endif
