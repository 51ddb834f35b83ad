/*
 * The file that an export makes. It is written as FILE.part and gets its name when it is complete; when a
 * .part of the same export exists, its complete histories are kept. To stdout or a device only whole
 * histories are written, too.
 */
#ifndef THOLE_EXPORT_FILE_H
#define THOLE_EXPORT_FILE_H
#include "history_file.h"
#include "id_set.h"

struct export_options {
    const char *path; /* borrowed; - is stdout */
    enum history_form form;
    const char *ns; /* borrowed */
    uint32_t partitions;
    thole_slice selection; /* borrowed: a JSON value, the same for the same export */
    uint64_t begun_ms;     /* milliseconds since 1970 */
};

struct export_file {
    struct export_options options;
    struct buf part; /* name of the .part; empty: straight to `out` */
    FILE *work;      /* the .part, or a temporary file */
    FILE *out;
    struct history_writer writer;
    struct id_set done; /* instances that the .part already had, sorted */
    long begun;         /* where the history in hand begins */
    struct history_totals before;
};

/* THOLE_CONFLICT: the .part is of another export, or another process writes it; THOLE_UNAVAILABLE: it cannot
 * be written. @p file is to be released in any case. */
THOLE_NODISCARD thole_status export_file_open(struct export_file *file, const struct export_options *options,
                                              thole_error *reterr);
void export_file_release(struct export_file *file); /* a .part stays */

void export_file_begin(struct export_file *file, thole_slice instance);
/* With `file->writer`: its records. Then one of: */
THOLE_NODISCARD thole_status export_file_keep(struct export_file *file, thole_error *reterr);
void export_file_drop(struct export_file *file);

/* The manifest is the last section. Then the file has its name. */
THOLE_NODISCARD thole_status export_file_finish(struct export_file *file, thole_slice manifest,
                                                thole_error *reterr);
/* The names in the file's folder are on the disk, too. */
void export_sync_folder(const char *path);
/* Whether a history is left out for that: the others can be written nevertheless. */
bool export_is_missing(thole_status status);
/* Where nothing is worth keeping. */
void export_file_remove(struct export_file *file);
#endif
