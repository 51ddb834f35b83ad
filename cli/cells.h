/* Cells of tables on stdout: text from outside, which cannot steer a terminal. */
#ifndef THOLE_CELLS_H
#define THOLE_CELLS_H
#include "terminal.h"

/* Pads with spaces; what is longer pushes the rest of its line to the right and is not cut, up to
 * @p columns_max. */
void print_cell(thole_slice text, size_t columns, size_t columns_max);
/* With the line's end. */
void print_last_cell(thole_slice text, size_t columns_max);
/* A word of thole's own, in a colour. */
void print_toned(enum tone tone, const char *text, int columns);
#endif
