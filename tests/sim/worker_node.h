/* A node that hosts the worker machine: pulls, claims, runs handlers in virtual time, completes. */
#ifndef THOLE_WORKER_NODE_H
#define THOLE_WORKER_NODE_H
#include "net_fake.h"
#include "partition.h"

struct worker;
struct worker *worker_node_create(struct world *w, unsigned index);
void worker_node_destroy(struct worker *worker);
void worker_node_crash(struct world *w, struct worker *worker, uint64_t down_ms);
/* Asks it to stop gracefully; it starts again afterwards. */
void worker_node_stop(struct world *w, struct worker *worker);
void worker_node_learns(struct worker *worker);
void worker_node_loses_link(struct world *w, struct worker *worker, enum server server);
struct node *worker_node(struct worker *worker);

bool workers_know(const struct world *w, thole_slice activity); /* one that lives */
void workers_stir(struct world *w);                             /* there may be something to pull */
/* A cancellation is published; each worker may or may not hear it. */
void workers_pushed(struct world *w, const struct cancel_notice *out);
#endif
