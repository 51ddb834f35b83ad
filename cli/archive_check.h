/*
 * Whether an archive is what was written, without a server: its form, its digest, each history's chain of
 * hashes, and, with keys, whether each record is in a signed checkpoint.
 */
#ifndef THOLE_ARCHIVE_CHECK_H
#define THOLE_ARCHIVE_CHECK_H
#include "archive_facts.h"
#include "audit.h"
#include "audit_keys.h"

struct archive_checkpoint {
    uint32_t partition;
    uint64_t size, records; /* records: of the file, that it has */
    uint64_t end;           /* sequence of the last record of the log that it has, of the file or not */
};
/* A finding's slices and text are borrowed for the call. */
typedef void archive_found_fn(void *arg, uint32_t partition, const struct audit_finding *finding);
/* A found for which the first finding is the error. */
struct archive_first_finding {
    const char *then; /* the consequence: "nothing of it was purged" */
    thole_error *reterr;
    bool said;
};
void archive_first_found(void *first, uint32_t partition, const struct audit_finding *finding);
struct archive_check {
    const struct audit_keys *keys; /* len 0: checkpoints are not looked at */
    bool may_go_on;                /* records after the newest checkpoint of their log may be in none */
    archive_found_fn *found;
    void *arg;
    /* The contents, filled by the check: */
    char ns[THOLE_NAME_BYTES_MAX + 1];
    struct archive_facts *instances;
    size_t instances_len, instances_cap;
    struct archive_checkpoint *checkpoints;
    size_t checkpoints_len, checkpoints_cap;
    uint64_t records, bytes, findings;
    char sha256[65]; /* of the manifest */
    bool is_archive; /* thole archive run has written it, no other export */
};
/* THOLE_OK with findings 0: it is whole. THOLE_CORRUPT: it is cut off, or no archive. Released in any case.
 */
THOLE_NODISCARD thole_status archive_check_file(struct archive_check *check, const char *path,
                                                thole_error *reterr);
void archive_check_release(struct archive_check *check); /* also when zeroed */
#endif
