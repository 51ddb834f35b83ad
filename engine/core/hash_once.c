#define OPENSSL_SUPPRESS_DEPRECATED /* since 3.0, in favour of those that allocate; see hash_once.h */
#include "hash_once.h"
#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

static void update(SHA256_CTX *context, const void *bytes, size_t len)
{
    int const done = len == 0 ? 1 : SHA256_Update(context, bytes, len);
    assert(done == 1); /* it cannot fail */
    (void)done;
}

static void begin(SHA256_CTX *context)
{
    int const done = SHA256_Init(context);
    assert(done == 1);
    (void)done;
}

static void finish(SHA256_CTX *context, uint8_t ret[SHA256_BYTES])
{
    int const done = SHA256_Final(ret, context); /* also wipes the context */
    assert(done == 1);
    (void)done;
}

void hash_once_sha256(const thole_slice *pieces, size_t n, uint8_t ret[SHA256_BYTES])
{
    SHA256_CTX context;
    begin(&context);
    for (size_t i = 0; i < n; i++)
        update(&context, pieces[i].ptr, pieces[i].len);
    finish(&context, ret);
}

/* SHA-256 of the key, each byte of it changed by @p change and filled up to a block, and of the bytes. */
static void behind_key(thole_slice key, uint8_t change, thole_slice bytes, uint8_t ret[SHA256_BYTES])
{
    uint8_t block[HASH_ONCE_KEY_BYTES_MAX];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)((i < key.len ? key.ptr[i] : 0) ^ change);
    hash_once_sha256((const thole_slice[]){{block, sizeof block}, bytes}, 2, ret);
    OPENSSL_cleanse(block, sizeof block);
}

void hash_once_hmac(thole_slice key, thole_slice bytes, uint8_t ret[SHA256_BYTES])
{
    uint8_t inner[SHA256_BYTES];
    assert(key.len <= HASH_ONCE_KEY_BYTES_MAX);
    behind_key(key, 0x36, bytes, inner); /* RFC 2104 */
    behind_key(key, 0x5c, (thole_slice){inner, sizeof inner}, ret);
}
