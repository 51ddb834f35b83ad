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
/* 127.0.0.1 and this port. */
void listen_address_loopback(uint16_t port, struct sockaddr_storage *ret);
/* As a URL has it: "127.0.0.1:9464", "[::1]:9464". */
enum { LISTEN_ADDRESS_BYTES = 64 };
void listen_address_format(const struct sockaddr_storage *address, char ret[LISTEN_ADDRESS_BYTES]);
/* A socket that listens there. THOLE_UNAVAILABLE: the address is in use, or is not one of this machine. */
THOLE_NODISCARD thole_status listen_address_open(const struct sockaddr_storage *address, int backlog,
                                                 int *ret, thole_error *reterr);
/* Where it listens, with the port that the system chose; "" when that is not known. */
void listen_address_of(int fd, char ret[LISTEN_ADDRESS_BYTES]);
#endif
