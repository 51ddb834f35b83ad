#include "entry_states.h"

#define TO(state) (1u << ENTRY_##state)

/* lint.state_tables reads these lines. A history that is read again may have become unreadable meanwhile, so
 * every state may follow RECALLED that may follow LOADING. */
static const unsigned next_states[] = {
    [ENTRY_LOADING] =
        TO(ABSENT) | TO(EARLY) | TO(LIVE) | TO(BLOCKED) | TO(UNREADABLE) | TO(CONTINUED) | TO(ENDED),
    [ENTRY_TO_LOAD] = TO(LOADING),
    [ENTRY_RECALLED] =
        TO(ABSENT) | TO(EARLY) | TO(LIVE) | TO(BLOCKED) | TO(UNREADABLE) | TO(CONTINUED) | TO(ENDED),
    [ENTRY_ABSENT] = TO(EARLY) | TO(LIVE) | TO(BLOCKED) | TO(UNREADABLE),
    [ENTRY_EARLY] = TO(ABSENT) | TO(LIVE) | TO(BLOCKED) | TO(UNREADABLE),
    [ENTRY_LIVE] = TO(TO_LOAD) | TO(CONTINUED) | TO(ENDED),
    [ENTRY_BLOCKED] = TO(TO_LOAD) | TO(ENDED),
    [ENTRY_UNREADABLE] = TO(TO_LOAD) | TO(ENDED),
    [ENTRY_CONTINUED] = TO(LIVE) | TO(BLOCKED),
    [ENTRY_ENDED] = TO(RECALLED) | TO(ABSENT),
};

bool entry_may_follow(enum entry_state from, enum entry_state to)
{
    return (next_states[from] >> to & 1u) != 0;
}

enum entry_payload entry_payload_of(enum entry_state state)
{
    switch (state) {
    case ENTRY_LOADING:
    case ENTRY_TO_LOAD: return PAYLOAD_LOADING;
    case ENTRY_EARLY: return PAYLOAD_EARLY;
    case ENTRY_LIVE:
    case ENTRY_BLOCKED:
    case ENTRY_CONTINUED: return PAYLOAD_INSTANCE;
    case ENTRY_RECALLED:
    case ENTRY_ABSENT:
    case ENTRY_UNREADABLE:
    case ENTRY_ENDED: break;
    }
    return PAYLOAD_NONE;
}

bool entry_waits_for_history(enum entry_state state)
{
    return state == ENTRY_LOADING || state == ENTRY_TO_LOAD || state == ENTRY_RECALLED;
}

bool entry_is_over(enum entry_state state)
{
    return state == ENTRY_ABSENT || state == ENTRY_ENDED;
}
