/* Text for terminals and JSON: escapes, times, base64. Pure. */
#ifndef THOLE_TEXT_H
#define THOLE_TEXT_H
#include "buf.h"

enum { TIME_TEXT_BYTES = 40 };

/* Appends @p text on one line, at most @p columns columns of a terminal wide: control characters and bytes
 * that are not UTF-8 as \n, \t, \xNN, a cut as an ellipsis; so that the text cannot steer a terminal. */
void text_safe(struct buf *to, thole_slice text, size_t columns);
/* Like text_safe(), at most @p columns wide with escapes and the ellipsis. @p to is empty before. */
void text_fit(struct buf *to, thole_slice text, size_t columns);
/* All of it, with its line ends and tabs; otherwise as text_safe(). */
void text_lines(struct buf *to, thole_slice text);
/* "2026-11-21T09:30:01.250Z". 0 gives "-". */
void text_time(uint64_t time_ms, char ret[TIME_TEXT_BYTES]);
/* The other way: "2026-11-21T09:30:01.250Z", cut after the day, minute or second, UTC; or a duration such as
 * "2h", which is that long before @p now_ms. False: neither. */
bool text_time_parse(const char *text, uint64_t now_ms, uint64_t *ret_ms);
void text_base64(struct buf *to, thole_slice bytes);
#endif
