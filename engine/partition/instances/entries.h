/* Inside of the instances room: the entries of instances that are in memory. */
#ifndef THOLE_ENTRIES_H
#define THOLE_ENTRIES_H
#include "entry_states.h"
#include "instance.h"
#include "message_route.h"

enum {
    ENDED_MAX = 1000, /* ended instances remembered, for what comes late */
    ENTRY_BUCKETS = 4096,
};

struct pending { /* a message or timer for an instance that is not yet in a record */
    struct pending *next;
    uint64_t inbox_sequence; /* 0 = a timer */
    uint64_t stored_ns;
    uint32_t part; /* of several in one message */
    struct message message;
    enum message_sender sender;
    bool answered; /* a start: its client was told */
    uint64_t execution, timer_id;
    struct arena arena; /* owns what message points to */
};

struct question { /* a query that waits for its instance to be loaded */
    struct question *next;
    uint64_t token;
    thole_slice name, input;
    struct arena arena;
};

struct answer { /* to a client's start under an id in use: whether the event that came with it was taken */
    struct answer *next;
    thole_slice request_id; /* stored after the struct */
    uint64_t execution;     /* of the turn that decided it: the entry may have begun the next one */
    bool taken;
    uint8_t bytes[];
};

struct early { /* events that a future instance will begin with */
    struct arena arena;
    struct event *events;
    size_t len, cap;
    uint64_t due_ms; /* when they expire */
};

/* early.c */
void early_destroy(struct early *early); /* NULL-safe */
size_t early_memory(const struct early *early);
/* Keeps the event unless its request was seen before; creates *early if it is NULL. THOLE_CONFLICT: it was;
 * THOLE_LIMIT: too many; NOMEM. */
THOLE_NODISCARD thole_status early_keep(struct early **early, const struct event *event);

/* How this owner can handle an instance. The limit only moves from RUNS towards KEEPS, and holds while the
 * entry is in memory, until a user asks for a retry of the instance or deletes it. */
enum entry_limit {
    ENTRY_RUNS,    /* the code may run */
    ENTRY_RECORDS, /* the code failed here and does not run: an instance without code takes received events */
    ENTRY_KEEPS,   /* an instance without code failed, too: received events are recorded unchecked */
};

struct entry_reason { /* why the code of an instance does not run here; allocated with its text */
    enum blocked_kind kind;
    uint32_t len;
    uint8_t text[];
};

/* Of LOADING and TO_LOAD. */
struct entry_loading {
    bool retry; /* must run when it is LIVE, even if nothing was received */
};

/* Of LIVE, BLOCKED and CONTINUED. */
struct entry_running {
    struct instance *instance; /* BLOCKED: without code */
    bool retry;                /* LIVE: as in entry_loading; the entry is ready */
};

/* The state with which rows and names were counted. Only committed turns count, so it changes later than the
 * state. */
struct entry_counted {
    bool name; /* among the live names, under this version */
    uint32_t version;
    enum blocked_kind stopped; /* why the last turn did not run */
    /* where its history ended when it was loaded, or when the rows were counted */
    uint64_t execution, events;
};

/* Comments name the file that writes a member, or the states in which it is used. check_entry() asserts the
 * invariants. */
struct entry {
    struct entry *hash_next, *ready_next, *lru_prev, *lru_next;
    thole_slice id; /* stored after the entry */
    uint64_t token; /* of its LOAD */
    enum entry_state state;
    enum entry_limit limit;
    struct entry_list
        *list;  /* which it is in; a RECALLED one in `over` until a message or timer comes for it */
    bool ready; /* in the list of entries that may run */
    /* executions.c: CONTINUED: when its next execution begins; 0: at once */
    uint64_t delayed_ms;
    uint64_t spread_us; /* executions.c: when the executions so far would have begun, spread evenly */
    struct entry *delayed_next;
    size_t held; /* memory of its instance, or of its early events, as it was weighed last */
    /* the turn failed once for lack of memory and others were released; that is done only once */
    bool memory_retried;
    union { /* selected by the state; entry_become() initializes and releases it */
        struct entry_loading loading;
        struct early *early;
        struct entry_running running;
    };
    struct entry_reason *reason; /* BLOCKED, or limited; else NULL */

    /* The history so far. */
    uint64_t execution, turns, events, time_ms;
    struct record_link newest; /* the instance's last record, committed or not; none: it has none */
    uint64_t tombstone;        /* executions up to this one are of earlier, deleted incarnations */
    thole_slice orchestration,
        request_id;       /* owned. ABSENT, EARLY: request_id and parent of the last incarnation */
    struct origin parent; /* owns its instance */
    struct trace trace;   /* owned */
    uint32_t version;     /* of its code; 0 = not chosen yet */

    /* Changes that are not committed yet, or are counted at the commit. */
    size_t in_flight; /* records of the instance that are not yet committed */
    size_t refusals;  /* refused starts under its id whose answers are not yet stored */
    struct entry_counted counted;
    uint64_t running_ms; /* see instances_set_running_ms() */
    uint64_t *waiting;   /* activities that wait for their next try and have no row, by committed turns */
    size_t waiting_len, waiting_cap;

    /* Messages and questions that wait for the entry. */
    struct pending *first, *last;
    struct question *questions;

    struct answer *answers; /* to say when the entry's records are committed */
    uint8_t id_bytes[];
};

enum { LANES = 64 };
struct lane { /* of one orchestration: lanes.h */
    uint64_t key;
    bool named;
    struct entry *first, *last; /* ready entries */
    size_t len;
    struct lane *next;      /* of those that are not empty */
    uint64_t used, used_ms; /* turns lately; when the last one was */
};
struct burst { /* of the lane that rests between them */
    struct lane *lane;
    size_t len;
    uint64_t begun_ms, last_n, rests_until_ms;
};
struct lanes {
    struct lane all[LANES];
    struct lane *first, *last; /* those that are not empty; the first has its turn */
    struct lane *running;      /* from which the last entry was taken */
    struct burst burst;
    uint64_t said_ms; /* when it was last said that a lane rests */
};

struct entry_list { /* by use: most recently used first */
    struct entry *first, *last;
    size_t len;
    size_t held; /* memory of those in it */
};

struct entries { /* does not move: entries point to their lists */
    struct entry *buckets[ENTRY_BUCKETS];
    /* over: see entry_is_over(); early: those in the state EARLY, which displace no instance; lru: the others
     */
    struct entry_list lru, over, early;
    struct lanes lanes;                                        /* ready entries */
    struct entry *delayed;                                     /* entries whose delayed_ms is not 0 */
    uint64_t delayed_ms;                                       /* none of them is due before */
    size_t pending_len, questions_len, recalled_len, live_len; /* the last two: by state */
    size_t pending_bytes;                                      /* memory of what is pending */
    size_t added;                                              /* since the last eviction */
    uint64_t next_token;
};
void entries_release(struct entries *entries); /* leaves it empty and usable */
struct entry *entries_find(const struct entries *entries, thole_slice id);
/* The entry that waits for its history with that token; NULL: none. */
struct entry *entries_find_token(const struct entries *entries, uint64_t token, thole_slice id);
struct entry *entries_add(struct entries *entries, thole_slice id); /* LOADING */
void entries_touch(struct entries *entries, struct entry *entry);
void entries_ready(struct entries *entries, struct entry *entry); /* not one that is delayed */
struct lane_view;
struct entry *entries_take_ready(struct entries *entries,
                                 const struct lane_view *view); /* see lanes_take() */
/* After its instance, or its early events, may have grown. */
void entries_weigh(struct entry *entry);
/* Releases those at rest that were used least recently, while there are more than keep or while their
 * instances hold more than bytes; before them one that holds more alone. EARLY ones are counted by
 * themselves: as many, with early_bytes. Of those that are not at rest it looks at few, so some that are may
 * stay until the next time. */
struct entries_kept {
    size_t keep, bytes, early_bytes;
};
void entries_evict(struct entries *entries, const struct entries_kept *kept);
/* Releases those at rest that are deleted by a record up to that sequence: it goes. */
void entries_forget_deleted(struct entries *entries, uint64_t upto);
/* For lack of memory: half of them, if so many are at rest. */
void entries_evict_half(struct entries *entries);
/* Releases the one with that id, if there is one. False: it is not at rest. */
bool entries_drop(struct entries *entries, thole_slice id);
void entries_mark_counted(struct entries *entries); /* see struct entry_counted */

/* The only way to change a state; asserts that the new one may follow. Releases the payload of the old state
 * (its instance or events) and zeroes that of the new one, unless both states have the same kind. Moves the
 * entry to the list of its state. */
void entry_become(struct entries *entries, struct entry *entry, enum entry_state state);
/* LIVE, BLOCKED, CONTINUED: its instance; else NULL. */
struct instance *entry_instance(const struct entry *entry);
/* An instance with this id exists or has ended: neither ABSENT nor EARLY. */
bool entry_exists(const struct entry *entry);
/* Sets why its code does not run here; unless @p limit is ENTRY_RUNS, the limit holds from now on. */
void entry_block(struct entry *entry, enum entry_limit limit, enum blocked_kind kind, thole_slice text);
thole_slice entry_blocked_text(const struct entry *entry); /* empty: there is no reason */
/* Clears limit and reason: the instance is tried again. */
void entry_unblock(struct entry *entry);

void entry_push(struct entries *entries, struct entry *entry, struct pending *pending);
void entry_give_back(struct entries *entries, struct entry *entry,
                     struct pending *pending);                            /* as the first */
struct pending *entry_take(struct entries *entries, struct entry *entry); /* the first; NULL = none */
void pending_destroy(struct pending *pending);
/* The client that sent it, or the worker that ran it; NULL: neither is known. Borrowed. */
const struct event_source *pending_source(const struct pending *pending);
struct pending *pending_create(void);
void entry_ask(struct entries *entries, struct entry *entry, struct question *question); /* as the last */
/* Frees the questions: all are answered. */
void entry_drop_questions(struct entries *entries, struct entry *entry);

/* Copies the request id. */
void entry_add_answer(struct entry *entry, uint64_t execution, bool taken, thole_slice request_id);
void entry_drop_answers(struct entry *entry);

/* Sets or replaces a text that the entry owns. Aborts when memory runs out. */
void entry_remember(thole_slice *text, thole_slice from);
/* Texts of a deleted instance; freed with entry_texts_release(). */
struct entry_texts {
    thole_slice orchestration, request_id, parent;
    struct trace trace;
};
/* Makes the entry ABSENT: drops everything but the id and what waits for it. Returns the texts that it
 * held. */
struct entry_texts entry_renew(struct entry *entry);
void entry_texts_release(struct entry_texts *texts); /* zeroed ones are allowed */
/* Notes the entry's counts in the rows, before anything new is committed. */
void entry_note_counted(struct entry *entry);
/* Takes over the facts of the execution that an event carries. */
void entry_note(struct entry *entry, const struct event *event);
/* Tracks which activities have no row while they wait for a try. Returns the change in the number of rows:
 * -1, 0, 1. */
int entry_note_tries(struct entry *entry, const struct event *event);
#endif
