/*
 * Which subject a message to an instance is published on. thole.<ns>.in.<p>.<kind>.<name>.<instance> says
 * what it does, so that NATS's permissions decide who may do that. Its kind and name are the message's route:
 *
 *   start.<orchestration>                  clients
 *   start_event.<orchestration>~<event>    clients: signal with start
 *   event.<event>                          clients
 *   control.<verb>                         clients; the verbs are in message_route.c
 *   result.outside                         clients: activities that are completed from outside
 *   result.worker                          workers
 *   engine.<what>                          engines: what executions send to each other, timeouts
 *
 * Pure.
 */
#ifndef THOLE_MESSAGE_ROUTE_H
#define THOLE_MESSAGE_ROUTE_H
#include "message.h"

enum message_sender { SENDER_CLIENT, SENDER_WORKER, SENDER_ENGINE };
enum { MESSAGE_ROUTE_BYTES = 160 };
struct message_route {
    char text[MESSAGE_ROUTE_BYTES]; /* "<kind>.<name>" */
};

/* The message must be valid. A message that only engines or workers may send has their route, also from
 * another sender. */
struct message_route message_route(const struct message *message, enum message_sender sender);
/* The kind of sender that uses this route; a client if it is no route. */
enum message_sender message_route_sender(thole_slice route);
/* THOLE_INVALID, with a text: the message has another route. */
THOLE_NODISCARD thole_status message_route_check(const struct message *message, thole_slice route,
                                                 thole_error *reterr);
#endif
