/* Which states of the log may follow which. */
#include "log_state.h"
#include <assert.h>

#define TO(state) (1u << LOG_##state)

/* lint.state_tables reads these lines. */
static const unsigned next_states[] = {
    [LOG_CLOSED] = TO(READING) | TO(CLOSED),
    [LOG_READING] = TO(READING) | TO(REMOVING) | TO(FOUND) | TO(LOST) | TO(CLOSED),
    [LOG_REMOVING] = TO(READING) | TO(FOUND) | TO(CLOSED),
    [LOG_FOUND] = TO(OPENING) | TO(CLOSED),
    [LOG_OPENING] = TO(OPEN) | TO(FAILING) | TO(LOST) | TO(CLOSED),
    [LOG_OPEN] = TO(FAILING) | TO(LOST) | TO(CLOSED),
    [LOG_FAILING] = TO(LOST) | TO(CLOSED),
    [LOG_LOST] = TO(CLOSED),
};

void log_become(struct partition_log *log, enum log_state state)
{
    assert((next_states[log->state] >> state & 1u) != 0 && "no such transition of the log");
    log->state = state;
}
