/* Functions of the client for archiving. */
#ifndef THOLE_CLIENT_ARCHIVE_H
#define THOLE_CLIENT_ARCHIVE_H
#include "client_internal.h"

/* As thole_client_delete(), of the instance whose last record is that one. THOLE_NOT_FOUND: it is not there,
 * or another one has its id; THOLE_CONFLICT: its last record is damaged, or it is held. */
THOLE_NODISCARD thole_status client_delete_archived(struct thole_client *client, thole_slice instance,
                                                    uint64_t last_sequence, thole_slice reason,
                                                    bool *ret_accepted, thole_error *reterr);
/* Whether there is such an instance that has not ended, by its last record; a damaged one counts as open. */
THOLE_NODISCARD thole_status client_is_open(struct thole_client *client, thole_slice instance, bool *ret,
                                            thole_error *reterr);
#endif
