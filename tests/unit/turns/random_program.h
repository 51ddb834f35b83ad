/*
 * Random orchestrations fed with random events. The input is a program of which each byte is an operation, so
 * the code is deterministic and does everything in every order. What is seen of it from outside is followed
 * beside it: what is outstanding, which try runs, who was told of which event.
 */
#ifndef THOLE_RANDOM_PROGRAM_H
#define THOLE_RANDOM_PROGRAM_H
#include "play.h"

enum { RANDOM_EVENTS_MAX = 2000, RANDOM_SERIALS_MAX = 300 };

uint64_t random_next(uint64_t *state);

/* The facts of an execution from its recorded events. */
struct outside {
    uint64_t events;                            /* recorded so far */
    enum event_kind kind_of[RANDOM_EVENTS_MAX]; /* by event id */
    bool resolved[RANDOM_EVENTS_MAX];
    bool waiting[RANDOM_EVENTS_MAX];    /* for the next try */
    uint32_t try_of[RANDOM_EVENTS_MAX]; /* 0: has no policy */
    bool abandoned[RANDOM_EVENTS_MAX];  /* a child's close policy */
    bool paused, ended, cancelled, terminated, continued;
    size_t serials; /* events received: each carries its number */
};

struct random_run {
    uint64_t random;
    struct arena arena; /* of what is fed */
    struct played played;
    struct outside outside;
};

/* The orchestration. */
thole_status random_program(thole_ctx *ctx, thole_slice input, thole_slice *ret_output);
/* Which task was told of the event with that number, by the code that ran last; 0 = none. */
uint64_t random_told_to(size_t serial);
/* From here on histories are damaged, or not: an event may then come twice. */
void random_damaged(bool histories_are);
/* Runs it live; the first turn begins with @p first, or with a program of its own when there is none. */
struct instance *random_run_live(struct random_run *run, const struct event *first, size_t first_len);
void random_run_init(struct random_run *run, const struct play *play, uint64_t seed);
void random_run_release(struct random_run *run);
#endif
