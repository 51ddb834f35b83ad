#include "record_hash.h"
#include "memory.h"
#include "record_outline.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PARTITION_BYTES = 4 };

/* What stands before the record's bytes, or its outline: no other use of SHA-256 begins so, and names have no
 * NUL. With their NUL. */
static const char purpose[] = "thole.record.v1", purpose_of_outline[] = "thole.record.v2";

struct record_hasher {
    struct sha256 sha, payloads;
    uint8_t place[THOLE_NAME_BYTES_MAX + 1 + PARTITION_BYTES]; /* namespace, NUL, partition */
    size_t place_len;
};

static void hasher_init(struct record_hasher *hasher, thole_slice ns, uint32_t partition)
{
    uint8_t *to = hasher->place;
    assert(ns.len <= THOLE_NAME_BYTES_MAX);
    if (ns.len > 0)
        memcpy(to, ns.ptr, ns.len);
    to += ns.len;
    *to++ = 0;
    for (int shift = 24; shift >= 0; shift -= 8)
        *to++ = (uint8_t)(partition >> shift);
    hasher->place_len = (size_t)(to - hasher->place);
    sha256_init(&hasher->sha);
    hasher->payloads = (struct sha256){NULL}; /* most records have none */
}

static void hasher_release(struct record_hasher *hasher)
{
    sha256_release(&hasher->sha);
    sha256_release(&hasher->payloads);
}

struct record_hasher *record_hasher_create(thole_slice ns, uint32_t partition)
{
    struct record_hasher *const hasher = memory_new(sizeof *hasher);
    hasher_init(hasher, ns, partition);
    return hasher;
}

void record_hasher_destroy(struct record_hasher *hasher)
{
    if (hasher == NULL)
        return;
    hasher_release(hasher);
    free(hasher);
}

static void begin(struct record_hasher *hasher, const char tag[sizeof purpose])
{
    sha256_begin(&hasher->sha);
    sha256_add(&hasher->sha, tag, sizeof purpose);
    sha256_add(&hasher->sha, hasher->place, hasher->place_len);
}

static bool add_outline(struct record_hasher *hasher, thole_slice record)
{
    if (record_hashed(record) != RECORD_HASHED_OUTLINE)
        return false;
    if (hasher->payloads.context == NULL)
        sha256_init(&hasher->payloads);
    begin(hasher, purpose_of_outline);
    return record_outline_add(record, &hasher->sha, &hasher->payloads);
}

struct record_hash record_hasher_make(struct record_hasher *hasher, thole_slice record)
{
    struct record_hash hash;
    if (!add_outline(hasher, record)) {
        begin(hasher, purpose);
        sha256_add(&hasher->sha, record.ptr, record.len);
    }
    sha256_end(&hasher->sha, hash.bytes);
    return hash;
}

struct record_hash record_hash_make(thole_slice ns, uint32_t partition, thole_slice record)
{
    struct record_hasher hasher;
    hasher_init(&hasher, ns, partition);
    struct record_hash const hash = record_hasher_make(&hasher, record);
    hasher_release(&hasher);
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
