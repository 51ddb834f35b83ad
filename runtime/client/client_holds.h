/* Legal holds, as a client sees them. */
#ifndef THOLE_CLIENT_HOLDS_H
#define THOLE_CLIENT_HOLDS_H
#include "client_internal.h"
#include "holds.h"

/* THOLE_CONFLICT, with who holds it, since when and why. A bucket that does not answer is THOLE_UNAVAILABLE
 * or THOLE_DENIED. */
THOLE_NODISCARD thole_status client_check_hold(struct thole_client *client, thole_slice instance,
                                               thole_error *reterr);
/* Returns the status that thole_client_prune() would, for a hold and for an instance that has ended, and
 * sends nothing. */
THOLE_NODISCARD thole_status client_prune_check(struct thole_client *client, thole_slice instance,
                                                thole_slice reason, thole_error *reterr);
#endif
