/*
 * Inside of the partition machine: what its files share. Nobody outside this folder includes it.
 *
 *   partition.c  inputs, outputs, states        opening.c  redo of the projection
 *   slots.c      instances in memory            loading.c  histories to parked instances
 *   intake.c     what comes for an instance     turns.c    turns to records
 *   early.c      events before their instance   queries.c  questions to parked instances
 *   log/         the fenced append pipeline     build.c    rows of a batch by their keys
 *   fold.c       records to projection changes  project.c  batches: apply, publish, push, watermark
 *   outbox.c     messages to other instances    names.c    live orchestrations
 *   timers.c     due timers                     progress.c which inbox messages are incorporated
 *   redo.c       what the redo keeps in mind      deletion.c what goes, and when its records may
 *   rejections.c what cannot be taken
 *   watched.c    code that is watched while it runs   suspects.c instances whose code has crashed
 */
#ifndef THOLE_MACHINE_H
#define THOLE_MACHINE_H
#include "partition.h"
#include "partition_env.h"
#include "partition_log.h"
#include "tables.h"

enum {
    TURN_RECEIVED_MAX = 1000,
    TURN_RECEIVED_BYTES_MAX = 4 * 1024 * 1024,
    PENDING_MAX = 20000,    /* inbox messages held in memory */
    UNPROJECTED_MAX = 8192, /* committed records that wait for the projection before turns pause */
    ENDED_MAX = 10000,      /* ended instances remembered */
    PURGE_EVERY = 1000,     /* inbox messages */
    SLOT_BUCKETS = 4096,
    EVENT_BYTES_BESIDE = DETAILS_BYTES_MAX + 6144, /* of an event, beside one payload */
    EARLY_EVENTS_MAX = 10000,
    EARLY_BYTES_MAX = 8 * 1024 * 1024,
    EARLY_TIMER = 1, /* its row: (instance, execution 0, this) */
    QUERIES_PENDING_MAX = 1000,
    RECALLS_MAX = 16, /* ended instances that are loaded again at a time, to be asked */
    LONERS_MAX = 1000000,
    REMOVALS_MAX = 10000, /* of deleted instances: before turns pause */
    REMOVALS_OUT_MAX = 2, /* on their way at a time */
};

/* --- progress.c: the inbox position -------------------------------------------------------------- */
struct seen { /* an inbox message: all that is left of it when it is purged. 0 = not known */
    uint64_t sequence, stored_ns;
};
struct progress {
    uint64_t floor, received; /* received: the highest sequence since it was opened */
    struct seen seen;         /* the highest ever */
    uint64_t *above;
    size_t above_len, above_cap;
    struct gap {
        uint64_t first, last;
    } * gaps; /* sequences that do not exist, behind messages that are not yet incorporated; ascending */
    size_t gaps_len, gaps_cap;
    bool dirty; /* differs from what the last record says */
};
void progress_release(struct progress *progress);
THOLE_NODISCARD thole_status progress_set(struct progress *progress, const struct position *position);
bool progress_has(const struct progress *progress, uint64_t sequence);
THOLE_NODISCARD thole_status progress_add(struct progress *progress, uint64_t sequence);
/* There are no such sequences: the reader, which leaves out nothing, has gone beyond them. There may be many,
 * so they are not listed. */
THOLE_NODISCARD thole_status progress_skip(struct progress *progress, uint64_t first, uint64_t last);
/* A message came in. */
void progress_receive(struct progress *progress, uint64_t sequence, uint64_t stored_ns);
/* What the stream must still hold, or have purged, for the position to mean anything. */
struct seen progress_seen(const struct progress *progress);

/* --- timers.c: a heap of due times --------------------------------------------------------------- */
struct timer_entry {
    uint64_t due_ms, execution, timer_id;
    thole_slice instance; /* owned */
};
struct timer_heap {
    struct timer_entry *entries;
    size_t len, cap;
};
void timer_heap_release(struct timer_heap *heap);
THOLE_NODISCARD thole_status timer_heap_push(struct timer_heap *heap, const struct batch_timer *timer);
/* Moves the earliest into *ret (its instance is then the caller's to free) if it is due. */
bool timer_heap_pop_due(struct timer_heap *heap, uint64_t now_ms, struct timer_entry *ret);
uint64_t timer_heap_next(const struct timer_heap *heap); /* UINT64_MAX = empty */

struct timer_book { /* which timers are in memory, and which are only rows */
    struct timer_heap heap;
    uint64_t horizon_end; /* every committed timer due before this is in the heap */
    uint64_t beyond_due;  /* earliest known at or after it; UINT64_MAX = none */
    bool reading;         /* READ_TIMERS is out */
    uint64_t reading_before;
    struct timer_heap recent; /* committed since it went out, or perhaps not yet visible to it */
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

/* --- build.c, project.c, fold.c, outbox.c -------------------------------------------------------- */
struct fold_activity {
    struct batch_activity row;
    thole_slice input;
    bool gone;   /* there is to be no row */
    bool before; /* there may be one, made before this build */
    bool published;
    bool unwanted; /* cancelled while its message is on its way */
    bool held;     /* a worker had it when its row was removed: that worker acknowledges the message */
};
struct fold_timer {
    struct batch_timer row;
    bool gone, before;
};
struct fold_quarantine {
    struct batch_quarantine row;
    bool gone, before;
};
struct fold_instance {
    struct batch_instance row;
    bool pruned; /* it gets no row after all */
    bool parent_known;
    struct origin parent;
};
struct fold_push {
    thole_slice instance, reason;
    uint64_t execution, activity_id;
    uint32_t try_number; /* 0 = whatever try it is */
    uint32_t kind;
};
struct fold_deletion {
    struct batch_deletion row;
    uint64_t sequence; /* of the record that says so: those before it are to go */
    bool removed;      /* its records are gone */
};
struct fold_send {          /* a message to another instance */
    struct fold_send *next; /* in its lane */
    struct message message; /* instance empty: that of the sender's parent, which has to be looked up */
    uint64_t execution;     /* the sender's */
    struct buf bytes;
    uint64_t token;
    bool answered;
};
struct key_index { /* open addressing over an array of rows: index + 1, 0 = free */
    uint32_t *cells;
    size_t cap, len;
};
/* REMOVING: rows of what is cancelled go first, so that workers hear of it soon. */
enum build_state { BUILD_FILLING, BUILD_SEALED, BUILD_REMOVING, BUILD_APPLYING, BUILD_PUBLISHING };
struct build { /* a projection batch on its way */
    struct build *next;
    enum build_state state;
    uint64_t id;
    struct arena arena;
    struct fold_activity *activities;
    struct fold_timer *timers;
    struct fold_quarantine *quarantine;
    struct fold_instance *instances; /* by execution */
    struct fold_push *pushes;
    struct fold_send *sends;
    struct fold_deletion *deletions; /* before all the others: see fold.c */
    size_t activities_len, activities_cap, timers_len, timers_cap, instances_len, instances_cap;
    size_t quarantine_len, quarantine_cap, pushes_len, pushes_cap, sends_len, sends_cap;
    size_t deletions_len, deletions_cap;
    struct key_index activities_index, timers_index, quarantine_index, instances_index;
    struct projected last; /* the record that it ends with */
    uint64_t records;
    size_t removed; /* activities that have been looked at for it */
    size_t applied; /* rows of each kind that are in batches */
    size_t publishes_left;
};
struct build *build_create(uint64_t id); /* NULL: out of memory */
void build_destroy(struct build *build); /* NULL-safe */
bool build_full(const struct build *build);
bool build_empty(const struct build *build); /* no rows */
/* The row with the key, made at need; NULL: out of memory. ret_new may be NULL. */
struct fold_activity *build_activity(struct build *build, thole_slice instance, uint64_t execution,
                                     uint64_t id, bool *ret_new);
struct fold_activity *build_find_activity(struct build *build, thole_slice instance, uint64_t execution,
                                          uint64_t id); /* NULL: there is none */
struct fold_timer *build_timer(struct build *build, thole_slice instance, uint64_t execution, uint64_t id,
                               bool *ret_new);
struct fold_quarantine *build_quarantine(struct build *build, thole_slice instance, uint64_t execution,
                                         uint64_t id, bool *ret_new);
struct fold_instance *build_instance(struct build *build, thole_slice instance, uint64_t execution,
                                     bool *ret_new);
/* What the build has of these executions is left out; a newer one is in it. */
void build_prune(struct build *build, thole_slice instance, struct executions executions);
bool build_has_instance(const struct build *build, thole_slice instance, uint64_t execution);
struct fold_deletion *build_deletion(struct build *build);
struct fold_push *build_push(struct build *build);
struct fold_send *build_send(struct build *build);
/* A copy of the next rows, at most BATCH_ROWS_MAX of a kind, that owns everything; moves *from behind them. A
 * turn may have more rows than one transaction. NULL: out of memory. */
struct batch *build_batch(const struct build *build, uint32_t partition, uint64_t epoch, size_t *from);
bool build_has_more(const struct build *build, size_t from);
/* The same with nothing but the activities whose rows go; ret_batch NULL: there are none left. */
THOLE_NODISCARD thole_status build_removals(const struct build *build, uint32_t partition, uint64_t epoch,
                                            size_t *from, struct batch **ret_batch);

/* --- work_refs.c: where the messages of activities are queued, only to withdraw them in time --- */
struct work_ref {
    uint64_t key, sequence; /* sequence 0: a free cell */
};
struct work_refs {
    struct work_ref *cells;
    size_t cap, len;
};
enum { WORK_REFS_MAX = 65536 };
void work_refs_release(struct work_refs *refs);
/* Best effort: when there are too many, or no memory, some are forgotten. */
void work_refs_put(struct work_refs *refs, uint64_t key, uint64_t sequence);
uint64_t work_refs_take(struct work_refs *refs, uint64_t key); /* 0: unknown; forgotten afterwards */

enum { OUTBOX_LANES = 256, BUILD_TOKEN_BITS = 24 };
/* Of tokens that are no build's PUBLISHED or SENT, and no slot's LOAD: those of outbox.c. */
#define OUTBOX_TOKEN (UINT64_C(1) << 63)
#define NAMELESS "-" /* for an orchestration that nobody knows the name of, in notices */
/* An inbox message that counts as incorporated once its answer is on its way. */
struct refusal {
    struct refusal *next;
    struct slot *slot; /* stays while there are any */
    uint64_t token, inbox_sequence;
    struct buf bytes;
};
struct projector {
    struct work_refs work_refs;
    struct lane {
        struct fold_send *first, *last; /* the first is on its way */
    } lanes[OUTBOX_LANES];              /* by receiver, so that what one receives keeps its order */
    struct build *first, *last;         /* FIFO; at most one applying, before it only publishing ones */
    uint64_t next_id;
    struct projected watermark; /* everything up to this record is applied and published */
    uint64_t watermark_sent;    /* what the database knows of it, or is being told */
    uint64_t durable;           /* what it will never forget */
    uint64_t durable_sent;      /* what it is being told so; 0: nothing */
    uint64_t published;         /* up to there the log says that all is done, records removed too */
    uint64_t worth;     /* the newest record from which more has followed than rows: that is worth saying */
    size_t unprojected; /* records in builds */
    /* a turn that comes in parts; their memory is that of the build that is filling */
    struct record *parts;
    size_t parts_len, parts_cap;
};
void projector_release(struct projector *projector);

/* --- redo.c: while the log is read again ------------------------------------------------------- */
struct redo {
    struct build *open;    /* activities whose end has not been read yet, each with its last try */
    size_t open_len;       /* that are not gone */
    struct projected done; /* builds up to this record are applied and published */
    bool settled;          /* what the inbox says of them is known */
    struct loner {         /* open addressing, empty = free */
        thole_slice id;
        bool not ;
    } * loners; /* instances that are nobody's child */
    size_t loners_cap, loners_len;
    struct arena arena; /* of the ids */
};
void redo_release(struct redo *redo);
void redo_queued(struct partition *p, const struct batch_activity *row, thole_slice input);
void redo_gone(struct partition *p, thole_slice instance, uint64_t execution, uint64_t id);
/* What is open of the executions up to that one goes with their instance. */
void redo_deleted(struct partition *p, thole_slice instance, uint64_t execution);
/* Their results wait in the inbox: nobody is to do them again. What was read before, and changed nothing
 * then, waits no more. */
void redo_ended(struct partition *p, const struct partition_result *results, size_t n);
/* At the end of the log: what is still open goes into a build. False: there is none. */
bool redo_finish(struct partition *p);
/* Most instances are nobody's child: those that start in this log need not be asked about when they end. */
void redo_loner(struct partition *p, thole_slice instance);
void redo_no_loner(struct partition *p, thole_slice instance); /* in another life it was */
bool redo_is_loner(const struct partition *p, thole_slice instance);

/* --- deletion.c ---------------------------------------------------------------------------------- */
struct removal { /* records that are owed to a deletion */
    struct removal *next;
    uint64_t sequence; /* of its record: what is before it goes */
    struct executions executions;
    bool out; /* REMOVE_HISTORY is on its way */
    size_t instance_len;
    uint8_t instance[];
};
struct removals {
    struct removal *first, *last; /* by sequence */
    size_t len, out;
};
struct intake;
/* The first thing that waits for the slot is a request to delete it. */
bool deletion_is_next(const struct slot *slot);
/* What it was, and all that is told of it, has to be committed first. */
bool deletion_must_wait(const struct slot *slot);
/* Takes it. True: in has what is to be done now. False: it was answered, and changes nothing. */
bool deletion_take(struct partition *p, struct slot *slot, struct intake *in);
void deletion_told(struct partition *p, const struct deletion *deletion); /* the notice */
void deletion_record(struct partition *p, struct slot *slot, const struct intake *in);
/* What a deletion says of the id: read from its history. */
void deletion_note(struct slot *slot, const struct deletion *deletion);
/* All that follows from the records up to this one is done: its instance's may go. */
void deletion_owed(struct partition *p, thole_slice instance, struct executions executions,
                   uint64_t sequence);
/* The executions whose histories go because of a HISTORY_PRUNED; upto 0: none. */
struct executions deletion_pruned(const struct event *event);
/* The database must be told of the last deletion so that it never forgets it. */
bool deletion_undurable(const struct partition *p);
/* A record must say that the last deletion is committed. */
bool deletion_unattested(const struct partition *p);
void deletion_pump(struct partition *p);
void deletion_removed(struct partition *p, const struct partition_in *in);
void deletion_release(struct partition *p);

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
    PHASE_LOG, /* its tail is found, an epoch opened: see partition_log.h */
    PHASE_STORE,
    PHASE_RESET,
    PHASE_REDO,
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
    bool redo_reading;
    bool redo_unproven; /* the first record that is read must be the one that the rows end with */

    /* opening */
    uint64_t tail_last, redo_next;
    struct progress progress;
    struct seen gone;          /* what the inbox did not hold when it was opened last; sequence 0: it did */
    uint64_t epoch_registered; /* the newest that the database is known to have */
    struct partition_log *log;
    struct slots slots;
    struct projector projector;
    struct timer_book timers;
    struct redo redo;
    struct removals removals;
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

void opening_store(struct partition *p, const struct partition_in *in);
void opening_reset(struct partition *p);
void opening_log(struct partition *p, const struct partition_in *in);
void opening_results(struct partition *p, const struct partition_in *in);
void opening_redo_more(struct partition *p); /* when the projector has room */
void opening_live(struct partition *p, const struct partition_in *in);
void fold_recount(struct partition *p); /* asks how many rows of activities there are */
void fold_recounted(struct partition *p, const struct partition_in *in);
void opening_timers(struct partition *p);

void intake_message(struct partition *p, const struct partition_in *in);
void intake_timer(struct partition *p, const struct timer_entry *timer);
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

/* A counted record into the build that is filling; live: it was just committed here, so notices, timers and
 * names follow too. Parts of a turn wait for its last one. */
void fold_record(struct partition *p, thole_slice bytes, uint64_t sequence, struct slot *slot, bool live);
struct build *project_filling(struct partition *p); /* NULL: out of memory */
void project_pump(struct partition *p);
void project_applied(struct partition *p, const struct partition_in *in);
void project_published(struct partition *p, const struct partition_in *in);
void project_answered(struct partition *p,
                      struct build *build); /* one of its messages is there, or not needed */
struct build *project_find(struct partition *p, uint64_t token); /* publishing; NULL: none */
bool project_idle(const struct partition *p);
struct build *project_apart(struct partition *p); /* a new one that is filling; NULL: out of memory */
/* All that follows from the records up to there has been done outside. */
uint64_t project_published_seq(const struct partition *p);
/* The log does not say yet what it can: that messages to other instances are stored, records removed. */
bool project_unsaid(const struct partition *p);
/* Tells the database about the watermark if it does not know. */
void project_save_watermark(struct partition *p);

/* What an event says to another instance. slot: of the turn; NULL: redo. */
void outbox_fold(struct partition *p, struct build *build, const struct turn *turn, const struct event *event,
                 const struct slot *slot);
void outbox_post(struct partition *p, struct build *build); /* its rows are committed */
void outbox_sent(struct partition *p, const struct partition_in *in);
/* Answer to a LOAD that asked for an instance's parent. */
void outbox_history(struct partition *p, const struct partition_in *in);
/* The start cannot be, and its parent is told. */
void outbox_refuse(struct partition *p, struct slot *slot, const struct pending *start);
void outbox_release(struct partition *p);

void timer_book_reset(struct timer_book *book);
void timer_book_created(struct partition *p, const struct batch_timer *timer);
void timer_book_loaded(struct partition *p, const struct partition_in *in);
void timer_book_read(struct partition *p); /* asks for the next horizon */
void timer_book_fire(struct partition *p);
uint64_t timer_book_deadline(const struct partition *p);

void names_add(struct partition *p, thole_slice name, uint64_t count);
/* The slot's orchestration and version count as live from now on, in the place of what counted before. */
void names_count(struct partition *p, struct slot *slot, thole_slice orchestration, uint32_t version);
void names_uncount(struct partition *p, struct slot *slot);
void names_release(struct partition *p);
#endif
