/* For tests without a connection: an API call that finds no leader is not made again. */
#ifndef WRAP_ONE_ATTEMPT_H
#define WRAP_ONE_ATTEMPT_H
#include "link.h"

uint64_t __wrap_connection_request_timeout_ms(const struct connection *connection);
#endif
