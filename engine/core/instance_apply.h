/* Recorded turns without code. */
#ifndef THOLE_INSTANCE_APPLY_H
#define THOLE_INSTANCE_APPLY_H
#include "instance_state.h"

/* Takes the new events of a recorded turn as facts. */
thole_status instance_apply(struct instance *in);
#endif
