/*
 * NATS URLs as users write them: [nats://|tls://][USER[:PASSWORD]@]HOST[:PORT][/…], several separated by
 * commas.
 *
 * What stands before the last '@' is user and password and is never repeated in a message, whatever the URL
 * looks like: nats.c reads it the same way. What could be a password that was cut in two is refused as
 * malformed.
 */
#ifndef THOLE_NATS_URL_H
#define THOLE_NATS_URL_H
#include "thole/types.h"

enum { NATS_URLS_MAX = 64, NATS_URLS_BYTES_MAX = 16 * 1024, NATS_ADDRESS_BYTES = 280 };

/* HOST:PORT of one URL; the port is 4222 where there is none, IPv6 keeps its brackets. False: malformed. */
bool nats_url_address(const char *url, char ret[NATS_ADDRESS_BYTES]);

/* Whether one of @p urls has a user, password or token in it: a user alone is a token. */
bool nats_urls_have_secret(const char *urls);

/* Cuts @p text at its commas, in place: @p ret points into it. THOLE_INVALID: none, too many, or one is
 * malformed; the message shows none of them. */
THOLE_NODISCARD thole_status nats_urls_split(char *text, char *ret[NATS_URLS_MAX], size_t *ret_len,
                                             thole_error *reterr);
#endif
