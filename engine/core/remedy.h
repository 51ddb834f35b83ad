/* Advice on what to try next, with the id of the instance concerned, ready to be pasted into a shell. */
#ifndef THOLE_REMEDY_H
#define THOLE_REMEDY_H
#include "thole/types.h"
#include <stdbool.h>
#include <stddef.h>

/* As a word of a shell, in quotes where it needs them. False, and nothing is written: no quotes make it one,
 * it could be taken for an option, or there is no room. */
bool remedy_word(thole_slice id, char *to, size_t cap);
/* @p remedy, with the id for each word ID. Without an id that is a word, ID stays. */
void remedy_fill(const char *remedy, thole_slice id, char *to, size_t cap);
#endif
