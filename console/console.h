/*
 * The web console: pages for people, a JSON interface for them, and a stream of events, over HTTP. It reads
 * through the client library and keeps nothing. docs/console.md is its reference.
 *
 * One thread serves all connections and never waits for a server; CONSOLE_WORKERS threads, each with a client
 * of its own, answer one request at a time. Connections, waiting requests, streams and the waiting bytes of
 * each are bounded; a request beyond a bound is refused with a sentence.
 */
#ifndef THOLE_CONSOLE_H
#define THOLE_CONSOLE_H
#include "thole/client.h"
#include <sys/socket.h>

enum {
    CONSOLE_PORT = 8233, /* where it listens unless it is told otherwise */
    CONSOLE_WORKERS = 4,
    CONSOLE_WAITING_MAX = 64,      /* requests that wait for a worker */
    CONSOLE_CONNECTIONS_MAX = 256, /* beyond them one is closed for each that comes: visitors.h */
    CONSOLE_IDLE_S = 30,           /* a connection on which nothing moves for so long is closed */
    CONSOLE_BODY_BYTES_MAX = 1024 * 1024,
    CONSOLE_TOKEN_BYTES_MIN = 16,
    CONSOLE_TOKEN_BYTES_MAX = 1024,
};

struct console_options {
    const thole_client_options *client; /* borrowed while it runs, with its strings; so are all the others */
    struct sockaddr_storage address;
    const char *token;           /* for actions; on an address that is not of this machine alone, for all.
                                    NULL: none */
    const char *identity_header; /* set by a proxy in front: who the user is. NULL: none */
    const char *trusted_proxy;   /* the address that such requests come from; with identity_header, or NULL */
    bool allow_actions;          /* without a token; on a loopback address */
};

struct console;
/* Servers need not be there: requests are refused until they are. THOLE_INVALID: options that contradict each
 * other, or would open everything to everybody; THOLE_UNAVAILABLE: the address is in use. */
THOLE_NODISCARD thole_status console_start(const struct console_options *options, struct console **ret,
                                           thole_error *reterr);
/* "127.0.0.1:8233", with the port that the system chose. */
const char *console_address(const struct console *console);
/* Ends streams, waits for requests that are being answered. NULL-safe. */
void console_stop(struct console *console);
#endif
