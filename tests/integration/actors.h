/*
 * Workers in the test's own process whose activities wait for the test's word, and what those saw. Each
 * worker may have a network of its own: a proxy between it and NATS, and one between it and Postgres.
 *
 * Activities, whose input is not looked at:
 *   polite       ends when the test says so, or its token fires
 *   rude         ends when the test says so, whatever its token says
 *   echo         ends at once
 *   fails_once   fails in the first try; later ones are polite
 *   spawns       starts three threads that mind its token, and waits for them
 *   forgets      starts a thread that minds nothing but the test's word, and is itself polite
 * They return "attempt N by W": N as claimed, W the letter of the worker. program_seeds has orchestrations
 * that call them on the queue that a test wants.
 */
#ifndef THOLE_ACTORS_H
#define THOLE_ACTORS_H
#include "gateway_host.h"
#include "remote_worker.h"
#include "stack.h"
#include "tcp_proxy.h"
#include "thole/activity.h"
#include "worker_host.h"

enum { ACTOR_WAIT_MS = 60000, ACTOR_ID_BYTES = 64 };

struct actor_run {
    char instance[ACTOR_ID_BYTES], queue[ACTOR_ID_BYTES];
    uint64_t execution, activity_id;
    uint32_t try_number, attempt;
    char worker;
    bool fired, returned;
    thole_cancel_kind kind; /* when its token fired */
    char reason[ACTOR_ID_BYTES];
};

/* Runs of the instance with at most that attempt may return; for all that come, too. */
void actors_release(const char *instance, uint32_t attempts);
/* How many runs were begun of an instance (NULL: of any) on a queue (NULL: any). */
size_t actors_runs(const char *instance, const char *queue);
/* Copies the n-th run of the instance, from 0, in the order in which they were begun; false: there is none.
 */
bool actors_run(const char *instance, size_t n, struct actor_run *ret);
/* Wait until there is a run with at least that attempt; until run n's token has fired; until it has returned.
 * False: that took longer than ACTOR_WAIT_MS. */
bool actors_wait_attempt(const char *instance, uint32_t attempt);
bool actors_wait_runs(const char *instance, size_t n);
bool actors_wait_fired(const char *instance, size_t n);
bool actors_wait_returned(const char *instance, size_t n);

/* Called on the handler's thread before anything else; NULL: nothing. */
void actors_on_begin(void (*call)(const thole_activity *act));
/* Threads of spawns and forgets that live. */
size_t actors_children(void);
bool actors_wait_children(size_t n);

struct actor_worker {
    struct worker_host *host;
    struct gateway_host *gateway; /* of one elsewhere, which has no network of its own: its gateway has */
    struct remote_worker *remote;
    struct tcp_proxy *nats, *postgres; /* NULL: it is connected directly */
    char nats_url[128], postgres_url[160];
    struct host_options options;
};
/* Starts it; the options are what a test may change before. Slots 2, grace long. Ends the test program when
 * it cannot be started. @p letter: A or B. */
void actor_options(struct actor_worker *worker, const struct stack *stack, const char *queue,
                   uint64_t lease_ms);
void actor_proxies(struct actor_worker *worker, const struct stack *stack);
void actor_start(struct actor_worker *worker, char letter);
/* Their activities, for other kinds of workers. */
const thole_program *actors_program(char letter);
/* Like actor_start(), through a gateway of its own, which runs in the test's process, too. */
void actor_start_elsewhere(struct actor_worker *worker, const struct stack *stack, char letter);
void actor_stop(struct actor_worker *worker); /* zeroed: nothing happens */
#endif
