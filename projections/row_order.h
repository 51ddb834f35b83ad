/*
 * The order of rows in a statement. All statements lock rows in the order of their keys, so that no two of
 * them can wait for each other in a circle. Sorting here costs much less than a sort in each statement: its
 * set-up alone takes longer than the rows of a usual batch.
 */
#ifndef THOLE_ROW_ORDER_H
#define THOLE_ROW_ORDER_H
#include "thole/types.h"

/*
 * Places 0..n-1 of rows, in the order of their keys: the instance's bytes, the execution, the number. Equal
 * ones keep their order. The keys are read from the fields of n structs: the first one's, and the struct's
 * size. For free(); NULL when n is 0.
 */
uint32_t *row_order(const thole_slice *instance, const uint64_t *execution, const uint64_t *number,
                    size_t stride, size_t n);
#endif
