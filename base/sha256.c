#define OPENSSL_SUPPRESS_DEPRECATED /* since 3.0, in favour of those that allocate */
#include "sha256.h"
#include <assert.h>
#include <openssl/crypto.h>

/* None of the calls can fail with what is passed here. */
static void sha256_check(int done)
{
    assert(done == 1);
    (void)done;
}

void sha256_begin(struct sha256 *sha)
{
    sha256_check(SHA256_Init(&sha->context));
}

void sha256_add(struct sha256 *sha, const void *bytes, size_t len)
{
    if (len > 0)
        sha256_check(SHA256_Update(&sha->context, bytes, len));
}

void sha256_end(struct sha256 *sha, uint8_t ret[SHA256_BYTES])
{
    sha256_check(SHA256_Final(ret, &sha->context)); /* also wipes the context */
}

void sha256_of(const thole_slice *pieces, size_t n, uint8_t ret[SHA256_BYTES])
{
    struct sha256 sha;
    sha256_begin(&sha);
    for (size_t i = 0; i < n; i++)
        sha256_add(&sha, pieces[i].ptr, pieces[i].len);
    sha256_end(&sha, ret);
}

/* SHA-256 of the key, each byte of it changed by @p change and filled up to a block, and of the bytes. */
static void behind_key(thole_slice key, uint8_t change, thole_slice bytes, uint8_t ret[SHA256_BYTES])
{
    uint8_t block[SHA256_KEY_BYTES_MAX];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)((i < key.len ? key.ptr[i] : 0) ^ change);
    sha256_of((const thole_slice[]){{block, sizeof block}, bytes}, 2, ret);
    OPENSSL_cleanse(block, sizeof block);
}

void sha256_hmac(thole_slice key, thole_slice bytes, uint8_t ret[SHA256_BYTES])
{
    uint8_t inner[SHA256_BYTES];
    assert(key.len <= SHA256_KEY_BYTES_MAX);
    behind_key(key, 0x36, bytes, inner); /* RFC 2104 */
    behind_key(key, 0x5c, (thole_slice){inner, sizeof inner}, ret);
}
