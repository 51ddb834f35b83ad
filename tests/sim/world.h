/*
 * A deterministic world in one thread: PRNG, virtual clock, event queue, durable fakes, nodes that crash. One
 * seed decides every delay, loss, crash and interleaving, so that `sim SEED` shows any failure again.
 *
 *   world.h, world.c                               seed, clock, queue, trace, faults
 *   log_fake.c                                     HIST and IN streams
 *   work_fake.c                                    the WORK stream
 *   store_fake.c                                   Postgres
 *   net_fake.c                                     links, requests, lost answers
 *   clock_fake.c                                   clocks that are years ahead
 *   engine_node.c, worker_node.c, client_fake.c    the nodes
 *   restores.c                                     older rows replace the current ones
 *   losses.c                                       how each claim really ended, and who kills the worker
 *   model.c, checks.c                              the independent reader and what must hold
 *   sim_faults.c                                   which faults happen, and when
 */
#ifndef THOLE_WORLD_H
#define THOLE_WORLD_H
#include "arena.h"
#include "event.h"
#include "message.h"
#include "told.h"
#include <inttypes.h>

enum {
    WORLD_PARTITIONS_MAX = 3,
    WORLD_ENGINES_MAX = 4,
    WORLD_WORKERS_MAX = 3,
    WORLD_INSTANCES_MAX = 512,
    WORLD_LIVES_MAX = 40,
    WORLD_CLIENT_INSTANCES_MAX = 32, /* those that clients start; the others are children and the like */
    WORLD_MEMORY_MAX = 1 << 30,      /* bytes of one seed */
    WORLD_STEPS_MAX = 300000,
    REQUEST_TIMEOUT_MS = 5000,
    LEASE_MS = 3000,
    LONG_PAYLOAD = 300, /* bytes: a record that has such a payload twice stores it once */
};

/* Kinds of faults. Each seed enables a part of them, so that some seeds are wild in few ways only. */
enum fault {
    FAULT_ENGINE_CRASH,
    FAULT_ENGINE_PAUSE,
    FAULT_ENGINE_NATS,  /* connection lost */
    FAULT_ENGINE_STORE, /* connection lost */
    FAULT_WORKER_CRASH,
    FAULT_WORKER_PAUSE,
    FAULT_WORKER_NATS,
    FAULT_WORKER_STORE,
    FAULT_CRASH_POINT,  /* a node dies between two outputs */
    FAULT_RIVAL,        /* another engine opens the partition too */
    FAULT_REQUEST_LOST, /* one request never arrives */
    FAULT_REQUEST_LATE, /* one request arrives long after its sender gave up */
    FAULT_ANSWER_LOST,
    FAULT_STORE_CRASH,  /* the database restarts and loses its last transactions */
    FAULT_STORE_OUTAGE, /* nobody reaches it for a while */
    FAULT_NATS_OUTAGE,
    FAULT_PUBLISH_TWICE, /* a client repeats a message */
    FAULT_CORE_LOSS,     /* core publishes lost, late or doubled */
    FAULT_CLOCK_JUMP,    /* a node's wall clock moves */
    FAULT_SLOW,          /* latency of everything */
    FAULT_STORE_AHEAD, /* with a crash: it comes back from another time, ahead of the log, with wrong rows */
    FAULT_STATEMENT,   /* a statement fails without effect, the connection stays */
    FAULT_TAIL_RACE,   /* the steps of reading a tail lie far apart */
    FAULT_REDELIVERED, /* a message of WORK is delivered again while it is held: the consumer has a new leader
                        */
    FAULT_INBOX_BACK,  /* an inbox loses incorporated messages: its tail, or all */
    FAULT_DAMAGE,      /* a record of an instance does not decode any more */
    FAULTS_LEN
};
const char *fault_name(enum fault fault);

/* Rules that the world can break, to show that the checks find it. */
enum mutation {
    MUTATION_NONE,
    MUTATION_APPEND_ANY,     /* the expected last sequence is ignored */
    MUTATION_STORE_UNFENCED, /* a batch of an old epoch is applied */
    MUTATION_NO_REDELIVERY,  /* ack-wait never ends */
    MUTATION_CLAIM_MISSING,  /* a claim of a missing row succeeds */
    MUTATION_COMPLETE_ANY,   /* a completion deletes the row whoever holds it */
    MUTATION_PURGE_ALL,      /* an inbox purge takes everything */
    MUTATION_INBOX_SKIPS,    /* the inbox reader leaves out a message now and then */
    MUTATION_TORN_BATCH,     /* a batch is applied in part, but its position is moved */
    MUTATION_POSITION_STAYS, /* the crashed database loses rows but not projected_seq */
    MUTATION_LOAD_STALE,     /* reading an instance's history misses its last record */
    MUTATION_IDS_STALE,      /* the list of instances is of a time before the epoch */
    MUTATION_IDS_CUT,        /* the list is cut off, and said to be complete */
    MUTATION_ACK_LOSES,      /* an append is acknowledged and not stored */
    MUTATION_QUEUE_TWICE,    /* an ack does not remove the message */
    MUTATION_PREFIX_SKIPPED, /* an acknowledgement counts for all before it, refusals come late */
    MUTATION_VOIDS_STAY,     /* void records are not removed */
    MUTATION_TAIL_BACKWARDS, /* the tail's end is looked up after its EpochOpened, records of rivals unseen */
    MUTATION_POSITION_AHEAD, /* a new owner reads the inbox from one message further on */
    MUTATION_STOLEN_IS_GONE, /* a renewal says of a row that is another's that it is gone */
    MUTATION_GONE_IS_MINE,   /* a renewal says of a row that is gone that it is kept */
    MUTATION_CLAIM_ANY_TRY,  /* a claim takes the row of another try */
    MUTATION_CLAIM_LATER,    /* a claim takes a row that was left to be completed from outside */
    MUTATION_CLAIM_HELD,     /* a claim takes a row of which another worker has a lease */
    MUTATION_LEASE_STAYS,    /* a lease never ends */
    MUTATION_MISSING_BELIEVED, /* a row that the database may have lost is said to be gone */
    MUTATION_SEND_ONCE,     /* a message to an instance that was once tried to be sent is never sent again */
    MUTATION_SEND_ANEW,     /* a message that is sent again is not recognised by its receiver */
    MUTATION_SEND_SHUFFLED, /* messages to one instance overtake each other */
    MUTATION_EARLY_LOST,    /* events recorded before an instance starts are not found when it does */
    MUTATION_BACK_UNSEEN,   /* the opening of an inbox does not check whether it went back */
    MUTATION_BACK_BY_LAST,  /* or looks at its last sequence only */
    MUTATION_BACK_PURGED,   /* nor does the purge of an inbox */
    MUTATION_LOSSES_UNCOUNTED,     /* a claim does not note that the one before it was lost */
    MUTATION_NOT_LOST_IGNORED,     /* nor does a row hear that its worker lives */
    MUTATION_COMPANY_COUNTS,       /* losses beside others count against an activity, too */
    MUTATION_DEATH_BLAMES_ALL,     /* claims that ran beside the killer of their worker are lost, too */
    MUTATION_RESTORED_ANEW,        /* a forgotten claim that is restored gets another time */
    MUTATION_CLAIM_MISTAKEN,       /* facts of a claim are taken for those of another one with the same
                                      attempt */
    MUTATION_CLAIM_DIGEST_IGNORED, /* a claim does not compare what the message says */
    MUTATION_QUICK_ANY,            /* a quick one is run although a worker has claimed it */
    MUTATION_FORGED_BELIEVED,      /* an engine takes any message on its subject for its own */
    MUTATION_ROWS_UNFOLLOWED,      /* a batch is applied to rows of another time */
    MUTATION_OLDER_BELIEVED, /* of rows that are older than a claim it is believed that the claim's is gone */
    MUTATION_NEWER_BELIEVED, /* a look takes rows with a newer epoch for the ones that the owner has left */
    MUTATION_EPOCHS_GO,      /* an EpochOpened goes while records of its epoch are there */
    MUTATION_LISTS_UNREAD,   /* a new owner does not know which deletions are gone */
    MUTATION_CLOCK_BELIEVED, /* an engine goes on by a clock that is years ahead */
    MUTATION_LIST_FIRST,     /* of several results in one message only the first one is delivered */
    MUTATION_SHELF_UNMARKED, /* a row is said to be on the shelf and has no mark */
    MUTATION_SHELF_STAYS,    /* activities on the shelf are not queued when a worker knows them */
    MUTATIONS_LEN
};
const char *mutation_name(enum mutation mutation);

struct world;
typedef void task_fn(struct world *w, void *arg, uint64_t value);
struct task {
    uint64_t due_ms, sequence, value;
    task_fn *run;
    void *arg;
};

struct stats {
    uint64_t steps, faults[FAULTS_LEN];
    uint64_t instances, turns, records, void_records, refused, opens, handlers, fenced, deleted;
    uint64_t dispensed, cold_loads, pushes, batches, resets, swept, shelved, unshelved, rivals_seen, parts,
        parts_dropped, blocked;
    uint64_t children, conflicts, continued, early, discarded, events, sends, emitted, tries, expired, paused,
        terminated;
    uint64_t forged, forged_removed, quick, lists, listed;
    uint64_t references, repeated; /* payloads of records that were not written again, and that were */
    uint64_t restored, unfollowed, looked;
    uint64_t queries, lines, begun_again, left, deletions, prunes, removed, kills, isolated, poisoned,
        innocents, quarantined, released, rejected, code_crashes, code_tried, code_stuck;
};

struct engine;
struct worker;
struct log_stream;
struct inbox_stream;
struct work_stream;
struct store;
struct model;
struct client_fake;
struct losses;
struct crash_list;
struct restores;

struct world {
    uint64_t seed, rng, now_ms, sequence, hash;
    struct told told; /* all that the machines said */
    bool faults, verbose;
    uint64_t enabled;        /* bits of enum fault */
    uint64_t wildness;       /* 1..4: how often */
    uint64_t latency_ms;     /* of an ordinary message, less than this */
    bool flood;              /* of inbox messages: positions are long */
    uint64_t early_event_ms; /* how long events wait for their instance */
    uint64_t row_age_ms;     /* allowed lag of the row of a running instance */
    bool deletes;            /* instances are deleted, and their ids used again */
    bool prunes;             /* old executions of what continues as new are */
    bool crashes;            /* the code of some instances crashes their engines */
    bool poisons;            /* some activities kill their workers */
    bool unserved;           /* no worker knows some activities until faults end: they are on the shelf */
    bool hostile;            /* a hostile client publishes to the queues: hostile_fake.h */
    bool years_believed;     /* and its host goes on by it */
    bool years;              /* an engine's clock is ten years ahead for a while: clock_fake.h */
    bool restores;           /* older rows are put back under living sessions: restores.h */
    bool churns;             /* some instances live once: churn_fake.h */
    struct life *lives[WORLD_LIVES_MAX];
    size_t lives_len;
    uint64_t churn_rng;
    bool restoring;         /* for the last time: it is still to come */
    bool lists;             /* workers publish several results in one message */
    enum events_out events; /* which are sent */
    bool events_shut;       /* their stream takes nothing until all else has ended */
    uint64_t hostile_rng;   /* separate numbers: the seeds without it stay as they were */
    uint32_t poison_after;  /* of all workers */
    uint64_t quarantine_ms; /* of all engines */
    unsigned rivalry;       /* permille of appends after which another engine opens the partition too */
    enum mutation mutation;
    char why[512];       /* empty: everything holds so far */
    struct arena memory; /* everything that lives as long as the seed */
    struct task *queue;  /* heap */
    size_t queue_len, queue_cap;
    struct stats stats;

    uint32_t partitions;
    struct log_stream *logs[WORLD_PARTITIONS_MAX];
    struct inbox_stream *inboxes[WORLD_PARTITIONS_MAX];
    struct work_stream *work;
    struct store *store;
    struct losses *losses;
    struct restores *kept; /* rows of another time */
    struct crash_list *crash_list;
    struct model *model;
    struct client_fake *client;
    struct engine *engines[WORLD_ENGINES_MAX];
    struct worker *workers[WORLD_WORKERS_MAX];
    size_t engines_len, workers_len;
    uint64_t nats_down_until_ms, slow_until_ms;
    struct stack_pool *stacks;

    thole_slice instances[WORLD_INSTANCES_MAX]; /* ids; everything else names an instance by its index */
    size_t instances_len, client_instances_len; /* the first ones are clients' */
    uint16_t instance_cells[4 * WORLD_INSTANCES_MAX]; /* index + 1 by hash of the id */
};

/* A seed must mean the same with every compiler, and C says nothing of the order in which the arguments of a
 * call or the members of an initializer are evaluated: at most one of them may draw. sim.same_as_dev looks.
 */
uint64_t rnd(struct world *w, uint64_t bound);                  /* 0..bound-1; bound > 0 */
uint64_t between(struct world *w, uint64_t low, uint64_t high); /* both inclusive */
/* True with permille / 1000 while faults of this kind are on; counted. */
bool strikes(struct world *w, enum fault fault, unsigned permille);
bool fault_enabled(const struct world *w, enum fault fault);

void trace(struct world *w, const char *fmt, ...) THOLE_PRINTF(2, 3);
/* The first failure is kept. */
void broken(struct world *w, const char *fmt, ...) THOLE_PRINTF(2, 3);
bool is_broken(const struct world *w);

/* Runs after everything that is due before it, and after what was queued earlier for the same time. */
void after(struct world *w, uint64_t delay_ms, task_fn *run, void *arg, uint64_t value);
void at(struct world *w, uint64_t due_ms, task_fn *run, void *arg, uint64_t value);

/* Memory of the seed; aborts when there is none. */
void *keep(struct world *w, size_t bytes);
thole_slice keep_slice(struct world *w, thole_slice slice);
/* Grows an array of the world: *items of *cap elements has room for one more than len afterwards. */
void *grown(struct world *w, void *items, size_t len, size_t *cap, size_t size);

/* Index of an instance id; SIZE_MAX when nobody ever named it. */
size_t instance_index(const struct world *w, thole_slice id);
size_t instance_add(struct world *w, thole_slice id); /* found or added */
uint32_t instance_partition(const struct world *w, size_t instance);

/* One seed. */
void world_begin(struct world *w, uint64_t seed, bool verbose, enum mutation mutation);
void world_run(struct world *w);
void world_end(struct world *w); /* frees; why, hash and stats stay */

/* sim_faults.c */
void faults_begin(struct world *w);
void faults_end(struct world *w);
#endif
