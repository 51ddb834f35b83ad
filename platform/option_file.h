/*
 * Options from a YAML file, for --config: one mapping of long names (without the dashes) to values that are
 * written as on the command line:
 *
 *   nats: tls://nats:4222
 *   engine-threads: 4
 *   stop-limit: 2m
 *
 * Flags win over the environment, which wins over the file, which wins over defaults. An option that cannot
 * be set in the environment cannot be set in the file. Not thread-safe.
 */
#ifndef THOLE_OPTION_FILE_H
#define THOLE_OPTION_FILE_H
#include "option_table.h"

enum { OPTION_FILE_BYTES_MAX = 64 * 1024 };

/* Owns the texts that options of the file point to. */
struct option_file {
    char *texts[OPTION_ROWS_MAX];
    size_t len;
    bool open_secret; /* there is a password in it, and everybody on the machine may read it */
};

/* Reads @p path into the targets of @p sets; @p given as options_read() left it. THOLE_INVALID with file,
 * line and what is wrong: it cannot be read, is no YAML, has an unknown or repeated name or a value that the
 * option does not take. */
THOLE_NODISCARD thole_status option_file_read(const struct option_set *sets, size_t n, const char *path,
                                              const struct option_given *given, struct option_file *file,
                                              thole_error *reterr);
/* After the last use of an option. */
void option_file_free(struct option_file *file);
#endif
