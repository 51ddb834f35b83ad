/* The steps after an archive is written: it is verified, stored, and its instances are purged. */
#ifndef THOLE_ARCHIVE_PURGE_H
#define THOLE_ARCHIVE_PURGE_H
#include "archive_check.h"

struct archive_result {
    uint64_t instances, records, bytes;
    uint64_t purged;      /* gone by now, also those that were before */
    uint64_t kept;        /* held meanwhile, or damaged */
    bool came_back_wrong; /* the bytes that --to-command has stored are not the archive */
};
struct archive_finisher {
    const struct cli *cli;
    thole_client *client;
    const struct audit_keys *keys;
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *arg;
};
/*
 * Each step is repeated by the next run if it did not come to its end. THOLE_CORRUPT: it is not what was
 * written, and nothing was purged; THOLE_UNAVAILABLE: the command, or no engine that deletes.
 */
THOLE_NODISCARD thole_status archive_finish(const struct archive_finisher *finisher, const char *path,
                                            struct archive_result *ret, thole_error *reterr);
#endif
