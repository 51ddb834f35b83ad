#include "nonce.h"
#include "memory.h"
#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <string.h>

enum { NUMBER_BYTES = 8 };

static void put_number(uint8_t *to, uint64_t number)
{
    for (size_t i = 0; i < NUMBER_BYTES; i++)
        to[i] = (uint8_t)(number >> (8 * i));
}

/* The first half of HMAC-SHA256(key, execution, activity id, instance), the numbers in 8 bytes, the lowest
 * first. */
struct nonce nonce_make(const struct nonce_key *key, thole_slice instance, uint64_t execution,
                        uint64_t activity_id)
{
    static const char hex[] = "0123456789abcdef";
    uint8_t place[2 * NUMBER_BYTES + THOLE_ID_BYTES_MAX], code[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    struct nonce nonce;
    assert(instance.len <= THOLE_ID_BYTES_MAX);
    put_number(place, execution);
    put_number(place + NUMBER_BYTES, activity_id);
    memcpy(place + 2 * NUMBER_BYTES, instance.ptr, instance.len);
    if (HMAC(EVP_sha256(), key->bytes, sizeof key->bytes, place, 2 * NUMBER_BYTES + instance.len, code,
             &len) == NULL ||
        len < NONCE_TEXT_LEN / 2)
        memory_give_up(1, sizeof code); /* libcrypto has no memory */
    for (size_t i = 0; i < NONCE_TEXT_LEN / 2; i++) {
        nonce.text[2 * i] = hex[code[i] >> 4];
        nonce.text[2 * i + 1] = hex[code[i] & 15];
    }
    nonce.text[NONCE_TEXT_LEN] = '\0';
    return nonce;
}

bool nonce_is_text(thole_slice text)
{
    bool good = text.len == NONCE_TEXT_LEN;
    for (size_t i = 0; good && i < text.len; i++)
        good = (text.ptr[i] >= '0' && text.ptr[i] <= '9') || (text.ptr[i] >= 'a' && text.ptr[i] <= 'f');
    return good;
}

/* Compared in constant time: how soon a wrong one is refused says nothing of the right one. */
thole_status nonce_check(const struct nonce_key *key, const struct message *message, thole_error *reterr)
{
    if (message->kind != MESSAGE_ACTIVITY_RESULT)
        return THOLE_OK;
    struct nonce const own = nonce_make(key, message->instance, message->execution, message->task);
    if (message->nonce.len == NONCE_TEXT_LEN &&
        CRYPTO_memcmp(message->nonce.ptr, own.text, NONCE_TEXT_LEN) == 0)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID,
                      "the result is not from a worker that was given the activity, nor with its token: %s",
                      message->nonce.len == 0 ? "it has no nonce" : "its nonce is another one");
}
