/*
 * The memory of an execution, and the failure of a turn. Both arenas have a ceiling that users fill, so what
 * does not fit is a status: the turn fails, and nothing of it is recorded.
 */
#ifndef THOLE_INSTANCE_MEMORY_H
#define THOLE_INSTANCE_MEMORY_H
#include "instance_state.h"

/* The turn fails with this; the first caller decides. Returns the status that counts. */
thole_status instance_break(struct instance *in, thole_status status, const char *fmt, ...)
    THOLE_PRINTF(3, 4);
/* The memory ceiling was hit. */
thole_status instance_full(struct instance *in);
/* Copies into the execution's arena; empty stays empty. */
THOLE_NODISCARD thole_status instance_keep(struct instance *in, thole_slice from, thole_slice *ret);
/* The same for what the turn's events borrow; a replayed turn only compares it, at once. */
THOLE_NODISCARD thole_status instance_keep_for_turn(struct instance *in, thole_slice from, thole_slice *ret);
#endif
