/*
 * SHA-256 and HMAC-SHA256 by libcrypto, without an allocation, so that nothing can fail: several are made for
 * each activity and each record. libcrypto's newer functions (EVP_Digest(), HMAC()) look the algorithm up by
 * its name in each call: 20 allocations for an HMAC, and four times the time for a short text. Pure.
 */
#ifndef THOLE_SHA256_H
#define THOLE_SHA256_H
#include "thole/types.h"
#include <openssl/sha.h>

enum { SHA256_BYTES = 32, SHA256_KEY_BYTES_MAX = 64 };
struct sha256 {
    SHA256_CTX context;
};
void sha256_begin(struct sha256 *sha); /* forgets all bytes added before */
void sha256_add(struct sha256 *sha, const void *bytes, size_t len);
void sha256_end(struct sha256 *sha, uint8_t ret[SHA256_BYTES]); /* begin it before it is used again */

/* The hash of @p n pieces, joined in order. */
void sha256_of(const thole_slice *pieces, size_t n, uint8_t ret[SHA256_BYTES]);
/* @p key: at most SHA256_KEY_BYTES_MAX. */
void sha256_hmac(thole_slice key, thole_slice bytes, uint8_t ret[SHA256_BYTES]);
#endif
