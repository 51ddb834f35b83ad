/* In JSON lines a record has its events for people beside its bytes: whether they are what the bytes say. */
#ifndef THOLE_EXPORT_READABLE_H
#define THOLE_EXPORT_READABLE_H
#include "history_file.h"

/* A history_file_reader's `readable`. A text may be written in another way, with other escapes and blanks;
 * what a version of before did not write may be missing, but nothing may be there that this one would not
 * write. */
bool export_readable(void *arg, uint64_t sequence, thole_slice bytes, const thole_slice *events,
                     char ret_why[HISTORY_WHY_BYTES]);
#endif
