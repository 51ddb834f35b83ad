/*
 * A request: one thing that a partition, or its shard for it, has the world do, from its birth to its answer.
 *
 *     request_of()          of an output: what is asked, its part of the union, is set; the machine's input
 *                           that answers it is begun. (request_create(): the shard itself asks)
 *     request_submit()      to its executor: a window of asynchronous requests, a loader, the store
 *         ...               carried out there: send, load, store of its rule
 *     request_answered()    back on the shard's thread, by mail, exactly once: the answer of its rule
 *
 * The rule of its kind (request_table.c) says who carries it out, what a failure means, and who takes the
 * answer. A request belongs to one thread at a time: the shard's, then its executor's, then the shard's.
 *
 * One that was asked for in an earlier life of the partition (another generation) is not sent any more; its
 * answer is no failure, and the machine ignores it.
 */
#ifndef THOLE_SHARD_REQUEST_H
#define THOLE_SHARD_REQUEST_H
#include "crashes.h"
#include "engine.h"
#include "projector_store.h"
#include "rejected.h"
#include "work.h"

enum request_kind {
    /* log_requests.c */
    REQ_APPEND,
    REQ_READ_TAIL,
    REQ_READ_LOG,
    REQ_DELETE_RECORDS,
    /* history_requests.c */
    REQ_LOOK_UP, /* an instance's newest record, before it is loaded */
    REQ_LOAD,
    REQ_READ_IDS,
    REQ_REMOVE_HISTORY,
    /* work_requests.c */
    REQ_PUBLISH_WORK,
    REQ_WITHDRAW_WORK,
    /* sweeper.c */
    REQ_FIND_ORPHANS,
    REQ_FIND_WORK,  /* is an orphan's message there? */
    REQ_FIND_INPUT, /* from the history: for the message that is not */
    REQ_REQUEUE,
    REQ_EXPIRE,
    /* inbox_reader.c */
    REQ_OPEN_INBOX,
    REQ_CLOSE_INBOX,
    REQ_LOOK_INBOX, /* for a message at `from` or behind it */
    REQ_PURGE_INBOX,
    REQ_READ_RESULTS,
    /* shard_send.c, shard_reject.c */
    REQ_SEND_MESSAGE,
    REQ_REJECT,
    /* shard_code.c */
    REQ_READ_CRASHES,
    REQ_PUT_CRASH,
    REQ_FORGET_CRASHES,
    /* store_requests.c */
    REQ_STORE_OPEN,
    REQ_STORE_RESET,
    REQ_STORE_LIVE,
    REQ_STORE_TIMERS,
    REQ_STORE_APPLY,
    REQ_KINDS,
};

/* The answer to a request of a window. */
struct request_reply {
    enum request_result result;
    uint64_t sequence; /* STORED */
    uint32_t err_code; /* FAILED */
    thole_slice body;  /* ANSWERED */
};

/* What is asked beyond the machine's output: that is taken as it is, with copies of what it points to. */
struct asked_history {
    thole_slice instance;
    uint64_t execution, to; /* execution: the newest, whose last record is `to`; or only that one */
    bool only;
};
struct asked_removal {
    struct out_remove_history of;
    bool more; /* answer: there may be more of them */
};
struct asked_work {
    struct work_item item;
    bool unless_there; /* look first whether it is queued already */
};
struct asked_orphans {
    uint64_t age_ms;
    struct batch_activity *rows; /* answer, also the next two */
    size_t rows_len;
    uint64_t next_in_ms; /* until the next row can be one; UINT64_MAX: none */
};
struct asked_input {
    struct batch_activity activity;
    bool found; /* answer, also input */
    thole_slice input;
};
struct asked_expiry {
    uint64_t slack_ms;           /* past their deadline for longer than that */
    struct expired_try *expired; /* answer: ended */
    size_t expired_len;
    uint64_t deadline_in_ms; /* answer: see projector_store_next_deadline() */
};
struct asked_inbox {
    struct inbox_reader *reader; /* CLOSE; OPEN: answer */
    uint64_t from, count;        /* LOOK, OPEN, PURGE, RESULTS; RESULTS: at most the last count messages */
    struct seen seen;            /* OPEN, PURGE, RESULTS: what the inbox must hold */
    bool gone_back;              /* answer: nothing was done, because the inbox does not hold it */
    uint64_t found;              /* LOOK: answer: sequence, or 0 */
};
struct asked_rejection {
    struct rejected_item item;
    uint64_t until_ms; /* monotonic: given up after */
};
struct asked_store {
    uint64_t epoch;
    uint64_t before_ms;      /* TIMERS */
    struct batch *batch;     /* APPLY; the request's */
    uint64_t deadline_in_ms; /* answer of LIVE and APPLY: as for EXPIRE */
};

struct request {
    struct shard_mail mail; /* its partition and its life; the mail in which it comes back */
    struct request *next;   /* in a list: of what waits for room, of an executor, of what is delayed */
    enum request_kind kind;
    struct shard *shard;
    struct arena arena; /* what is asked, and the answer */
    union {
        struct out_append append; /* the machine's own slices: it is sent at once */
        struct out_read_tail tail;
        struct out_read_log log;
        struct out_delete_records deletion;
        struct out_send message;
        struct out_withdraw withdrawal;
        struct asked_history history;
        struct out_read_ids ids;
        struct asked_removal removal;
        struct asked_work work; /* PUBLISH_WORK, FIND_WORK, REQUEUE */
        struct asked_orphans orphans;
        struct asked_input find;
        struct asked_expiry expiry;
        struct asked_inbox inbox;
        struct asked_rejection rejection;
        struct crash_entry crash; /* PUT_CRASH; FORGET_CRASHES: its instance */
        struct asked_store store;
    };
    /* The answer. */
    thole_status status;
    thole_error err;
    struct request_reply reply; /* of a window */
    struct partition_in
        in; /* for the machine; points into arena. Where an output asks, it is begun at birth */
    /* While it is under way. */
    bool aside;      /* it has one of the places for what is in no hurry */
    bool again;      /* its answer was taken, and it is to be submitted again, at due_ms */
    uint64_t due_ms; /* monotonic; 0: at once */
};

/* ---- rules ---- */

enum executor { EXECUTOR_WINDOW, EXECUTOR_LOADER, EXECUTOR_STORE };
enum { STORE_JOINED_MAX = 64 };

enum request_failure {
    FAILURE_ANSWER,          /* is an answer like any other */
    FAILURE_AGAIN,           /* it is sent again until it is stored: receivers know a repetition */
    FAILURE_AGAIN_WHEN_SURE, /* so, if it is certain that it was not stored; else as STEP_DOWN */
    FAILURE_STEP_DOWN,       /* the partition is opened anew */
    FAILURE_DROP,            /* whoever needs it asks again */
};

/* Sends it in its window; the shard's thread. Statuses of requests_publish(). */
typedef thole_status request_send_fn(struct request *request, thole_error *reterr);
/* Blocking, a loader's thread. Error texts go to request->err. */
typedef thole_status request_load_fn(struct engine_host *engine, struct request *request);
/* Blocking, the store's thread. */
typedef thole_status request_store_fn(struct postgres *pg, struct request *request);
/* So, several of one kind in one transaction, at most STORE_JOINED_MAX; writes the status of each. */
typedef void request_store_all_fn(struct postgres *pg, struct request *const *requests, size_t n);
/* Whether @p next, which waits behind those that are taken, goes with them. */
typedef bool request_joins_fn(struct request *const *taken, size_t n, const struct request *next);
/* The shard's thread. */
typedef void request_answer_fn(struct owned *owned, struct request *request);
/* The server refuses it, as when a stream is full; the shard's thread, not too often. */
typedef void request_refused_fn(const struct request *request);

struct request_rule {
    const char *failed; /* what a failure is called that has no text of its own */
    enum executor executor;
    enum window_kind window;
    enum request_failure failure;
    request_send_fn *send; /* the one of these three that its executor needs */
    request_load_fn *load;
    request_store_fn *store;
    request_joins_fn *joins; /* of the store: NULL: each goes alone */
    request_store_all_fn *store_all;
    request_answer_fn *answer;   /* of a success (and of a failure, where it is an answer); NULL: none */
    request_refused_fn *refused; /* AGAIN: writes a line about it into the log */
};
extern const struct request_rule request_rules[REQ_KINDS]; /* request_table.c */

/* ---- what a request is: shard_request.c ---- */

/* Never NULL. What the shard itself asks for. */
struct request *request_create(enum request_kind kind, struct shard *shard, const struct owned *owned);
/* What an output asks for; its answer, if it has one, is begun. */
struct request *request_of(enum request_kind kind, struct shard *shard, const struct owned *owned,
                           const struct partition_out *out);
void request_destroy(struct request *request); /* NULL-safe */
/* Copies into its arena, aligned for any type; never fails: there is no request without what it asks. */
thole_slice request_keep(struct request *request, thole_slice text);
/* The token under which a window answers it. */
uint64_t request_token(const struct request *request);
bool request_is_current(const struct owned *owned, const struct request *request);

bool request_is_stale(const struct request *request); /* so, on the shard's thread alone */
const struct request_rule *request_rule(const struct request *request);
struct window *request_window(const struct request *request);
void request_leave_aside(struct request *request); /* gives back its place, if it has one */
/* By an executor: it is carried out. Takes the request. */
void request_finish(struct request *request);
void request_list_append(struct request_list *list, struct request *request);
struct request *request_list_take(struct request_list *list); /* the first; NULL: it is empty */

/* ---- its way: request_flow.c, on the shard's thread where nothing else is said ---- */

/* Takes the request. */
void request_submit(struct request *request);
/* For a window: when nothing else waits there, and only so many at a time: thousands may be cancelled at
 * once, and what is new does not wait behind them. */
void request_put_aside(struct request *request);
/* By an answer: it is submitted again after @p pause_ms, instead of being destroyed. */
void request_again(struct request *request, uint64_t pause_ms);
/* Callback of the windows; NATS's threads. */
void request_on_reply(void *arg, const struct request_done *done);

/* Takes what has come back. */
void request_answered(struct request *request);
/* Sends what has room now, submits what is due; returns when to come back, of the monotonic clock. */
uint64_t requests_run(struct shard *shard, uint64_t now_ms);
/* At the end: frees what was never submitted. */
void requests_forget(struct shard *shard);

/* Gives the machine its answer, request->in, as it is. */
void request_input(struct owned *owned, struct request *request);
#endif
