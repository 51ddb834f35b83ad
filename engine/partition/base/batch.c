#include "batch.h"
#include "memory.h"
#include "range.h"
#include <stdlib.h>

enum { BATCH_BYTES_MAX = 64 * 1024 * 1024 }; /* all kinds full, with the longest ids and details */

uint64_t projected_mark(thole_slice record)
{
    uint64_t mark = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < record.len; i++)
        mark = (mark ^ record.ptr[i]) * 1099511628211u;
    mark &= INT64_MAX;
    return mark == 0 ? 1 : mark;
}

struct executions executions_pruned(const struct event *event)
{
    if (event->kind != EVENT_HISTORY_PRUNED || event->before <= event->kept + 1)
        return (struct executions){0, 0};
    return (struct executions){range_nearest(RANGE_EXECUTION, event->kept),
                               range_nearest(RANGE_EXECUTION, event->before - 1)};
}

struct batch *batch_create(uint32_t partition, uint64_t epoch)
{
    struct batch *batch = memory_new(sizeof *batch);
    arena_init(&batch->arena, BATCH_BYTES_MAX);
    batch->partition = partition;
    batch->epoch = epoch;
    return batch;
}

void batch_destroy(struct batch *batch)
{
    if (batch == NULL)
        return;
    arena_release(&batch->arena);
    free(batch);
}
