/*
 * Inside of the engine role: what its files share.
 *
 *   engine_host.c  start, stop                     membership.c  heartbeats, views, who owns what
 *   shard.c        one thread, its partitions      shard_out.c   what a partition asks for is done
 *   store.c        one thread, one Postgres        loader.c      a few threads for blocking stream reads
 *   inbox_reader.c what comes to a partition
 *   sweeper.c      activities that nobody reports on are queued again, or ended by their deadline
 *   deadlines.c    how the latter are
 *   shard_query.c  questions to instances          shard_reject.c messages that nobody can take
 *
 * Every answer comes back to the shard as a mail; nothing else touches a partition.
 */
#ifndef THOLE_ENGINE_H
#define THOLE_ENGINE_H
#include "clock.h"
#include "crash_page.h"
#include "crashes.h"
#include "engine_host.h"
#include "log_limit.h"
#include "mailbox.h"
#include "partition.h"
#include "projector_store.h"
#include "reader.h"
#include "requests.h"
#include "topology.h"
#include <pthread.h>
#include <stdatomic.h>

enum {
    INBOX_BACKLOG_MAX = 20000, /* messages of one shard between NATS's threads and its own */
    WORK_WINDOW = 1024,        /* work publishes and look-ups in flight of one shard */
    ASIDE_WINDOW = 64,         /* of those, what is in no hurry: see struct shard */
    REJECT_WINDOW = 256,       /* rejected messages on their way */
    LOADER_THREADS = 2,
    APPEND_TIMEOUT_MS = 5000,
    RETRY_MS_MAX = 5000,
    RECORD_HEADROOM = 4096, /* of a message around its record */
    HANDOVER_MS = 250,      /* a live predecessor gets so long to hand over before it is fenced */
    CLOSE_LIMIT_MS = 1000,  /* a handing-over partition gets so long to finish */
};

struct engine_host;
struct shard;

/* ---- mails to a shard ---- */
enum shard_mail_kind {
    SHARD_EPOCH,      /* p; sequence: an epoch that somebody opens, or tries to */
    SHARD_OWN,        /* p; since_ms: not before this monotonic time */
    SHARD_DISOWN,     /* p */
    SHARD_LINK,       /* NATS: up */
    SHARD_STORE_LINK, /* Postgres: up */
    SHARD_REQUEST,    /* an asynchronous request was answered: sent, result, sequence */
    SHARD_INBOX,      /* sequence, stored_ns, refused, bytes */
    SHARD_INBOX_LOST, /* the reader of that generation reads no more */
    SHARD_ANSWER,     /* a job is done: job */
    SHARD_REJECTED,   /* a message was kept as rejected, or not: rejection, result */
    SHARD_QUERY,      /* p, generation: reply, token of the subject's instance, body */
    SHARD_STOP,
};

struct sent;      /* one asynchronous request on its way: shard_out.c */
struct rejection; /* a message on its way to where it is kept: shard_reject.c */
struct job;

struct shard_mail {
    struct mail mail;
    enum shard_mail_kind kind;
    uint32_t p;
    uint64_t since_ms, generation;
    bool up;
    struct sent *sent;
    struct rejection *rejection;
    enum reject_code refused;
    enum request_result result;
    uint64_t sequence, stored_ns;
    uint32_t err_code;
    struct job *job;
    size_t instance_len, reply_len, bytes_len;
    /* SHARD_INBOX: instance, or (refused) subject, then the body; SHARD_REQUEST: the answer's body;
     * SHARD_QUERY: reply subject and a NUL, instance token, body */
    uint8_t bytes[];
};
/* NULL: out of memory. */
struct shard_mail *shard_mail_create(enum shard_mail_kind kind, size_t bytes);
void shard_mail_destroy(struct shard_mail *mail); /* one that no shard has handled */

/* ---- jobs: blocking work for the store or a loader ---- */
enum job_kind {
    JOB_READ_TAIL,
    JOB_READ_LOG,
    JOB_READ_RESULTS, /* of the inbox: from `from` on, at most the last `count` messages */
    JOB_LOAD,
    JOB_FIND,   /* the input of an activity, from the history: for the sweeper */
    JOB_REMOVE, /* some records of instance below sequence `to` */
    JOB_DELETE,
    JOB_PURGE,
    JOB_OPEN_INBOX,
    JOB_CLOSE_INBOX,
    JOB_READ_CRASHES,
    JOB_PUT_CRASH,
    JOB_FORGET_CRASHES,
    JOB_LOOK_INBOX, /* for a message at `from` or behind it */
    JOB_STORE_OPEN,
    JOB_STORE_RESET,
    JOB_STORE_LIVE,
    JOB_STORE_TIMERS,
    JOB_STORE_APPLY,
    JOB_STORE_ORPHANS, /* older than before_ms milliseconds */
    JOB_STORE_EXPIRE,  /* past their deadline for longer than before_ms milliseconds */
};

struct inbox_tap; /* an open inbox reader: inbox_reader.c */
struct query_tap; /* and an open partition's subscription: shard_query.c */
struct asked;

struct job {
    struct job *next;
    enum job_kind kind;
    struct shard *shard;
    uint32_t p;
    uint64_t generation;
    /* what is asked */
    uint64_t from, to, count, token, epoch, before_ms;
    uint64_t execution; /* LOAD: the newest one, or only that one */
    bool only;
    uint64_t sequence,
        stored_ns; /* OPEN_INBOX, PURGE, READ_RESULTS: what the inbox must hold; LOOK_INBOX: found, or 0 */
    struct executions executions; /* REMOVE */
    uint64_t expected_last;       /* DELETE: with which last sequence of the stream they are void */
    uint64_t *sequences;
    size_t sequences_len;
    thole_slice instance; /* in arena */
    struct batch *batch;
    struct inbox_tap *tap;
    struct batch_activity activity; /* FIND; in arena */
    struct crash_entry crash;       /* PUT_CRASH; in arena */
    /* what came of it */
    thole_status status;
    thole_error err;
    struct partition_in in; /* points into arena */
    struct batch_activity *orphans;
    size_t orphans_len;
    uint64_t orphan_in_ms;       /* ORPHANS: until the next row can be one; UINT64_MAX: none */
    struct expired_try *expired; /* EXPIRE: ended */
    size_t expired_len;
    uint64_t deadline_in_ms; /* LIVE, EXPIRE, of the rows of APPLY: see projector_store_next_deadline() */
    thole_slice input;       /* FIND */
    bool found, more;        /* more: REMOVE: there may be more of them */
    bool gone_back;          /* OPEN_INBOX, PURGE: nothing was done, because the inbox does not hold it */
    struct arena arena;
};
struct job *job_create(enum job_kind kind, struct shard *shard, uint32_t p, uint64_t generation);
void job_destroy(struct job *job);
/* Sends the finished job back to its shard. */
void job_answer(struct job *job);

struct loader;
THOLE_NODISCARD thole_status loader_start(struct engine_host *engine, struct loader **ret,
                                          thole_error *reterr);
void loader_submit(struct loader *loader, struct job *job); /* takes the job */
void loader_stop(struct loader *loader);                    /* unfinished jobs are dropped; NULL-safe */

/* One Postgres connection: reconnects by itself, says up and down to its shard, never polls the database. */
struct store;
THOLE_NODISCARD thole_status store_start(struct shard *shard, struct store **ret, thole_error *reterr);
void store_submit(struct store *store, struct job *job);
void store_stop(struct store *store); /* NULL-safe */
uint64_t store_statements(const struct store *store);

/* deadlines.c: tries that are over. On the store's thread. */
struct deadlines;
struct deadlines *deadlines_create(struct engine_host *engine); /* NULL: out of memory */
void deadlines_destroy(struct deadlines *deadlines);            /* NULL-safe */
/* Does a JOB_STORE_EXPIRE. */
THOLE_NODISCARD thole_status deadlines_end(struct deadlines *deadlines, struct postgres *pg, struct job *job);
/* Milliseconds to the first deadline that a claim of the added rows can make; UINT64_MAX: none. */
uint64_t deadlines_first(const struct batch *batch);

/* ---- shards ---- */
struct owned { /* a partition of this shard, owned or not */
    struct partition *machine;
    uint32_t p;
    bool wanted, touched, opened;
    uint64_t not_before_ms, close_by_ms; /* monotonic; 0 = none */
    uint64_t needs_shared_ms;            /* monotonic */
    uint64_t sweep_ms;                   /* monotonic; 0: there is nothing to sweep */
    uint64_t expire_ms;                  /* monotonic; 0: no try has a timeout */
    bool sweeping, expiring;
    uint64_t look_ms, unread; /* monotonic; a message that the inbox had at the last look, 0 = none */
    bool looking;
    uint32_t failures;
    struct inbox_tap *tap;
    struct query_tap *queries; /* while it is open; NULL then, too: it could not be made */
    uint64_t queries_ms;       /* monotonic; when that is tried again, 0 = no need */
    struct asked *asked;       /* questions that the machine has */
    char *hist_stream, *in_stream;
};

struct shard {
    struct engine_host *engine;
    uint32_t index;
    pthread_t thread;
    struct mailbox mailbox;
    struct stack_pool *stacks;
    struct requests *appends, *works, *rejects;
    struct code_watch watch;   /* notes in place */
    struct crash_place *place; /* what code this thread runs */
    struct store *store;
    struct owned *owned; /* partitions p with p % shards == index, at p / shards */
    size_t owned_len;
    bool link_up, store_up, stopping;
    struct sent *waiting_first, *waiting_last; /* work publishes that the window had no room for */
    /* deletions of work that is cancelled (it is in nobody's way), looks whether work is queued (answers are
     * as large as inputs) */
    struct sent *aside_first, *aside_last;
    uint32_t aside;        /* of those: in flight, or among the waiting */
    struct sent *delayed;  /* to be sent again at their due_ms */
    uint64_t delayed_ms;   /* the first of them; monotonic */
    uint64_t refused_ms;   /* when the log was last told that a stream takes nothing; monotonic */
    atomic_size_t queries; /* from their arrival to their answer */
    uint64_t query_token;  /* the last one given out */
    struct rejection *rejects_first, *rejects_last; /* the window had no room for them */
    struct rejection *rejects_late;                 /* to be sent again */
    uint64_t rejects_late_ms, rejects_away_ms; /* monotonic: the first of them; their stream is away until */
    struct buf subject, body;
    /* inbox messages on their way, shared with NATS's threads: in mails, and held by machines */
    pthread_mutex_t backlog_lock;
    pthread_cond_t backlog_room;
    size_t backlog_mails, backlog_held;
    bool running;
};

struct membership;
struct watchdog;

struct engine_host {
    struct host_options options;
    const thole_program *program;
    struct crash_page *own_page; /* where it was given none */
    struct connection *connection;
    struct topology topology;
    struct loader *loader;
    struct membership *membership;
    struct watchdog *watchdog;   /* of the code that the shards run */
    struct subscription *epochs; /* who else opens our partitions */
    struct shard *shards;
    size_t shards_len;
    atomic_bool ready;        /* shards may be sent to */
    struct log_limit rejects; /* lines about them */
    /* names that each partition's live instances need; written by shards, read by membership */
    pthread_mutex_t needs_lock;
    struct needs {
        thole_slice *names; /* one allocation */
        size_t names_len;
    } * needs; /* by partition */
};

thole_status shard_start(struct engine_host *engine, uint32_t index, struct shard *shard,
                         thole_error *reterr);
void shard_stop(struct shard *shard);    /* graceful; joins its threads */
void shard_release(struct shard *shard); /* after the loader has stopped: nobody sends it anything now */
void shard_send(struct shard *shard, struct shard_mail *mail);
/* The partition's machine asked for this: do it, or send it on its way. */
void shard_do(struct shard *shard, struct owned *owned, const struct partition_out *out);
void shard_request_answered(struct shard *shard, struct shard_mail *mail);
void shard_send_waiting(struct shard *shard);
/* sweeper.c: activities that no worker reports on are queued again, or ended when their time is over. */
void sweeper_opened(struct owned *owned);
void sweeper_run(struct shard *shard, struct owned *owned, uint64_t now_ms);
uint64_t sweeper_deadline_ms(const struct owned *owned);
void sweeper_answered(struct shard *shard, struct owned *owned, const struct job *job);
/* Answered by sweeper_missing(), unless its message is there. */
void shard_look_for_work(struct shard *shard, struct owned *owned, const struct batch_activity *activity);
void sweeper_missing(struct shard *shard, struct owned *owned, const struct batch_activity *activity);
void shard_requeue(struct shard *shard, struct owned *owned, const struct batch_activity *activity,
                   thole_slice input);
/* shard_query.c: the partition has opened, has closed; a question has come, an answer is there. */
void shard_queries_open(struct shard *shard, struct owned *owned);
void shard_queries_close(struct shard *shard, struct owned *owned);
void shard_queries_retry(struct shard *shard, struct owned *owned, uint64_t now_ms); /* what failed */
void shard_query(struct shard *shard, const struct shard_mail *mail);
/* shard_reject.c */
THOLE_NODISCARD thole_status shard_rejects_open(struct shard *shard, thole_error *reterr);
void shard_reject(struct shard *shard, struct owned *owned, const struct partition_out *out);
void shard_rejected(struct shard *shard, const struct shard_mail *mail);
/* Sends what waits, tells of what has not been told; returns when to come back, of the monotonic clock. */
uint64_t shard_rejects_run(struct shard *shard, uint64_t now_ms);
void shard_rejects_forget(struct shard *shard); /* at the end */
void shard_rejection_destroy(struct rejection *rejection);
void shard_query_answered(struct shard *shard, struct owned *owned, const struct partition_out *out);
/* shard_code.c: an instance has crashed, or has ended; an orchestration wrote a line. */
void shard_crash(struct shard *shard, const struct owned *owned, const struct partition_out *out);
void shard_log(const struct partition_out *out);
void shard_removed(struct shard *shard, struct owned *owned, const struct job *job);
void shard_forget_sent(struct shard *shard); /* at the end: frees what was never answered */
void shard_doubt(struct shard *shard, struct owned *owned, const char *text, bool fenced);
void shard_input(struct shard *shard, struct owned *owned, const struct partition_in *in);
void shard_on_request(void *arg, const struct request_done *done);
struct owned *shard_owned(struct shard *shard, uint32_t p);
/* Whether the inbox still holds what the partition has seen of it; if not, job->gone_back, and a warning. */
THOLE_NODISCARD thole_status inbox_check(struct job *job, thole_error *reterr);
/* Opens the reader of an inbox unless it went back; blocking, on a loader's thread. */
THOLE_NODISCARD thole_status inbox_tap_open(struct job *job, thole_error *reterr);
void inbox_tap_close(struct inbox_tap *tap); /* blocking; NULL-safe */
/* Asks for a look, says when to be called again, takes its answer; a reader that stays behind is a doubt. */
void inbox_watch(struct shard *shard, struct owned *owned, uint64_t now_ms);
uint64_t inbox_watch_ms(const struct owned *owned);
void inbox_looked(struct owned *owned, const struct job *job);
/* Does a JOB_LOOK_INBOX; blocking, on a loader's thread. */
THOLE_NODISCARD thole_status inbox_look(struct job *job, thole_error *reterr);

THOLE_NODISCARD thole_status membership_create(struct engine_host *engine, struct membership **ret,
                                               thole_error *reterr);
THOLE_NODISCARD thole_status membership_run(struct membership *membership, thole_error *reterr);
/* Says goodbye after the shards have closed; joins. NULL-safe. */
void membership_stop(struct membership *membership);
/* Stops sending OWN and DISOWN (the shards are about to close everything) and joins the thread. */
void membership_quiet(struct membership *membership);
void membership_needs_changed(struct membership *membership);
#endif
