/* Which orchestrations the engines that live know. */
#ifndef THOLE_CLIENT_KNOWN_H
#define THOLE_CLIENT_KNOWN_H
#include "thole/client.h"

enum known { KNOWN_YES, KNOWN_NO, KNOWN_NO_ENGINE };

/* THOLE_OK: one that lives knows it; THOLE_NOT_FOUND, with what they know that is near. */
THOLE_NODISCARD thole_status client_require_known(thole_client *client, thole_slice orchestration,
                                                  uint32_t version, thole_error *reterr);
/* @p version 0: any. @p ret_near: a name that they know and that is nearest; empty = none is near. */
thole_status client_engines_know(thole_client *client, thole_slice orchestration, uint32_t version,
                                 enum known *ret, char ret_near[THOLE_NAME_BYTES_MAX + 1],
                                 thole_error *reterr);
/* The sentence for a name that they do not know; @p near: of client_client_engines_know(). */
void client_unknown_text(thole_slice orchestration, uint32_t version, const char *ns, enum known known,
                         const char *near, thole_error *ret);
#endif
