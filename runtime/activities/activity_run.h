/*
 * One activity message while this worker holds it: a handler's thole_activity.
 *
 * Owners: the loop, from the delivery until the machine no longer holds the message, and the handler's thread
 * while it runs. The last owner frees it.
 */
#ifndef THOLE_ACTIVITY_RUN_H
#define THOLE_ACTIVITY_RUN_H
#include "arena.h"
#include "buf.h"
#include "message.h"
#include "process_reach.h"
#include "thole/activity.h"
#include "token.h"
#include "work.h"
#include "worker_crash.h"
#include "worker_mail.h"
#include <stdatomic.h>

enum {
    ACTIVITY_KEY_BYTES = 704,
    ACTIVITY_RESULT_TEXT_BYTES = 384,
    ACTIVITY_WORKER_BYTES = 96,              /* of the name of a worker */
    ACTIVITY_FAILURE_BYTES_MAX = 64 * 1024,  /* of thole_activity_fail() */
    ACTIVITY_MEMORY_MAX = 256 * 1024 * 1024, /* of thole_activity_alloc() */
};

struct handler_thread;
struct remote_return;
struct process_pool;

/* The clock of the test kit. */
struct activity_time {
    uint64_t (*now_ms)(void *arg);
    thole_status (*wait)(void *arg, uint64_t wait_ms); /* thole_activity_wait() */
};

/* The orchestration and version that scheduled it, and the worker that runs it. */
struct activity_parties {
    thole_slice orchestration; /* empty: not known */
    uint32_t version;
    thole_slice worker;
};

struct thole_activity {
    struct worker_mail delivered, finished, published; /* to the loop: at most one of each at a time */

    /* set when it is delivered, then only read */
    struct work_message *message;
    uint64_t arrived_ms;
    thole_slice key;
    char key_bytes[ACTIVITY_KEY_BYTES];
    uint32_t partition;               /* of the instance, for the token of thole_activity_later() */
    const struct activity_time *time; /* NULL: CLOCK_MONOTONIC */
    void *time_arg;

    /* set before it runs, then only read */
    uint64_t deadline_ms; /* of this try; UINT64_MAX = none */
    thole_slice before;   /* details of the last heartbeat before this claim; see activity_begin() */
    struct activity_parties parties; /* in memory */

    /* the loop's */
    bool timed_out; /* the result is a timeout, whatever the handler returns */
    bool poisoned;  /* not run; the result is the failure "poison" */
    uint32_t lost;  /* number of lost claims of this try; worker of the last one */
    char lost_worker[ACTIVITY_WORKER_BYTES];
    char lost_report[WORKER_CRASH_TEXT_BYTES]; /* crash report of that worker; empty: none */
    uint64_t sent_count, sent_round;           /* of heartbeats: what was sent last, and in which round */
    thole_activity_fn *run;                    /* NULL: this program does not know it */
    void *arg;                                 /* of its entry */
    bool quick;                                /* declared so: it has no row that could be completed later */
    uint64_t attempt;
    uint64_t claimed_us;          /* which claim it is, beside the attempt */
    bool running;                 /* between RUN and the handler's return */
    bool given_up;                /* has not returned in its grace */
    thole_cancel_kind fired_kind; /* reason and time of its cancellation; NONE: not cancelled */
    uint64_t fired_ms;
    uint64_t started_us; /* when it was given to a handler */
    uint64_t started_ms; /* likewise by the wall clock; 0: never given */
    bool forgotten;      /* the machine no longer holds it, but it is running */

    /* the handler threads', under their lock */
    struct thole_activity *next;
    struct handler_thread *thread;

    /* the token */
    pthread_mutex_t lock;   /* of firing it, of fd, memory, noted and failure */
    struct token own_token; /* … unless it is in a page that is shared with another process */
    struct token *token;
    int fd;   /* -1 until it is requested */
    int talk; /* in a process: its socket to the worker; else -1 */

    /* one that runs in a process of its own, on the worker's side */
    struct process_pool *pool;         /* NULL: it runs on a thread */
    size_t entry;                      /* of the program */
    const struct process_reach *reach; /* under lock: of the process that runs it now; NULL: none */
    bool killed;                       /* under lock */

    /* one that runs elsewhere (remote_handlers.h) */
    void *remote;                         /* of who runs it */
    const struct remote_return *returned; /* while it returns */
    bool unknown;                         /* does not run, and has no result */

    /* the handler's while it runs, the loop's afterwards */
    struct arena memory;
    struct buf noted;         /* by heartbeats of this run */
    uint64_t noted_count;     /* how many there were */
    thole_slice failure;      /* in memory */
    thole_slice failure_type; /* in memory */
    bool final;               /* no other try follows */
    bool later;               /* thole_activity_later() was called */
    thole_status status;
    thole_slice output;

    bool publish_alone; /* the result was in a message with others that the stream refused */
    struct thole_activity
        *published_next;       /* whose result is in the same message; not after `published` is sent */
    bool published_ok;         /* both written before that */
    uint32_t publish_err_code; /* of the server; 0 = none */
};

/* Takes the message. */
struct thole_activity *activity_create(struct work_message *message, uint64_t now_ms);
void activity_destroy(struct thole_activity *act); /* NULL-safe; no thread uses it any more */
/* Sets the claim's results, before it runs. The texts are copied. THOLE_NOMEM. */
THOLE_NODISCARD thole_status activity_begin(struct thole_activity *act, uint64_t attempt,
                                            uint64_t deadline_ms, thole_slice details,
                                            const struct activity_parties *parties);
/* Runs the handler on this thread; then status and output are set. */
void activity_run(struct thole_activity *act);
/* The result to report, by the rules of include/thole/activity.h: status, data, error type, final, details.
 * For a timed out activity, which may still run, without details. For a poisoned one: that failure. Not for
 * one that returned THOLE_LATER. @p text: room for a generated text. */
void activity_result(const struct thole_activity *act, size_t payload_max,
                     char text[ACTIVITY_RESULT_TEXT_BYTES], struct message *ret);
/* The newest details, if there were heartbeats beyond the *count-th: appends them to @p to (an empty buffer),
 * moves *count up and says true. Any thread. */
bool activity_details_since(struct thole_activity *act, uint64_t *count, struct buf *to);
/* Fires the token. Only the first call counts. Any thread. */
void activity_fire(struct thole_activity *act, const struct activity_cancel *cancel);
/* Shortens the grace after its token has fired. Any thread. */
void activity_hurry(struct thole_activity *act, uint64_t grace_end_ms);
#endif
