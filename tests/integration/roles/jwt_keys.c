#include "jwt_keys.h"
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PREFIX_SEED = 18 << 3, SIGNATURE_BYTES = 64 };

static const char letters32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
static const char letters64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static unsigned prefix_of(char kind)
{
    return kind == 'O' ? 14 << 3 : kind == 'A' ? 0 : 20 << 3;
}

/* CRC-16/XMODEM. */
static unsigned checksum(const uint8_t *bytes, size_t len)
{
    unsigned crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = ((crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
    }
    return crc;
}

static void encode(const char *letters, unsigned width, const uint8_t *bytes, size_t len, char *ret)
{
    unsigned held = 0, bits = 0;
    for (size_t i = 0; i < len; i++) {
        held = (held << 8 | bytes[i]) & 0xffff;
        for (bits += 8; bits >= width; bits -= width)
            *ret++ = letters[held >> (bits - width) & ((1u << width) - 1)];
    }
    if (bits > 0)
        *ret++ = letters[held << (width - bits) & ((1u << width) - 1)];
    *ret = '\0';
}

/* Base32 of the prefix, the key and the checksum. */
static void name_key(uint8_t *bytes, size_t prefix_len, const uint8_t key[32], char *ret)
{
    size_t const len = prefix_len + 32;
    memcpy(bytes + prefix_len, key, 32);
    unsigned const sum = checksum(bytes, len);
    bytes[len] = (uint8_t)sum;
    bytes[len + 1] = (uint8_t)(sum >> 8);
    encode(letters32, 5, bytes, len + 2, ret);
}

static EVP_PKEY *open_key(const struct jwt_key *key)
{
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key->raw, sizeof key->raw);
}

bool jwt_key_make(char kind, struct jwt_key *ret)
{
    unsigned const prefix = prefix_of(kind);
    uint8_t public[32], bytes[36];
    size_t len = sizeof public;
    if (RAND_bytes(ret->raw, sizeof ret->raw) != 1)
        return false;
    EVP_PKEY *const key = open_key(ret);
    bool const good = key != NULL && EVP_PKEY_get_raw_public_key(key, public, &len) == 1;
    EVP_PKEY_free(key);
    if (!good)
        return false;
    bytes[0] = (uint8_t)prefix;
    name_key(bytes, 1, public, ret->name);
    bytes[0] = (uint8_t)(PREFIX_SEED | prefix >> 5);
    bytes[1] = (uint8_t)((prefix & 31) << 3);
    name_key(bytes, 2, ret->raw, ret->seed);
    return true;
}

bool jwt_sign(const struct jwt_key *issuer, const char *claims, char ret[JWT_BYTES])
{
    static const char header[] = "{\"typ\":\"JWT\",\"alg\":\"ed25519-nkey\"}";
    static char body[JWT_BYTES / 2];
    uint8_t signature[SIGNATURE_BYTES];
    size_t len = sizeof signature;
    int const n = snprintf(body, sizeof body, "{\"jti\":\"THOLE\",\"iat\":%lld,\"iss\":\"%s\",%s}",
                           (long long)time(NULL), issuer->name, claims);
    if (n < 0 || (size_t)n >= sizeof body)
        return false;
    encode(letters64, 6, (const uint8_t *)header, strlen(header), ret);
    size_t at = strlen(ret);
    ret[at++] = '.';
    encode(letters64, 6, (const uint8_t *)body, (size_t)n, ret + at);
    at = strlen(ret);
    EVP_PKEY *const key = open_key(issuer);
    EVP_MD_CTX *const context = EVP_MD_CTX_new();
    bool const good = key != NULL && context != NULL &&
                      EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
                      EVP_DigestSign(context, signature, &len, (const uint8_t *)ret, at) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    ret[at] = '.';
    encode(letters64, 6, signature, sizeof signature, ret + at + 1);
    return good;
}

bool jwt_write_creds(const char *path, const char *jwt, const struct jwt_key *user)
{
    FILE *const to = fopen(path, "we");
    if (to == NULL)
        return false;
    fprintf(to, "-----BEGIN NATS USER JWT-----\n%s\n------END NATS USER JWT------\n\n", jwt);
    fprintf(to, "-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n", user->seed);
    return fclose(to) == 0;
}
