/*
 * The engine says how it is to who asks on thole.<ns>.engines.<node>.state: how its partitions are, what its
 * lookout has seen, and its clock. Core NATS, nothing is stored.
 */
#ifndef THOLE_ENGINE_STATE_H
#define THOLE_ENGINE_STATE_H
#include "connection.h"

struct engine_host;
/* To be closed before what it tells of is destroyed. */
THOLE_NODISCARD thole_status engine_state_tell(struct engine_host *engine, struct subscription **ret,
                                               thole_error *reterr);
#endif
