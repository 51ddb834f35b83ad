#include "hash.h"

static uint64_t hash_mix(uint64_t x) /* the finalizer of splitmix64 */
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t hash_bytes(uint64_t seed, thole_slice bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ hash_mix(seed + 1); /* FNV-1a */
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ bytes.ptr[i]) * UINT64_C(0x100000001b3);
    return hash_mix(hash ^ bytes.len);
}

uint64_t hash_number(uint64_t seed, uint64_t number)
{
    return hash_mix(seed ^ hash_mix(number + UINT64_C(0x9e3779b97f4a7c15)));
}
