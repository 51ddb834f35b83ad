/* Values as people write them: durations, sizes, numbers; and the known word that is closest to a misspelt
 * one. Pure. */
#ifndef THOLE_VALUES_H
#define THOLE_VALUES_H
#include "thole/types.h"

enum { DURATION_TEXT_BYTES = 32 };

/* "500ms", "10s", "1.5s", "2m", "1h", "7d"; "0". Anything else is THOLE_INVALID with a sentence. */
THOLE_NODISCARD thole_status duration_parse(const char *text, uint64_t *ret_ms, thole_error *reterr);
/* "262144", "256KiB", "64MiB", "1GiB". */
THOLE_NODISCARD thole_status size_parse(const char *text, uint64_t *ret_bytes, thole_error *reterr);
/* Decimal digits, nothing else. */
THOLE_NODISCARD thole_status number_parse(const char *text, uint64_t *ret, thole_error *reterr);
/* The shortest exact text that duration_parse() reads back: "500ms", "10s", "90s", "2m". */
void duration_format(uint64_t ms, char ret[DURATION_TEXT_BYTES]);

/* How many letters must be changed, added, left out or swapped with their neighbour. Words are cut at 63
 * bytes. */
size_t word_distance(const char *a, const char *b);
/* The closest of @p words to @p word, or NULL when none is close enough to be meant. */
const char *word_suggest(const char *word, const char *const *words, size_t n);
#endif
