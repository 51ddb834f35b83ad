/* Records restored from archives, as a client sees them: of ids whose instance was deleted, and that no new
 * instance has. */
#ifndef THOLE_CLIENT_RESTORED_H
#define THOLE_CLIENT_RESTORED_H
#include "client_internal.h"
#include "restored.h"

struct restored_place client_restored_place(const struct thole_client *client, thole_slice instance);
/* The facts in a receipt, to be compared with the records. */
struct client_restored {
    bool is; /* false: nothing was restored of that id */
    uint64_t records, execution;
};
THOLE_NODISCARD thole_status client_restored_find(struct thole_client *client, thole_slice instance,
                                                  struct client_restored *ret, thole_error *reterr);
/* The records, in order. THOLE_NOT_FOUND: nothing was restored of that id; THOLE_CORRUPT: not all of them
 * are there. */
THOLE_NODISCARD thole_status client_restored_records(struct thole_client *client, thole_slice instance,
                                                     client_record_fn *each, void *arg, thole_error *reterr);
#endif
