/*
 * Core dumps of this process, and of those that it forks. The memory of an engine or a worker is full of
 * payloads, in orchestrations' memory and in buffers of nats.c, libpq and protobuf-c, and of passwords; even
 * its registers hold parts of what was copied last. So there are no dumps unless they are asked for.
 */
#ifndef THOLE_CORE_DUMPS_H
#define THOLE_CORE_DUMPS_H
#include "thole/types.h"

/* @p full: as the system is configured; else none. Logs it when that fails. Before the first fork. */
void core_dumps_choose(bool full);
/* None from now on, neither into a file nor to a program. False with errno: the limit could not be set. */
bool core_dumps_forbid(void);
#endif
