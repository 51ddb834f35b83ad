/*
 * Stories of the worker machine: each step is a command, and what the machine says to it.
 *
 * Commands: +MS | msg ID KEY [unknown] [quick] [n=DELIVERIES] [ago=MS] [try=N] [says=N] | claimed STATES |
 * renewed STATES | begun STATES | left STATES | notlost on|off | done ID [cancelled|failed|later|unrun] |
 * published ID ok|? | committed ok|? | released | push KEYS [try=N] [kind=KIND] | slot | stop MS. STATES has
 * a letter for each row: m(ine), x (missing), s(tolen), n (nobody knows), of claims also h (held by another,
 * for 4 s), H (for an hour), t (mine, and has 5 s), e (mine, and is past its deadline), u (a poison
 * candidate), a digit (mine, and was lost so often), p (mine, and poisoned), o (mine, of an older engine), f
 * (forged); or is "?": unknown. Keys are of try 1 unless they say. KEYS are letters; each is an activity of
 * its own. NOT_LOST is answered at once, as notlost says. "same as ID": a message came again.
 *
 * Lease 30 s: renewed every 10 s unless the story says, after an unknown answer every 1 s, fenced 28 s after
 * the last. Grace 10 s, stop grace 2 s, two slots, two completions more.
 */
#ifndef THOLE_WORKER_STORY_H
#define THOLE_WORKER_STORY_H
#include "worker.h"

enum {
    STORY_STEPS_MAX = 24,
    STORY_DEADLINE_MS = 5000,
    STORY_HELD_MS = 4000,
    STORY_HELD_LONG_MS = 3600 * 1000
};

struct story {
    const char *name;
    struct {
        const char *does, *says;
    } steps[STORY_STEPS_MAX];
    uint64_t renew_ms; /* 0: a third of the lease */
    uint64_t grace_ms; /* 0: 10 s */
    uint64_t silence_ms;
    size_t times; /* how often the steps are gone through, by the same machine; 0: once */
};

/* Tells it to a new machine, which has said "want 2", and checks what is said. */
void story_tell(const struct story *story);
/* The activity that a letter names. */
struct worker_key story_key(char letter);
#endif
