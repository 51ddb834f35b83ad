/* Batches as the words of a line of stores.transcript say. */
#ifndef STORE_BATCHES_H
#define STORE_BATCHES_H
#include "batch.h"

enum { LINE_BATCHES_MAX = 4 };

/* pPARTITION/EPOCH/SEQ/MARK begins a batch; rows=N: so many timers more. Returns their number. */
size_t line_batches(struct batch *ret[LINE_BATCHES_MAX]);
/* Rows that a call has returned. Rows of activities are @p stride bytes apart, and so are their attempts, if given. */
void put_timers(const struct batch_timer *timers, size_t n);
void put_activities(const struct batch_activity *rows, size_t n, size_t stride, const uint64_t *attempt);
#endif
