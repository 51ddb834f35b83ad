/* Inside of the worker node: what it holds, and what it asks of the servers. */
#ifndef THOLE_WORKER_REQUEST_H
#define THOLE_WORKER_REQUEST_H
#include "orchestrations.h"
#include "store_fake.h"
#include "work_fake.h"
#include "worker.h"
#include "worker_node.h"

struct held { /* one delivered message, and its handler */
    struct worker *worker;
    uint64_t id, node_life, link_life, work_sequence;
    uint64_t mine_ms;              /* when a claim or a renewal last found the row its own */
    uint64_t mine_life, mine_made; /* of the store, and of the row, then */
    uint64_t kept_ms;              /* when the last one was sent of those that the machine has heard of */
    size_t instance;
    uint64_t execution, activity_id, attempt;
    uint32_t try_number;
    thole_slice activity, queue, input, lost_worker;
    struct work_digest digest;
    bool forged;
    uint32_t lost;
    uint64_t deliveries, ran_ms;
    struct activity_run run;
    bool quick, claimed, isolated, poisoned, missing, replaced, row_was_there, was_mine, running, finished,
        fired, cancelled, stolen, abandoned, may_publish, published, publish_alone, left, shelved, forgotten;
    thole_slice output;
    struct held *next;
};

struct worker {
    struct node node;
    struct worker_machine *machine;
    uint64_t machine_life;
    char name[48];
    thole_slice identity; /* of this incarnation, unique for ever */
    struct worker_options options;
    struct held *held; /* of this life, newest first */
    struct store_tx *tx;
    uint64_t next_id, wake_ms;
    uint32_t wanted, coming, running;
    bool drive_due, pull_due, ignorant, stopping;
};

/* worker_request.c. Nobody answers signals. */
void worker_asks(struct world *w, struct worker *worker, const struct worker_out *out);
void worker_signals(struct world *w, struct worker *worker, struct held *h, enum signal signal,
                    uint64_t delay_ms);
/* Ends the worker's open transaction if it stays idle. */
void worker_idles(struct world *w, struct worker *worker, uint64_t ms);
/* Results for one partition, in one message. */
void worker_publishes(struct world *w, struct worker *worker, struct held *const *held, size_t len);
/* Nothing stays open on the old one. */
void worker_new_tx(struct world *w, struct worker *worker);
struct held *worker_find_held(const struct worker *worker, uint64_t id);
bool worker_same_try(const struct held *a, const struct held *b);
/* Whether the handler runs, and has not been told to stop. */
bool worker_is_at_it(const struct held *h);

/* worker_node.c */
void worker_hears(struct world *w, struct worker *worker, const struct worker_in *in);
#endif
