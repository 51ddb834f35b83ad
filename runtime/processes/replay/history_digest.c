#include "history_digest.h"
#include "memory.h"
#include "subject.h"
#include <inttypes.h>
#include <openssl/evp.h>

/* libcrypto fails for no other reason. */
static void history_digest_check(int done)
{
    if (done != 1)
        memory_give_up(1, EVP_MAX_MD_SIZE);
}

void history_digest_init(struct history_digest *digest)
{
    digest->context = EVP_MD_CTX_new();
    history_digest_check(digest->context != NULL);
    history_digest_clear(digest);
}

void history_digest_release(struct history_digest *digest)
{
    EVP_MD_CTX_free(digest->context);
    digest->context = NULL;
}

void history_digest_clear(struct history_digest *digest)
{
    history_digest_check(EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL));
}

void history_digest_copy(struct history_digest *to, const struct history_digest *from)
{
    history_digest_check(EVP_MD_CTX_copy_ex(to->context, from->context));
}

void history_digest_add(struct history_digest *digest, thole_slice bytes)
{
    if (bytes.len > 0)
        history_digest_check(EVP_DigestUpdate(digest->context, bytes.ptr, bytes.len));
}

void history_digest_text(const struct history_digest *digest, char ret[HISTORY_DIGEST_TEXT_LEN + 1])
{
    uint8_t code[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    EVP_MD_CTX *copy = EVP_MD_CTX_new();
    history_digest_check(copy != NULL && EVP_MD_CTX_copy_ex(copy, digest->context) == 1 &&
                         EVP_DigestFinal_ex(copy, code, &len) == 1 && len * 2 == HISTORY_DIGEST_TEXT_LEN);
    EVP_MD_CTX_free(copy);
    for (unsigned i = 0; i < len; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", code[i]);
}

/* ---- lines ---- */

void history_line_head(struct buf *to, const char *ns, uint32_t partition, thole_slice instance)
{
    struct buf token;
    buf_init(&token, SUBJECT_BYTES_MAX);
    if (subject_token(&token, instance, NULL) == THOLE_OK)
        buf_printf(to, "thole history 1 %s %" PRIu32 " %s\n", ns, partition, buf_cstr(&token));
    buf_release(&token);
}

void history_line_record(struct buf *to, uint64_t sequence, size_t len)
{
    buf_printf(to, "%" PRIu64 " %zu\n", sequence, len);
}

void history_line_end(struct buf *to, uint64_t records)
{
    buf_printf(to, "end %" PRIu64 "\n", records);
}
