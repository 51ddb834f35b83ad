/*
 * A shard: one thread, its partitions, one mailbox. Its thread gets all input as mails; no other thread
 * accesses its partitions.
 */
#ifndef THOLE_SHARD_H
#define THOLE_SHARD_H
#include "clock.h"
#include "crash_page.h"
#include "mailbox.h"
#include "metrics.h"
#include "namespace_verdict.h"
#include "partition.h"
#include "requests.h"
#include <pthread.h>
#include <stdatomic.h>

struct engine_host;
struct shard;

/* ---- mails ---- */

enum shard_mail_kind {
    SHARD_STOP,
    SHARD_LINK,         /* NATS: up; shared */
    SHARD_STORE_LINK,   /* Postgres: up */
    SHARD_ROWS_REMOVED, /* p; rows of it were removed from Postgres by another program */
    SHARD_OWN,          /* p; since_ms */
    SHARD_DISOWN,       /* p */
    SHARD_EPOCH,        /* p; epoch */
    SHARD_INBOX,        /* inbox_reader.c */
    SHARD_INBOX_LOST,   /* the reader of that generation has ended; up: connected */
    SHARD_WORK_ANEW,    /* the stream WORK was made again: what was in it is to be queued again */
    SHARD_QUERY,        /* shard_query.c */
    SHARD_ANSWER,       /* a struct request that has been carried out: shard_request.h */
    SHARD_STORE_BACK,   /* store.c; it only wakes the shard's thread */
};

/* The first member of each mail, so that free() frees the whole mail; not of an ANSWER. */
struct shard_mail {
    struct mail node;
    enum shard_mail_kind kind;
    uint32_t p;
    uint64_t generation; /* generation of the partition that it belongs to */
    union {
        struct {
            bool up, shared; /* shared: the engine's connection, not the shard's own */
            bool restored;   /* STORE_LINK, down: the database is of another time */
        };
        uint64_t since_ms; /* OWN: not before this monotonic time */
        uint64_t epoch;    /* the epoch that an engine opens, or tries to open */
    };
};

/* Zeroed, @p bytes long; never NULL: a lost mail would block a partition for ever. */
void *shard_mail_create(enum shard_mail_kind kind, uint32_t p, size_t bytes);
void shard_send(struct shard *shard, struct shard_mail *mail); /* any thread; takes the mail */

/* ---- partitions ---- */

struct inbox_reader;       /* inbox_reader.c */
struct query_subscription; /* shard_query.c */
struct asked;

/* When sweeper.c asks the database next; monotonic. */
struct sweeps {
    uint64_t orphans_ms; /* 0: nothing to sweep */
    uint64_t expire_ms;  /* 0: no try has a timeout */
    uint64_t
        waiting_ms; /* how long the oldest activity without a worker had waited at the last sweep; 0: none */
    uint64_t anew_ms; /* WORK was made again at that time, and rows that are older have no message; 0: not */
    bool sweeping, expiring;
};

/* State of the check that the inbox reader keeps up (inbox_reader.c). */
struct inbox_watch {
    uint64_t look_ms; /* monotonic; 0: there is no reader */
    uint64_t unread;  /* a message that the inbox had at the last check and that was not read; 0: none */
    bool looking;
};

/* When rows_watch.c looks at the partition's row. */
struct rows_watch {
    uint64_t look_ms; /* monotonic; 0: the partition is not open */
    bool looking;
};

/* When shelf.c looks which activities no worker knows. */
struct shelf_watch {
    uint64_t look_ms; /* monotonic; 0: nothing to look for */
    uint64_t rows;    /* on the shelf, at the last look */
    bool busy;
};

/* Messages that were read and wait until the machine has room; oldest first. */
struct inbox_queue {
    struct mail *first, *last;
    size_t messages, bytes; /* a message with several results counts as these */
    /* under the backlog's lock: with those that are on their way to this thread */
    size_t mails, mail_bytes;
};

enum { SITES_MAX = 16 };

struct owned { /* a partition of this shard, owned or not */
    struct partition *machine;
    struct engine_clock *clock;
    uint32_t p;
    char *hist_stream, *in_stream;
    bool wanted, touched;
    bool rows_wait;                      /* until the database is free */
    uint64_t not_before_ms, close_by_ms; /* monotonic; 0 = none */
    uint64_t needs_shared_ms;            /* monotonic */
    uint32_t failures;                   /* one after the other, without having worked: shard_out.c */
    uint64_t opened_ms;                  /* monotonic; 0: it is not open */
    uint64_t said_ms;                    /* when it was last logged that it was closed; monotonic */
    enum closed_cause said_cause;        /* and for what */
    enum closed_cause cause;             /* why it is about to be closed; OTHER: not known here */
    struct sweeps sweeps;
    uint64_t keep_ms;           /* when the database is told next what the log keeps; monotonic, 0: not */
    uint32_t keep_left;         /* so many times, unless something is written meanwhile */
    uint64_t lacks;             /* records that the log has lost, not counted yet */
    struct namespace_id adopts; /* to be noted with the rows; "": nothing is */
    struct inbox_reader *reader;
    struct inbox_queue inbox;
    struct inbox_watch watch;
    struct rows_watch rows;
    struct shelf_watch shelf;
    /* while the partition is open; also NULL if it could not be created */
    struct query_subscription *queries;
    uint64_t set_aside;  /* rows of it that Postgres refuses */
    uint64_t queries_ms; /* monotonic; when creating it is retried, 0 = not needed */
    struct asked *asked; /* queries that the machine has */
};

/* Asynchronous requests of one sort: in flight, and waiting for room. */
struct request;
struct request_list {
    struct request *first, *last;
};
struct window {
    struct requests *requests;
    size_t limit;
    bool waits; /* false: it has room for all that partitions may ask for, so none waits */
    struct request_list waiting;
    struct request_list aside; /* low-priority requests, see request_put_aside() */
    uint32_t aside_out;        /* number of those in flight or in `waiting` */
};
enum window_kind {
    WINDOW_APPENDS,
    WINDOW_MESSAGES, /* work, messages to instances, and look-ups of work */
    WINDOW_READS,    /* records of histories: few, as they are large (inflow.h) */
    WINDOW_EVENTS,   /* CloudEvents: a stream that takes nothing must not hold up the others */
    WINDOW_REJECTS,
    WINDOWS,
};

/* Histories that are being loaded: those that have begun, and those that wait until less memory is taken. */
struct loads {
    struct request_list waiting;
    size_t bytes; /* largest size of the begun ones; they count until they are destroyed */
};

/* Number and bytes of inbox messages in mails and machines; shared with NATS's threads. */
struct backlog {
    pthread_mutex_t lock;
    pthread_cond_t room;
    size_t mails, held;
    size_t mail_bytes, held_bytes;
};

struct request_rule;
struct shard {
    struct engine_host *engine;
    uint32_t index;
    pthread_t thread;
    bool running;
    struct mailbox mailbox;
    /* read by this thread: the partitions' appends, messages and inboxes */
    struct connection *connection;
    struct inflow *inflow; /* of the partitions' inbox readers */
    struct stack_pool *stacks;
    struct code_watch watch; /* writes to `place` */
    struct code_place {
        const void *address;
        char text[CODE_SITE_BYTES];
    } sites[SITES_MAX]; /* places that were looked up */
    size_t sites_next;
    struct crash_place *place; /* the code that this thread runs */
    struct owned *owned;       /* partitions p with p % shards == index, at p / shards */
    size_t owned_len;
    bool own_link_up, shared_link_up, store_up, stopping;
    const struct request_rule *rules; /* by request_kind */
    struct window windows[WINDOWS];
    struct loads loads;
    size_t unshelved; /* requests about rows that were taken off the shelf */
    struct read_places *read_places;
    struct request *delayed;  /* submitted again at their due_ms */
    uint64_t delayed_ms;      /* the earliest due time; monotonic */
    uint64_t refused_ms;      /* when a refusing stream was last logged; monotonic */
    uint64_t rejects_away_ms; /* until then rejected messages are dropped; monotonic */
    struct store *store;
    struct metric_cells *cells;  /* of this thread; NULL: nothing is counted */
    struct pulse *pulse;         /* likewise */
    uint64_t counted_ms;         /* when its partitions were counted; monotonic */
    bool uncounted;              /* something has happened since then */
    struct deadlines *deadlines; /* the store's thread's */
    atomic_size_t queries;       /* number of queries from arrival to answer */
    atomic_size_t queries_bytes; /* and their bytes */
    uint64_t query_token;        /* the last one given out */
    struct backlog backlog;
    struct buf subject, body; /* of messages that this thread sends */
};

/* shard_mail.c; for the shard's thread only, except names of streams, which do not change. */
struct owned *shard_owned(struct shard *shard, uint32_t p);
void shard_input(struct owned *owned, const struct partition_in *in);
/* Before a failure is given to the machine: the first cause is the one that is counted. */
void shard_cause(struct owned *owned, enum closed_cause cause);
#define NATS_LOST_TEXT "the connection to NATS was lost"
/* After a failure: the partition drops its memory and is opened again. */
void shard_step_down(struct owned *owned, const char *text);

/* shard.c; in this order, and all but shard_start() in any case */
void shard_init(struct engine_host *engine, uint32_t index, struct shard *shard);
/* `connection` is open. */
THOLE_NODISCARD thole_status shard_start(struct shard *shard, thole_error *reterr);
/* NATS: one of the two connections that it depends on is up, or is not. */
void shard_tell_link(struct shard *shard, bool up, bool shared);
bool shard_link_up(const struct shard *shard);
void shard_stop(struct shard *shard);    /* graceful; joins its threads */
void shard_release(struct shard *shard); /* after the loader has stopped: no thread sends to it any more */
#endif
