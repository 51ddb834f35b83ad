/*
 * A request of a partition, or of its shard, to NATS or Postgres, from its creation to its answer:
 *
 *     request_of()        makes the request for an output of the machine: sets the union's member, and begins
 *                         the input that will answer the output
 *     request_create()    makes a request of the shard itself instead
 *     request_submit()    gives it to its executor: a window of asynchronous requests, a loader, the remover
 *                         or the store, which calls `send`, `load` or `store` of its rule
 *     request_answered()  runs on the shard's thread, exactly once for each request that was carried out: a
 *                         mail brings the request back, and `answer` of its rule takes the answer
 *
 * Each kind of request has a rule (request_table.c). The rule says who carries the request out, what a
 * failure means, and who takes the answer. One thread at a time owns a request: the shard's, then its
 * executor's, then the shard's again.
 *
 * A request of an older generation of the partition is not sent any more. Its failure has no effect, and the
 * machine ignores its answer.
 */
#ifndef THOLE_SHARD_REQUEST_H
#define THOLE_SHARD_REQUEST_H
#include "crashes.h"
#include "engine.h"
#include "namespace_store.h"
#include "projector_store.h"
#include "records.h"
#include "rejected.h"
#include "removing.h"
#include "work.h"

enum request_kind {
    /* log_requests.c */
    REQ_APPEND,
    REQ_READ_TAIL,
    REQ_READ_LOG,
    REQ_DELETE_RECORDS,
    /* history_walk.c, history_requests.c */
    REQ_LOOK_UP, /* an instance's newest record, before it is loaded */
    REQ_WALK,    /* an instance's records one by one: most have few */
    REQ_LOAD,
    REQ_READ_IDS,
    REQ_REMOVE_HISTORY,
    /* dispensable_requests.c */
    REQ_FIND_DISPENSABLE,
    REQ_REMOVE_RECORDS,
    /* work_requests.c */
    REQ_PUBLISH_WORK,
    REQ_WITHDRAW_WORK,
    /* sweeper.c */
    REQ_FIND_ORPHANS,
    REQ_FIND_WORK,  /* whether an orphan's message exists */
    REQ_FIND_INPUT, /* an orphan's input, from the history */
    REQ_REQUEUE,
    REQ_EXPIRE,
    /* shelf.c */
    REQ_FIND_SHELVED, /* activities that no worker knew */
    REQ_UNSHELVE,
    /* inbox_reader.c */
    REQ_OPEN_INBOX,
    REQ_CLOSE_INBOX,
    REQ_LOOK_INBOX, /* for a message at `from` or after it */
    REQ_PURGE_INBOX,
    REQ_READ_RESULTS,
    /* message_requests.c, reject_requests.c */
    REQ_SEND_MESSAGE,
    REQ_EMIT,
    REQ_REJECT,
    /* shard_code.c */
    REQ_READ_CRASHES,
    REQ_PUT_CRASH,
    REQ_FORGET_CRASHES,
    /* log_fit.c */
    REQ_KNOW_LOG,
    REQ_KEEP_LOG,
    /* store_requests.c */
    REQ_STORE_OPEN,
    REQ_STORE_RESET,
    REQ_STORE_LIVE,
    REQ_STORE_TIMERS,
    REQ_STORE_APPLY,
    REQ_STORE_LOOK, /* rows_watch.c */
    REQ_KINDS,
};

/* The answer to a request of a window. */
struct request_reply {
    enum request_result result;
    uint64_t sequence;         /* STORED; of a direct get */
    uint32_t err_code;         /* FAILED, BUSY */
    bool lost;                 /* UNKNOWN: since the connection was */
    thole_slice subject, body; /* ANSWERED; subject: of a direct get */
};

/* Arguments in addition to the machine's output, which is copied with what it points to. */
struct asked_tail {
    struct out_read_tail of;
    struct log_known known;   /* Postgres's record of the log, KNOW_LOG's answer */
    struct namespace_id rows; /* of which namespace its rows are */
    struct namespace_id id;   /* answer: NATS's */
    uint64_t lacks;           /* answer: records that it has lost */
};
struct asked_history {
    thole_slice instance;
    uint64_t execution, to; /* execution: the newest, whose last record is `to`; or the only one to load */
    bool only;
    /* a walk: */
    struct records found;    /* the newest first */
    struct record_link next; /* the one to ask for */
    size_t steps;            /* so many were taken */
    uint64_t met;            /* the execution of the last one */
    bool leaves, early;      /* there are records of the execution before, of execution 0 */
};
struct asked_removal {
    thole_slice instance;
    struct executions executions;
    uint64_t below;
    bool urgent;
    const struct removing_place *places; /* known places of its records */
    size_t places_len;
};
struct asked_work {
    struct work_item item;
    bool unless_there;  /* first look up whether it is queued already */
    thole_slice digest; /* FIND_WORK: of its row; empty: the row has none */
};
struct asked_orphans {
    struct rows_owner owner;
    uint64_t age_ms;
    struct batch_activity *rows; /* rows to next_in_ms: answer */
    size_t rows_len;
    uint64_t next_in_ms; /* ms until the next row can become an orphan; UINT64_MAX: none */
    uint64_t waiting_ms; /* how long the oldest row without a worker has waited; 0: none, or not asked for */
};
struct asked_input {
    struct batch_activity activity;
    bool found; /* answer, also input */
    thole_slice input;
    struct trace trace;
};
struct asked_expiry {
    struct rows_owner owner;
    uint64_t slack_ms;           /* only tries past their deadline for longer than this */
    struct expired_try *expired; /* answer: tries that were ended */
    size_t expired_len;
    uint64_t deadline_in_ms; /* answer: see projector_store_next_deadline() */
};
struct asked_shelf {
    struct rows_owner owner;
    struct shelved_name *names; /* FIND: answer; UNSHELVE: those that a worker knows */
    size_t names_len;
    uint64_t least_ms;           /* UNSHELVE: rows that have been on the shelf for so long */
    struct batch_activity *rows; /* UNSHELVE: answer */
    size_t rows_len;
    bool asks; /* the workers are being asked */
};
struct asked_inbox {
    struct inbox_reader *reader; /* CLOSE; OPEN: answer */
    uint64_t from, count;        /* LOOK, OPEN, PURGE, RESULTS; RESULTS: `count`: at most the last messages */
    struct seen seen;            /* OPEN, PURGE, RESULTS: what the inbox must hold */
    bool gone_back;              /* answer: not carried out, because the inbox does not hold `seen` */
    uint64_t found;              /* LOOK: answer: sequence, or 0 */
};
struct asked_rejection {
    struct rejected_item item;
    uint64_t until_ms; /* monotonic: given up after */
};
struct asked_emission {
    struct emission of;
    uint64_t said_ms;    /* monotonic: when it is said that it is still not stored */
    const char *refused; /* why the stream will never take it: it is stored among the rejected ones */
    uint64_t until_ms;   /* monotonic: that is given up after */
};
struct asked_store {
    struct rows_owner owner;
    struct namespace_id adopts; /* OPEN: to be noted, as the rows are of no namespace yet; "": nothing is */
    uint64_t before_ms;         /* TIMERS */
    struct rows_look look;      /* LOOK */
    struct batch *batch;        /* APPLY; the request's */
    uint64_t deadline_in_ms;    /* answer of LIVE and APPLY: as for EXPIRE */
    uint64_t set_aside;         /* answer of OPEN, RESET and APPLY: rows of the partition */
    size_t refused;             /* answer of APPLY: rows that were set aside */
    thole_slice refused_first;  /* likewise: which, and why; in the arena */
};

struct request {
    struct shard_mail mail; /* partition and generation; the mail in which it comes back */
    struct request *next;   /* in a list of requests: waiting for room, of an executor, or delayed */
    enum request_kind kind;
    struct shard *shard;
    struct arena arena; /* memory of arguments and answer */
    union {
        struct out_append append; /* borrows the machine's slices: it is sent at once */
        struct asked_tail tail;   /* KNOW_LOG, READ_TAIL */
        struct out_read_log log;
        struct out_delete_records deletion;
        struct out_send message;
        struct asked_emission emission;
        struct out_withdraw withdrawal;
        struct asked_history history;
        struct out_read_ids ids;
        struct asked_removal removal;
        struct out_find_dispensable dispensable;
        struct out_remove_records records;
        struct asked_work work; /* PUBLISH_WORK, FIND_WORK, REQUEUE */
        struct asked_orphans orphans;
        struct asked_input find;
        struct asked_expiry expiry;
        struct asked_shelf shelf; /* FIND_SHELVED, UNSHELVE */
        struct asked_inbox inbox;
        struct asked_rejection rejection;
        struct crash_entry crash; /* PUT_CRASH; FORGET_CRASHES: its instance */
        struct asked_store store;
    };
    /* The answer. */
    thole_status status;
    thole_error *err;           /* request_error(); NULL: none */
    struct request_reply reply; /* of a window */
    struct partition_in in; /* for the machine; points into arena. For an output it is begun at creation */
    /* While it is carried out. */
    enum closed_cause cause; /* of its failure; OTHER: as its executor says */
    bool aside;              /* has one of the low-priority places */
    size_t load_bytes;       /* of a load: what it counts for in the shard's loads, or will */
    bool loads;              /* counts there */
    bool unshelved;          /* of a row that was taken off the shelf; counts there */
    bool again;              /* the answer was taken, and the request is submitted again at due_ms */
    uint64_t due_ms;         /* monotonic; 0: at once */
    uint64_t begun_us;       /* monotonic; 0: nothing is counted */
};

/* shard_counts.c: its answer has come. */
void shard_count_request(const struct request *request);

/* ---- rules ---- */

enum executor { EXECUTOR_WINDOW, EXECUTOR_LOADER, EXECUTOR_CLEANER, EXECUTOR_REMOVER, EXECUTOR_STORE };
enum { STORE_JOINED_MAX = 64 };

enum request_failure {
    FAILURE_ANSWER,          /* an answer like any other */
    FAILURE_AGAIN,           /* sent again until it is stored: receivers drop repetitions */
    FAILURE_AGAIN_WHEN_SURE, /* as AGAIN if it is certain that it was not stored; else as STEP_DOWN */
    FAILURE_STEP_DOWN,       /* the partition is opened again */
    FAILURE_DROP,            /* dropped: it will be asked for again */
};

/* Sends it in its window; the shard's thread. Statuses of requests_publish(). */
typedef thole_status request_send_fn(struct request *request, thole_error *reterr);
/* Blocking, a thread of the loader or of the cleaner. Error texts go to request_error(). */
typedef thole_status request_load_fn(struct engine_host *engine, struct request *request);
/* The store's thread, which may wait; those that may join, on a fiber of the shard's (store.h). */
typedef thole_status request_store_fn(struct postgres *pg, struct request *request);
/* Several requests of one kind in one transaction, at most STORE_JOINED_MAX; writes the status of each. */
typedef void request_store_all_fn(struct postgres *pg, struct request *const *requests, size_t n);
/* Whether @p next, which follows the taken ones, joins them. */
typedef bool request_joins_fn(struct request *const *taken, size_t n, const struct request *next);
/* The shard's thread. */
typedef void request_answer_fn(struct owned *owned, struct request *request);
/* The server refuses it, for example a full stream; the shard's thread, rate-limited. */
typedef void request_refused_fn(const struct request *request);

struct request_rule {
    const char *failed; /* error text of a failure without a text */
    enum executor executor;
    enum window_kind window;
    enum request_failure failure;
    request_send_fn *send; /* one of these three, by executor; of a remover none */
    request_load_fn *load;
    request_store_fn *store;
    request_joins_fn *joins; /* of the store; NULL: each is carried out alone */
    request_store_all_fn *store_all;
    request_answer_fn *answer;   /* of a success (and of a failure, where it is an answer); NULL: none */
    request_refused_fn *refused; /* AGAIN: logs the refusal */
};
extern const struct request_rule request_rules[REQ_KINDS]; /* request_table.c */

/* ---- the request: shard_request.c ---- */

/* A request of the shard itself. Never NULL. */
struct request *request_create(enum request_kind kind, struct shard *shard, const struct owned *owned);
/* The request for an output; its answer, if it has one, is begun. */
struct request *request_of(enum request_kind kind, struct shard *shard, const struct owned *owned,
                           const struct partition_out *out);
void request_destroy(struct request *request); /* NULL-safe */
/* Marks it as one of a row that was taken off the shelf: it counts until it is destroyed. */
void request_unshelves(struct request *request);
/* Copies into its arena, aligned for any type; never fails (aborts without memory). */
thole_slice request_keep(struct request *request, thole_slice text);
/* Where its failure is written. In its arena, since most requests do not fail: it would be half of each. */
thole_error *request_error(struct request *request);
const char *request_error_text(const struct request *request); /* "": there is none */
/* The token under which a window answers it. */
uint64_t request_token(const struct request *request);
bool request_is_current(const struct owned *owned, const struct request *request);

bool request_is_stale(const struct request *request); /* on the shard's thread only */
const struct request_rule *request_rule(const struct request *request);
struct window *request_window(const struct request *request);
void request_leave_aside(struct request *request); /* releases its low-priority place, if it has one */
/* Called by an executor when it is carried out. Takes the request. */
void request_finish(struct request *request);
void request_list_append(struct request_list *list, struct request *request);
void request_list_prepend(struct request_list *list, struct request *request);
struct request *request_list_take(struct request_list *list); /* the first; NULL: it is empty */

/* ---- the request's flow: request_flow.c, on the shard's thread unless stated otherwise ---- */

/* Takes the request. */
void request_submit(struct request *request);
/* Submits to a window with low priority: only when nothing else waits there, and at most ASIDE_MAX at a time.
 * Thousands of activities may be cancelled at once, and other requests must not wait for them. */
void request_put_aside(struct request *request);
/* Whether a load of about @p bytes would begin at once. */
bool request_load_fits(const struct shard *shard, size_t bytes);
/* Submits a load of about @p bytes when there is room for what it reads: begun all at once, each of thousands
 * would hold a part of its history until the last of them had all. */
void request_load(struct request *request, size_t bytes);
/* For an answer function: submits it again after @p pause_ms, instead of destroying it. */
void request_again(struct request *request, uint64_t pause_ms);
/* Callback of the windows; NATS's threads. */
void request_on_reply(void *arg, const struct request_done *done);

/* Takes a request that was carried out. */
void request_answered(struct request *request);
/* Sends waiting requests that have room, submits those that are due; returns when to call again, by the
 * monotonic clock. */
uint64_t requests_run(struct shard *shard, uint64_t now_ms);
/* At the end: frees requests that were not submitted. */
void requests_forget(struct shard *shard);

/* The partition's owner, and how many batches it has seen applied. */
struct rows_owner request_owner(const struct owned *owned);
/* Gives request->in to the machine as the answer. */
void request_input(struct owned *owned, struct request *request);
#endif
