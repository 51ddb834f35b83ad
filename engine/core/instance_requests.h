/* The request ids that an execution has seen, to recognise repetitions at any time. */
#ifndef THOLE_INSTANCE_REQUESTS_H
#define THOLE_INSTANCE_REQUESTS_H
#include "instance_state.h"

uint64_t request_hash(enum event_kind kind, thole_slice request_id); /* 0 for an empty one */
bool requests_seen(const struct request_set *set, uint64_t hash);
thole_status requests_add(struct instance *in, uint64_t hash);
/* The last hashes, oldest first; returns their number. */
size_t requests_last(const struct request_set *set, uint64_t ret[ORIGINS_CARRIED_MAX]);
#endif
