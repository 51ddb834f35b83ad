#include "nonce.h"
#include "sha256.h"
#include <assert.h>
#include <openssl/crypto.h>
#include <string.h>

enum { NUMBER_BYTES = 8 };

static void nonce_put_number(uint8_t *to, uint64_t number)
{
    for (size_t i = 0; i < NUMBER_BYTES; i++)
        to[i] = (uint8_t)(number >> (8 * i));
}

static void put_hex(char *to, const uint8_t *bytes, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = hex[bytes[i] >> 4];
        to[2 * i + 1] = hex[bytes[i] & 15];
    }
    to[2 * n] = '\0';
}

/* The value of a digit; -1: it is none. */
static int nonce_hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The first half of HMAC-SHA256(key, execution, activity id, instance), the numbers in 8 bytes, the lowest
 * first. */
struct nonce nonce_make(const struct nonce_key *key, thole_slice instance, uint64_t execution,
                        uint64_t activity_id)
{
    uint8_t place[2 * NUMBER_BYTES + THOLE_ID_BYTES_MAX], code[SHA256_BYTES];
    struct nonce nonce;
    assert(instance.len <= THOLE_ID_BYTES_MAX);
    nonce_put_number(place, execution);
    nonce_put_number(place + NUMBER_BYTES, activity_id);
    memcpy(place + 2 * NUMBER_BYTES, instance.ptr, instance.len);
    sha256_hmac((thole_slice){key->bytes, sizeof key->bytes},
                (thole_slice){place, 2 * NUMBER_BYTES + instance.len}, code);
    put_hex(nonce.text, code, NONCE_TEXT_LEN / 2);
    return nonce;
}

bool nonce_is_text(thole_slice text)
{
    bool good = text.len == NONCE_TEXT_LEN;
    for (size_t i = 0; good && i < text.len; i++)
        good = nonce_hex_digit(text.ptr[i]) >= 0;
    return good;
}

/* The HMAC of nothing is no activity's: those have numbers. */
uint64_t nonce_key_mark(const struct nonce_key *key)
{
    uint8_t code[SHA256_BYTES];
    uint64_t mark = 0;
    sha256_hmac((thole_slice){key->bytes, sizeof key->bytes}, (thole_slice){NULL, 0}, code);
    for (size_t i = 0; i < NUMBER_BYTES; i++)
        mark = mark << 8 | code[i];
    mark >>= 1;
    return mark == 0 ? 1 : mark;
}

struct nonce_key_text nonce_key_write(const struct nonce_key *key)
{
    struct nonce_key_text to;
    put_hex(to.text, key->bytes, NONCE_KEY_BYTES);
    return to;
}

bool nonce_key_read(thole_slice text, struct nonce_key *ret)
{
    if (text.len != 2 * NONCE_KEY_BYTES)
        return false;
    for (size_t i = 0; i < NONCE_KEY_BYTES; i++) {
        int const high = nonce_hex_digit(text.ptr[2 * i]), low = nonce_hex_digit(text.ptr[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret->bytes[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

/* Compared in constant time: how soon a wrong one is refused says nothing of the right one. */
thole_status nonce_check(const struct nonce_key *key, const struct message *message,
                         enum message_sender sender, thole_error *reterr)
{
    if (message->kind != MESSAGE_ACTIVITY_RESULT || sender == SENDER_ENGINE)
        return THOLE_OK;
    struct nonce const own = nonce_make(key, message->instance, message->execution, message->task);
    if (message->nonce.len == NONCE_TEXT_LEN &&
        CRYPTO_memcmp(message->nonce.ptr, own.text, NONCE_TEXT_LEN) == 0)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID,
                      "the result is not from a worker that was given the activity, nor with its token: %s",
                      message->nonce.len == 0 ? "it has no nonce" : "its nonce is another one");
}
