/* A payload from the command line: text, @FILE, or - for stdin. */
#ifndef THOLE_PAYLOAD_H
#define THOLE_PAYLOAD_H
#include "buf.h"
#include "command.h"

/* NULL is empty. False after a complaint; *ret_code is the exit code. @p to is initialized in any case. */
bool payload_read(const struct cli *cli, const char *text, struct buf *to, int *ret_code);
/* Result bytes on stdout, and a line end unless they end with one. As they are, but on a terminal, unless
 * --raw was given, control characters are shown instead of obeyed. With --raw: the bytes, and no more. */
void payload_print(const struct cli *cli, thole_slice bytes);
#endif
