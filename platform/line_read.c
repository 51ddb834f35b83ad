#include "line_read.h"

enum { LINE_PART_BYTES = 512 };

enum line_read line_read(FILE *from, struct buf *to)
{
    char part[LINE_PART_BYTES];
    size_t len = 0;
    bool any = false;
    int c;
    buf_clear(to);
    flockfile(from);
    while ((c = getc_unlocked(from)) != EOF && c != '\n') {
        any = true;
        part[len++] = (char)c;
        if (len == sizeof part) {
            buf_append(to, part, len);
            len = 0;
        }
    }
    funlockfile(from);
    buf_append(to, part, len);
    return c == '\n' ? LINE_READ_WHOLE : any ? LINE_READ_CUT : LINE_READ_NONE;
}
