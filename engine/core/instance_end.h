/* How an execution ends. */
#ifndef THOLE_INSTANCE_END_H
#define THOLE_INSTANCE_END_H
#include "instance_state.h"

/* The code has asked to continue as new: it does if it succeeds. */
THOLE_NODISCARD thole_status instance_continues(struct instance *in, thole_slice input, uint32_t version);
/* The code has returned. */
void instance_finish(struct instance *in);
/* By request. Needs no code. */
void instance_terminate(struct instance *in);
/* The recorded end of an execution without code. */
thole_status instance_apply_end(struct instance *in, const struct event *event);
#endif
