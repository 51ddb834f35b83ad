/*
 * Inside of the partition machine: what its files share. Nobody outside this folder includes it.
 *
 *   partition.c  inputs, outputs, states        opening.c  tail, epoch, redo of the projection
 *   slots.c      instances in memory            turns.c    messages to turns to records
 *   marks.c      what an execution waits for
 *   chain.c      the fenced append pipeline     loading.c  histories to parked instances
 *   fold.c       records to projection changes  project.c  batches: apply, publish, push, watermark
 *   timers.c     due timers                     progress.c which inbox messages are incorporated
 */
#ifndef THOLE_MACHINE_H
#define THOLE_MACHINE_H
#include "partition.h"

enum {
    TURN_RECEIVED_MAX = 1000,
    TURN_RECEIVED_BYTES_MAX = 4 * 1024 * 1024,
    PENDING_MAX = 20000,    /* inbox messages held in memory */
    ABOVE_MAX = 4096,       /* incorporated messages above the floor before turns pause */
    UNPROJECTED_MAX = 8192, /* committed records that wait for the projection before turns pause */
    ENDED_MAX = 10000,      /* ended instances remembered */
    DETAIL_BYTES_MAX = 1024,
    PURGE_EVERY = 1000, /* inbox messages */
    SLOT_BUCKETS = 4096,
};

/* --- progress.c: the inbox position -------------------------------------------------------------------- */
struct progress {
    uint64_t floor, received; /* received: the highest sequence seen */
    uint64_t *above;
    size_t above_len, above_cap;
    bool dirty; /* differs from what the last record says */
};
void progress_release(struct progress *progress);
THOLE_NODISCARD thole_status progress_set(struct progress *progress, const struct position *position);
bool progress_has(const struct progress *progress, uint64_t sequence);
THOLE_NODISCARD thole_status progress_add(struct progress *progress, uint64_t sequence);

/* --- timers.c: a heap of due times ---------------------------------------------------------------------- */
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

/* --- slots.c: instances in memory ----------------------------------------------------------------------- */
enum slot_state {
    SLOT_LOADING, /* its history is being read */
    SLOT_ABSENT,  /* there is none */
    SLOT_LIVE,    /* parked, ready to run */
    SLOT_BLOCKED, /* its code cannot run; what arrives is recorded */
    SLOT_ENDED,
};

struct pending { /* something that arrived for an instance and is not yet in a record */
    struct pending *next;
    uint64_t inbox_sequence; /* 0 = a timer */
    struct message message;
    uint64_t execution, timer_id;
    struct arena arena; /* owns what message points to */
};

struct slot {
    struct slot *hash_next, *ready_next, *lru_prev, *lru_next;
    thole_slice id;
    uint64_t token; /* of its LOAD */
    enum slot_state state;
    bool ready, retry, cancel_requested, cancel_delivered, in_ended;
    struct instance *instance; /* LIVE */
    uint64_t execution, turns, events, time_ms;
    thole_slice orchestration, request_id; /* in arena */
    enum blocked_kind blocked;
    thole_slice blocked_text; /* in arena */
    struct arena arena;
    uint8_t *marks; /* by event id, see marks.c */
    size_t marks_cap;
    size_t in_flight; /* its records that are not yet committed */
    struct pending *first, *last;
};

struct slots {
    struct slot *buckets[SLOT_BUCKETS];
    struct slot *ready_first, *ready_last;
    struct slot lru, ended; /* sentinels: lru_next is the most recently used */
    size_t len, ended_len;  /* of each list */
    size_t pending_len;
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
void slot_push(struct slots *slots, struct slot *slot, struct pending *pending);
struct pending *slot_take(struct slots *slots, struct slot *slot); /* the first; NULL = none */
void pending_destroy(struct pending *pending);
struct pending *pending_create(void);
/* Sets or replaces a text in the slot's arena; forgets it silently when the arena is full. */
void slot_remember(struct slot *slot, thole_slice from, thole_slice *to);

/* --- marks.c: what an execution waits for, without its code -------------------------------------------- */
THOLE_NODISCARD thole_status slot_mark(struct slot *slot, const struct event *event);
bool slot_awaits(const struct slot *slot, const struct event *resolution);

/* --- chain.c: the append pipeline ------------------------------------------------------------------------
 */
struct link { /* one record of this epoch that is not yet committed */
    uint64_t n;
    bool acked;
    uint64_t floor;    /* inbox floor that it makes durable */
    struct slot *slot; /* NULL: epoch or position */
    struct buf bytes;
};
struct chain {
    struct link *links; /* ring */
    size_t head, len, cap;
    uint64_t epoch, base; /* base: sequence of EpochOpened; record n is stored at base + n */
    uint64_t next_n, committed_n, committed_floor;
    bool failed; /* record failed_n was not stored: the epoch ends before it */
    uint64_t failed_n;
    char why[160];
};
void chain_release(struct chain *chain);

/* --- project.c, fold.c -----------------------------------------------------------------------------------
 */
struct fold_activity {
    struct batch_activity row;
    thole_slice input;
    bool gone; /* removed again in the same build */
};
struct fold_push {
    thole_slice instance, reason;
    uint64_t execution, activity_id;
    uint32_t kind;
};
struct key_index { /* open addressing over an array of rows: index + 1, 0 = free */
    uint32_t *cells;
    size_t cap, len;
};
enum build_state { BUILD_FILLING, BUILD_SEALED, BUILD_APPLYING, BUILD_PUBLISHING };
struct build { /* a projection batch on its way */
    struct build *next;
    enum build_state state;
    uint64_t id;
    struct arena arena;
    struct fold_activity *added;
    struct batch_activity *removed;
    struct batch_timer *timers_added, *timers_removed;
    struct batch_instance *instances;
    struct fold_push *pushes;
    size_t added_len, added_cap, removed_len, removed_cap, timers_added_len, timers_added_cap;
    size_t timers_removed_len, timers_removed_cap, instances_len, instances_cap, pushes_len, pushes_cap;
    struct key_index added_index, timers_index, instances_index;
    uint64_t last_sequence, records;
    size_t publishes_left;
};
/* Where an activity's message is queued, for as long as nobody overwrites it: only to withdraw it in time. */
struct work_ref {
    uint64_t key, sequence;
};
enum { WORK_REFS = 16384 };
struct projector {
    struct work_ref *work_refs; /* by key modulo WORK_REFS; NULL until the first */
    struct build *first, *last; /* FIFO; at most one applying, before it only publishing ones */
    uint64_t next_id;
    uint64_t watermark;      /* everything up to this sequence is applied and published */
    uint64_t watermark_sent; /* what the database knows of it, or is being told */
    size_t unprojected;      /* records in builds */
    /* a turn that comes in parts; their memory is that of the build that is filling */
    struct record *parts;
    size_t parts_len, parts_cap;
};
void projector_release(struct projector *projector);

/* --- partition.c ------------------------------------------------------------------------------------------
 */
enum phase {
    PHASE_CLOSED,
    PHASE_TAIL,
    PHASE_DELETE,
    PHASE_EPOCH,
    PHASE_STORE,
    PHASE_RESET,
    PHASE_REDO,
    PHASE_LIVE,
    PHASE_TIMERS,
    PHASE_SERVING,
    PHASE_CLOSING,
};

struct out_node {
    struct out_node *next;
    struct partition_out out;
    struct arena own;
};

struct live_name {
    thole_slice name; /* owned */
    uint64_t count;
};

struct partition {
    struct partition_options options;
    char node[THOLE_NAME_BYTES_MAX + 1];
    enum phase phase;
    uint64_t generation, now_ms, busy_ms; /* busy_ms: when something last happened */
    bool nomem, redo_reading, tail_again, tail_all;
    struct out_node *out_first, *out_last, *out_taken, spare;

    /* opening */
    uint64_t tail_last, tail_epoch, tail_n, redo_next;
    struct progress progress;
    struct chain chain;
    struct slots slots;
    struct projector projector;
    struct timer_book timers;
    uint64_t purged_below;
    uint64_t open_activities;
    bool ending; /* in doubt: nothing new; dropped once all appends are answered */
    char ending_why[160];
    struct live_name *names;
    size_t names_len, names_cap;
    thole_slice *names_view;
};

/* Appends an output; its memory (copies made with out_copy) lives until it has been taken. Never NULL: when
 * memory is short it returns a spare and the partition closes at the end of the step. */
struct partition_out *partition_emit(struct partition *p, enum partition_out_kind kind);
thole_slice partition_out_copy(struct partition *p, thole_slice from); /* into the output emitted last */
uint64_t *partition_out_numbers(struct partition *p, size_t n);
/* Drops all memory and says CLOSED. */
void partition_drop(struct partition *p, const char *why, bool reopen);
/* Remembers that memory ran out. */
void partition_no_memory(struct partition *p);

void opening_start(struct partition *p);
void opening_tail(struct partition *p, const struct partition_in *in);
void opening_deleted(struct partition *p);
void opening_epoch_stored(struct partition *p);
void opening_store(struct partition *p, uint64_t projected_seq);
void opening_reset(struct partition *p);
void opening_log(struct partition *p, const struct partition_in *in);
void opening_redo_more(struct partition *p); /* when the projector has room */
void opening_live(struct partition *p, const struct partition_in *in);
void opening_timers(struct partition *p);

void turns_message(struct partition *p, const struct partition_in *in);
void turns_timer(struct partition *p, const struct timer_entry *timer);
void turns_run_ready(struct partition *p);
struct slot *turns_slot(struct partition *p, thole_slice instance); /* found, or made and LOAD asked */
const thole_orchestration_entry *turns_code(const struct partition *p, thole_slice orchestration);

/* turn NULL: a record of kind EPOCH_OPENED or POSITION. Appends the parts of a turn. */
void chain_append(struct partition *p, enum record_kind kind, struct slot *slot, const struct turn *turn);
void chain_appended(struct partition *p, const struct partition_in *in);
void chain_append_failed(struct partition *p, const struct partition_in *in);

void loading_history(struct partition *p, const struct partition_in *in);

/* A counted record into the build that is filling; live: it was just committed here, so notices, timers and
 * names follow too. Parts of a turn wait for its last one. */
void fold_record(struct partition *p, thole_slice bytes, uint64_t sequence, struct slot *slot, bool live);
void build_destroy(struct build *build);
struct build *project_filling(struct partition *p); /* NULL: out of memory */
void project_pump(struct partition *p);
void project_applied(struct partition *p);
void project_published(struct partition *p, const struct partition_in *in);
bool project_idle(const struct partition *p);
/* Tells the database about the watermark if it does not know. */
void project_save_watermark(struct partition *p);

void timer_book_reset(struct timer_book *book);
void timer_book_created(struct partition *p, const struct batch_timer *timer);
void timer_book_loaded(struct partition *p, const struct partition_in *in);
void timer_book_read(struct partition *p); /* asks for the next horizon */
void timer_book_fire(struct partition *p);
uint64_t timer_book_deadline(const struct partition *p);

void names_add(struct partition *p, thole_slice name, uint64_t count);
void names_remove(struct partition *p, thole_slice name);
void names_release(struct partition *p);

uint64_t key_hash(thole_slice instance, uint64_t a, uint64_t b);
#endif
