/*
 * Inside the worker role: its state, and the functions that its parts share.
 *
 *   worker_host.c     start, stop
 *   worker_loop.c     the loop: inputs of the machine
 *   worker_outputs.c  its outputs
 *   worker_results.c  results to inboxes
 *   worker_quick.c    handlers that run on the loop
 *   worker_counts.c   metrics
 *   worker_resume.c   claims of a worker before
 *   handlers.c        threads that run
 *   process_pool.c    processes that run
 *   row_calls.c       statements on its rows in Postgres
 *   queue_keeper.c    a thread that maintains the queue's consumer
 *
 * Threads: the loop owns the machine and all members that are not marked as shared. Callbacks of streams and
 * the other threads only send mail to it.
 */
#ifndef THOLE_WORKER_PARTS_H
#define THOLE_WORKER_PARTS_H
#include "handlers.h"
#include "log_limit.h"
#include "message.h"
#include "metrics.h"
#include "nats_watch.h"
#include "notice.h"
#include "options.h"
#include "process_pool.h"
#include "queue_keeper.h"
#include "remote_handlers.h"
#include "roll_call.h"
#include "row_calls.h"
#include "topology.h"
#include "worker.h"
#include "worker_host.h"
#include <assert.h>

enum {
    WORKER_INCARNATION_BYTES = THOLE_NAME_BYTES_MAX + 1 + 16 + 1, /* node-0123456789abcdef */
    WORKER_UNKNOWN_NAMES_MAX = 64,
    WORKER_PUSHES_MAX = 20000, /* mail that may wait before pushes are dropped */
};

/* Lines of the log that others can cause at any rate. Those about an activity are not among them: it has run.
 */
enum worker_line {
    WORKER_LINE_MALFORMED,
    WORKER_LINE_FORGED,
    WORKER_LINE_BAD_PUSH,
    WORKER_LINE_UNPROVEN,
    WORKER_LINES
};

struct push_mail {
    struct worker_mail mail;
    struct arena arena;
    struct cancel_notice notice;
};

struct worker_host {
    struct host_options options; /* texts are borrowed from the caller */
    const thole_program *program;
    struct topology topology;
    uint64_t lease_ms;
    char incarnation[WORKER_INCARNATION_BYTES]; /* unique for ever */
    thole_slice incarnation_slice;
    char host_name[RUN_HOST_BYTES_MAX + 1]; /* the name of this host */

    struct connection *connection;
    struct nats_watch nats; /* shared */
    struct subscription *cancels, *questions;
    thole_slice *activity_names; /* activities that the program registers */
    struct puller *puller;
    struct queue_keeper *keeper;
    struct served_names *served; /* names that the queue's workers know; shared */
    struct requests *requests;
    struct process_pool *processes; /* NULL: no activity needs one */
    struct handlers *handlers;
    struct row_calls *claims, *completions;
    struct row_call calls[ROW_CALL_KINDS];
    struct claim *resumed;        /* one for each claim of the resumption */
    struct arena resumed_details; /* of these */
    uint64_t resumed_ms;          /* when the statement was sent */
    atomic_bool heard;            /* shared: who runs them, since then; true without a resumption */

    struct mailbox inbox;     /* shared */
    struct log_limits *lines; /* shared; by enum worker_line */
    struct worker_mail state, stop;
    atomic_bool state_sent; /* shared */
    atomic_bool stop_sent;  /* shared */
    atomic_bool rests;      /* shared: it asks for no messages */
    atomic_bool dead;       /* shared; the loop ends, whatever is held */
    atomic_uint arriving;   /* shared: delivered and not yet taken from the inbox */

    pthread_t loop;
    struct metric_cells *cells; /* the loop's; NULL: nothing is counted */
    struct pulse *pulse;        /* likewise */
    uint64_t running;           /* handlers */
    uint64_t epoch;             /* of the connection, as it was counted last; 0: it was down */

    struct worker_machine *machine;
    uint32_t wish; /* number of messages that the machine wants */
    bool stopping, stopped;
    bool *slow; /* activities that are declared quick and are not, by their place in the program */
    char unknown_names[WORKER_UNKNOWN_NAMES_MAX][THOLE_NAME_BYTES_MAX + 1];
    size_t unknown_names_len;
    uint64_t details_round; /* grows when it is unknown whether heartbeats' details were stored */
    uint64_t warned_ms;     /* when a publish that failed was last logged */
};

/* By the machine's id, which is its address. */
static inline struct thole_activity *worker_activity(uint64_t id)
{
    assert(id != 0);
    return (struct thole_activity *)(uintptr_t)id;
}

/* ---- worker_loop.c ---- */
void *worker_loop_main(void *host);
void worker_loop_state(
    struct worker_host *host); /* any thread: sends the state mail unless one is in the mailbox */
/* Frees what is still in the inbox after the loop has ended; messages are handed back. */
void worker_loop_drain(struct worker_host *host);
/* Hands back what the machine still holds, after the loop of a dead worker has ended. */
void worker_loop_give_up(struct worker_host *host);

/* ---- worker_resume.c: what runs already when the worker starts ---- */
/* Takes the claims over, marks those that are gone, and gives the others to the machine. The last thing
 * before the loop runs. */
THOLE_NODISCARD thole_status worker_resume(struct worker_host *host, thole_error *reterr);
size_t worker_resumed_len(const struct worker_host *host);

/* ---- worker_quick.c ---- */
/* Whether its handler may run on the loop. */
bool worker_is_quick(const struct worker_host *host, const struct thole_activity *act);
/* Runs it here. */
void worker_run_quick(struct worker_host *host, struct thole_activity *act);

/* ---- worker_outputs.c ---- */
/* Gives an input to the machine; not for deliveries, which may be refused. */
void worker_give(struct worker_host *host, const struct worker_in *in);
/* Tells the puller how many messages the machine wants, less those delivered and not yet taken. */
void worker_wish(struct worker_host *host);
void worker_output(struct worker_host *host, const struct worker_out *out);
/* Logs how an activity that was asked to end has ended; others are not logged. */
void worker_say_returned(const struct thole_activity *act);

/* ---- worker_counts.c: what is counted; the loop calls each ---- */
enum { WORKER_STUCK_MS = 60000 }; /* a loop that is busy for so long is stuck */
void worker_count_link(struct worker_host *host);
void worker_count_answer(struct worker_host *host, const struct row_call *call);
void worker_count_fired(struct worker_host *host, const struct worker_out *out);
void worker_count_started(struct worker_host *host, struct thole_activity *act);
void worker_count_returned(struct worker_host *host, const struct thole_activity *act);
void worker_count_published(struct worker_host *host, bool stored);
void worker_count_end(struct worker_host *host, const struct worker_out *out);
/* By the monotonic clock, what was at @p wall_ms; 0: not known. */
uint64_t worker_since_ms(uint64_t wall_ms);
void worker_count_machine(struct worker_host *host); /* copies the machine's counters */

/* ---- worker_results.c ---- */
/* Starts the publishes of finished activities' results, in as few messages as they need; each activity's
 * `published` mail is sent in any case. */
void worker_results_publish(struct worker_host *host, const uint64_t *ids, size_t len);
void worker_result_done(void *host, const struct request_done *done); /* request_done_fn */
#endif
