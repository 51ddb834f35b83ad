/* Batches as the words of a line of stores.transcript say. */
#ifndef STORE_BATCHES_H
#define STORE_BATCHES_H
#include "batch.h"

enum { LINE_BATCHES_MAX = 4 };

/* pPARTITION/EPOCH/SEQ/MARK begins a batch; rows=N: so many timers more. Returns their number. */
size_t line_batches(struct batch *ret[LINE_BATCHES_MAX]);
#endif
