/* The newest signed checkpoint of a partition, and where each record stands in it: for archives. */
#ifndef THOLE_ARCHIVE_SEAL_H
#define THOLE_ARCHIVE_SEAL_H
#include "audit_keys.h"
#include "client_internal.h"
#include "json.h"

struct archive_seal {
    uint32_t partition;
    struct seal *seal; /* NULL: it was not read yet */
    struct buf note;   /* the checkpoint, with its signatures */
    uint64_t size;     /* number of leaves; 0: the keys have signed none */
    uint64_t *by_hash; /* indices of leaves, sorted by the record's hash; NULL: nothing was looked for */
    uint64_t *taken;   /* those that the file in hand has */
    size_t taken_len, taken_cap;
};
/* @p kept: a checkpoint that is known already, of one of the keys, and that must fit too; empty: none.
 * THOLE_CORRUPT: what is published does not fit. Released in any case. */
THOLE_NODISCARD thole_status archive_seal_read(struct archive_seal *to, thole_client *client,
                                               const struct audit_keys *keys, thole_slice kept,
                                               thole_error *reterr);
void archive_seal_release(struct archive_seal *seal); /* also when zeroed */
/* The leaf of the record. False: the checkpoint does not have it. */
bool archive_seal_find(struct archive_seal *seal, const struct record_hash *record, uint64_t *ret_index);
void archive_seal_take(struct archive_seal *seal, uint64_t index);
/* The section of what was taken, which is forgotten then: {"schema":"thole.export.checkpoint.v1",... Of
 * nothing it says where the log stood. There must be a checkpoint. */
THOLE_NODISCARD thole_status archive_seal_section(struct archive_seal *seal, struct buf *to,
                                                  thole_error *reterr);
#endif
