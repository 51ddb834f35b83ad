#include "wrap_cork.h"
#include "connection.h"
#include <CUnit/CUnit.h>

static bool corked;

bool wrap_cork_is_on(void)
{
    return corked;
}

void __wrap_connection_cork(struct connection *connection)
{
    (void)connection;
    CU_ASSERT_FALSE(corked);
    corked = true;
}

void __wrap_connection_uncork(struct connection *connection)
{
    (void)connection;
    CU_ASSERT(corked);
    corked = false;
}
