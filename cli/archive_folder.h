/*
 * The folder of `thole archive run`, by whose files it goes on after it was killed:
 *
 *   NAME.thole.part   is being written: removed by the next run, nothing of it was purged
 *   NAME.thole        is whole and on the disk
 *   NAME.thole.sent   --to-command has stored it
 *   NAME.thole.done   a receipt: all that it has is purged, or stays for a reason
 *   .lock             held by the run that uses the folder
 */
#ifndef THOLE_ARCHIVE_FOLDER_H
#define THOLE_ARCHIVE_FOLDER_H
#include "buf.h"

enum { ARCHIVE_PATH_BYTES = 4096 };

struct archive_names {
    char (*items)[ARCHIVE_PATH_BYTES]; /* paths, sorted */
    size_t len, cap;
};
/* Files of the folder whose names end so. Released in any case. */
THOLE_NODISCARD thole_status archive_folder_list(const char *folder, const char *end,
                                                 struct archive_names *ret, thole_error *reterr);
THOLE_NODISCARD thole_status archive_names_add(struct archive_names *names, const char *path,
                                               thole_error *reterr);
void archive_names_sort(struct archive_names *names);
void archive_names_release(struct archive_names *names);

/* Makes the folder unless it exists. THOLE_CONFLICT: another run uses it. *ret_lock: a descriptor, to be
 * closed. */
THOLE_NODISCARD thole_status archive_folder_lock(const char *folder, int *ret_lock, thole_error *reterr);
/* Removes what was being written, and marks whose archive is gone. */
THOLE_NODISCARD thole_status archive_folder_clean(const char *folder, thole_error *reterr);
/* A path that no file and no receipt has. */
THOLE_NODISCARD thole_status archive_folder_name(const char *folder, const char *ns, uint64_t now_ms,
                                                 char ret[ARCHIVE_PATH_BYTES], thole_error *reterr);
bool archive_mark_is_there(const char *path, const char *end);
/* Writes the mark PATH + END; it is on the disk then. */
THOLE_NODISCARD thole_status archive_mark_write(const char *path, const char *end, thole_slice text,
                                                thole_error *reterr);
/* Replaces what is in @p to. */
THOLE_NODISCARD thole_status archive_mark_read(const char *path, const char *end, struct buf *to,
                                               thole_error *reterr);
void archive_mark_remove(const char *path, const char *end); /* "": the archive itself */
#endif
