/*
 * The system that program_chaos disturbs: one NATS server, or three as a cluster whose routes go through
 * proxies, Postgres, two engines, two workers, each program and Postgres with a clock of its own; and the
 * disturbances: of processes, disks, routes and clocks in chaos.c, of the servers' data in chaos_stores.c.
 * Everything here belongs to the main thread.
 */
#ifndef THOLE_CHAOS_H
#define THOLE_CHAOS_H
#include "defect_stage.h"
#include "jumping_clock.h"
#include "stack.h"
#include "tcp_proxy.h"
#include <stdatomic.h>

enum { CHAOS_ENDS_MAX = 4096 };
enum {
    CHAOS_NATS = 3, /* at most */
    CHAOS_PROGRAMS = 4,
    CHAOS_CLOCKS = CHAOS_PROGRAMS + 1
};

struct chaos {
    struct stack stack;
    struct server nats[CHAOS_NATS];
    size_t nats_len;                                  /* 1 or 3 */
    struct stage stage;                               /* damages the stores */
    struct tcp_proxy *routes[CHAOS_NATS][CHAOS_NATS]; /* [i][j]: from i to j < i */
    struct stack_program *programs[CHAOS_PROGRAMS];   /* two engines, two workers */
    bool has_small_disk;                              /* the last NATS server's store is a small tmpfs */
    struct jumping_clock clocks[CHAOS_CLOCKS];        /* of each program, and of Postgres */
    struct chaos_end {
        int pid; /* see chaos_note_end() */
        uint64_t at_ms;
    } ends[CHAOS_ENDS_MAX]; /* of what was killed or asked to end; when that began, monotonic */
    size_t ends_len;
    size_t restarts[CHAOS_PROGRAMS];
    struct chaos_removal *removal; /* of the instances of the round before; NULL: none is under way */
    bool may_refuse;               /* an engine that is started now has to refuse what it finds, and ends */
    atomic_bool bursts;            /* the clients start without a pause */
    unsigned ended_alone;          /* programs that ended, or whose engine did, without being told to */
    char runs[128];                /* the file $ORDERS_RUNS */
    uint64_t seed;
};

/* A kind of fault; begin() and end() take the target that was drawn. */
struct chaos_fault {
    const char *name;
    size_t targets;
    void (*begin)(struct chaos *chaos, size_t target);
    void (*end)(struct chaos *chaos, size_t target);
    bool (*possible)(const struct chaos *chaos); /* NULL: always */
};
extern const struct chaos_fault chaos_faults[], chaos_store_faults[];
extern const size_t chaos_faults_len, chaos_store_faults_len;

/* With one NATS server, or three. Exits with a message when it cannot be started. */
void chaos_start(struct chaos *chaos, uint64_t seed, size_t servers);
void chaos_stop(struct chaos *chaos);
/* Everything runs and is connected again, whatever was done. */
void chaos_heal(struct chaos *chaos);
uint64_t chaos_random(struct chaos *chaos, uint64_t below);

/* ---- for the faults themselves ---- */

void chaos_must(bool done, const char *what, const thole_error *err);
void chaos_shell(const char *fmt, ...) THOLE_PRINTF(1, 2);
enum { CHAOS_NATS_STORES = -1 };
/* Of a program's process; 0: of the database or of its rows; CHAOS_NATS_STORES: they were exchanged. What it
 * did may be done again. */
void chaos_note_end(struct chaos *chaos, int pid);
void chaos_kill_program(struct chaos *chaos, size_t i);
void chaos_start_program(struct chaos *chaos, size_t i);
void chaos_start_server(struct chaos *chaos, struct server *server);

/* Waits until each server has all of the streams: a loss of power beside a replica that lags may lose
 * acknowledged messages (docs/operations.md). */
void chaos_wait_current(struct chaos *chaos);

/* ---- the removal of the round before ---- */

/* The ids that a removal will take; copied. Called between two rounds. */
void chaos_removal_offer(const char *id);
/* Waits until all that were offered to a removal that was begun are gone. How many are not, or stand in a
 * table all the same; the offer is empty afterwards. */
unsigned chaos_removal_check(struct chaos *chaos);

#endif
