/* The gateway role: workers and clients that have a NATS client and nothing else (docs/gateway.md). */
#ifndef THOLE_GATEWAY_HOST_H
#define THOLE_GATEWAY_HOST_H
#include "options.h"

enum {
    GATEWAY_SESSIONS_MAX = 1000, /* at a time; each has threads and connections of its own */
    GATEWAY_SLOTS_MAX = 50000,   /* of all of them: each takes about 3 KiB as soon as its session is open */
};

struct gateway_host;
/* As worker_host_start(). */
THOLE_NODISCARD thole_status gateway_host_start(const struct host_options *options,
                                                const struct stop_check *stop, struct gateway_host **ret,
                                                thole_error *reterr);
/* Graceful: sessions end as if their workers had closed them, with options.stop_limit_ms. NULL-safe. */
void gateway_host_stop(struct gateway_host *gateway);
#endif
