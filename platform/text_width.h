/* How many columns of a terminal text takes. Pure: the locale is not asked. */
#ifndef THOLE_TEXT_WIDTH_H
#define THOLE_TEXT_WIDTH_H
#include "thole/types.h"

/* Of one character of UTF-8, @p n bytes: 2 of East Asian scripts and most emoji, 0 of combining marks,
 * else 1. */
unsigned character_width(const uint8_t *bytes, size_t n);
/* A byte that is not UTF-8 counts as one column. */
size_t text_width(thole_slice text);
#endif
