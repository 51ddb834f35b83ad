/*
 * Files of histories, without loss: written by `thole history --raw`, read by the replay role. A file holds
 * any number of histories, so files may be joined with cat:
 *
 *   thole history 1 NAMESPACE PARTITION INSTANCE the instance percent-encoded as in subjects SEQUENCE LENGTH
 *   of one record that counts, then its bytes and a line end … end RECORDS their number
 */
#ifndef THOLE_HISTORY_FILE_H
#define THOLE_HISTORY_FILE_H
#include "buf.h"
#include <stdio.h>

/* Errors are the stream's: ferror(to). */
void history_file_begin(FILE *to, const char *ns, uint32_t partition, thole_slice instance);
void history_file_record(FILE *to, uint64_t sequence, thole_slice bytes);
void history_file_end(FILE *to, uint64_t records);

/* Slices are borrowed for the call. Anything but THOLE_OK stops the reading and is returned. */
struct history_file_reader {
    thole_status (*begin)(void *arg, thole_slice instance);
    thole_status (*record)(void *arg, uint64_t sequence, thole_slice bytes);
    thole_status (*end)(void *arg);
    void *arg;
};
/* THOLE_CORRUPT (no such file, or truncated; the text says where), THOLE_UNSUPPORTED (a newer form),
 * THOLE_UNAVAILABLE (the file cannot be read), THOLE_NOMEM. */
THOLE_NODISCARD thole_status history_file_read(FILE *from, const struct history_file_reader *reader,
                                               thole_error *reterr);
#endif
