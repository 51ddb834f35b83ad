#include "lease_states.h"
#include <stddef.h>

#define TO(state) (1u << LEASE_##state)

/* lint.state_tables reads these lines. */
static const unsigned next_states[LEASE_STATES] = {
    [LEASE_FREE] = TO(NEW),
    [LEASE_NEW] = TO(PARKED) | TO(UNSERVED) | TO(QUEUED) | TO(QUICK) | TO(RUNNING) | TO(ENDED),
    [LEASE_PARKED] = TO(ENDED),
    [LEASE_UNSERVED] = TO(SHELVING) | TO(ENDED),
    [LEASE_SHELVING] = TO(ENDED),
    [LEASE_QUEUED] = TO(CLAIMING) | TO(ENDED),
    [LEASE_QUICK] = TO(QUEUED) | TO(COMPLETING) | TO(ENDED),
    [LEASE_ISOLATED] = TO(CLAIMING) | TO(ENDED),
    [LEASE_CLAIMING] = TO(PARKED) | TO(QUEUED) | TO(ISOLATED) | TO(STARTING) | TO(CONFIRMING) | TO(READY) |
                       TO(TO_RELEASE) | TO(ENDED),
    [LEASE_STARTING] = TO(RUNNING) | TO(CONFIRMING) | TO(READY) | TO(TO_RELEASE) | TO(ENDED),
    [LEASE_RUNNING] = TO(CANCELLING) | TO(READY) | TO(TO_LEAVE) | TO(TO_RELEASE),
    [LEASE_CANCELLING] = TO(CONFIRMING) | TO(READY) | TO(TO_LEAVE) | TO(TO_RELEASE) | TO(ENDED),
    [LEASE_CONFIRMING] = TO(ENDED),
    [LEASE_READY] = TO(COMPLETING) | TO(TO_RELEASE) | TO(ENDED),
    [LEASE_COMPLETING] = TO(QUEUED) | TO(READY) | TO(RETRYING) | TO(TO_RELEASE) | TO(ENDED),
    [LEASE_TO_LEAVE] = TO(LEAVING) | TO(TO_RELEASE) | TO(ENDED),
    [LEASE_LEAVING] = TO(RETRYING) | TO(TO_RELEASE) | TO(ENDED),
    [LEASE_RETRYING] = TO(READY) | TO(TO_LEAVE) | TO(TO_RELEASE) | TO(ENDED),
    [LEASE_TO_RELEASE] = TO(RELEASING),
    [LEASE_RELEASING] = TO(ENDED),
    [LEASE_ENDED] = TO(FREE),
};

bool lease_may_follow(enum lease_state from, enum lease_state to)
{
    return ((next_states[from] >> to) & 1u) != 0;
}
