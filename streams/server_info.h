/* Reads the INFO line of a server, the first line that every NATS server sends, before nats.c connects. */
#ifndef THOLE_SERVER_INFO_H
#define THOLE_SERVER_INFO_H
#include "thole/types.h"

enum { SERVER_VERSION_BYTES = 32 };

struct server_info {
    char version[SERVER_VERSION_BYTES];
    uint64_t max_payload;
    bool jetstream, tls_required, tls_verify; /* tls_verify: it asks for a certificate */
};
/* Connects, reads the INFO line, closes. THOLE_UNAVAILABLE: no such server, or silent for @p timeout_ms. */
THOLE_NODISCARD thole_status server_info_read(const char *url, uint64_t timeout_ms, struct server_info *ret,
                                              thole_error *reterr);
#endif
