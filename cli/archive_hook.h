/* Commands that store an archive elsewhere, and bring it back to be compared. */
#ifndef THOLE_ARCHIVE_HOOK_H
#define THOLE_ARCHIVE_HOOK_H
#include "thole/types.h"

/* sh -c COMMAND sh PATH: $1 is the archive. THOLE_OK: it has ended with 0. THOLE_UNAVAILABLE otherwise. */
THOLE_NODISCARD thole_status archive_hook_send(const char *command, const char *path, thole_error *reterr);
/* Runs the command and compares its output with the contents of PATH. THOLE_CORRUPT: they differ. */
THOLE_NODISCARD thole_status archive_hook_compare(const char *command, const char *path, thole_error *reterr);
/* Runs the command with its output in a new file, whose path is written to @p ret. The caller removes the
 * file. */
enum { ARCHIVE_FETCHED_BYTES = 4096 };
THOLE_NODISCARD thole_status archive_hook_fetch(const char *command, const char *path,
                                                char ret[ARCHIVE_FETCHED_BYTES], thole_error *reterr);
#endif
