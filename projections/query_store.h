/* Reads for people: show and list. Statuses: see postgres.h, and THOLE_NOT_FOUND. A callback must not use the
 * connection; anything but THOLE_OK from it stops the reading and is returned. */
#ifndef THOLE_QUERY_STORE_H
#define THOLE_QUERY_STORE_H
#include "arena.h"
#include "postgres.h"
#include "thole/client.h"

THOLE_NODISCARD thole_status query_store_show(struct postgres *pg, thole_slice instance,
                                              thole_instance_fn *each, void *arg, thole_error *reterr);
/*
 * Newest first by created_ms, then by id. Reads pages of 500, each a round trip: no row comes twice, and
 * instances that start meanwhile are not included. THOLE_LIMIT for a prefix that no id can have.
 */
THOLE_NODISCARD thole_status query_store_list(struct postgres *pg, const thole_list_filter *filter,
                                              thole_instance_fn *each, void *arg, thole_error *reterr);
/* By status, at most COUNT_MAX of each. */
enum { COUNT_MAX = 10000 };
THOLE_NODISCARD thole_status query_store_count(struct postgres *pg, const thole_list_filter *filter,
                                               thole_instance_counts *ret, thole_error *reterr);
/* The executions of an instance by their numbers, in pages of 500. */
THOLE_NODISCARD thole_status query_store_executions(struct postgres *pg, thole_slice instance,
                                                    thole_execution_fn *each, void *arg, thole_error *reterr);
/* Activities in quarantine, newest first, in pages like query_store_list(). */
THOLE_NODISCARD thole_status query_store_poisoned(struct postgres *pg, const thole_poisoned_filter *filter,
                                                  thole_poisoned_fn *each, void *arg, thole_error *reterr);

/* An instance's rows of worker_queue, by execution and id; at most 10,000. */
THOLE_NODISCARD thole_status query_store_activities(struct postgres *pg, thole_slice instance,
                                                    thole_activity_info_fn *each, void *arg,
                                                    thole_error *reterr);

/* Rows of an instance that are set aside, by table and key; at most 1,000. */
THOLE_NODISCARD thole_status query_store_set_aside(struct postgres *pg, thole_slice instance,
                                                   thole_set_aside_fn *each, void *arg, thole_error *reterr);
/* Of all instances. */
struct set_aside_total {
    uint64_t rows, instances;
    char first[512]; /* one of which row, and why; one line */
};
THOLE_NODISCARD thole_status query_store_set_aside_total(struct postgres *pg, struct set_aside_total *ret,
                                                         thole_error *reterr);

/* Number of activities in a queue, by name; in memory of @p arena. Reads all rows. */
struct queue_activity {
    thole_slice queue, activity;
    uint64_t activities;
};
THOLE_NODISCARD thole_status query_store_queue_activities(struct postgres *pg, thole_slice queue,
                                                          struct arena *arena, struct queue_activity **ret,
                                                          size_t *ret_len, thole_error *reterr);

/* Activities of one queue that one worker holds, or, with an empty worker, none. */
struct queue_row {
    thole_slice queue, worker;
    uint64_t activities, outside, poisoned;
    uint64_t silent_ms; /* since the worker's last claim or renewal */
    uint64_t oldest_ms; /* how long the oldest of them without a lease has been there */
};
/* Of that queue, or of all when it is empty, by queue and worker. One statement that reads all rows of
 * worker_queue. The rows are the arena's. */
THOLE_NODISCARD thole_status query_store_queues(struct postgres *pg, thole_slice queue, struct arena *arena,
                                                struct queue_row **ret, size_t *ret_len, thole_error *reterr);
/* By orchestration and reason; @p named: each with its oldest example. */
THOLE_NODISCARD thole_status query_store_standing(struct postgres *pg, bool named, thole_standing_fn *each,
                                                  void *arg, thole_error *reterr);
#endif
