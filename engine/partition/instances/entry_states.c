/* Which states of an entry may follow which. */
#include "instances_state.h"
#include <assert.h>

#define TO(state) (1u << ENTRY_##state)

/* lint.state_tables reads these lines. */
static const unsigned next_states[] = {
    [ENTRY_LOADING] = TO(ABSENT) | TO(EARLY) | TO(LIVE) | TO(BLOCKED) | TO(CONTINUED) | TO(ENDED),
    [ENTRY_ABSENT] = TO(ABSENT) | TO(EARLY) | TO(LIVE) | TO(BLOCKED),
    [ENTRY_EARLY] = TO(EARLY) | TO(ABSENT) | TO(LIVE) | TO(BLOCKED),
    [ENTRY_LIVE] = TO(LOADING) | TO(CONTINUED) | TO(ENDED),
    [ENTRY_BLOCKED] = TO(LOADING) | TO(CONTINUED) | TO(ENDED),
    [ENTRY_CONTINUED] = TO(LIVE) | TO(BLOCKED),
    [ENTRY_ENDED] = TO(LOADING) | TO(ABSENT),
};

void entry_become(struct entry *entry, enum entry_state state)
{
    assert((next_states[entry->state] >> state & 1u) != 0 && "no such transition of an entry");
    entry->state = state;
}
