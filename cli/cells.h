/* Cells of tables on stdout: text from outside, which cannot steer a terminal. */
#ifndef THOLE_CELLS_H
#define THOLE_CELLS_H
#include "thole/types.h"

/* Pads with spaces; what is longer pushes the rest of its line to the right and is not cut, up to
 * @p columns_max. */
void print_cell(thole_slice text, size_t columns, size_t columns_max);
/* With the line's end. */
void print_last_cell(thole_slice text, size_t columns_max);
#endif
