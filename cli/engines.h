/* Which orchestrations the engines that live know. */
#ifndef THOLE_ENGINES_H
#define THOLE_ENGINES_H
#include "thole/client.h"

enum known { KNOWN_YES, KNOWN_NO, KNOWN_NO_ENGINE };

/* @p version 0: any. @p ret_near: a name that they know and that is nearest; empty = none is near. */
thole_status engines_know(thole_client *client, thole_slice orchestration, uint32_t version, enum known *ret,
                          char ret_near[THOLE_NAME_BYTES_MAX + 1], thole_error *reterr);
#endif
