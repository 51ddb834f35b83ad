#include "sha256.h"
#include "memory.h"
#include <openssl/evp.h>

static void must(int done)
{
    if (done != 1)
        memory_give_up(1, SHA256_BYTES); /* libcrypto has no memory */
}

void sha256_init(struct sha256 *sha)
{
    sha->context = EVP_MD_CTX_new();
    must(sha->context != NULL && EVP_DigestInit_ex(sha->context, EVP_sha256(), NULL) == 1);
}

void sha256_release(struct sha256 *sha)
{
    EVP_MD_CTX_free(sha->context);
    sha->context = NULL;
}

void sha256_begin(struct sha256 *sha)
{
    must(EVP_DigestInit_ex(sha->context, NULL, NULL)); /* the same digest */
}

void sha256_add(struct sha256 *sha, const void *bytes, size_t len)
{
    if (len > 0)
        must(EVP_DigestUpdate(sha->context, bytes, len));
}

void sha256_end(struct sha256 *sha, uint8_t ret[SHA256_BYTES])
{
    must(EVP_DigestFinal_ex(sha->context, ret, NULL));
}
