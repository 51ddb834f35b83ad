/* A stack with an engine of program_seeds, a client, and eyes: for the tests that the seeds name. */
#ifndef THOLE_SEED_STAGE_H
#define THOLE_SEED_STAGE_H
#include "actors.h"
#include "connection.h"

enum { SEED_PARTITIONS = 8 };

enum { SEED_TEXT_BYTES = 512 };

extern struct seed_stage {
    struct stack stack;
    thole_client *client;
    struct connection *connection;
    struct stack_program *engine;
    thole_error err; /* where tests let errors go */
} seed;

/* Skips without servers; starts everything, runs the suite, stops everything. @p begin: before the engine is
 * started, for the environment; may be NULL. */
int seed_run(const char *suite, const struct thole_test *tests, size_t n, void (*begin)(void));
struct stack_program *seed_program(const char *name, const char *role);
/* Makes a file in $SEEDS_DIR: "INSTANCE.ATTEMPT" lets a run of program_seeds' own worker end, "INSTANCE.all"
 * every one. */
void seed_touch(const char *name);

/* ---- requests of clients ---- */
void seed_start(const char *id, const char *orchestration, const char *queue);
void seed_signal(const char *id, const char *event, const char *data);
void seed_cancel(const char *id, const char *reason);
void seed_terminate(const char *id, const char *reason);
/* Waits for its end. */
void seed_check_outcome(const char *id, const char *want);
/* Like seed_check_outcome(), for "attempt N…": N is at least so much. A busy machine may lose a short lease
 * once more. */
void seed_check_attempt(const char *id, unsigned least);
thole_instance_status seed_end(const char *id, char output[SEED_TEXT_BYTES]);

/* ---- histories ---- */
/* Events of that kind, for that cause unless it is NULL, in all executions. */
size_t seed_events(const char *id, const char *kind, const char *cause);
/* Exactly one event has resolved its activity. */
void seed_check_one_result(const char *id);

/* ---- queues and rows ---- */
/* Of the first try of an activity of execution 1: the sequence of its message in WORK, 0: there is none. */
uint64_t seed_message(const char *queue, const char *id, uint64_t activity_id);
bool seed_is_queued(const char *queue, const char *id, uint64_t activity_id);
/* Waits until the message exists, or is gone. */
bool seed_wait_queued(const char *queue, const char *id, uint64_t activity_id, bool there);
/* Waits until no message is in any queue. */
bool seed_drained(void);
uint64_t seed_inbox_last(const char *id); /* sequence of its partition's inbox */
/* The first cell of the result, "" when there is none; valid until the next call. */
const char *seed_sql(const char *fmt, ...) THOLE_PRINTF(1, 2);
/* Waits until it says so. */
bool seed_wait_sql(const char *want, const char *fmt, ...) THOLE_PRINTF(2, 3);
bool seed_wait_rows(const char *id, unsigned n); /* of worker_queue */
/* So much time passes for the instance's rows of worker_queue, at once: each of their times is so much
 * earlier.
 */
void seed_rows_age(const char *id, uint64_t ms);
#endif
