/* A connection to NATS without a namespace, for verbs that look at the server itself. */
#ifndef THOLE_NATS_CONNECTION_H
#define THOLE_NATS_CONNECTION_H
#include "command.h"
#include "connection.h"

/* With the options of the command line. *ret is NULL after an error. */
thole_status nats_connection_open(const struct cli_options *options, struct connection **ret,
                                  thole_error *reterr);
#endif
