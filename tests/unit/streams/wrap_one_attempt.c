#include "wrap_one_attempt.h"

uint64_t __wrap_connection_request_timeout_ms(const struct connection *connection)
{
    (void)connection;
    return 0;
}
