/* Inside of the projection room: what its files share. */
#ifndef THOLE_PROJECTION_STATE_H
#define THOLE_PROJECTION_STATE_H
#include "projection.h"
#include "tables.h"
#include "work_digest.h"

enum {
    UNPROJECTED_MAX = 8192, /* committed records that wait for the projection before turns pause */
    UNPROJECTED_BYTES_MAX = 32 * 1024 * 1024, /* likewise, by the memory of their batches */
    ROOT_INSTANCES_MAX = 1000000,
    REMOVALS_MAX = 10000,       /* removals that wait, before turns pause */
    REMOVALS_URGENT = 2500,     /* histories that wait, from which on their removal leaves nobody time */
    REMOVALS_OUT_MAX = 64,      /* REMOVE_HISTORYs at a time */
    REMOVALS_LISTS_OUT_MAX = 4, /* REMOVE_RECORDSs at a time */
    /* Other rows wait for the disk after a watermark that is to be durable; removals wait for that one. */
    DURABLE_PAUSE_MS = 50,
    EMISSIONS_MAX = 8192, /* CloudEvents since the first that is not stored, before turns pause */
    EMISSIONS_BYTES_MAX = 32 * 1024 * 1024, /* likewise, by their memory */
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
/* Moves the earliest into *ret if it is due; the caller frees its instance. */
bool timer_heap_pop_due(struct timer_heap *heap, uint64_t now_ms, struct timer_entry *ret);
uint64_t timer_heap_next(const struct timer_heap *heap); /* UINT64_MAX = empty */

struct timer_book { /* which timers are in memory, and which are only rows */
    struct timer_heap heap;
    uint64_t horizon_end; /* every committed timer due before this is in the heap */
    uint64_t beyond_due;  /* earliest known due time at or after horizon_end; UINT64_MAX = none */
    bool reading;         /* READ_TIMERS is not answered yet */
    uint64_t reading_before;
    struct timer_heap recent; /* committed since READ_TIMERS, or perhaps not yet visible to it */
};

/* --- batch_rows.c: a batch and its rows ----------------------------------------------------------- */
struct projected_activity {
    struct batch_activity row; /* without its digest */
    thole_slice input;
    struct nonce nonce; /* this and the digest are made before the rows are written */
    struct work_digest digest;
    bool gone;   /* the row must not exist */
    bool before; /* a row may exist from before this batch */
    bool published;
    bool unwanted;      /* cancelled while its message is being sent */
    bool held;          /* a worker had it when its row was removed: that worker acknowledges the message */
    struct trace trace; /* of its message */
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
    bool pruned; /* gets no row */
    bool said;   /* gets none either: the present row is current enough, see add_instance() */
    bool parent_known;
    struct origin parent;
};
struct projected_push {
    thole_slice instance, reason;
    uint64_t execution, activity_id;
    uint32_t try_number; /* 0 = whatever try it is */
    uint32_t kind;
    uint64_t decided_ms; /* of the turn */
    bool early;          /* workers are told before its row is deleted, too */
};
struct projected_deletion {
    struct batch_deletion row;
    uint64_t sequence; /* of the deletion's record: the records before it are removed */
    bool removed;      /* the records are gone */
};
struct projected_send {          /* a message to another instance */
    struct projected_send *next; /* in its per-receiver queue */
    struct message message;      /* instance empty: the sender's parent, which must be looked up */
    uint64_t execution;          /* the sender's */
    struct buf bytes;
    uint64_t token;
    bool answered;
};
struct projected_emission { /* a CloudEvent that is sent when the rows are committed */
    struct emission emission;
    uint64_t sequence; /* of the first record of its turn */
};
struct key_index { /* open addressing over an array of rows: index + 1, 0 = free */
    uint32_t *cells;
    size_t cap, len;
};
/* lint.state_tables draws these lines in docs/architecture.md: one state a line, with what it means. */
enum batch_state {
    BATCH_FILLING,    /* the newest one: takes the rows of further records */
    BATCH_SEALED,     /* a newer one fills: waits for those before it */
    BATCH_REMOVING,   /* deletes the rows of cancelled activities first, so that workers are told soon */
    BATCH_APPLYING,   /* the rows are being written, in one transaction or a few */
    BATCH_PUBLISHING, /* waits until its messages are stored */
};
struct projection_batch { /* a projection batch */
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
    struct projected_emission *emissions;
    struct projected_deletion *deletions; /* carried out first: see record_rows.c */
    size_t activities_len, activities_cap, timers_len, timers_cap, instances_len, instances_cap;
    size_t quarantine_len, quarantine_cap, pushes_len, pushes_cap, sends_len, sends_cap;
    size_t deletions_len, deletions_cap, emissions_len, emissions_cap;
    struct key_index activities_index, timers_index, quarantine_index, instances_index;
    struct projected last; /* the record that it ends with */
    uint64_t records;
    size_t bytes;   /* memory, with the last record */
    size_t removed; /* activities that REMOVING has gone through */
    size_t applied; /* rows of each kind that APPLYING has sent */
    size_t publishes_left;
};
struct projection_batch *projection_batch_create(uint64_t id);
void projection_batch_destroy(struct projection_batch *batch); /* NULL-safe */
bool projection_batch_full(const struct projection_batch *batch);
bool projection_batch_empty(const struct projection_batch *batch); /* no rows */
/* The row with the key; added if there is none. ret_new may be NULL. */
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
/* Leaves these executions out of the batch, which has a newer one. */
void projection_batch_prune(struct projection_batch *batch, thole_slice instance,
                            struct executions executions);
/* Like projection_batch_prune(), for executions of which a removal that was cut off may have left any record:
 * the end of a timer may be gone. */
void projection_batch_prune_left(struct projection_batch *batch, thole_slice instance,
                                 struct executions executions);
/* Of any execution up to this one: a removal that was cut off may have left any. */
bool projection_batch_has_instance(const struct projection_batch *batch, thole_slice instance, uint64_t upto);
struct projected_deletion *projection_batch_deletion(struct projection_batch *batch);
struct projected_push *projection_batch_push(struct projection_batch *batch);
struct projected_send *projection_batch_send(struct projection_batch *batch);
struct projected_emission *projection_batch_emission(struct projection_batch *batch);
/* A copy of the next rows, at most BATCH_ROWS_MAX of a kind, that owns everything; moves *from past them. One
 * turn may have more rows than one transaction takes. NULL: out of memory. */
struct batch *projection_batch_rows(const struct projection_batch *batch, uint32_t partition, uint64_t epoch,
                                    size_t *from);
bool projection_batch_has_more(const struct projection_batch *batch, size_t from);
/* Like projection_batch_rows(), with only the activities whose rows are deleted; ret_batch NULL: none are
 * left. */
THOLE_NODISCARD thole_status projection_batch_removals(const struct projection_batch *batch,
                                                       uint32_t partition, uint64_t epoch, size_t *from,
                                                       struct batch **ret_batch);

/* --- work_refs.c: sequences of work messages, to withdraw them --- */
struct work_ref {
    uint64_t key, sequence; /* sequence 0: a free cell */
};
struct work_refs {
    struct work_ref *cells;
    size_t cap, len;
};
enum { WORK_REFS_MAX = 65536 };
void work_refs_release(struct work_refs *refs);
/* Best effort: at WORK_REFS_MAX entries all are dropped. */
void work_refs_put(struct work_refs *refs, uint64_t key, uint64_t sequence);
uint64_t work_refs_take(struct work_refs *refs, uint64_t key); /* removes it; 0: unknown */

enum { OUTBOX_QUEUES = 256, BATCH_TOKEN_BITS = 24 };
struct projector {
    struct work_refs work_refs;
    struct receiver_queue {
        struct projected_send *first, *last; /* the first is being sent */
    } receiver_queues[OUTBOX_QUEUES];        /* by receiver, so that what one receives keeps its order */
    struct projection_batch *first, *last;   /* FIFO; at most one applying, before it only publishing ones */
    uint64_t next_id;
    struct projected watermark; /* everything up to this record is applied and published */
    uint64_t watermark_sent;    /* the watermark that the database has or is being sent */
    struct rows_state rows;     /* of the database, after the last batch that was applied */
    struct projected moves_to;  /* the watermark of the batch that is being applied */
    uint64_t durable;           /* the watermark that is durable in the database */
    uint64_t durable_sent;      /* the one being sent as durable; 0: none */
    uint64_t durable_next_ms;   /* none is sent before */
    uint64_t published;         /* the log says that all up to here is done, including removals */
    uint64_t sayable_seq; /* the newest record with effects other than rows, which a record should confirm */
    size_t unprojected;   /* records in batches */
    size_t unprojected_bytes;
    /* parts of a turn; their memory is that of the batch that is filling */
    struct record *parts;
    size_t parts_len, parts_cap;
    uint64_t parts_seq; /* of the first one */
};
void projector_release(struct projector *projector);

/* --- redo.c: while the log is read again ------------------------------------------------------- */
struct redo {
    struct projection_batch *open; /* activities whose end was not read yet, each with its last try */
    size_t open_len;               /* number of those that are not gone */
    struct projected done;         /* batches up to this record are applied and published */
    bool settled;                  /* READ_RESULTS has been answered */
    struct root_instance {         /* open addressing, empty = free */
        thole_slice id;
        bool is_child;
    } * roots; /* root instances */
    size_t roots_cap, roots_len;
    struct arena arena; /* of the ids */
};
/* --- removals.c: records of deleted instances ------------------------------------------------------ */
struct removal { /* records that a deletion must remove */
    struct removal *next;
    uint64_t sequence; /* of the deletion's record: records before it are removed */
    struct executions executions;
    bool out;            /* REMOVE_HISTORY, or REMOVE_RECORDS, is not answered yet */
    uint64_t *sequences; /* not an instance's: these; NULL: the instance's */
    size_t sequences_len;
    size_t instance_len;
    uint8_t instance[];
};
struct removal_queue {
    struct removal *first, *last; /* by sequence */
    size_t len, out;
};
struct removals { /* lists do not wait for histories, of which there may be thousands */
    struct removal_queue histories, lists;
};

/* --- emissions.c: CloudEvents that are to be stored ------------------------------------------------- */
struct owed_emission {
    struct owed_emission *next, *next_queued; /* in its list; in the queue of its instance */
    struct emission emission;                 /* in the arena */
    struct arena arena;
    uint64_t sequence, token; /* sequence: as of a projected_emission */
    bool answered;
};
struct emission_list {
    struct owed_emission *first, *last; /* by sequence */
    size_t len, bytes;                  /* bytes: memory */
};
struct emissions {
    struct emission_list owed; /* from the first on that is not answered: what a new owner would find */
    struct emission_list part; /* of a turn whose last part was not read yet */
    struct record_place {      /* of the last part */
        uint64_t epoch, n;
    } part_end;
    struct emission_queue {
        struct owed_emission *first, *last; /* the first is being sent, if the projection is CURRENT */
    } queues[OUTBOX_QUEUES];                /* by instance, so that what one emits keeps its order */
    uint64_t next_id;
};

struct projection {
    struct env *env;
    enum projection_state state;
    const char *why;       /* FAILED */
    const char *step_down; /* NULL: none */
    uint64_t epoch_known;
    struct projection_start start;
    bool redo_reading;  /* waits for an answer before it continues */
    bool redo_unproven; /* the first record that is read must be the one of the watermark */
    uint64_t redo_next;
    struct redo redo;
    struct projector projector;
    struct removals removals;
    struct emissions emissions;
    struct timer_book timers;
    struct timer_entry due; /* the one that projection_take_due() returned */
    struct turn *turns;     /* the turns that the last record completed */
    size_t turns_len, turns_cap;
};
/* The only ways to change the states; each asserts that the new one may follow. */
void projection_become(struct projection *p, enum projection_state state);
void projection_batch_become(struct projection_batch *batch, enum batch_state state);
void projection_fail(struct projection *p, const char *why);

void redo_release(struct redo *redo);
void redo_queued(struct projection *p, const struct batch_activity *row, thole_slice input,
                 const struct trace *trace);
void redo_gone(struct projection *p, thole_slice instance, uint64_t execution, uint64_t id);
/* Drops open activities of the executions up to that one: their instance was deleted. */
void redo_deleted(struct projection *p, thole_slice instance, uint64_t execution);
/* Drops open activities whose results wait in the inbox, so that they do not run again. Results that were
 * incorporated before are skipped. */
void redo_ended(struct projection *p, const struct partition_result *results, size_t n,
                const struct progress *inbox);
/* At the end of the log: adds the activities that are still open to the batch. */
void redo_finish(struct projection *p, struct projection_batch *b);
/* Most instances are root instances: for those that start in this log no parent needs to be looked up when
 * they end. */
void redo_root(struct projection *p, thole_slice instance);
void redo_no_root(struct projection *p, thole_slice instance); /* a later incarnation is a child */
bool redo_is_root(const struct projection *p, thole_slice instance);

/* --- queue.c: the batches in order --- */
/* The batch that is filling, with room for a record. */
struct projection_batch *project_filling(struct projection *p);
/* A new batch that is filling. */
struct projection_batch *project_apart(struct projection *p);
/* The batch in PUBLISHING with that token; NULL: none. */
struct projection_batch *project_find(const struct projection *p, uint64_t token);

/* --- project.c --- */
/* Sends batches, up to the first one that changes rows: one of these is applied at a time. Returns whether
 * that one waits, as @p rows says that they cannot be written now. */
bool project_next(struct projection *p, bool rows);
/* The last deletion is not yet durable in the database, where it is otherwise. */
bool project_undurable(const struct projection *p);
/* Tells workers of the batch's pushes from the @p first on whose rows are still to be deleted. */
void project_push_early(struct projection *p, const struct projection_batch *batch, size_t first);

/* --- outbox.c --- */
/* Adds the message of an event to another instance, if it has one. facts NULL: the log is read again. */
void outbox_add(struct projection *p, struct projection_batch *batch, const struct turn *turn,
                const struct event *event, const struct projection_facts *facts);
/* emits its messages; its rows are committed */
void outbox_post(struct projection *p, struct projection_batch *batch);
/* The batch of which a message is stored, or not needed; NULL: none. */
struct projection_batch *outbox_sent(struct projection *p, uint64_t token);
struct projection_batch *outbox_history(struct projection *p, uint64_t token, const struct in_history *in,
                                        const struct log_rule *log);

/* --- emissions.c --- */
/* Adds the CloudEvent of an event, if it is sent. @p sequence: of the first record of the turn. */
void emissions_add(struct projection *p, struct projection_batch *batch, const struct turn *turn,
                   const struct event *event, uint64_t sequence);
void emissions_add_deletion(struct projection *p, struct projection_batch *batch, const struct deletion *d,
                            uint64_t sequence);
/* The rows of the batch are committed: its CloudEvents are owed, and sent when the projection is CURRENT. */
void emissions_post(struct projection *p, const struct projection_batch *batch);
/* Like emissions_post(), for a record whose rows were committed by an earlier owner. */
void emissions_find(struct projection *p, const struct record *record, uint64_t sequence);
void emissions_begin(struct projection *p); /* the projection is CURRENT: sends the owed ones */
/* Whether all are stored that belong to records before that one. */
bool emissions_done_below(const struct projection *p, uint64_t sequence);
void emissions_release(struct emissions *emissions);
void emissions_check(const struct projection *p);

/* --- record_rows.c --- */
/* Adds a record that counts to the batch that is filling; live: it was just committed here, so notices and
 * timers follow too. Parts of a turn wait for the last part. facts: NULL unless live. ret: without the
 * turns. */
void projection_add_record(struct projection *p, thole_slice bytes, uint64_t sequence,
                           const struct projection_facts *facts, bool live, struct projection_turns *ret);

/* --- removals.c --- */
/* Remembers that the records of these executions below the sequence must be removed. */
void removals_owe(struct projection *p, thole_slice instance, struct executions executions,
                  uint64_t sequence);
/* Like removals_owe(), for records that the one with the sequence lists. */
void removals_owe_listed(struct projection *p, const struct folded *folded, uint64_t sequence);
void removals_pump(struct projection *p, uint64_t confirmed_seq);
/* Sequences of the first and the last one that is owed; 0: none is. */
uint64_t removals_first(const struct removals *removals);
uint64_t removals_last(const struct removals *removals);
void removals_check(const struct removals *removals);
void removals_release(struct removals *removals);

/* --- timers.c --- */
void timer_book_created(struct projection *p, const struct batch_timer *timer);
void timers_release(struct projection *p);
#endif
