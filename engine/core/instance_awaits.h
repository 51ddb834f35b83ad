/* The awaits, for the library's own use: no call site is noted. What the code calls is in
 * thole/orchestration.h. */
#ifndef THOLE_INSTANCE_AWAITS_H
#define THOLE_INSTANCE_AWAITS_H
#include "instance_state.h"

THOLE_NODISCARD thole_status await_one(struct instance *in, thole_task task, thole_slice *ret_result);
/* An outstanding one, against a timer of limit_ms: THOLE_TIMEOUT when that wins. */
THOLE_NODISCARD thole_status await_within(struct instance *in, const struct task *task, thole_task limit,
                                          uint64_t limit_ms, thole_slice *ret_result);
#endif
