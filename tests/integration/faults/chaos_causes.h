/*
 * Why an activity ran twice: docs/guarantees.md, rule 9, names the causes, and each has left a trace. A
 * second run without one of these causes is a fault of thole.
 */
#ifndef THOLE_CHAOS_CAUSES_H
#define THOLE_CHAOS_CAUSES_H
#include "chaos.h"

enum chaos_cause {
    CAUSE_WORKER_ENDED,  /* the first worker ended before the second run */
    CAUSE_LEASE_LOST,    /* the worker logged the loss of its lease or its claim */
    CAUSE_DATABASE_LOST, /* Postgres was killed between the runs */
    CAUSE_FAILOVER,      /* the partition was opened between them, or right before */
    CAUSE_CANCELLED, /* the first run was cancelled, and NATS' stores were away before its row was removed */
    CAUSE_NONE,
    CHAOS_CAUSES
};
extern const char *const chaos_cause_names[CHAOS_CAUSES];

/* One line of $ORDERS_RUNS: who ran what, and when. */
struct chaos_run {
    char key[64]; /* of the activity */
    char name[32];
    int pid;
    uint64_t at_ms; /* monotonic */
};
enum chaos_cause chaos_cause(struct chaos *chaos, const struct chaos_run *first,
                             const struct chaos_run *second);
/* The runs whose key begins so, by key and time. For free(). */
struct chaos_run *chaos_runs(const struct chaos *chaos, const char *prefix, size_t *ret_len);
#endif
