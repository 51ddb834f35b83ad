/*
 * Messages to a service manager: readiness, the way down, and that the process is alive, by the protocol of
 * sd_notify(3): a datagram to the socket that $NOTIFY_SOCKET names. Without that variable nothing is sent.
 */
#ifndef THOLE_SERVICE_NOTIFY_H
#define THOLE_SERVICE_NOTIFY_H
#include "metrics.h"

enum { SERVICE_ADDRESS_BYTES = 108 };

/* The environment's settings for it. */
struct service_wish {
    char address[SERVICE_ADDRESS_BYTES]; /* a path, or '@' and a name of the abstract namespace; empty:
                                            nothing */
    uint64_t watchdog_ms;                /* 0: no watchdog */
};

/* Reads $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID, and takes them out of the environment: the
 * processes that this one starts are not the service. While there is one thread. */
struct service_wish service_wish_take(void);

struct service_notify;
/* With a watchdog: a thread that says WATCHDOG=1 twice in each period while metrics_live(). @p metrics is
 * borrowed. *ret is NULL when nothing is wished for. THOLE_INVALID: the address cannot be one;
 * THOLE_UNAVAILABLE: no socket, or no thread. */
THOLE_NODISCARD thole_status service_notify_start(const struct service_wish *wish,
                                                  const struct metrics *metrics, struct service_notify **ret,
                                                  thole_error *reterr);
/* "READY=1\nSTATUS=…" and the like. Waits while the manager's queue is full, for some
 * seconds; what cannot be sent then is dropped. NULL-safe, as is the next. */
void service_notify_say(const struct service_notify *notify, const char *state);
void service_notify_stop(struct service_notify *notify);
#endif
