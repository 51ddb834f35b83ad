/*
 * One partition machine, and what it asks for done at once: a log, rows that are only counted, mail that is
 * kept. Answers can be held back.
 */
#ifndef THOLE_PARTITION_STAGE_H
#define THOLE_PARTITION_STAGE_H
#include "coro.h"
#include "partition.h"

enum { STAGE_RECORDS_MAX = 4096, STAGE_HELD_MAX = 128 };

struct stage_record {
    enum record_kind kind;
    char instance[64];
    uint64_t execution;
    thole_slice bytes; /* in the stage's arena */
    bool deleted;
};

struct stage {
    struct partition_options options; /* of the next machine; the stacks are the stage's own */
    struct partition *p;
    struct stack_pool *stacks;
    struct arena arena;
    uint64_t now_ms, inbox;
    struct stage_record log[STAGE_RECORDS_MAX];
    size_t log_len;
    thole_slice appended;  /* the machine's own bytes of the last APPEND, until its answer */
    uint64_t tail_read_to; /* the next tail ends there: later records came while it was read; 0: all */
    bool hold_appends, hold_applied, hold_durable, hold_sent, hold_works, hold_removed, hold_rejected,
        hold_loads, hold_live;
    bool tells_work;    /* rows of activities that go, pushes and withdrawals are said, too */
    bool answers_twice; /* answers twice that a message is stored, refused or sent, and that records are
                           removed */
    void (*see)(struct stage *s, const struct batch *batch); /* rows that are applied; may be NULL */
    bool tells_rows;                                         /* and that rows of instances are written */
    uint64_t at_work; /* a worker has the activity of this number, of whichever instance */
    uint64_t work;    /* the last message in WORK */
    struct partition_in held[STAGE_HELD_MAX]; /* answers; what is durable (hold_durable) has none */
    size_t held_len;
    /* the database's answer when it is opened: nothing is projected, unless a test says otherwise */
    struct projected projected;
    uint64_t epoch;
    const struct partition_result *results; /* results that wait in the inbox when it is opened */
    size_t results_len;
    struct in_timers timer_rows; /* rows that it is given, however often it reads them */
    /* records of all outputs */
    struct rows_state rows;                 /* the state that the batches have made */
    bool other_key;                         /* the rows are signed with another key than the namespace has */
    enum rows_fault fault;                  /* of the last reset */
    struct projected applied;               /* the state that it was told last */
    uint64_t durable;                       /* up to there it never forgets that */
    char detail[1100], custom_status[1100]; /* of the last row of an instance */
    size_t batches, activities, timers, largest_batch, works, sends, loads, resets, deletions, removals,
        result_looks, durables, purges;
    uint64_t purged_below;
    struct partition_crash crashes[8]; /* known crashes of instances' code */
    size_t crashes_len;
    struct buf said; /* a line for each notice, rejection, answer, message and line of an orchestration */
    char closed[256];
    uint64_t closed_epoch, closed_records; /* of it, as it said when it closed */
    bool closed_for_good;                  /* not to be opened again */
    size_t inputs_refused;                 /* inputs that returned a status */
    char noticed[64];                      /* the orchestration that the last notice names */
    size_t live_reads;                     /* how often the rows were counted */
    size_t stops;                          /* warnings that an instance does not go on */
    char stopped[1400];                    /* the last of them */
    uint32_t blocked;                      /* of the last row of an instance */
};

/* Orchestration code: a query that is answered with "well"; one activity, "work", which can be asked "how".
 */
thole_status stage_how(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output);
thole_status stage_calls(thole_ctx *ctx, thole_slice input, thole_slice *ret_output);

struct stage *stage_begin(const thole_orchestration_entry *entries, size_t n);
/* With other options than those of stage_options(). */
struct stage *stage_begin_with(const struct partition_options *options, size_t stacks_max);
void stage_options(struct partition_options *options, const thole_orchestration_entry *entries, size_t n);
void stage_end(struct stage *s);
/* Drops the machine and opens another one over the same log, with the stage's options. */
void stage_again(struct stage *s);

/* Runs until nothing is left to do. */
void stage_run(struct stage *s);
/* Gives back the answers that were held, and runs. */
void stage_release(struct stage *s);
void stage_message(struct stage *s, const struct message *message);
/* Bytes as they are, under a subject that names that instance, or (refused) none. */
void stage_bytes(struct stage *s, thole_slice instance, thole_slice bytes, enum reject_code refused);
void stage_bytes_as(struct stage *s, thole_slice route, thole_slice instance, thole_slice bytes,
                    enum reject_code refused);
/* A worker's results, all in one message; those without a nonce get their own. */
void stage_results(struct stage *s, const struct message *results, size_t len);
void stage_start(struct stage *s, const char *instance, const char *orchestration);
void stage_tell(struct stage *s, const char *instance, enum message_kind kind, const char *text);
void stage_complete(struct stage *s, const char *instance, uint64_t activity, thole_slice output);
void stage_query(struct stage *s, const char *instance, const char *query);
/* The entry of the instance's crashes is this one. */
void stage_crashed(struct stage *s, const char *instance, uint64_t execution, uint64_t count,
                   const char *text);
void stage_timer(struct stage *s, uint64_t now_ms); /* time goes on */
void stage_settle(struct stage *s);                 /* so long that everything is saved */

/* Another owner writes into the log, unnoticed by the machine. */
void stage_forge(struct stage *s, const struct record *turn);
/* Opens it again after it has closed by itself. */
void stage_open(struct stage *s);
/* All turns of the instance: "1.1 ran: #1 Started …; #2 …\n". Until the next call. */
const char *stage_history(struct stage *s, const char *instance);
/* The outputs since the last call. */
const char *stage_said(struct stage *s);
void stage_check_said(struct stage *s, const char *row, const char *want);
#endif
