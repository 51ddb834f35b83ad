/*
 * The cluster that program_chaos disturbs: three NATS servers whose routes go through proxies, Postgres, two
 * engines, two workers, each program and Postgres with a clock of its own; and what is done to them.
 * Everything here belongs to the main thread.
 */
#ifndef THOLE_CHAOS_H
#define THOLE_CHAOS_H
#include "jumping_clock.h"
#include "stack.h"
#include "tcp_proxy.h"

enum { CHAOS_ENDS_MAX = 4096 };
enum { CHAOS_NATS = 3, CHAOS_PROGRAMS = 4, CHAOS_CLOCKS = CHAOS_PROGRAMS + 1 };

struct chaos {
    struct stack stack;
    struct server nats[CHAOS_NATS];
    struct tcp_proxy *routes[CHAOS_NATS][CHAOS_NATS]; /* [i][j]: from i to j < i */
    struct stack_program *programs[CHAOS_PROGRAMS];   /* two engines, two workers */
    bool has_small_disk;                              /* the last NATS server's store is a small tmpfs */
    struct jumping_clock clocks[CHAOS_CLOCKS];        /* of each program, and of Postgres */
    int64_t engines_ahead_ms;
    struct chaos_end {
        int pid; /* of a program; 0: Postgres */
        uint64_t at_ms;
    } ends[CHAOS_ENDS_MAX]; /* of what was killed or asked to end; when that began, monotonic */
    size_t ends_len;
    size_t restarts[CHAOS_PROGRAMS];
    unsigned ended_alone; /* programs that ended, or whose engine did, without being told to */
    char runs[128];       /* the file $ORDERS_RUNS */
    uint64_t seed;
};

/* A kind of fault; begin() and end() take the target that choose() gave. */
struct chaos_fault {
    const char *name;
    size_t targets;
    void (*begin)(struct chaos *chaos, size_t target);
    void (*end)(struct chaos *chaos, size_t target);
    bool (*possible)(const struct chaos *chaos); /* NULL: always */
};
extern const struct chaos_fault chaos_faults[];
extern const size_t chaos_faults_len;

/* Exits with a message when it cannot be started. */
void chaos_start(struct chaos *chaos, uint64_t seed);
void chaos_stop(struct chaos *chaos);
/* Everything runs and is connected again, whatever was done. */
void chaos_heal(struct chaos *chaos);
uint64_t chaos_random(struct chaos *chaos, uint64_t below);

#endif
