#include "wrap_link.h"
#include "thole_cunit.h"

struct played_nats nats;

uint64_t __wrap_link_now_ms(void)
{
    return nats.now_ms;
}

struct link *__wrap_link_acquire(struct connection *connection)
{
    (void)connection;
    nats.acquired += !nats.down;
    return nats.down ? NULL : &nats.link;
}

void __wrap_link_release(struct link *link)
{
    CU_ASSERT_TRUE(link == NULL || link == &nats.link);
    nats.acquired -= link != NULL;
}

void __wrap_link_break(struct link *link)
{
    CU_ASSERT_PTR_EQUAL(link, &nats.link);
    nats.broken++;
}

void played_nats_begin(void)
{
    memset(&nats, 0, sizeof nats);
    CU_ASSERT_EQUAL_FATAL(nats_Open(-1), NATS_OK); /* once; its messages need it */
}
