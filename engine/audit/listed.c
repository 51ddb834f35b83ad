#include "listed.h"
#include "memory.h"
#include <stdlib.h>
#include <string.h>

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, FOLDED_HASH_BYTES);
}

void listed_add(struct listed *listed, thole_slice hashes)
{
    size_t const n = hashes.len / FOLDED_HASH_BYTES;
    if (n == 0)
        return;
    listed->hashes = memory_reserve(listed->hashes, &listed->cap, listed->len + n, sizeof *listed->hashes);
    memcpy(listed->hashes + listed->len, hashes.ptr, n * FOLDED_HASH_BYTES);
    listed->len += n;
    listed->sorted = false;
}

bool listed_has(struct listed *listed, const struct record_hash *hash)
{
    if (listed->len == 0)
        return false;
    if (!listed->sorted)
        qsort(listed->hashes, listed->len, sizeof *listed->hashes, by_bytes);
    listed->sorted = true;
    return bsearch(hash->bytes, listed->hashes, listed->len, sizeof *listed->hashes, by_bytes) != NULL;
}

void listed_release(struct listed *listed)
{
    free(listed->hashes);
    *listed = (struct listed){.len = 0};
}
