/* Recorded turns without code. */
#ifndef THOLE_INSTANCE_APPLY_H
#define THOLE_INSTANCE_APPLY_H
#include "instance_state.h"

/* Takes what a turn asked for as facts. */
thole_status instance_apply(struct instance *in);
#endif
