/*
 * The instances of a partition that are in memory. The room takes messages, timers and histories, runs turns
 * and returns the records that they produce. It is told when a record is committed; only then are effects of
 * it visible outside. It knows neither how records are stored nor rows.
 *
 * Each instance has an entry. docs/architecture.md says which of an entry's states may follow which.
 *
 * Outputs: LIMITED, LOAD, NOTICE (of requests that change nothing), LINE, SEND (of refused starts; its token
 * has INSTANCES_TOKEN), REJECT, QUERY_ANSWER, CRASHED, CRASHES_OVER, READ_LIVE (to count again).
 */
#ifndef THOLE_INSTANCES_H
#define THOLE_INSTANCES_H
#include "log_rule.h"
#include "partition_env.h"
#include "progress.h"

struct instances;
struct entry;
/* env->options must be set. */
struct instances *instances_create(struct env *env);
void instances_destroy(struct instances *instances); /* NULL-safe */
void instances_reset(struct instances *instances);   /* drops all state */
/* All invariants of the room; aborts when one does not hold. */
void instances_check(const struct instances *instances);

/* --- the inbox ------------------------------------------------------------------------------------- */

void instances_set_inbox(struct instances *instances, const struct position *position);
void instances_forget_inbox(
    struct instances *instances); /* the position is invalid: the whole inbox is read again */
const struct progress *instances_inbox(const struct instances *instances);
/* Takes a message of the inbox. False: it came before. */
bool instances_message(struct instances *instances, const struct in_message *in);
void instances_timer(struct instances *instances, thole_slice instance, uint64_t execution,
                     uint64_t timer_id);
#define INSTANCES_TOKEN (UINT64_C(1) << 63) /* set in tokens of SENDs that this room emits */
void instances_sent(struct instances *instances, uint64_t token);
void instances_rejected(struct instances *instances, uint64_t token);
/* Takes a query; the answer has the token. Code runs only while @p serving. */
void instances_query(struct instances *instances, uint64_t token, const struct in_query *in, bool serving);

/* --- histories ------------------------------------------------------------------------------------- */

/* Takes the answer to the LOAD with the token. False: another owner has written into the history
 * (LOG_FOREIGN), and it is not used. */
bool instances_history(struct instances *instances, uint64_t token, const struct in_history *in,
                       const struct log_rule *log);
/* The answer to READ_IDS: from now on a start of an id that is not among them, nor had a record since, asks
 * for no LOAD. */
void instances_ids(struct instances *instances, const struct in_ids *in);
/* Deletions up to that sequence go: a later start of such an id begins a new history. */
void instances_forget_deleted(struct instances *instances, uint64_t upto);
/* @p n more deletions are gone. True: those ids are so many that all are to be read again, with READ_IDS;
 * until its answer each start is looked up. */
bool instances_wants_ids(struct instances *instances, size_t n);
/* Loads the instance and tries to run it: this engine may have code that the last owner did not have. */
void instances_retry(struct instances *instances, thole_slice instance);
void instances_crashes(struct instances *instances, const struct in_crashes *in); /* answer to READ_CRASHES */

/* --- turns ----------------------------------------------------------------------------------------- */

struct instances_record {
    struct entry *entry;        /* NULL: nothing is to be recorded */
    struct record_link *newest; /* see struct log_saying */
    const struct turn *turn;    /* NULL: a deletion */
    const struct turn_log *lines;
    size_t lines_len;
    const struct deletion *deletion;
    struct batch_timer wake; /* due_ms > 0: a timer that fired too early and must fire again */
};
/* Makes what was delayed until now ready. */
void instances_wake(struct instances *instances);
/* When to call it next; UINT64_MAX: nothing is delayed. */
uint64_t instances_deadline_ms(const struct instances *instances);
/* Runs the next entry that is ready. @p done_n: all effects of the epoch's records up to it are done. False:
 * no entry is ready, or only entries of an orchestration that rests. The memory of *ret is borrowed until
 * instances_ran(), which must be the next call. */
bool instances_run(struct instances *instances, uint64_t done_n, struct instances_record *ret);
/* The record of the last run was appended, with the current inbox position, as @p records records, of which
 * @p n is the last; 0: there was nothing to record. */
void instances_ran(struct instances *instances, size_t records, uint64_t n);
/* Releases entries beyond options.parked_max, options.parked_memory_max and options.early_memory_max. */
void instances_evict(struct instances *instances);
/* Releases this one. False: it is not at rest. */
bool instances_drop(struct instances *instances, thole_slice instance);

/* ---- committed records ---- */

/* Facts of the entry's instance; borrowed. */
thole_slice instances_orchestration(const struct entry *entry);
const struct origin *instances_parent(const struct entry *entry);
const struct trace *instances_trace(const struct entry *entry);
/* The running_ms of struct projection_turns for the last record; 0: none was projected since it was loaded.
 */
uint64_t instances_running_ms(const struct entry *entry);
void instances_set_running_ms(struct entry *entry, uint64_t running_ms);
/* Counts the turns that a committed record of the entry completed. */
void instances_count(struct instances *instances, struct entry *entry, const struct turn *turns, size_t n);
/* One of the entry's records is committed; @p lines are what its orchestration logged. */
void instances_committed(struct instances *instances, struct entry *entry, uint64_t execution,
                         const struct turn_log *lines, size_t lines_len);
void instances_position_saved(struct instances *instances); /* a record without a turn carries it */
void instances_tell_ends(struct instances *instances, uint64_t committed_n); /* emits CRASHES_OVER */

/* --- counts ---------------------------------------------------------------------------------------- */

/* While the partition opens: the names and rows of live instances, as the database has them. */
void instances_live(struct instances *instances, const struct in_live *in);
void instances_count_is_uncertain(struct instances *instances);
bool instances_counts_wanted(const struct instances *instances); /* and not asked for yet */
bool instances_counts_exact(const struct instances *instances);
void instances_count_again(struct instances *instances);
/* @p uncommitted: records are in flight. */
void instances_counted_again(struct instances *instances, const struct in_live *in, bool uncommitted);
uint64_t instances_open_activities(const struct instances *instances);
size_t instances_live_names(const struct instances *instances, const thole_slice **ret_names);
size_t instances_in_memory(const struct instances *instances);
size_t instances_parked(const struct instances *instances); /* of these: with their code, which waits */
/* Messages, about, that wait for an orchestration that rests, or until they are rejected. */
size_t instances_resting(const struct instances *instances);
size_t
instances_early(const struct instances *instances); /* of these: events for an id that is not started */
size_t instances_early_bytes(const struct instances *instances); /* bytes of these events */
size_t instances_pending(const struct instances *instances);     /* messages and timers that wait */
/* Memory of these, and of messages that are being rejected. */
size_t instances_pending_bytes(const struct instances *instances);
size_t instances_records_in_flight(const struct instances *instances);
/* nothing is ready, no refusal or rejection is outstanding */
bool instances_quiet(const struct instances *instances);
/* The run that the watcher is told before functions that the code has registered with thole_on_drop() are
 * called. */
struct code_run watched_drop_run(const struct instance *instance, uint32_t partition);
#endif
