/* The products of `nsc`: NKeys, JWTs that they sign, credentials files. For servers in operator mode. */
#ifndef THOLE_JWT_KEYS_H
#define THOLE_JWT_KEYS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JWT_KEY_CHARS = 56, JWT_SEED_CHARS = 58, JWT_BYTES = 16384 };
struct jwt_key {
    uint8_t raw[32];
    char name[JWT_KEY_CHARS + 1]; /* the public key */
    char seed[JWT_SEED_CHARS + 1];
};
/* @p kind: 'O' operator, 'A' account, 'U' user. */
bool jwt_key_make(char kind, struct jwt_key *ret);
/* Signed by @p issuer: iss and iat are added to the members @p claims, "\"sub\":…". */
bool jwt_sign(const struct jwt_key *issuer, const char *claims, char ret[JWT_BYTES]);
bool jwt_write_creds(const char *path, const char *jwt, const struct jwt_key *user);
#endif
