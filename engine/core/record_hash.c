#include "record_hash.h"
#include "memory.h"
#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

enum { PARTITION_BYTES = 4 };

/* What stands before the record's bytes: no other use of SHA-256 begins so, and names have no NUL. */
static const char purpose[] = "thole.record.v1"; /* with its NUL */

struct record_hash record_hash_make(thole_slice ns, uint32_t partition, thole_slice record)
{
    uint8_t head[sizeof purpose + THOLE_NAME_BYTES_MAX + 1 + PARTITION_BYTES], *to = head;
    struct record_hash hash;
    assert(ns.len <= THOLE_NAME_BYTES_MAX);
    memcpy(to, purpose, sizeof purpose);
    to += sizeof purpose;
    if (ns.len > 0)
        memcpy(to, ns.ptr, ns.len);
    to += ns.len;
    *to++ = 0;
    for (int shift = 24; shift >= 0; shift -= 8)
        *to++ = (uint8_t)(partition >> shift);
    EVP_MD_CTX *const context = EVP_MD_CTX_new();
    if (context == NULL || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1 ||
        EVP_DigestUpdate(context, head, (size_t)(to - head)) != 1 ||
        EVP_DigestUpdate(context, record.ptr, record.len) != 1 ||
        EVP_DigestFinal_ex(context, hash.bytes, NULL) != 1)
        memory_give_up(1, sizeof hash); /* libcrypto has no memory */
    EVP_MD_CTX_free(context);
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
