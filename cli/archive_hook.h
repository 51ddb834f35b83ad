/* Commands that store an archive elsewhere, and bring it back to be compared. */
#ifndef THOLE_ARCHIVE_HOOK_H
#define THOLE_ARCHIVE_HOOK_H
#include "thole/types.h"

/* sh -c COMMAND sh PATH: $1 is the archive. THOLE_OK: it has ended with 0. THOLE_UNAVAILABLE otherwise. */
THOLE_NODISCARD thole_status archive_hook_send(const char *command, const char *path, thole_error *reterr);
/* The same; what it prints must be what PATH has. THOLE_CORRUPT: it is not. */
THOLE_NODISCARD thole_status archive_hook_compare(const char *command, const char *path, thole_error *reterr);
/* The same; what it prints is in a file that is made, and whose path is written to @p ret. The caller removes
 * it. */
enum { ARCHIVE_FETCHED_BYTES = 4096 };
THOLE_NODISCARD thole_status archive_hook_fetch(const char *command, const char *path,
                                                char ret[ARCHIVE_FETCHED_BYTES], thole_error *reterr);
#endif
