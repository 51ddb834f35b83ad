/*
 * Why a file could not be written. ferror() says that a write has failed, and not why: errno is that of
 * whatever was called since. So what is left in the buffer is written once more, and that write says why;
 * where nothing is left, an end of line is: the file is not whole in any case.
 */
#ifndef THOLE_WRITE_FLAW_H
#define THOLE_WRITE_FLAW_H
#include <stdio.h>

enum { WRITE_FLAW_UNKNOWN = -1 };

/* Writes what is buffered. 0: all of it was written; else an errno, of a reader that went away EPIPE, or
 * WRITE_FLAW_UNKNOWN: an earlier write failed, and this one did not. */
int write_flaw(FILE *file);
/* Like write_flaw(), and closes the file. */
int write_flaw_close(FILE *file);
/* Writes all bytes. Returns 0, or an errno: a short write gives none, but the next write does. */
int write_whole(int fd, const void *bytes, size_t len);
/* For people. */
const char *write_flaw_text(int flaw);
#endif
