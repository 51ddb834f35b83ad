/* Which states of the projection, and of its batches, may follow which. */
#include "projection_state.h"
#include <assert.h>

#define TO(state) (1u << PROJECTION_##state)

/* lint.state_tables reads these lines. */
static const unsigned next_states[] = {
    [PROJECTION_CLOSED] = TO(REGISTERING) | TO(CLOSED),
    [PROJECTION_REGISTERING] = TO(RESETTING) | TO(CATCHING_UP) | TO(FAILED) | TO(CLOSED),
    [PROJECTION_RESETTING] = TO(CATCHING_UP) | TO(CLOSED),
    [PROJECTION_CATCHING_UP] = TO(RESETTING) | TO(CURRENT) | TO(FAILED) | TO(CLOSED),
    [PROJECTION_CURRENT] = TO(FAILED) | TO(CLOSED),
    [PROJECTION_FAILED] = TO(CLOSED),
};

void projection_become(struct projection *p, enum projection_state state)
{
    assert((next_states[p->state] >> state & 1u) != 0 && "no such transition of the projection");
    p->state = state;
}

#undef TO
#define TO(state) (1u << BATCH_##state)

/* lint.state_tables reads these lines, too. A batch that is published is destroyed. */
static const unsigned next_batch_states[] = {
    [BATCH_FILLING] = TO(SEALED) | TO(REMOVING) | TO(APPLYING) | TO(PUBLISHING),
    [BATCH_SEALED] = TO(REMOVING) | TO(APPLYING) | TO(PUBLISHING),
    [BATCH_REMOVING] = TO(REMOVING) | TO(APPLYING),
    [BATCH_APPLYING] = TO(APPLYING) | TO(PUBLISHING),
    [BATCH_PUBLISHING] = 0,
};

void projection_batch_become(struct projection_batch *batch, enum batch_state state)
{
    assert((next_batch_states[batch->state] >> state & 1u) != 0 && "no such transition of a batch");
    batch->state = state;
}
