#include "batch.h"
#include <stdlib.h>

enum { BATCH_BYTES_MAX = 64 * 1024 * 1024 }; /* all kinds full, with ids and details of the greatest length */

struct batch *batch_create(uint32_t partition, uint64_t epoch)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return NULL;
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
