/* Bytes as the scripts of played calls have them: all but letters, digits and marks are %XX; "-" is empty. */
#ifndef PLAYED_TEXT_H
#define PLAYED_TEXT_H
#include "thole/types.h"
#include <stdio.h>

/* At most 100 bytes; before them the number of all, when there are more. */
void played_text(FILE *to, thole_slice text);
size_t played_unescape(const char *word, size_t len, char *ret, size_t cap);
#endif
