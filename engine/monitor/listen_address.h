/* The address that --http names. */
#ifndef THOLE_LISTEN_ADDRESS_H
#define THOLE_LISTEN_ADDRESS_H
#include "thole/types.h"
#include <sys/socket.h>

/*
 * PORT (then 127.0.0.1), IPV4:PORT or [IPV6]:PORT. Names are not looked up. Port 0: one that the system
 * chooses. THOLE_INVALID with a sentence.
 */
THOLE_NODISCARD thole_status listen_address_parse(const char *text, struct sockaddr_storage *ret,
                                                  thole_error *reterr);
/* As a URL has it: "127.0.0.1:9464", "[::1]:9464". */
enum { LISTEN_ADDRESS_BYTES = 64 };
void listen_address_format(const struct sockaddr_storage *address, char ret[LISTEN_ADDRESS_BYTES]);
#endif
