/* Published messages about a partition's log, read and written. */
#ifndef THOLE_AUDIT_NOTARY_H
#define THOLE_AUDIT_NOTARY_H
#include "audit_keys.h"
#include "client_log.h"

/* Reads leaves and checkpoints of the partition into the seal. */
THOLE_NODISCARD thole_status notary_read(thole_client *client, uint32_t partition, struct seal *seal,
                                         thole_error *reterr);
int audit_checkpoint(struct cli *cli); /* the verb */
#endif
