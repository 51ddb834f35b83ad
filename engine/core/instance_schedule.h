/* Scheduling, for the library's own use: no call site is noted. */
#ifndef THOLE_INSTANCE_SCHEDULE_H
#define THOLE_INSTANCE_SCHEDULE_H
#include "instance_state.h"

thole_task schedule_call(struct instance *in, thole_slice name, thole_slice input,
                         const thole_call_options *options);
thole_task schedule_timer(struct instance *in, uint64_t delay_ms);
#endif
