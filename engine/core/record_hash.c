#include "record_hash.h"
#include "record_outline.h"
#include <assert.h>
#include <string.h>

/* Prefixes of a record's bytes and of its outline: no other use of SHA-256 begins like them, and names have
 * no NUL. With their NUL. */
static const char purpose[] = "thole.record.v1", purpose_of_outline[] = "thole.record.v2";

/* Then namespace, NUL and partition. */
static void record_hash_begin(struct sha256 *sha, const char tag[sizeof purpose], thole_slice ns,
                              uint32_t partition)
{
    uint8_t const place[] = {0, (uint8_t)(partition >> 24), (uint8_t)(partition >> 16),
                             (uint8_t)(partition >> 8), (uint8_t)partition};
    sha256_begin(sha);
    sha256_add(sha, tag, sizeof purpose);
    sha256_add(sha, ns.ptr, ns.len);
    sha256_add(sha, place, sizeof place);
}

static bool add_outline(struct sha256 *sha, thole_slice ns, uint32_t partition, thole_slice record)
{
    if (record_hashed(record) != RECORD_HASHED_OUTLINE)
        return false;
    record_hash_begin(sha, purpose_of_outline, ns, partition);
    return record_outline_add(record, sha);
}

struct record_hash record_hash_make(thole_slice ns, uint32_t partition, thole_slice record)
{
    struct record_hash hash;
    struct sha256 sha;
    if (!add_outline(&sha, ns, partition, record)) {
        record_hash_begin(&sha, purpose, ns, partition);
        sha256_add(&sha, record.ptr, record.len);
    }
    sha256_end(&sha, hash.bytes);
    return hash;
}

struct record_hash record_hash_said(thole_slice bytes)
{
    struct record_hash hash = {{0}};
    assert(bytes.len == 0 || bytes.len == sizeof hash.bytes);
    if (bytes.len > 0)
        memcpy(hash.bytes, bytes.ptr, sizeof hash.bytes);
    return hash;
}

bool record_hash_known(const struct record_hash *hash)
{
    static const struct record_hash none;
    return !record_hash_equal(hash, &none);
}

bool record_hash_equal(const struct record_hash *a, const struct record_hash *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

thole_slice record_hash_slice(const struct record_hash *hash)
{
    return record_hash_known(hash) ? (thole_slice){hash->bytes, sizeof hash->bytes} : (thole_slice){0};
}
