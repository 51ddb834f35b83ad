/*
 * Stories of the worker machine: each step is a command, and what the machine says to it.
 *
 * Commands: up E | down | +MS | msg ID KEY [epoch=E] [unknown] [n=DELIVERIES] [ago=MS] | claimed STATES |
 * renewed STATES | begun STATES | wpi on|off | done ID [cancelled|failed] | published ID ok|? | committed
 * ok|? | released | push KEYS | slot | stop MS. STATES has a letter for each row: m(ine), x (missing),
 * s(tolen), or is "?": unknown. KEYS are letters; each is an activity of its own. +WPI is answered at once,
 * as wpi says.
 *
 * Lease 30 s: renewed every 10 s, after an unknown answer every 1 s, fenced 28 s after the last. Grace 10 s,
 * stop grace 2 s, two slots, two completions more.
 */
#ifndef THOLE_WORKER_STORY_H
#define THOLE_WORKER_STORY_H
#include "worker.h"

enum { STORY_STEPS_MAX = 24 };

struct story {
    const char *name;
    struct {
        const char *does, *says;
    } steps[STORY_STEPS_MAX];
};

/* Tells it to a new machine, after "up 1" with the answer "want 2", and checks what is said. */
void story_tell(const struct story *story);
/* The activity that a letter names. */
struct worker_key story_key(char letter);
#endif
