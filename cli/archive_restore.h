/* One archive, put back: its histories are checked, judged against the log, stored, and then have receipts.
 */
#ifndef THOLE_ARCHIVE_RESTORE_H
#define THOLE_ARCHIVE_RESTORE_H
#include "archive_check.h"
#include "client_restore.h"
#include "command.h"

struct archive_restorer {
    const struct cli *cli;
    thole_client *client;
    const struct audit_keys *keys;    /* of checkpoints */
    const struct audit_keys *signers; /* of receipts */
    bool dry_run;
    /* Whether an instance of the archive is meant. */
    bool (*wants)(void *arg, const struct archive_facts *facts);
    /* Of each that is meant, when it is decided. GOES and BROKEN: it is put back now; of a dry run: it would
     * be. */
    thole_status (*decided)(void *arg, const char *name, const struct archive_facts *facts,
                            enum client_restore verdict);
    void (*progress)(void *arg, const char *name, size_t done, size_t total);
    void *arg;
};
/*
 * Reads the archive at @p path, which is called @p name (the same, or where it was stored from). @p sha256:
 * what it must have; empty: any. THOLE_CORRUPT: it is not what was written; THOLE_INVALID: it is of another
 * namespace. In both cases nothing of it was put back.
 */
THOLE_NODISCARD thole_status archive_restore_file(const struct archive_restorer *restorer, const char *path,
                                                  const char *name, const char *sha256, thole_error *reterr);
#endif
