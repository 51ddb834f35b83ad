/*
 * Inside the gateway role: what it answers, and the NATS micro-service that lists it ($SRV.PING, INFO and
 * STATS; https://github.com/nats-io/nats-architecture-and-design/blob/main/adr/ADR-32.md).
 */
#ifndef THOLE_ENDPOINTS_H
#define THOLE_ENDPOINTS_H
#include "connection.h"
#include "metrics.h"
#include <protobuf-c/protobuf-c.h>
#include <stdatomic.h>

#define GATEWAY_SERVICE "thole-gateway"
#define GATEWAY_GROUP "thole-gateway"
#define GATEWAY_INBOX_ROLE "gateway"

enum endpoint_kind {
    ENDPOINT_OPEN,
    ENDPOINT_NEXT,
    ENDPOINT_RENEW,
    ENDPOINT_COMPLETE,
    ENDPOINT_CLOSE,
    ENDPOINT_START,
    ENDPOINT_SIGNAL,
    ENDPOINT_CANCEL,
    ENDPOINT_TERMINATE,
    ENDPOINT_QUERY,
    ENDPOINT_WAIT,
    ENDPOINT_START_EVENT,
    ENDPOINT_DESCRIBE,
    ENDPOINT_LIST,
    ENDPOINT_COMPLETE_ACTIVITY,
};
#define ENDPOINT_KINDS (ENDPOINT_COMPLETE_ACTIVITY + 1)

struct endpoint {
    enum endpoint_kind kind;
    const char *name;
    const ProtobufCMessageDescriptor *asked, *answered;
    const ProtobufCMessageDescriptor
        *items;                        /* NULL, or a request has a list of these: each is refused alone */
    bool of_session, of_client, named; /* named: its subject ends with a name */
    atomic_uint_least64_t requests, errors, busy_us;
    atomic_uint last_error;     /* a thole_status */
    struct metric_cells *cells; /* the gateway's; NULL: nothing is counted */
};

struct services;
/* @p id: of this gateway, unique. Answers until services_stop(). */
THOLE_NODISCARD thole_status services_start(struct connection *connection, const char *ns, const char *id,
                                            struct metric_cells *cells, struct services **ret,
                                            thole_error *reterr);
void services_stop(struct services *services); /* NULL-safe */
/* By the token that names the operation; NULL: there is none. */
struct endpoint *services_session_endpoint(struct services *services, thole_slice operation);
struct endpoint *services_client_endpoint(struct services *services, thole_slice operation);
struct endpoint *services_open_endpoint(struct services *services);
#endif
