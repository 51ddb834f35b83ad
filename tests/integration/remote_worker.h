/*
 * A worker that has a NATS connection and nothing else: it takes part by way of a gateway, as docs/gateway.md
 * tells workers in any language to, in protobuf. It runs the activities of an ordinary program on threads, so
 * that a test of workers can be run with it, too.
 *
 * It has as many sessions as it needs: when the gateway of one does not answer, its tasks go on as long as
 * its lease lasts, and another session is opened for the slots that are free.
 */
#ifndef THOLE_REMOTE_WORKER_H
#define THOLE_REMOTE_WORKER_H
#include "thole/program.h"

struct remote_worker_options {
    const char *nats_url, *ns, *name, *queue;
    const char *inbox; /* prefix of its inboxes; NULL: the default */
    uint32_t slots;
    uint64_t stop_limit_ms;
};
struct remote_worker;
/* Returns when a gateway has opened a session. Borrows the options' texts. Ends the test program when that
 * takes longer than a minute. */
struct remote_worker *remote_worker_start(const struct remote_worker_options *options,
                                          const thole_program *program);
/* Graceful, as a worker stops: what runs may end within the limit, and is told to end then. NULL-safe. */
void remote_worker_stop(struct remote_worker *worker);
/* How many sessions it has opened; the subject of the last one, without the operation. */
unsigned remote_worker_sessions(struct remote_worker *worker);
void remote_worker_subject(struct remote_worker *worker, char ret[256]);

/* thole_main(), with one role more: "remote", which has the options of a worker. */
int remote_or_main(int argc, char **argv, const thole_program *program);
#endif
