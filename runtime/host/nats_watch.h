/*
 * The log lines and counters of a role about its connections to NATS: that they are lost and made again, why
 * they cannot be made, what the server forbids, and requests that failed. Any thread.
 */
#ifndef THOLE_NATS_WATCH_H
#define THOLE_NATS_WATCH_H
#include "connection.h"
#include "log.h"
#include "metrics.h"
#include "requests.h"
#include <pthread.h>

struct nats_watch {
    const char *area; /* of its lines; static text */
    enum log_level
        state_level; /* of the lines about the connection: WARN, or DEBUG where another one says it */
    struct metric_cells *cells; /* NULL: nothing is counted */
    pthread_mutex_t lock;
    /* When these lines were written last; monotonic, 0: not yet. The first two: in this outage. */
    uint64_t waiting_ms, denied_ms, forbidden_ms;
    unsigned forbidden_lines, forbidden_more; /* written, and not written, since forbidden_ms */
    uint64_t forbidden_last_ms;               /* when the server has last reported one, and what it was */
    thole_error forbidden;
};

void nats_watch_begin(struct nats_watch *watch, const char *area, enum log_level state_level,
                      struct metrics *metrics);
/* When its connections are closed. */
void nats_watch_end(struct nats_watch *watch);
/* From a connection_state_fn. */
void nats_watch_state(struct nats_watch *watch, bool connected);
/* From a connection_trouble_fn. */
void nats_watch_trouble(struct nats_watch *watch, enum connection_trouble trouble, const thole_error *error);
/* Counts a request that failed, or a first attempt to connect. */
void nats_watch_failed(struct nats_watch *watch, thole_status status);
/* Like nats_watch_failed(), by the answer to a request; a successful one is not counted. */
void nats_watch_answered(struct nats_watch *watch, enum request_result result, uint32_t err_code);
/* The label of METRIC_NATS_ERRORS. */
size_t nats_error_class(enum request_result result, uint32_t err_code);
/* The last thing that the server has forbidden, if that was within the last @p within_ms: the likely reason
 * for a publish that nothing has answered. False: nothing. */
bool nats_watch_forbidden(struct nats_watch *watch, uint64_t within_ms, thole_error *ret);
#endif
