/* Cells of tables on stdout: text from outside, which cannot steer a terminal. */
#ifndef THOLE_CELLS_H
#define THOLE_CELLS_H
#include "terminal.h"

/* Pads with spaces; what is longer pushes the rest of its line to the right and is not cut, up to
 * @p columns_max. */
void print_cell(thole_slice text, size_t columns, size_t columns_max);
/* With the line's end. */
void print_last_cell(thole_slice text, size_t columns_max);
/* How long ago, short: "850ms", "90s", "5m", "30h", "2d". */
enum { AGE_TEXT_BYTES = 32 };
void age_text(uint64_t ms, char ret[AGE_TEXT_BYTES]);
/* A word of thole's own, in a colour. */
void print_toned(enum tone tone, const char *text, int columns);
#endif
