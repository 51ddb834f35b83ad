/* Histories in a file, checked as those of a stream. */
#ifndef THOLE_AUDIT_FILE_H
#define THOLE_AUDIT_FILE_H
#include "audit_notary.h"
#include "audit_report.h"

/* Reads what was published of a partition. */
typedef thole_status audit_seal_fn(struct audit_report *report, thole_client *client,
                                   const struct audit_keys *keys, uint32_t partition, struct seal **ret,
                                   thole_error *reterr);
/* Whether the file has sections with checkpoints, so that no server is needed. */
bool audit_file_has_checkpoints(const char *path);
/* @p client NULL: by the file's own checkpoints, where there are keys. THOLE_CORRUPT: the file is cut off or
 * none; otherwise as history_file_read(). */
THOLE_NODISCARD thole_status audit_file_check(struct audit_report *report, const char *path,
                                              const struct audit_keys *keys, thole_client *client,
                                              audit_seal_fn *read_seal, thole_error *reterr);
#endif
