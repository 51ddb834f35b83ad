/*
 * The projection of the partition's log: the effects of committed records outside. It takes committed
 * records, in order, and collects rows, work messages, cancellations and messages to other instances in
 * batches. Each batch becomes one transaction or a few, then its messages are sent, then the watermark moves
 * past it. The room knows neither appends nor instances in memory: facts about the instance are given with
 * the record.
 *
 * States: enum projection_state, and those of the batches. One batch is applied at a time, while the messages
 * of those before it are on their way. docs/architecture.md says which state may follow which. An answer that
 * comes in another state than the one that waits for it is ignored.
 *
 * Outputs: STORE_OPEN, STORE_RESET, READ_LOG, READ_RESULTS, READ_TIMERS, APPLY, PUBLISH_WORK, WITHDRAW,
 * PUSH_CANCEL, SEND, EMIT, LOAD (of a parent; its token has PROJECTION_TOKEN), REMOVE_HISTORY, NOTICE.
 */
#ifndef THOLE_PROJECTION_H
#define THOLE_PROJECTION_H
#include "log_rule.h"
#include "partition_env.h"
#include "progress.h"

struct projection;
struct projection *projection_create(struct env *env);
void projection_destroy(struct projection *projection); /* NULL-safe */
void projection_reset(struct projection *projection);   /* forgets everything */

/* lint.state_tables draws these lines in docs/architecture.md: one state a line, with what it means. */
enum projection_state {
    PROJECTION_CLOSED,      /* projection_open() may be called */
    PROJECTION_REGISTERING, /* waits until the database knows the epoch */
    PROJECTION_RESETTING, /* the rows are of another log, or signed with another key: waits until they are removed */
    PROJECTION_CATCHING_UP, /* the log is read again, from what the rows have up to this epoch */
    PROJECTION_CURRENT,     /* all of the log up to this epoch is projected: records may be given */
    PROJECTION_FAILED,      /* this owner cannot continue: projection_reset() may be called */
};
enum projection_state projection_state(const struct projection *projection);
/* FAILED: the reason; the partition closes at once. Borrowed. */
const char *projection_why(const struct projection *projection);
/* Why the owner must step down, returned once; NULL: no reason. The partition closes when its appends are
 * answered. */
const char *projection_take_step_down(struct projection *projection);
/* The newest epoch that the database is known to have; 0: not known. */
uint64_t projection_epoch_known(const struct projection *projection);
/* All invariants of the room; aborts when one does not hold. */
void projection_check(const struct projection *projection);

/* --- opening --------------------------------------------------------------------------------------- */

struct projection_start {
    uint64_t epoch, base;   /* of the EpochOpened; base: its sequence */
    uint64_t tail_last;     /* the log's last sequence before it */
    uint64_t published;     /* the log says that all up to here is done */
    uint64_t deleted;       /* deletions up to here may be gone: rows of before are made again */
    uint64_t inbox_from;    /* the first message of the inbox that may not be incorporated */
    struct seen inbox_seen; /* identifies the inbox: see READ_RESULTS */
};
void projection_open(struct projection *projection, const struct projection_start *start);
void projection_store_opened(struct projection *projection, const struct in_store_opened *in);
void projection_store_reset(struct projection *projection, const struct in_store_reset *in);
void projection_log(struct projection *projection, const struct in_log *in);
/* Takes the answer to READ_RESULTS. Results that were incorporated before, as @p inbox says, are skipped. */
void projection_results(struct projection *projection, const struct in_results *in,
                        const struct progress *inbox);

/* --- records --------------------------------------------------------------------------------------- */

struct projection_facts { /* of the record's instance, as its owner has it in memory; borrowed for the call */
    thole_slice orchestration;
    struct origin parent;
    struct trace trace;
    uint64_t running_ms; /* from the record before of the same instance; 0: not known */
};
struct projection_turns {     /* the turns that the record completed; borrowed until the next call */
    const struct turn *turns; /* turns that are complete with it: a turn in parts comes with its last part */
    size_t len;
    bool rows_uncertain; /* there may be fewer rows of activities than are counted */
    /* Time of the turn that the instance's row will have, if its status is RUNNING; 0: it has another one. */
    uint64_t running_ms;
};
/* CURRENT: takes the next committed record. facts NULL: it is of no instance. */
void projection_record(struct projection *projection, thole_slice bytes, uint64_t sequence,
                       const struct projection_facts *facts, struct projection_turns *ret);
/* Once in each step: emits the outputs that may go now. @p rows: false: the next batch's rows wait. Returns
 * whether some wait. */
bool projection_pump(struct projection *projection, bool rows);

/* --- answers --------------------------------------------------------------------------------------- */

#define PROJECTION_TOKEN (UINT64_C(1) << 63) /* set in tokens of LOADs that this room emits */
/* @p token, @p sequence: as in the answer. */
void projection_applied(struct projection *projection, const struct in_applied *in);
void projection_published(struct projection *projection, uint64_t token, uint64_t sequence);
void projection_sent(struct projection *projection, uint64_t token);
bool projection_emitted(struct projection *projection, uint64_t token); /* false: nothing waits for it */
void projection_history(struct projection *projection, uint64_t token, const struct in_history *in,
                        const struct log_rule *log);
bool projection_removed(struct projection *projection, uint64_t sequence); /* false: nothing waits for it */

/* --- timers: those that are due soon are in memory, all are rows ------------------------------------- */

struct projection_timer {
    uint64_t execution, timer_id;
    thole_slice instance; /* borrowed until the next call */
};
void projection_read_timers(struct projection *projection); /* asks for the rows of the next horizon */
void projection_timers(struct projection *projection, const struct in_timers *in);
/* Takes the next timer that is due. False: none; asks for more rows if needed. */
bool projection_take_due(struct projection *projection, struct projection_timer *ret);
/* Puts a timer back that fired too early: it must fire again. The timer's row exists. */
void projection_wake(struct projection *projection, const struct batch_timer *timer);
uint64_t projection_deadline_ms(const struct projection *projection);

/* ---- progress, and the log's and the database's knowledge of it ---- */

/* The rows of the records up to here exist, and their messages are stored. */
uint64_t projection_projected(const struct projection *projection);
/* All effects of the records up to here are done: the `published` of the next record. */
uint64_t projection_done(const struct projection *projection);
/* Whether the log, whose last record has @p said, must be told that messages to other instances or
 * CloudEvents are stored or records removed. */
bool projection_unsaid(const struct projection *projection, uint64_t said);
/* The state that the row of the partition has after the last batch that was applied. True: the database must
 * have exactly this state, since it is open and no batch is on its way there. */
bool projection_rows(const struct projection *projection, struct rows_state *ret);
/* Whether the database does not know the watermark yet. */
bool projection_unsaved(const struct projection *projection);
void projection_save(struct projection *projection); /* tells the database */
/* Whether a record must confirm that the last deletion is committed: confirmed_seq as in struct log_facts. */
bool projection_unconfirmed(const struct projection *projection, uint64_t confirmed_seq);
/* Removes records of deleted instances that nothing needs any more. */
void projection_remove(struct projection *projection, uint64_t confirmed_seq);
bool projection_idle(const struct projection *projection);       /* no batch is on its way */
size_t projection_removals(const struct projection *projection); /* deletions whose records still exist */
/* CloudEvents from the first on that is not stored */
size_t projection_emissions(const struct projection *projection);
bool projection_has_room(const struct projection *projection); /* false: turns pause */
#endif
