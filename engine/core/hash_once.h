/*
 * SHA-256 and HMAC-SHA256 of one message, by libcrypto, without an allocation: for what is hashed with each
 * activity. Its newer functions (EVP_Digest(), HMAC()) look the algorithm up by its name in each call: 20
 * allocations for an HMAC, and four times the time for a short text. For many messages: sha256.h. Pure.
 */
#ifndef THOLE_HASH_ONCE_H
#define THOLE_HASH_ONCE_H
#include "sha256.h"

enum { HASH_ONCE_KEY_BYTES_MAX = 64 };
/* Of @p n pieces, one behind the other. */
void hash_once_sha256(const thole_slice *pieces, size_t n, uint8_t ret[SHA256_BYTES]);
/* @p key: at most HASH_ONCE_KEY_BYTES_MAX. */
void hash_once_hmac(thole_slice key, thole_slice bytes, uint8_t ret[SHA256_BYTES]);
#endif
