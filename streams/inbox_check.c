/* Whether the answers to a connection's requests will arrive. */
#include "link.h"
#include "loop.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The server says so to the connection, before it answers the ping that flushes; nats.c keeps what it said.
 */
thole_status link_check_inbox(struct link *link, const char *inbox, uint64_t timeout_ms, thole_error *reterr)
{
    char subject[LINK_INBOX_BYTES];
    natsSubscription *subscription = NULL;
    const char *said = NULL;
    const char *const end = strrchr(inbox, '.'); /* of the user's prefix */
    assert(end != NULL);
    (void)snprintf(subject, sizeof subject, "%s.check", inbox);
    loop_begin(link->loop);
    natsStatus status = natsConnection_SubscribeSync(&subscription, link->nc, subject);
    loop_end(link->loop);
    if (status == NATS_OK) {
        loop_flush(link->loop);
        status = natsConnection_FlushTimeout(link->nc, (int64_t)timeout_ms);
    }
    bool const denied =
        status == NATS_OK && natsConnection_GetLastError(link->nc, &said) == NATS_NOT_PERMITTED;
    natsSubscription_Destroy(subscription);
    if (denied)
        return thole_fail(
            reterr, THOLE_DENIED,
            "the NATS user may not subscribe to %.*s.>, where the answers to this program arrive: "
            "give it that permission (thole doctor --nats-permissions prints those of a role), or "
            "name the prefix that it has with --nats-inbox, THOLE_NATS_INBOX or nats_inbox",
            (int)(end - inbox), inbox);
    return link_fail(status, "subscribe to", subject, reterr);
}
