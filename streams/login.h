/* A user and a password of NATS, or a token, in a file: lines `user: NAME` and `password: SECRET`, or `token:
 * SECRET`. */
#ifndef THOLE_LOGIN_H
#define THOLE_LOGIN_H
#include "thole/types.h"
#include <nats/nats.h>

/*
 * Reads the file at @p path and gives @p options what it has. THOLE_NOT_FOUND, and @p reterr as it was: the
 * file is none of these (credentials, the seed of an NKey, not there); THOLE_INVALID with file, line and what
 * is wrong. What stands behind the colon is in no text, and is wiped from memory, except for nats.c's own
 * copy.
 */
THOLE_NODISCARD thole_status login_set(const char *path, natsOptions *options, thole_error *reterr);
/* The same for a file that was one before: THOLE_INVALID when it is none any more. */
THOLE_NODISCARD thole_status login_again(const char *path, natsOptions *options, thole_error *reterr);
/* THOLE_INVALID: a URL has a user, too. nats.c would take that one without a word. */
THOLE_NODISCARD thole_status login_alone(const char *path, char *const *urls, size_t n, thole_error *reterr);
#endif
