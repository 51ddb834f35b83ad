/* Many calls that each wait for servers, side by side. */
#ifndef THOLE_SIDE_BY_SIDE_H
#define THOLE_SIDE_BY_SIDE_H
#include "thole/types.h"

enum { SIDE_BY_SIDE_MIN = 32 /* fewer are made one after the other */ };

typedef thole_status side_by_side_fn(void *arg, size_t i, thole_error *reterr);
/*
 * Calls @p each for all i < @p n, on this thread in order when they are few, else on up to @p threads_max
 * others in any order. Of those that fail the first one is returned, and no more are begun; those under way
 * end.
 */
THOLE_NODISCARD thole_status side_by_side(size_t n, size_t threads_max, side_by_side_fn *each, void *arg,
                                          thole_error *reterr);
#endif
