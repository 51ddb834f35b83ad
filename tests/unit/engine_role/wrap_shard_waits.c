#include "wrap_shard_waits.h"
#include "store.h"
#include "thole_cunit.h"
#include "wrap_cork.h"

enum { STORE_FD = 77 };

uint64_t wrap_store_ms = UINT64_MAX;

struct pollfd __wrap_store_socket(const struct store *store, uint64_t *ret_deadline_ms)
{
    (void)store;
    *ret_deadline_ms = wrap_store_ms;
    return (struct pollfd){.fd = STORE_FD, .events = POLLOUT};
}

static bool begun; /* since the last wait */

void __wrap_store_begin(struct store *store)
{
    (void)store;
    CU_ASSERT_FALSE(wrap_cork_is_on()); /* published messages have left */
    begun = true;
}

void __wrap_store_continue(struct store *store, short revents)
{
    (void)store;
    CU_ASSERT_EQUAL(revents, POLLERR); /* as it was told */
}

void wrap_shard_waits(const struct shard *shard, struct pollfd *also, size_t n)
{
    CU_ASSERT_EQUAL_FATAL(n, 2);
    CU_ASSERT_TRUE(begun); /* nothing that was submitted waits with it */
    begun = false;
    CU_ASSERT_TRUE(also->fd == mailbox_wakeup(&shard->mailbox) && also->events == POLLIN);
    CU_ASSERT_TRUE(also[1].fd == STORE_FD && also[1].events == POLLOUT);
    also[1].revents = POLLERR;
}
