/* A turn's second half. */
#ifndef THOLE_INSTANCE_RUN_H
#define THOLE_INSTANCE_RUN_H
#include "instance_state.h"

/* Lets the code run until it waits or ends; after a termination request, ends without it. */
thole_status instance_run(struct instance *in);
#endif
