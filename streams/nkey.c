/* Base32 with a checksum around an Ed25519 key. */
#include "nkey.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

enum {
    FILE_BYTES_MAX = 4096,
    SEED_CHARS = 58,
    SEED_BYTES = 36, /* two of prefix, the key, two of checksum */
    KEY_BYTES = 32,
    PUBLIC_BYTES = 35,
    PREFIX_USER = 20 << 3,
    PREFIX_SEED = 18 << 3,
};
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/* CRC-16/XMODEM, as NKeys have it. */
static uint16_t nkey_checksum(const uint8_t *bytes, size_t len)
{
    unsigned crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = ((crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
    }
    return (uint16_t)crc;
}

/* False: a letter that is none. */
static bool nkey_decode(const char *text, size_t chars, uint8_t *ret, size_t len)
{
    unsigned held = 0, bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < chars; i++) {
        const char *const at = text[i] == '\0' ? NULL : strchr(letters, text[i]);
        if (at == NULL)
            return false;
        held = (held << 5 | (unsigned)(at - letters)) & 0xfff;
        bits += 5;
        if (bits >= 8 && n < len) {
            bits -= 8;
            ret[n++] = (uint8_t)(held >> bits);
        }
    }
    return n == len;
}

static void nkey_encode(const uint8_t *bytes, size_t len, char *ret)
{
    unsigned held = 0, bits = 0;
    for (size_t i = 0; i < len; i++) {
        held = (held << 8 | bytes[i]) & 0xfff;
        for (bits += 8; bits >= 5; bits -= 5)
            *ret++ = letters[held >> (bits - 5) & 31];
    }
    *ret = '\0'; /* 35 bytes are 56 letters, without a rest */
}

/* The seed in the file's text: its only line that is not empty. */
static const char *find_seed(char *text)
{
    char *const begin = text + strspn(text, " \t\r\n");
    char *const end = begin + strcspn(begin, " \t\r\n");
    bool const alone = end[strspn(end, " \t\r\n")] == '\0';
    *end = '\0';
    return alone && begin[0] == 'S' && end - begin > 2 ? begin : NULL;
}

static thole_status public_of_seed(const char *seed, char ret[NKEY_PUBLIC_BYTES], thole_error *reterr)
{
    uint8_t raw[SEED_BYTES] = {0}, public[PUBLIC_BYTES] = {PREFIX_USER};
    size_t len = KEY_BYTES;
    bool good = strlen(seed) == SEED_CHARS && nkey_decode(seed, SEED_CHARS, raw, sizeof raw) &&
                raw[0] == (PREFIX_SEED | PREFIX_USER >> 5) && raw[1] == (PREFIX_USER & 31) << 3 &&
                nkey_checksum(raw, SEED_BYTES - 2) == (raw[SEED_BYTES - 2] | raw[SEED_BYTES - 1] << 8);
    EVP_PKEY *const key =
        good ? EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, raw + 2, KEY_BYTES) : NULL;
    OPENSSL_cleanse(raw, sizeof raw);
    good = key != NULL && EVP_PKEY_get_raw_public_key(key, public + 1, &len) == 1;
    EVP_PKEY_free(key);
    if (!good)
        return thole_fail(reterr, THOLE_INVALID,
                          "the file of NATS credentials holds one line, which is not the NKey seed of a user "
                          "(SU and 56 more letters and digits)");
    uint16_t const crc = nkey_checksum(public, PUBLIC_BYTES - 2);
    public[PUBLIC_BYTES - 2] = (uint8_t)crc;
    public[PUBLIC_BYTES - 1] = (uint8_t)(crc >> 8);
    nkey_encode(public, sizeof public, ret);
    return THOLE_OK;
}

thole_status nkey_public(const char *path, char ret[NKEY_PUBLIC_BYTES], thole_error *reterr)
{
    char text[FILE_BYTES_MAX];
    FILE *const file = fopen(path, "re");
    if (file == NULL)
        return THOLE_NOT_FOUND;           /* the reader of credentials reports it */
    (void)setvbuf(file, NULL, _IONBF, 0); /* the seed is in no buffer but ours */
    size_t const len = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[len] = '\0';
    const char *const seed = find_seed(text);
    thole_status const status = seed == NULL ? THOLE_NOT_FOUND : public_of_seed(seed, ret, reterr);
    OPENSSL_cleanse(text, sizeof text);
    return status;
}
