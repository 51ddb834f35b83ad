/*
 * NATS URLs as users write them: [nats://|tls://]HOST[:PORT][/…], or with a user and a scheme,
 * nats://USER[:PASSWORD]@HOST[:PORT][/…], several separated by commas.
 *
 * The text before the last '@' is user and password and is never repeated in a message, whatever the URL
 * looks like: nats.c reads it the same way. A URL with a user but without a scheme is refused: it could be a
 * mistyped tls://, or a part of a password with a comma.
 */
#ifndef THOLE_NATS_URL_H
#define THOLE_NATS_URL_H
#include "thole/types.h"

enum { NATS_URLS_MAX = 64, NATS_URLS_BYTES_MAX = 16 * 1024, NATS_ADDRESS_BYTES = 280 };

/* By what stands before "://", in upper or lower case; without it: NATS. */
enum nats_scheme { NATS_SCHEME_NATS, NATS_SCHEME_TLS, NATS_SCHEME_UNKNOWN };
enum nats_scheme nats_url_scheme(const char *url);

/* HOST:PORT of one URL; the port is 4222 where there is none, IPv6 keeps its brackets. False: malformed. */
bool nats_url_address(const char *url, char ret[NATS_ADDRESS_BYTES]);

/* Whether one of @p urls has a user, password or token in it: a user alone is a token. */
bool nats_urls_have_secret(const char *urls);

/* Bytes of @p text; THOLE_INVALID: it is NULL, empty, or has NATS_URLS_BYTES_MAX or more. */
THOLE_NODISCARD thole_status nats_urls_measure(const char *text, size_t *ret_len, thole_error *reterr);
/* Cuts @p text at its commas, in place: @p ret points into it. THOLE_INVALID: none, too many, or one is
 * malformed or of an unknown scheme; the message shows none of them. */
THOLE_NODISCARD thole_status nats_urls_split(char *text, char *ret[NATS_URLS_MAX], size_t *ret_len,
                                             thole_error *reterr);
#endif
