/*
 * Checks that a queue's durable consumer exists and is correct while its worker runs, and asks engines for it
 * otherwise: a consumer that was removed, or whose stream lost its tail, delivers nothing and reports no
 * error. Its thread also asks which activities the queue's workers know, when a caller wants to know.
 */
#ifndef THOLE_QUEUE_KEEPER_H
#define THOLE_QUEUE_KEEPER_H
#include "metrics.h"
#include "served_names.h"
#include "topology.h"

struct queue_keeper;
/* NULL: out of memory. */
struct queue_keeper *queue_keeper_create(void);
/* Before the start: what its thread counts into; NULL: nothing. */
void queue_keeper_count(struct queue_keeper *keeper, struct metric_cells *cells);
/* Before the start: where queue_keeper_ask() keeps what the workers answer, this one, @p self, among them. */
void queue_keeper_listen(struct queue_keeper *keeper, struct served_names *served, thole_slice self);
/* Starts the thread; texts are borrowed until queue_keeper_stop(). */
THOLE_NODISCARD thole_status queue_keeper_start(struct queue_keeper *keeper, struct connection *connection,
                                                const char *ns, const char *queue, uint64_t lease_ms,
                                                thole_error *reterr);
/* The connection is new, or the server refused a pull: check soon. Any thread, any time; does not block. */
void queue_keeper_look(struct queue_keeper *keeper);
/* Asks the workers soon. Any thread, any time; does not block. */
void queue_keeper_ask(struct queue_keeper *keeper);
/* Joins the thread, which ends within a request's time. */
void queue_keeper_stop(struct queue_keeper *keeper);
void queue_keeper_destroy(struct queue_keeper *keeper); /* NULL-safe */
#endif
