/* Records as they are stored, with what their subjects say: of a partition's whole log, or of one instance.
 */
#ifndef THOLE_CLIENT_LOG_H
#define THOLE_CLIENT_LOG_H
#include "audit.h"
#include "client_internal.h"

/* Slices are borrowed for the call. Anything but THOLE_OK stops the reading and is returned. */
typedef thole_status client_log_fn(void *arg, const struct audit_record *record);
/* Gives all records of the partition that are stored when it ends, in order, after *read_to, which becomes
 * the sequence of the last one. Uses a consumer. */
THOLE_NODISCARD thole_status client_log_read(struct thole_client *client, uint32_t partition,
                                             uint64_t *read_to, client_log_fn *each, void *arg,
                                             thole_error *reterr);
/* Those of an instance, and of others that had its id before it; without those that surely do not count. A
 * round trip for each. */
THOLE_NODISCARD thole_status client_log_read_instance(struct thole_client *client, thole_slice instance,
                                                      client_log_fn *each, void *arg, thole_error *reterr);
#endif
