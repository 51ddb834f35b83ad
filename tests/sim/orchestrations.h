/* The orchestrations under test, written as a user would write them, and what their activities do. */
#ifndef THOLE_SIM_ORCHESTRATIONS_H
#define THOLE_SIM_ORCHESTRATIONS_H
#include "thole/program.h"
#include "world.h"

enum {
    ORCHESTRATIONS_LEN = 19,   /* the first one has activities that kill their workers */
    ORCHESTRATIONS_EARLY = 17, /* only some nodes know the others at first */
    SIM_PAYLOAD_MAX = 2000,
};
/* The result of a look outside: another number each time. The world sets it back. */
extern uint64_t sim_outside;
/* Whether they emit events. The world sets it. */
extern bool sim_emits;
/* Whether some of them start children under the ids of others, and do not wait for the answer. The world sets
 * it. */
extern bool sim_strangers;
extern const thole_orchestration_entry ORCHESTRATIONS[ORCHESTRATIONS_LEN];
/* version 0 = the newest of all; NULL: there is none. */
const thole_orchestration_entry *orchestration_entry(thole_slice name, uint32_t version);

/*
 * Inputs are "letters|instance": how many letters says how much there is to do, the instance is whom to send
 * to. Failures that begin so are never the world's fault:
 */
#define WRONG "WRONG: "
/* Except for these, when one more try of an activity in quarantine was requested: */
#define TRIES_WRONG WRONG "tries: "
#define TIMERS_WRONG WRONG "a later timer fired first"
/* "a;b;" for the items a and b: what a collector gives back. */
#define ITEM_END ";"

/* The output of a completion from outside. */
#define DONE_OUTSIDE "done outside"

/* The course of one run of an activity. status LATER: a completion from outside comes after outside_ms or
 * never. */
struct activity_run {
    uint64_t duration_ms;
    uint64_t returns_after_ms; /* once its token has fired; UINT64_MAX: it ignores the token */
    thole_status status, outside_status;
    uint64_t outside_ms; /* from the start; UINT64_MAX: never */
    const char *error_type;
    bool final;
};
struct activity_run activity_run(struct world *w, thole_slice name);
#endif
