/*
 * A short hash of bytes for one purpose, for which other bytes cannot be found: the first half of
 * HMAC-SHA256 with the tag as its key, so that hashes of different purposes never stand for each other. Pure.
 */
#ifndef THOLE_TAGGED_HASH_H
#define THOLE_TAGGED_HASH_H
#include "thole/types.h"

enum { TAGGED_HASH_TEXT_LEN = 32 };
struct tagged_hash {
    char text[TAGGED_HASH_TEXT_LEN + 1]; /* lower-case hexadecimal digits */
};
struct tagged_hash tagged_hash_make(const char *tag, thole_slice bytes);
/* In constant time. */
bool tagged_hash_is(const struct tagged_hash *hash, thole_slice text);
#endif
