/* Checkpoints in files of one's own, so that who changes the streams cannot change what was signed before. */
#ifndef THOLE_AUDIT_KEEP_H
#define THOLE_AUDIT_KEEP_H
#include "audit_keys.h"

/* The checkpoint of a partition in that folder, as it was published; empty: there is none. THOLE_CORRUPT: it
 * is none by these keys. */
THOLE_NODISCARD thole_status audit_kept_read(const char *folder, const char *ns, uint32_t partition,
                                             const struct audit_keys *keys, struct buf *ret,
                                             thole_error *reterr);
int audit_keep(struct cli *cli); /* the verb */
#endif
