/*
 * One rule that is served: its messages are pulled, planned (bind_plan.h), sent to the inbox of the
 * instance's partition, and acknowledged when that has stored them. Nothing else decides that a message is
 * done, so a binder may die at any point: the message comes again, and the request id tells that it was
 * taken.
 */
#ifndef THOLE_BINDING_H
#define THOLE_BINDING_H
#include "bind_rule.h"
#include "binder_lines.h"
#include "bindings.h"
#include "refused_starts.h"
#include "topology.h"
#include <stdatomic.h>

/* Where --test-die-at kills the process. */
enum binding_step {
    BINDING_NO_STEP,
    BINDING_DELIVERED,
    BINDING_SENT,   /* to the inbox; the answer has not come */
    BINDING_STORED, /* in the inbox; not acknowledged */
    BINDING_ACKED,
    BINDING_REJECT_STORED,
};

struct binding_counts {
    atomic_uint_fast64_t sent[BIND_ACTIONS], rejected, put_back, in_flight;
};

/* Shared by the bindings of a binder; outlives them. */
struct binding_host {
    struct connection *connection;
    struct requests *requests; /* done: binding_on_done */
    const struct topology *topology;
    struct refused_starts *refused_starts;
    struct log_limits *lines; /* of binder_lines */
    struct binding_counts counts;
    unsigned die_at;            /* enum binding_step */
    void (*refused)(void *arg); /* a rule's consumer may be gone; must not block */
    void *arg;
};

struct binding;
/* Makes or changes the consumer, and begins. @p rule and @p name are copied. */
THOLE_NODISCARD thole_status binding_open(struct binding_host *host, thole_slice name,
                                          const struct bind_rule *rule, struct binding **ret,
                                          thole_error *reterr);
/* Again, after the server has refused a pull. */
THOLE_NODISCARD thole_status binding_ensure(struct binding *binding, thole_error *reterr);
/* Waits for what is in flight: at most the time of a request. NULL-safe. */
void binding_close(struct binding *binding);
/* Whether the server has refused a pull since the last call. */
bool binding_take_refused(struct binding *binding);
THOLE_NODISCARD thole_status binding_state(struct binding *binding, struct binding_state *ret,
                                           thole_error *reterr);
/* Of host->requests. */
void binding_on_done(void *arg, const struct request_done *done);
#endif
