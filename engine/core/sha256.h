/* SHA-256 for many messages, one behind the other: libcrypto looks its functions up once. A lack of memory in
 * libcrypto ends the process, as of any small block (memory.h). Pure; one thread at a time for each. */
#ifndef THOLE_SHA256_H
#define THOLE_SHA256_H
#include "thole/types.h"

enum { SHA256_BYTES = 32 };
struct evp_md_ctx_st; /* libcrypto's EVP_MD_CTX */
struct sha256 {
    struct evp_md_ctx_st *context;
};
void sha256_init(struct sha256 *sha);    /* the first message begins */
void sha256_release(struct sha256 *sha); /* zeroed: nothing */
void sha256_begin(
    struct sha256 *sha); /* the next one begins; what was added to the one before is forgotten */
void sha256_add(struct sha256 *sha, const void *bytes, size_t len);
void sha256_end(struct sha256 *sha, uint8_t ret[SHA256_BYTES]);
#endif
