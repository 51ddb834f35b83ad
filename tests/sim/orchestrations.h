/* The orchestrations under test, written as a user would write them, and what their activities do. */
#ifndef THOLE_SIM_ORCHESTRATIONS_H
#define THOLE_SIM_ORCHESTRATIONS_H
#include "thole/program.h"
#include "world.h"

enum { ORCHESTRATIONS_LEN = 8, ORCHESTRATION_LATE = 7 /* only some nodes know it at first */ };
extern const thole_orchestration_entry ORCHESTRATIONS[ORCHESTRATIONS_LEN];
thole_orchestration_fn *orchestration_code(thole_slice name); /* NULL: unknown */

/* How one run of an activity goes. */
struct activity_run {
    uint64_t duration_ms;
    uint64_t returns_after_ms; /* once its token has fired; UINT64_MAX: it ignores the token */
    thole_status status;
};
struct activity_run activity_run(struct world *w, thole_slice name);
#endif
