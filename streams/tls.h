/* TLS of a connection to NATS: the files that an operator gives, and when it is used. */
#ifndef THOLE_TLS_H
#define THOLE_TLS_H
#include "connection.h"
#include "server_info.h"
#include <nats/nats.h>

struct tls_files {
    char *ca, *cert, *key; /* paths; NULL = not given */
    char *server_name;     /* NULL = the URL's host */
};

/* Copies them. THOLE_INVALID with a sentence: a certificate without its key or the other way round, a file
 * that cannot be read, or a name that no server can have. */
THOLE_NODISCARD thole_status tls_files_copy(const struct connection_options *options, struct tls_files *ret,
                                            thole_error *reterr);
void tls_files_release(struct tls_files *files);

/*
 * To be called before each connect to @p url, whose host and port are @p address. TLS is used when the URL
 * begins with tls://, a file or a server name is given, or the server requires it. Then the certificate must
 * be for the given server name, else for the URL's host, and the files are read again, so that they can be
 * replaced while programs run. THOLE_DENIED: a file has wrong contents, or the server asks for a certificate
 * and none is given.
 */
THOLE_NODISCARD thole_status tls_choose(const struct tls_files *files, const char *url, const char *address,
                                        const struct server_info *info, natsOptions *options,
                                        thole_error *reterr);
#endif
