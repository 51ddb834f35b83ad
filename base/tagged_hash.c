#include "tagged_hash.h"
#include "sha256.h"
#include <openssl/crypto.h>
#include <string.h>

struct tagged_hash tagged_hash_make(const char *tag, thole_slice bytes)
{
    static const char hex[] = "0123456789abcdef";
    uint8_t code[SHA256_BYTES];
    struct tagged_hash hash = {{0}};
    sha256_hmac(thole_slice_from(tag), bytes, code);
    for (size_t i = 0; i < TAGGED_HASH_TEXT_LEN / 2; i++) {
        hash.text[2 * i] = hex[code[i] >> 4];
        hash.text[2 * i + 1] = hex[code[i] & 15];
    }
    return hash;
}

bool tagged_hash_is(const struct tagged_hash *hash, thole_slice text)
{
    return text.len == TAGGED_HASH_TEXT_LEN && CRYPTO_memcmp(hash->text, text.ptr, text.len) == 0;
}
