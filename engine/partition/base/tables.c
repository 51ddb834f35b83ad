#include "tables.h"
#include "memory.h"
#include <assert.h>
#include <string.h>

uint64_t key_hash(thole_slice instance, uint64_t a, uint64_t b)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < instance.len; i++)
        h = (h ^ instance.ptr[i]) * 1099511628211u;
    h ^= a * 0x9E3779B97F4A7C15u;
    h ^= (b + 0x7F4A7C15u) * 0xC2B2AE3D27D4EB4Fu;
    h ^= h >> 29;
    return h * 0xBF58476D1CE4E5B9u ^ h >> 32;
}

void *row_add(void **rows, size_t *len, size_t *cap, size_t size)
{
    assert(*len <= *cap && size > 0);
    *rows = memory_reserve(*rows, cap, *len + 1, size);
    void *row = (uint8_t *)*rows + (*len)++ * size;
    memset(row, 0, size);
    return row;
}
