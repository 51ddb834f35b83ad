/*
 * An HTTP server for programs that monitor the process: GET /healthz, /readyz and /metrics. One thread, which
 * only reads the metrics. The server answers from the start of the process until its end, whatever state NATS
 * and Postgres are in.
 *
 * A request changes nothing, no body is read, and no answer has anything of an instance. At most
 * MONITOR_CONNECTIONS_MAX connections are open; the oldest is closed for a new one, so that many slow clients
 * do not keep a probe out.
 */
#ifndef THOLE_MONITOR_H
#define THOLE_MONITOR_H
#include "metrics.h"
#include <sys/socket.h>

enum {
    MONITOR_CONNECTIONS_MAX = 32,
    MONITOR_IDLE_S = 10,               /* a connection without a byte for so long is closed */
    MONITOR_REQUEST_BYTES = 16 * 1024, /* memory of one connection: its request line and headers */
    MONITOR_TEXT_BYTES_MAX = 16 * 1024 * 1024,
};

struct monitor;
/* @p metrics is borrowed. THOLE_UNAVAILABLE: the address is in use, or is not one of this machine. */
THOLE_NODISCARD thole_status monitor_start(const struct sockaddr_storage *address,
                                           const struct metrics *metrics, struct monitor **ret,
                                           thole_error *reterr);
/* "127.0.0.1:9464", with the port that the system chose. */
const char *monitor_address(const struct monitor *monitor);
void monitor_stop(struct monitor *monitor); /* joins its thread; NULL-safe */
#endif
