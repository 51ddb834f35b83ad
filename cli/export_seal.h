/*
 * `thole export --key`: sections that show that the records of the file are in signed checkpoints. The newest
 * checkpoints are read when all histories are written, so that they have as much of these as they can.
 */
#ifndef THOLE_EXPORT_SEAL_H
#define THOLE_EXPORT_SEAL_H
#include "archive_seal.h"
#include "export_file.h"

struct export_seal_record;
struct export_seal {
    thole_client *client;
    struct audit_keys keys; /* len 0: nothing is sealed */
    struct export_seal_record *records;
    size_t len, cap;
    uint64_t sealed; /* records, afterwards */
    uint32_t bare;   /* partitions with records of the file and no checkpoint by the keys */
};
void export_seal_release(struct export_seal *seal); /* also when zeroed */
void export_seal_take(struct export_seal *seal, uint32_t partition, thole_slice bytes);
/* Takes the records that the file had already when it was opened. */
THOLE_NODISCARD thole_status export_seal_resume(struct export_seal *seal, struct export_file *file,
                                                thole_error *reterr);
/* To be called after the last history. THOLE_CORRUPT: the published messages of a log do not fit. */
THOLE_NODISCARD thole_status export_seal_put(struct export_seal *seal, struct export_file *file,
                                             thole_error *reterr);
#endif
