/* Small tools of the rooms: a hash of what names a row, an array that grows. */
#ifndef THOLE_TABLES_H
#define THOLE_TABLES_H
#include "thole/types.h"

uint64_t key_hash(thole_slice instance, uint64_t a, uint64_t b);
/* Room for one more at the end of a growing array, zeroed; see memory.h. */
void *row_add(void **rows, size_t *len, size_t *cap, size_t size);
#endif
