/* Percent-encoding, as in addresses and headers. Pure. */
#ifndef THOLE_PERCENT_H
#define THOLE_PERCENT_H
#include "thole/types.h"

/* The byte that the three characters from @p at on stand for, "%2F" or "%2f"; -1: they are none. */
int percent_byte(thole_slice text, size_t at);
#endif
