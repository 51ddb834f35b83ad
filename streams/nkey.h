/* NKeys: the seed of a user of NATS in a file, as `nk -gen user` and nsc write it, and the user's
 * public key. */
#ifndef THOLE_NKEY_H
#define THOLE_NKEY_H
#include "thole/types.h"

enum { NKEY_PUBLIC_BYTES = 56 + 1 };

/*
 * The public key (U…) to the seed (SU…) of a file that holds it alone, in a line of its own. THOLE_NOT_FOUND:
 * the file holds no seed alone (it is a credentials file, with a JWT; or none at all), and @p reterr is as it
 * was; THOLE_INVALID with a sentence: it is no seed of a user. The seed is wiped from memory, and in no text.
 */
THOLE_NODISCARD thole_status nkey_public(const char *path, char ret[NKEY_PUBLIC_BYTES], thole_error *reterr);
#endif
