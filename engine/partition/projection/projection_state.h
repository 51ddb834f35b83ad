/* Inside of the projection room: what its files share. */
#ifndef THOLE_PROJECTION_STATE_H
#define THOLE_PROJECTION_STATE_H
#include "projection.h"
#include "tables.h"

enum {
    UNPROJECTED_MAX = 8192, /* committed records that wait for the projection before turns pause */
    ROOT_INSTANCES_MAX = 1000000,
    REMOVALS_MAX = 10000, /* of deleted instances: before turns pause */
    REMOVALS_OUT_MAX = 2, /* on their way at a time */
};

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
void timer_heap_push(struct timer_heap *heap, const struct batch_timer *timer);
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

/* --- batch_rows.c: a batch and its rows ----------------------------------------------------------- */
struct projected_activity {
    struct batch_activity row;
    thole_slice input;
    bool gone;   /* there is to be no row */
    bool before; /* there may be one, made before this batch */
    bool published;
    bool unwanted; /* cancelled while its message is on its way */
    bool held;     /* a worker had it when its row was removed: that worker acknowledges the message */
};
struct projected_timer {
    struct batch_timer row;
    bool gone, before;
};
struct projected_quarantine {
    struct batch_quarantine row;
    bool gone, before;
};
struct projected_instance {
    struct batch_instance row;
    bool pruned; /* it gets no row after all */
    bool parent_known;
    struct origin parent;
};
struct projected_push {
    thole_slice instance, reason;
    uint64_t execution, activity_id;
    uint32_t try_number; /* 0 = whatever try it is */
    uint32_t kind;
};
struct projected_deletion {
    struct batch_deletion row;
    uint64_t sequence; /* of the record that says so: those before it are to go */
    bool removed;      /* its records are gone */
};
struct projected_send {          /* a message to another instance */
    struct projected_send *next; /* in its per-receiver queue */
    struct message message;      /* instance empty: that of the sender's parent, which has to be looked up */
    uint64_t execution;          /* the sender's */
    struct buf bytes;
    uint64_t token;
    bool answered;
};
struct key_index { /* open addressing over an array of rows: index + 1, 0 = free */
    uint32_t *cells;
    size_t cap, len;
};
/* lint.state_tables draws these lines in docs/architecture.md: one state a line, with what it means. */
enum batch_state {
    BATCH_FILLING,    /* the last one: takes the rows of the next record */
    BATCH_SEALED,     /* another one fills: waits for those before it */
    BATCH_REMOVING,   /* rows of what is cancelled go first, so that workers hear of it soon */
    BATCH_APPLYING,   /* its rows are being written, in one transaction or a few */
    BATCH_PUBLISHING, /* waits until its messages are stored */
};
struct projection_batch { /* a projection batch on its way */
    struct projection_batch *next;
    enum batch_state state;
    uint64_t id;
    struct arena arena;
    struct projected_activity *activities;
    struct projected_timer *timers;
    struct projected_quarantine *quarantine;
    struct projected_instance *instances; /* by execution */
    struct projected_push *pushes;
    struct projected_send *sends;
    struct projected_deletion *deletions; /* before all the others: see record_rows.c */
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
struct projection_batch *projection_batch_create(uint64_t id);
void projection_batch_destroy(struct projection_batch *batch); /* NULL-safe */
bool projection_batch_full(const struct projection_batch *batch);
bool projection_batch_empty(const struct projection_batch *batch); /* no rows */
/* The row with the key, made at need. ret_new may be NULL. */
struct projected_activity *projection_batch_activity(struct projection_batch *batch, thole_slice instance,
                                                     uint64_t execution, uint64_t id, bool *ret_new);
struct projected_activity *projection_batch_find_activity(struct projection_batch *batch,
                                                          thole_slice instance, uint64_t execution,
                                                          uint64_t id); /* NULL: there is none */
struct projected_timer *projection_batch_timer(struct projection_batch *batch, thole_slice instance,
                                               uint64_t execution, uint64_t id, bool *ret_new);
struct projected_quarantine *projection_batch_quarantine(struct projection_batch *batch, thole_slice instance,
                                                         uint64_t execution, uint64_t id, bool *ret_new);
struct projected_instance *projection_batch_instance(struct projection_batch *batch, thole_slice instance,
                                                     uint64_t execution, bool *ret_new);
/* What the batch has of these executions is left out; a newer one is in it. */
void projection_batch_prune(struct projection_batch *batch, thole_slice instance,
                            struct executions executions);
bool projection_batch_has_instance(const struct projection_batch *batch, thole_slice instance,
                                   uint64_t execution);
struct projected_deletion *projection_batch_deletion(struct projection_batch *batch);
struct projected_push *projection_batch_push(struct projection_batch *batch);
struct projected_send *projection_batch_send(struct projection_batch *batch);
/* A copy of the next rows, at most BATCH_ROWS_MAX of a kind, that owns everything; moves *from behind them. A
 * turn may have more rows than one transaction. NULL: out of memory. */
struct batch *projection_batch_rows(const struct projection_batch *batch, uint32_t partition, uint64_t epoch,
                                    size_t *from);
bool projection_batch_has_more(const struct projection_batch *batch, size_t from);
/* The same with nothing but the activities whose rows go; ret_batch NULL: there are none left. */
THOLE_NODISCARD thole_status projection_batch_removals(const struct projection_batch *batch,
                                                       uint32_t partition, uint64_t epoch, size_t *from,
                                                       struct batch **ret_batch);

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
/* Best effort: when there are too many, some are forgotten. */
void work_refs_put(struct work_refs *refs, uint64_t key, uint64_t sequence);
uint64_t work_refs_take(struct work_refs *refs, uint64_t key); /* 0: unknown; forgotten afterwards */

enum { OUTBOX_QUEUES = 256, BATCH_TOKEN_BITS = 24 };
struct projector {
    struct work_refs work_refs;
    struct receiver_queue {
        struct projected_send *first, *last; /* the first is on its way */
    } receiver_queues[OUTBOX_QUEUES];        /* by receiver, so that what one receives keeps its order */
    struct projection_batch *first, *last;   /* FIFO; at most one applying, before it only publishing ones */
    uint64_t next_id;
    struct projected watermark; /* everything up to this record is applied and published */
    uint64_t watermark_sent;    /* what the database knows of it, or is being told */
    uint64_t durable;           /* what it will never forget */
    uint64_t durable_sent;      /* what it is being told so; 0: nothing */
    uint64_t published;         /* up to there the log says that all is done, records removed too */
    uint64_t sayable_seq; /* the newest record from which more has followed than rows: that is worth saying */
    size_t unprojected;   /* records in batches */
    /* a turn that comes in parts; their memory is that of the batch that is filling */
    struct record *parts;
    size_t parts_len, parts_cap;
};
void projector_release(struct projector *projector);

/* --- redo.c: while the log is read again ------------------------------------------------------- */
struct redo {
    struct projection_batch *open; /* activities whose end has not been read yet, each with its last try */
    size_t open_len;               /* that are not gone */
    struct projected done;         /* batches up to this record are applied and published */
    bool settled;                  /* what the inbox says of them is known */
    struct root_instance {         /* open addressing, empty = free */
        thole_slice id;
        bool is_child;
    } * roots; /* instances that are nobody's child */
    size_t roots_cap, roots_len;
    struct arena arena; /* of the ids */
};
/* --- removals.c: records of deleted instances ------------------------------------------------------ */
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

struct projection {
    struct env *env;
    enum projection_state state;
    const char *why;       /* FAILED */
    const char *step_down; /* NULL: none */
    uint64_t epoch_known;
    struct projection_start start;
    bool redo_reading;  /* an answer is awaited before it goes on */
    bool redo_unproven; /* the first record that is read must be the one that the rows end with */
    uint64_t redo_next;
    struct redo redo;
    struct projector projector;
    struct removals removals;
    struct timer_book timers;
    struct timer_entry due; /* the one that was given out */
    struct turn *turns;     /* that the last record completed */
    size_t turns_len, turns_cap;
};
/* The only ways to change these states; each asserts that the new one may follow. */
void projection_become(struct projection *p, enum projection_state state);
void projection_batch_become(struct projection_batch *batch, enum batch_state state);
void projection_fail(struct projection *p, const char *why);

void redo_release(struct redo *redo);
void redo_queued(struct projection *p, const struct batch_activity *row, thole_slice input);
void redo_gone(struct projection *p, thole_slice instance, uint64_t execution, uint64_t id);
/* What is open of the executions up to that one goes with their instance. */
void redo_deleted(struct projection *p, thole_slice instance, uint64_t execution);
/* Their results wait in the inbox: nobody is to do them again. What was read before, and changed nothing
 * then, waits no more. */
void redo_ended(struct projection *p, const struct partition_result *results, size_t n,
                const struct progress *inbox);
/* At the end of the log: what is still open, if anything, goes into the batch. */
void redo_finish(struct projection *p, struct projection_batch *b);
/* Most instances are nobody's child: those that start in this log need not be asked about when they end. */
void redo_root(struct projection *p, thole_slice instance);
void redo_no_root(struct projection *p, thole_slice instance); /* in another life it was */
bool redo_is_root(const struct projection *p, thole_slice instance);

/* --- queue.c: the batches in order --- */
/* The one that is filling, with room. */
struct projection_batch *project_filling(struct projection *p);
/* A new one that is filling. */
struct projection_batch *project_apart(struct projection *p);
/* Publishing; NULL: none. */
struct projection_batch *project_find(const struct projection *p, uint64_t token);

/* --- project.c --- */
void project_pump(struct projection *p);

/* --- outbox.c --- */
/* What an event says to another instance. facts NULL: the log is read again. */
void outbox_add(struct projection *p, struct projection_batch *batch, const struct turn *turn,
                const struct event *event, const struct projection_facts *facts);
void outbox_post(struct projection *p, struct projection_batch *batch); /* its rows are committed */
/* The batch one of whose messages is there, or not needed; NULL: none. */
struct projection_batch *outbox_sent(struct projection *p, uint64_t token);
struct projection_batch *outbox_history(struct projection *p, uint64_t token, const struct in_history *in,
                                        const struct log_rule *log);

/* --- record_rows.c --- */
/* A counted record into the batch that is filling; live: it was just committed here, so notices and timers
 * follow too. Parts of a turn wait for its last one. facts: NULL unless live. ret_uncertain: see
 * projection_turns. */
void projection_add_record(struct projection *p, thole_slice bytes, uint64_t sequence,
                           const struct projection_facts *facts, bool live, bool *ret_uncertain);

/* --- removals.c --- */
/* All that follows from the records up to this one is done: its instance's may go. */
void removals_owe(struct projection *p, thole_slice instance, struct executions executions,
                  uint64_t sequence);
void removals_pump(struct projection *p, uint64_t confirmed_seq);
void removals_release(struct removals *removals);

/* --- timers.c --- */
void timer_book_created(struct projection *p, const struct batch_timer *timer);
void timers_release(struct projection *p);
#endif
