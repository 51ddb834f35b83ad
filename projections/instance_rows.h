/* Rows of instances and of their executions, from what batches say of them. */
#ifndef THOLE_INSTANCE_ROWS_H
#define THOLE_INSTANCE_ROWS_H
#include "batch.h"

struct instance_row {
    struct batch_instance row;
    uint32_t partition;
};

struct execution_row {
    uint32_t partition, status;
    thole_slice instance;
    uint64_t execution, started_ms, ended_ms, turns,
        history_seq; /* started_ms 0: as the instance; ended_ms 0: it goes on */
};

/*
 * Merges @p n rows of batches, in their order by instance, execution and sequence (row_order.h), without
 * those that are removed: one row for each instance, that of its last execution, with what only an earlier
 * one says; and one for each execution that begins or ends, but of a
 * first one only when it continues as new. Both arrays have room for n; returns their
 * lengths.
 */
size_t instance_rows_merge(const struct batch_instance *rows, const uint32_t *partitions,
                           const uint32_t *order, size_t n, struct instance_row *ret);
size_t execution_rows_merge(const struct batch_instance *rows, const uint32_t *partitions,
                            const uint32_t *order, size_t n, struct execution_row *ret);
/* Of an instance's first execution its own row says all, until it continues as new. Between the begin and the
 * end of a later one the state is in the row of the instance. */
bool instance_row_says_execution(const struct batch_instance *row);
#endif
