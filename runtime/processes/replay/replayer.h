/*
 * Replays recorded histories with a program's code. Takes records that count, in stream order, of any number
 * of instances. A divergence is reported, once for each execution; the others continue. No I/O. One thread at
 * a time for each replayer.
 *
 * Memory is bounded: when the executions take more than allowed, half of the instances (by a hash of the id)
 * are dropped and left for another pass over the same records:
 *
 *   do { for each record: replayer_take(); } while (replayer_pass(replayer));
 */
#ifndef THOLE_REPLAYER_H
#define THOLE_REPLAYER_H
#include "event.h"
#include "thole/program.h"

struct replay_report {
    thole_slice instance;
    uint64_t execution, turn;
    thole_status status; /* NONDETERMINISM; NOT_FOUND: it runs, and the program lacks its code; or why it
                            cannot be replayed: CORRUPT, UNSUPPORTED, LIMIT */
    const char *text;
    const void *call_site; /* return address of the code's last call of the library; NULL = unknown */
};
/* False: enough, stop. */
typedef bool replay_report_fn(void *arg, const struct replay_report *report);
/* Called before a report: whether the instance was deleted meanwhile, so that records may be missing.
 */
typedef bool replay_gone_fn(void *arg, thole_slice instance);

/* The code has come to replay_options.until_event; it is called on the code's stack. */
typedef void replay_reached_fn(void *arg, const struct replay_report *report);

struct replay_options {
    const thole_program *program;  /* borrowed, as is all else */
    size_t memory_max, stacks_max; /* of all executions under way */
    size_t instance_memory_max, payload_max;
    replay_report_fn *report;
    replay_gone_fn *gone; /* NULL: no deletions */
    replay_reached_fn *reached;
    uint64_t until_execution, until_event; /* execution 0: of each; event 0: nothing */
    void *arg;
};

/* Executions that were replayed to the end of their records; also those that diverged. */
struct replay_counts {
    uint64_t instances, executions, turns, events;
    uint64_t diverged, unreadable; /* executions */
    uint64_t without_code;
    uint64_t running_without_code; /* of these: of instances that have not ended */
    char unknown[256];             /* names of orchestrations that the program does not register */
};

struct replayer;
struct replayer *replayer_create(const struct replay_options *options);
void replayer_destroy(struct replayer *replayer); /* NULL-safe */

/* The record is borrowed for the call. THOLE_CANCELLED: the report function returned false; THOLE_NOMEM. All
 * other errors are reports. */
THOLE_NODISCARD thole_status replayer_take(struct replayer *replayer, const struct record *record);
/* A record of @p instance that does not decode. */
THOLE_NODISCARD thole_status replayer_take_damage(struct replayer *replayer, thole_slice instance,
                                                  uint64_t execution, thole_status status, const char *text);
/* @p instance was deleted; later records of the id are of another instance. */
void replayer_take_deletion(struct replayer *replayer, thole_slice instance);
/* All records have been given: reports running executions of which the program lacks the code. True: another
 * pass is needed. */
bool replayer_pass(struct replayer *replayer);
/* Reading was cut short: counts what has been replayed so far. */
void replayer_cut(struct replayer *replayer);
struct replay_counts replayer_counts(const struct replayer *replayer);
/* Adds @p more to @p to. */
void replay_counts_add(struct replay_counts *to, const struct replay_counts *more);
#endif
