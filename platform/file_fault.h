/*
 * A file that was named and cannot be read, or be written: one status and one text each, whatever verb,
 * option or program names it. The command has one exit code for each.
 */
#ifndef THOLE_FILE_FAULT_H
#define THOLE_FILE_FAULT_H
#include "thole/types.h"
#include <stdbool.h>

/* THOLE_NOT_FOUND: it is missing, or may not be read. @p why: an errno. */
thole_status file_fault_read(const char *path, int why, thole_error *reterr);
/* THOLE_UNAVAILABLE: the disk is full, say. @p flaw: an errno, or one of write_flaw.h. */
thole_status file_fault_write(const char *path, int flaw, thole_error *reterr);
/* Whether file_fault_write() has said it. No server has anything to do with it, as with others that are
 * THOLE_UNAVAILABLE. */
bool file_fault_is_write(const thole_error *error);
#endif
