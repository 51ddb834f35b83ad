/*
 * The memory of an execution, and the failure of a turn. Both arenas have a ceiling, since users fill them:
 * beyond it the turn fails with a status, and nothing of it is recorded.
 */
#ifndef THOLE_INSTANCE_MEMORY_H
#define THOLE_INSTANCE_MEMORY_H
#include "instance_state.h"

/* Makes the turn fail with this status; the first call counts. Returns the status that counts. */
thole_status instance_break(struct instance *in, thole_status status, const char *fmt, ...)
    THOLE_PRINTF(3, 4);
/* Makes the turn fail because an arena is full. */
thole_status instance_full(struct instance *in);
/* Copies into the execution's arena; empty stays empty. */
THOLE_NODISCARD thole_status instance_keep(struct instance *in, thole_slice from, thole_slice *ret);
/* Like instance_keep(), into the turn's arena, for the turn's events; in a replayed turn @p from is only
 * compared and not copied. */
THOLE_NODISCARD thole_status instance_keep_for_turn(struct instance *in, thole_slice from, thole_slice *ret);
#endif
