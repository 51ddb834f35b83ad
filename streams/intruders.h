/*
 * Consumers that deliver into the namespace: who may create a consumer of a stream may have the server
 * deliver what is in it to the subjects of a history, where it is stored. None of thole's does so, and
 * nothing else has a reason to.
 */
#ifndef THOLE_INTRUDERS_H
#define THOLE_INTRUDERS_H
#include "topology.h"

enum { INTRUDER_NAME_BYTES = 128 };
struct intruder {
    char stream[STREAM_NAME_BYTES_MAX], name[INTRUDER_NAME_BYTES], deliver[INTRUDER_NAME_BYTES];
};
/* Whether messages that are delivered to the subject may arrive in a stream of a namespace. Pure. */
bool intruder_delivers(thole_slice deliver);
typedef void intruder_fn(void *arg, const struct intruder *removed);
/* For engines: removes those of the namespace's streams; one call of @p each for each of them. */
THOLE_NODISCARD thole_status intruders_remove(struct connection *connection, const struct topology *topology,
                                              intruder_fn *each, void *arg, thole_error *reterr);
#endif
