/*
 * Inside a session: session.c is its life, session_hooks.c what its worker role decides, session_requests.c
 * what its worker asks for, session_completions.c who waits for results, session_tasks.c the tasks,
 * session_resume.c those of a session before. All functions here want the session's lock.
 */
#ifndef THOLE_SESSION_PARTS_H
#define THOLE_SESSION_PARTS_H
#include "arena.h"
#include "remote_handlers.h"
#include "session.h"
#include "task_claim.h"
#include "worker_host.h"
#include <pthread.h>
#include <stdatomic.h>

enum {
    SESSION_BUCKETS = 1024,
    SESSION_OVER_MAX = 4096,       /* ended tasks that are remembered, for repeated completions */
    SESSION_COMPLETION_MS = 30000, /* for so long a completion may be under way */
    SESSION_ARRIVED_MS = 1000,     /* a task that was sent so long ago and is not renewed has not arrived */
    SESSION_WANTS_MS = 1000, /* for so long after an answer to `next` tasks are claimed without another */
    SESSION_OPEN_MS = 10000, /* limit of the wait for the answer to an open */
};

enum task_state {
    TASK_WAITING,  /* has a slot, and was not asked for yet */
    TASK_GIVEN,    /* the remote worker has it */
    TASK_RETURNED, /* the outcome is being stored */
    TASK_OVER,     /* stored, or refused */
};

/* A part of a completion that waits for a task. */
struct waiter {
    struct completion *completion;
    size_t at;
    struct waiter *next;
};

struct task {
    char *claim;  /* as its worker knows it */
    bool resumed; /* of a session before: its worker has it, and it cannot be given once more */
    enum task_state state;
    struct thole_activity *act; /* WAITING and GIVEN */
    bool fired;                 /* the token has; GIVEN: the remote worker was told */
    bool gone;                  /* GIVEN: the worker role's part is over, nothing that it returns counts */
    bool stored, cancelled;     /* OVER: its outcome; RETURNED: it said that it was cancelled */
    uint64_t given_ms, renewed; /* when it was sent; in which renewal it was named last */
    uint64_t answer;            /* to which `next` it was sent: session->answers then */
    bool refused_details;       /* the refusal was logged */
    struct waiter *waiters;
    struct task *same;        /* of its bucket */
    struct task *prev, *next; /* of the list of its state */
};
struct task_list {
    struct task *first, *last;
    size_t len;
};

/* A CompleteTasks under way. */
struct completion {
    struct gateway_request *request;
    size_t left; /* outcomes without a result */
    thole_status *results;
    uint64_t until_ms;
    struct completion *next;
};

struct session {
    struct session_options options;
    struct host_options host_options;
    struct remote_handlers handlers;
    struct remote_resumption resumption;                           /* of `open`, until that is answered */
    struct task_claim_bytes *claim_bytes;                          /* of its claims */
    char suffix[SESSION_SUFFIX_BYTES], from[SESSION_SUFFIX_BYTES]; /* of its worker's name; of that before */
    char *worker_host;                                             /* where its worker runs */
    thole_program program;
    thole_activity_entry *activities;
    char id[SESSION_ID_BYTES], worker[THOLE_NAME_BYTES_MAX + 1], queue[THOLE_NAME_BYTES_MAX + 1];
    char *subject; /* of its requests, without the operation */
    char *unheard; /* the reply subject of answers to `next`: the server tells there that one has no
                      subscriber */
    struct subscription *unheard_subscription; /* of the session's thread; NULL: none */
    char *inbox;                               /* for notices; NULL: none */
    enum gateway_form form;
    pthread_t thread;
    atomic_uint holders;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* for the session's thread */
    enum { SESSION_STARTING, SESSION_OPEN, SESSION_CLOSING, SESSION_OVER } state;
    struct worker_host *host; /* NULL: not yet, or no longer */
    bool stop_asked;          /* STARTING: it closes when it has started */
    bool stop_sent, stopped;  /* to the worker role; it has */
    uint64_t limit_ms;        /* CLOSING, or stop_asked */
    uint64_t heard_ms, lease_ms;
    struct gateway_request *open, *next, *close;
    uint64_t next_until_ms;
    uint32_t next_max;
    uint64_t next_ms; /* when it was answered last, or the session opened */
    uint64_t answers; /* to `next`, with tasks */
    bool asks;  /* the last one asked whether it is heard, and its worker has not asked for tasks since */
    bool hears; /* the last answer was not unheard */
    bool rests; /* claims nothing, until the remote worker asks for tasks */
    struct completion *completions;
    struct task *buckets[SESSION_BUCKETS];
    struct task_list lists[TASK_OVER + 1];
    uint64_t renewals;
};

/* ---- session_tasks.c: the table ---- */
/* With a claim of its own; @p claim NULL: that of the activity. */
struct task *session_task_new(struct session *session, struct thole_activity *act, const char *claim);
void session_task_free(struct session *session, struct task *task);
struct task *session_find_task(const struct session *session, const char *claim);
/* Moves it to the end of the list of another state. */
void session_move_task(struct session *session, struct task *task, enum task_state state);
/* The task has not arrived: it is the next to be given. */
void session_task_again(struct session *session, struct task *task);
/* The result of a task that is OVER, for its worker. */
thole_status session_task_result(const struct task *task);
void session_notice(const struct task *task, struct arena *arena, Thole__V1__Notice *ret);
/* All that is left, when the worker role has ended. */
void session_free_tasks(struct session *session);

/* ---- session_resume.c ---- */
THOLE_NODISCARD thole_status session_check_resume(const Thole__V1__OpenSession *asked, thole_error *reterr);
/* The names of its worker, and the claims that it wants to go on with. */
void session_plan_resume(struct session *session, const Thole__V1__OpenSession *asked);
void session_resumed(void *arg, struct worker_host *host, struct thole_activity *act, size_t n);
/* Those that it may not go on with, each once; borrowed from the request. The caller frees the array. */
char **session_gone_claims(const struct session *session, size_t *ret_len);
void session_forget_resume(struct session *session); /* does nothing without */

/* ---- session_completions.c ---- */
/* The remote worker has returned @p returned for a task that is WAITING or GIVEN. */
void session_task_returned(struct session *session, struct task *task, const struct remote_return *returned);
/* The worker role's part in a task that is RETURNED has ended: completions that wait for it get its result.
 */
void session_task_over(struct session *session, struct task *task);
void session_await_task(struct completion *completion, size_t at, struct task *task);
/* With the results that it has. */
void session_answer_completion(struct session *session, struct completion *completion);
/* Answers the completion although tasks that it waits for have not ended. */
void session_give_up_completion(struct session *session, struct completion *completion);

/* ---- session_hooks.c ---- */
extern const struct remote_handlers session_handlers; /* arg: the session */

/* ---- session_requests.c ---- */
/* Answers a request for tasks that waits, if there are tasks. */
void session_give(struct session *session);
/* Answers what has waited long enough; UINT64_MAX: nothing waits. */
uint64_t session_expire(struct session *session, uint64_t now_ms);
/* Whether it claims what its worker role has got; if not, it rests. */
bool session_wants(struct session *session);
/* The last answer to `next` had no subscriber. */
void session_is_unheard(struct session *session);
/* Answers everything that still waits. */
void session_refuse_all(struct session *session);
#endif
