#include "partition_phases.h"

#define TO(phase) (1u << PHASE_##phase)

/* lint.state_tables reads these lines. */
static const unsigned next_phases[] = {
    [PHASE_CLOSED] = TO(LOG),
    [PHASE_LOG] = TO(PROJECTION) | TO(CLOSED),
    [PHASE_PROJECTION] = TO(CRASHES) | TO(CLOSED),
    [PHASE_CRASHES] = TO(LIVE) | TO(CLOSED),
    [PHASE_LIVE] = TO(TIMERS) | TO(CLOSED),
    [PHASE_TIMERS] = TO(SERVING) | TO(CLOSED),
    [PHASE_SERVING] = TO(CLOSING) | TO(CLOSED),
    [PHASE_CLOSING] = TO(CLOSED),
};

bool phase_may_follow(enum phase from, enum phase to)
{
    return (next_phases[from] >> to & 1u) != 0;
}
