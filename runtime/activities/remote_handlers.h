/*
 * Handlers that run elsewhere, not on this worker's threads: the one who serves them is told what the
 * worker's loop decides, and says with worker_host_returned() when one has returned. All functions here are
 * called from the worker's loop, must not block, and may call nothing of the worker but
 * worker_host_returned().
 */
#ifndef THOLE_REMOTE_HANDLERS_H
#define THOLE_REMOTE_HANDLERS_H
#include "activity_run.h"

struct worker_host;

/* A claim that another worker has made, whose place this one takes: its handler runs already. */
struct resumed_claim {
    struct work_item item; /* without activity and input; borrowed, as the digest */
    struct work_digest digest;
    uint64_t attempt, claimed_us;
    size_t place; /* where who asks for it has it */
    bool gone;    /* out: it may not go on */
};
struct remote_resumption {
    const char *from; /* suffix of that worker's name, after its last - */
    struct resumed_claim *claims;
    size_t len;
};

struct remote_handlers {
    void *arg;
    const char *suffix;                   /* suffix of the worker's name, after the last -; unique for ever */
    const char *host;                     /* where the handlers run; empty: on this one */
    struct remote_resumption *resumption; /* NULL: a new worker; borrowed until the worker has started */
    /* The @p n-th claim goes on; as `run`, but from the thread that starts the worker, before all others. */
    void (*resumed)(void *arg, struct worker_host *worker, struct thole_activity *act, size_t n);
    /* Whether a message that has come is to be claimed: else it is handed back, and no others are asked for
     * until worker_host_wants(). */
    bool (*wants)(void *arg, struct worker_host *worker);
    /* Runs an activity that has got a slot. The activity lives until it has returned, and until `ended` if
     * that is later. */
    void (*run)(void *arg, struct worker_host *worker, struct thole_activity *act);
    /* The activity's token has fired, and says why; or its grace became shorter. */
    void (*fired)(void *arg, struct worker_host *worker, struct thole_activity *act);
    /* The worker's part in it is over. Stored tells whether its result was stored. Also for those that have
     * never run. */
    void (*ended)(void *arg, struct worker_host *worker, struct thole_activity *act, bool stored);
    /* The loop has ended. The last call. */
    void (*stopped)(void *arg, struct worker_host *worker);
};

/* The result of such a handler; borrowed for the call. */
struct remote_return {
    thole_status status;    /* OK, APP, CANCELLED or LATER */
    thole_slice output;     /* OK */
    thole_slice text, type; /* APP */
    bool final;
    bool unknown; /* does not run, and has no result: the claim is given back */
};
/* The function of all activities of such a program: returns what act->returned says. */
thole_status remote_handler(thole_activity *act, thole_slice input, thole_slice *ret_output);
#endif
