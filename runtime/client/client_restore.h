/* Whether a history may be put back, by what the log says of its id. */
#ifndef THOLE_CLIENT_RESTORE_H
#define THOLE_CLIENT_RESTORE_H
#include "client_restored.h"

enum client_restore {
    RESTORE_GOES,
    RESTORE_EXISTS,     /* an instance with that id is in the log */
    RESTORE_UNKNOWN,    /* the log has no deletion of that id */
    RESTORE_OTHER,      /* no deletion of that id says that this was its last record */
    RESTORE_TAKEN,      /* another instance of that id is restored */
    RESTORE_ALREADY,    /* all of it is restored */
    RESTORE_BROKEN,     /* a part of it is restored */
    RESTORE_EXECUTIONS, /* these are executions of an instance that went on */
};
struct client_restore_wish {
    thole_slice instance;
    uint64_t records;
    struct record_hash last; /* of its last record */
    bool sealed; /* signed checkpoints have it: a deletion without a hash, of an earlier version, will do, or
                    none where deletions are gone */
};
THOLE_NODISCARD thole_status client_restore_judge(struct thole_client *client,
                                                  const struct client_restore_wish *wish,
                                                  enum client_restore *ret, thole_error *reterr);
/* Whether exactly these records are there, in order: read back, in front of the receipt. */
THOLE_NODISCARD thole_status client_restore_check(struct thole_client *client,
                                                  const struct client_restore_wish *wish, bool *ret,
                                                  thole_error *reterr);
#endif
