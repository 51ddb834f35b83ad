/*
 * Inside of the partition machine: what its files share. Nobody outside this folder includes it.
 *
 *   partition.c  inputs, outputs, states        slots.c      instances in memory
 *   intake.c     what comes for an instance     loading.c    histories to parked instances
 *   early.c      events before their instance   turns.c      turns to records
 *   queries.c    questions to parked instances  deletion.c   requests to delete
 *   names.c      live orchestrations            progress.c   which inbox messages are incorporated
 *   counts.c     open activities, live names    rejections.c what cannot be taken
 *   refusals.c   starts that cannot be          suspects.c   instances whose code has crashed
 *   watched.c    code that is watched while it runs
 */
#ifndef THOLE_MACHINE_H
#define THOLE_MACHINE_H
#include "partition.h"
#include "partition_env.h"
#include "partition_log.h"
#include "progress.h"
#include "projection.h"
#include "tables.h"

enum {
    TURN_RECEIVED_MAX = 1000,
    TURN_RECEIVED_BYTES_MAX = 4 * 1024 * 1024,
    PENDING_MAX = 20000, /* inbox messages held in memory */
    ENDED_MAX = 10000,   /* ended instances remembered */
    PURGE_EVERY = 1000,  /* inbox messages */
    SLOT_BUCKETS = 4096,
    EVENT_BYTES_BESIDE = DETAILS_BYTES_MAX + 6144, /* of an event, beside one payload */
    EARLY_EVENTS_MAX = 10000,
    EARLY_BYTES_MAX = 8 * 1024 * 1024,
    QUERIES_PENDING_MAX = 1000,
    RECALLS_MAX = 16, /* ended instances that are loaded again at a time, to be asked */
};

/* --- slots.c: instances in memory ---------------------------------------------------------------- */
enum slot_state {
    SLOT_LOADING, /* its history is being read, or will be once its records are committed */
    SLOT_ABSENT,  /* there is none */
    SLOT_EARLY,   /* execution 0: there are only events that came before it */
    SLOT_LIVE,    /* parked, ready to run */
    SLOT_BLOCKED, /* its code cannot run: an instance without code takes what comes; NULL: it is recorded raw
                   */
    SLOT_CONTINUED, /* its execution has ended with ContinuedAsNew: the next one begins */
    SLOT_ENDED,
};

struct pending { /* something that arrived for an instance and is not yet in a record */
    struct pending *next;
    uint64_t inbox_sequence; /* 0 = a timer */
    uint64_t stored_ns;
    struct message message;
    uint64_t execution, timer_id;
    struct arena arena; /* owns what message points to */
};

struct question { /* a query that waits for its instance to be loaded */
    struct question *next;
    uint64_t token;
    thole_slice name, input;
    struct arena arena;
};

struct early { /* what an instance that does not exist yet will begin with */
    struct arena arena;
    struct event *events;
    size_t len, cap;
    uint64_t due_ms; /* when they are given up */
};

struct slot {
    struct slot *hash_next, *ready_next, *lru_prev, *lru_next;
    thole_slice id;
    uint64_t token; /* of its LOAD */
    enum slot_state state;
    bool ready, retry, in_ended;
    bool reload;               /* LOADING: the history has yet to be asked for */
    bool squeezed;             /* there was no memory for it once: others had to go */
    enum blocked_kind failed;  /* its code failed here, and will not be tried again by this owner */
    bool raw;                  /* even without code */
    bool recalled;             /* LOADING: had ended, and is to answer questions */
    struct instance *instance; /* LIVE, BLOCKED, CONTINUED */
    struct early *early;       /* EARLY */
    uint64_t execution, turns, events, time_ms;
    uint64_t gone; /* executions up to this one are of earlier lives, which were deleted */
    thole_slice orchestration,
        request_id;       /* in arena. ABSENT, EARLY: request_id and parent of the last life */
    uint32_t version;     /* of its code; 0 = not chosen */
    struct origin parent; /* in arena */
    bool counted;         /* among the live names, under counted_version: as far as is committed */
    uint32_t counted_version;
    enum blocked_kind blocked;
    thole_slice blocked_text; /* in arena */
    struct arena arena;
    size_t in_flight; /* its records that are not yet committed */
    size_t refusals;  /* starts that it was in the way of, and whose answers are not yet stored */
    uint64_t old_execution, old_events; /* what there was of it when it was loaded, or rows were counted */
    uint64_t *waiting; /* activities that wait for their next try, and have no row: as far as is committed */
    size_t waiting_len, waiting_cap;
    struct pending *first, *last;
    struct question *questions;
};

struct slots {
    struct slot *buckets[SLOT_BUCKETS];
    struct slot *ready_first, *ready_last;
    struct slot lru, ended; /* sentinels: lru_next is the most recently used */
    size_t len, ended_len;  /* of each list */
    size_t pending_len, questions_len, recalled_len;
    uint64_t next_token;
};
void slots_init(struct slots *slots);
void slots_release(struct slots *slots);
struct slot *slots_find(struct slots *slots, thole_slice id);
struct slot *slots_find_token(struct slots *slots, uint64_t token, thole_slice id);
struct slot *slots_add(struct slots *slots, thole_slice id); /* LOADING; NULL: out of memory */
void slots_touch(struct slots *slots, struct slot *slot);
void slots_ready(struct slots *slots, struct slot *slot);
struct slot *slots_take_ready(struct slots *slots);
void slots_evict(struct slots *slots, size_t keep);
void slots_grow_old(struct slots *slots); /* see old_events */
void slot_push(struct slots *slots, struct slot *slot, struct pending *pending);
void slot_give_back(struct slots *slots, struct slot *slot, struct pending *pending); /* as the first */
struct pending *slot_take(struct slots *slots, struct slot *slot); /* the first; NULL = none */
void pending_destroy(struct pending *pending);
struct pending *pending_create(void);
/* Sets or replaces a text in the slot's arena; forgets it silently when the arena is full. */
void slot_remember(struct slot *slot, thole_slice from, thole_slice *to);
/* Forgets everything but the id and what waits for it. The old arena is left to the caller. */
void slot_renew(struct slot *slot);
/* Its code cannot run, and why. */
void slot_block(struct slot *slot, enum blocked_kind kind, thole_slice text);
/* Facts of the execution that an event tells. */
void slot_note(struct slot *slot, const struct event *event);
/* Which activities have no row, for the time being. Returns by how much the rows grow: -1, 0, 1. */
int slot_note_tries(struct slot *slot, const struct event *event, bool *ret_nomem);

/* --- early.c: execution 0 ------------------------------------------------------------------------ */
void early_destroy(struct early *early); /* NULL-safe */
/* Keeps the event unless its request was seen before. THOLE_CONFLICT: it was; THOLE_LIMIT: too many; NOMEM.
 */
THOLE_NODISCARD thole_status early_keep(struct slot *slot, const struct event *event);
/* From a history of execution 0: the slot is EARLY, or ABSENT when all were given up. */
void early_load(struct partition *p, struct slot *slot, const struct turn *turns, size_t n);
/* A turn of execution 0. */
void early_record(struct partition *p, struct slot *slot, struct event *events, size_t n);
/* A timer says so; if not, there will be another one. */
bool early_is_over(struct partition *p, const struct slot *slot);
/* Gives them up. */
void early_expire(struct partition *p, struct slot *slot);

/* --- deletion.c ---------------------------------------------------------------------------------- */
struct intake;
/* The first thing that waits for the slot is a request to delete it. */
bool deletion_is_next(const struct slot *slot);
/* What it was, and all that is told of it, has to be committed first. */
bool deletion_must_wait(const struct slot *slot);
/* Takes it. True: in has what is to be done now. False: it was answered, and changes nothing. */
bool deletion_take(struct partition *p, struct slot *slot, struct intake *in);
void deletion_record(struct partition *p, struct slot *slot, const struct intake *in);
/* What a deletion says of the id: read from its history. */
void deletion_note(struct slot *slot, const struct deletion *deletion);

/* --- refusals.c: starts that cannot be ------------------------------------------------------------ */
#define REFUSAL_TOKEN (UINT64_C(1) << 63) /* set in tokens of SEND that are theirs */
/* An inbox message that counts as incorporated once its answer is on its way. */
struct refusal {
    struct refusal *next;
    struct slot *slot; /* stays while there are any */
    uint64_t token, inbox_sequence;
    struct buf bytes;
};
/* The start cannot be, and its parent is told. */
void refusals_add(struct partition *p, struct slot *slot, const struct pending *start);
void refusal_sent(struct partition *p, uint64_t token); /* answer to SEND */
void refusals_release(struct partition *p);

/* --- suspects.c: whose code has crashed an engine ------------------------------------------------- */
struct suspects {
    struct suspect {
        thole_slice id, text; /* owned, in one allocation each */
        uint64_t count;
        uint64_t over_n; /* the record with which it ended, until that is committed; 0 = none */
    } * list;
    size_t len, cap;
};
void suspects_release(struct suspects *suspects);
/* The answer to READ_CRASHES. */
void suspects_read(struct partition *p, const struct partition_in *in);
struct suspect *suspects_find(const struct partition *p, thole_slice instance); /* NULL: it never crashed */
/* It has crashed too often: its code is not run, and the slot says why. */
bool suspects_stuck(const struct partition *p, struct slot *slot);
/* Its code has crashed where that harmed nobody; and whoever keeps the list is told of it. */
void suspects_tell(struct partition *p, const struct slot *slot);
void suspects_crashed(const struct partition *p, const struct slot *slot, const char *text);
/* Somebody wants it to be tried again. */
void suspects_retry(struct partition *p, const struct slot *slot);
/* It has ended, or is deleted, with the record that was appended last. */
void suspects_over(struct partition *p, const struct slot *slot);
/* Whoever keeps the list is told of those whose end is committed. */
void suspects_pump(struct partition *p);

/* --- partition.c --------------------------------------------------------------------------------- */
enum phase {
    PHASE_CLOSED,
    PHASE_LOG,        /* its tail is found, an epoch opened: see partition_log.h */
    PHASE_PROJECTION, /* it is brought up to the epoch: see projection.h */
    PHASE_CRASHES,
    PHASE_LIVE,
    PHASE_TIMERS,
    PHASE_SERVING,
    PHASE_CLOSING,
};

struct live_name {
    thole_slice name; /* owned */
    uint64_t count;
};

struct partition {
    struct env env;
    char node[THOLE_NAME_BYTES_MAX + 1];
    enum phase phase;
    uint64_t busy_ms; /* when something last happened */
    struct progress progress;
    struct seen gone; /* what the inbox did not hold when it was opened last; sequence 0: it did */
    struct partition_log *log;
    struct slots slots;
    struct projection *projection;
    struct refusal *refusals;
    uint64_t next_refusal;
    size_t rejecting;  /* messages that could not be taken and are not yet kept */
    size_t event_room; /* bytes of the largest event that a record can hold */
    uint64_t purged_below;
    uint64_t open_activities;  /* at least as many as have rows */
    uint64_t activity_changes; /* how often that changed */
    uint64_t recount_changes;  /* when it was last asked */
    bool recount, recounting;  /* it may be too many: the rows are counted when things are quiet */
    bool ending;               /* in doubt: nothing new; dropped once all appends are answered */
    char ending_why[160];
    struct live_name *names;
    size_t names_len, names_cap;
    thole_slice *names_view;
    struct suspects suspects;
};

/* Drops all memory and says CLOSED. */
void partition_drop(struct partition *p, const char *why, bool reopen);
/* Something is in doubt: drops it once what is in flight has been answered, which may be now. */
void partition_doubt(struct partition *p, const char *why);
/* To the log, with the inbox position as it is now. lines: what the orchestration logged. */
void partition_append_turn(struct partition *p, struct slot *slot, const struct turn *turn,
                           const struct turn_log *lines, size_t lines_len);
void partition_append_deletion(struct partition *p, struct slot *slot, const struct deletion *deletion);

/* counts.c: as far as is committed */
void count_turns(struct partition *p, struct slot *slot, const struct turn *turns, size_t n);
void count_again(struct partition *p); /* asks how many rows of activities there are */
void counted_again(struct partition *p, const struct partition_in *in);

void intake_message(struct partition *p, const struct partition_in *in);
void intake_timer(struct partition *p, const struct projection_timer *timer);
struct slot *intake_slot(struct partition *p, thole_slice instance); /* found, or made and LOAD asked */
void intake_load(struct partition *p, struct slot *slot);            /* asks for its history */
void intake_incorporate(struct partition *p, uint64_t inbox_sequence);
/* Taken for a turn: incorporated when it is recorded, or given back. */
struct intake {
    struct event *events; /* with room for one more */
    size_t len;
    bool expired;          /* EARLY: what has been kept is given up */
    bool deletes;          /* taken is a request to delete it */
    bool retries;          /* what was taken is a request to try it again */
    struct pending *taken; /* the last one first; events borrow from them */
};
struct intake intake_take(struct partition *p, struct slot *slot, struct arena *arena);
void intake_done(struct partition *p, const struct intake *in); /* it is in the record that comes next */
void intake_give_back(struct partition *p, struct slot *slot, struct intake *in);
void intake_release(struct intake *in);
/* Has the slot something that can be taken now? */
bool intake_waits(const struct slot *slot);

/* The message cannot be taken: it is given away to be kept, and counts as incorporated when it is. */
void rejections_refuse(struct partition *p, const struct partition_in *in, enum reject_code code,
                       const char *text);
/* The same of one that had been decoded. */
void rejections_refuse_pending(struct partition *p, const struct pending *pending, enum reject_code code,
                               const char *text);
void rejections_kept(struct partition *p, const struct partition_in *in);
/* Whether a decoded message is within the limits that do not follow from its form. */
enum reject_code rejections_check(const struct partition *p, const struct message *message, thole_error *ret);

void turns_run_ready(struct partition *p);
/* The entry for that version; 0 = the newest. NULL: not here. */
const thole_orchestration_entry *turns_code(const struct partition *p, thole_slice orchestration,
                                            uint32_t version);
/* An instance of the slot's execution. code NULL: without. */
THOLE_NODISCARD thole_status turns_instance(const struct partition *p, const struct slot *slot,
                                            const thole_orchestration_entry *code, struct instance **ret);
enum blocked_kind turns_blocked_by(thole_status status);
/* "no live engine knows …" */
void turns_no_code(const struct partition *p, struct slot *slot);

/* --- watched.c: calls of instance.h that run code ------------------------------------------------ */
/* Whoever watches is told before and after. What has crashed before is first done where that harms nobody;
 * THOLE_APP: it crashed again, and that is noted. */
THOLE_NODISCARD thole_status watched_turn(struct partition *p, struct slot *slot, const struct turn_in *in,
                                          struct turn_out *ret, thole_error *reterr);
/* All of them, by slot->instance; code NULL: nothing runs. */
THOLE_NODISCARD thole_status watched_replay(struct partition *p, struct slot *slot,
                                            const thole_orchestration_entry *code, const struct turn *turns,
                                            size_t n, thole_error *reterr);
/* THOLE_INVALID: or it would crash. That does not count: nobody else asks. */
THOLE_NODISCARD thole_status watched_query(struct partition *p, struct slot *slot, thole_slice name,
                                           thole_slice input, thole_slice *ret_output, thole_error *reterr);

void queries_ask(struct partition *p, const struct partition_in *in);
void queries_answer(struct partition *p, struct slot *slot); /* those that wait for the slot */
void queries_refuse(struct partition *p, struct slot *slot, thole_status status, thole_slice text);
void queries_release(struct slots *slots, struct slot *slot);

void loading_history(struct partition *p, const struct partition_in *in);

void names_add(struct partition *p, thole_slice name, uint64_t count);
/* The slot's orchestration and version count as live from now on, in the place of what counted before. */
void names_count(struct partition *p, struct slot *slot, thole_slice orchestration, uint32_t version);
void names_uncount(struct partition *p, struct slot *slot);
void names_release(struct partition *p);
#endif
