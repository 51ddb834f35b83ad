/* The end of an execution. */
#ifndef THOLE_INSTANCE_END_H
#define THOLE_INSTANCE_END_H
#include "instance_state.h"

/* The code has called thole_continue_as_new(): the execution does so if the code returns THOLE_OK. */
THOLE_NODISCARD thole_status instance_continues(struct instance *in, thole_slice input, uint32_t version);
/* The code has returned. */
void instance_finish(struct instance *in);
/* Ends it by a termination request. Needs no code. */
void instance_terminate(struct instance *in);
/* Applies the recorded end of an execution without code. */
thole_status instance_apply_end(struct instance *in, const struct event *event);
#endif
