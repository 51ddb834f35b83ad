/* Lines of a file of any bytes, NUL included: how long a line is, is what was read, and not where its first
 * NUL is. */
#ifndef THOLE_LINE_READ_H
#define THOLE_LINE_READ_H
#include "buf.h"
#include <stdio.h>

enum line_read {
    LINE_READ_WHOLE, /* a line with its line end, which is not in the buffer */
    LINE_READ_CUT,   /* the file's last line, without a line end */
    LINE_READ_NONE,  /* the file has ended before, or cannot be read: ferror() */
};

/* Reads the next line into @p to, which is cleared first. Of a line that does not fit the rest is read and
 * dropped, and buf_status() of @p to is THOLE_LIMIT then. */
enum line_read line_read(FILE *from, struct buf *to);
#endif
