/* Cells of what is no table of table.h: text from outside, which cannot steer a terminal. */
#ifndef THOLE_CELLS_H
#define THOLE_CELLS_H
#include "terminal.h"

/* Exactly @p columns wide, and two spaces; what is longer is cut. */
void print_cell(thole_slice text, size_t columns);
/* At most @p columns wide, and the line's end. */
void print_last_cell(thole_slice text, size_t columns);
/* How long ago, short: "850ms", "90s", "5m", "30h", "2d". */
enum { AGE_TEXT_BYTES = 32 };
void age_text(uint64_t ms, char ret[AGE_TEXT_BYTES]);
#endif
