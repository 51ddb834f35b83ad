/* Inside of the instances room: the entries of instances that are in memory. */
#ifndef THOLE_ENTRIES_H
#define THOLE_ENTRIES_H
#include "entry_states.h"
#include "instance.h"
#include "message.h"

enum {
    ENDED_MAX = 10000, /* ended instances remembered */
    ENTRY_BUCKETS = 4096,
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

/* early.c */
void early_destroy(struct early *early); /* NULL-safe */
/* Keeps the event unless its request was seen before; *early is made at need. THOLE_CONFLICT: it was;
 * THOLE_LIMIT: too many; NOMEM. */
THOLE_NODISCARD thole_status early_keep(struct early **early, const struct event *event);

/* How far this owner can go with an instance. It only goes down, and holds while the entry is in memory,
 * until somebody asks that the instance be tried again, or it is deleted. */
enum entry_limit {
    ENTRY_RUNS,    /* nothing is known against running its code */
    ENTRY_RECORDS, /* its code failed here and is not run: an instance without code takes what comes */
    ENTRY_KEEPS,   /* that failed, too: what comes is recorded unchecked */
};

struct entry_reason { /* why the code of an instance does not run here; as long as its text */
    enum blocked_kind kind;
    uint32_t len;
    uint8_t text[];
};

/* Of LOADING and TO_LOAD. */
struct entry_loading {
    bool retry; /* is to run when it is LIVE, although nothing has come for it */
};

/* Of LIVE, BLOCKED and CONTINUED. */
struct entry_running {
    struct instance *instance; /* BLOCKED: without code */
    bool retry;                /* LIVE: as above; it is ready */
};

/* What rows and names are counted for. Only what is committed counts, so it does not follow the state at
 * once. */
struct entry_counted {
    bool name; /* among the live names, under this version */
    uint32_t version;
    uint64_t execution, events; /* what there was of it when it was loaded, or the rows were counted */
};

/* Each member is named with its file, or with the states that it means something in. check_entry() says what
 * holds. */
struct entry {
    struct entry *hash_next, *ready_next, *lru_prev, *lru_next;
    thole_slice id; /* behind the entry */
    uint64_t token; /* of its LOAD */
    enum entry_state state;
    enum entry_limit limit;
    bool in_over;        /* in the list `over`; a RECALLED one until more comes for it */
    bool ready;          /* in the list of those whose turn comes */
    bool memory_retried; /* there was no memory for it once, and others had to go: that happens once */
    union {              /* the state says which; entry_become() begins and ends it */
        struct entry_loading loading;
        struct early *early;
        struct entry_running running;
    };
    struct entry_reason *reason; /* BLOCKED, or limited; else NULL */

    /* Its history, as far as its records say. */
    uint64_t execution, turns, events, time_ms;
    uint64_t tombstone; /* executions up to this one are of earlier incarnations, which were deleted */
    thole_slice orchestration,
        request_id;       /* owned. ABSENT, EARLY: request_id and parent of the last incarnation */
    struct origin parent; /* its instance is owned */
    uint32_t version;     /* of its code; 0 = not chosen */

    /* What is not committed yet, or counted when it is. */
    size_t in_flight; /* its records that are not yet committed */
    size_t refusals;  /* starts that it was in the way of, and whose answers are not yet stored */
    struct entry_counted counted;
    uint64_t *waiting; /* activities that wait for their next try, and have no row: as far as is committed */
    size_t waiting_len, waiting_cap;

    /* What waits for it. */
    struct pending *first, *last;
    struct question *questions;
    uint8_t id_bytes[];
};

struct entry_list { /* by use: most recently used first */
    struct entry *first, *last;
    size_t len;
};

struct entries {
    struct entry *buckets[ENTRY_BUCKETS];
    struct entry *ready_first, *ready_last;
    struct entry_list lru, over; /* over: see entry_is_over() */
    size_t pending_len, questions_len, recalled_len;
    uint64_t next_token;
};
void entries_release(struct entries *entries); /* the same is an empty one again */
struct entry *entries_find(const struct entries *entries, thole_slice id);
/* The one whose history is awaited with that token; NULL: nobody's. */
struct entry *entries_find_token(const struct entries *entries, uint64_t token, thole_slice id);
struct entry *entries_add(struct entries *entries, thole_slice id); /* LOADING */
void entries_touch(struct entries *entries, struct entry *entry);
void entries_ready(struct entries *entries, struct entry *entry);
struct entry *entries_take_ready(struct entries *entries);
void entries_evict(struct entries *entries, size_t keep);
void entries_mark_counted(struct entries *entries); /* see struct entry_counted */

/* The only way to change a state; asserts that the new one may follow. What the old state alone had is ended,
 * with its instance or its events; what the new one has begins at zero, unless both states have the same. The
 * entry is in the list of its state. */
void entry_become(struct entries *entries, struct entry *entry, enum entry_state state);
/* LIVE, BLOCKED, CONTINUED: its instance; else NULL. */
struct instance *entry_instance(const struct entry *entry);
/* The instance, or what is left of it: not ABSENT, not EARLY. */
bool entry_exists(const struct entry *entry);
/* Why its code does not run here; and, unless ENTRY_RUNS, that this holds from now on. */
void entry_block(struct entry *entry, enum entry_limit limit, enum blocked_kind kind, thole_slice text);
thole_slice entry_blocked_text(const struct entry *entry); /* empty: there is no reason */
/* It is to be tried as if it had never failed. */
void entry_unblock(struct entry *entry);

void entry_push(struct entries *entries, struct entry *entry, struct pending *pending);
void entry_give_back(struct entries *entries, struct entry *entry,
                     struct pending *pending);                            /* as the first */
struct pending *entry_take(struct entries *entries, struct entry *entry); /* the first; NULL = none */
void pending_destroy(struct pending *pending);
struct pending *pending_create(void);
void entry_ask(struct entries *entries, struct entry *entry, struct question *question); /* as the last */
/* All questions are answered. */
void entry_drop_questions(struct entries *entries, struct entry *entry);

/* Sets or replaces a text that the entry owns. Without memory the process ends. */
void entry_remember(thole_slice *text, thole_slice from);
/* What was known of a deleted instance; its texts are to be freed with entry_texts_release(). */
struct entry_texts {
    thole_slice orchestration, request_id, parent;
};
/* ABSENT: forgets everything but the id and what waits for it. */
struct entry_texts entry_renew(struct entry *entry);
void entry_texts_release(struct entry_texts *texts); /* a zeroed one, too */
/* Facts of the execution that an event tells. */
void entry_note(struct entry *entry, const struct event *event);
/* Which activities have no row, for the time being. Returns by how much the rows grow: -1, 0, 1. */
int entry_note_tries(struct entry *entry, const struct event *event);
#endif
