/* A user and a password of NATS, or a token, in a file: lines `user: NAME` and `password: SECRET`, or `token:
 * SECRET`. */
#ifndef THOLE_LOGIN_H
#define THOLE_LOGIN_H
#include "thole/types.h"
#include <nats/nats.h>

/*
 * Reads the file at @p path and sets its contents in @p options. THOLE_NOT_FOUND, with @p reterr unchanged:
 * the file has neither a user nor a token (credentials, the seed of an NKey, missing); THOLE_INVALID with
 * file, line and error. Text after the colon appears in no error, and is wiped from memory, except for
 * nats.c's own copy.
 */
THOLE_NODISCARD thole_status login_set(const char *path, natsOptions *options, thole_error *reterr);
/* Like login_set(), for a file that had a user or a token before: THOLE_INVALID when it has none any more. */
THOLE_NODISCARD thole_status login_again(const char *path, natsOptions *options, thole_error *reterr);
/* THOLE_INVALID: a URL has a user, too. nats.c would take that one without a word. */
THOLE_NODISCARD thole_status login_alone(const char *path, char *const *urls, size_t n, thole_error *reterr);
#endif
