/* UTF-8 decoding checks. Pure. */
#ifndef THOLE_UTF8_H
#define THOLE_UTF8_H
#include "thole/types.h"

/* Bytes of the valid character at the start (1..4); 0 when there is none: overlong, a surrogate, beyond
 * U+10FFFF, cut off, a stray byte, or nothing at all. NUL is a character here. */
size_t utf8_character(thole_slice text);
bool utf8_is_valid(thole_slice text);
/* Of the character of @p n bytes at @p at: C0, DEL or C1 (U+0080..U+009F), which can steer a terminal. */
bool utf8_is_control(const uint8_t *at, size_t n);
#endif
