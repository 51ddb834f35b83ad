#include "wrap_queue_settings.h"
#include "queue_wish.h"
#include "topology.h"
#include "wrap_command_world.h"
#include <stdio.h>

static thole_status played_queue_asked(const char *what, thole_slice queue, thole_slice ns,
                                       thole_error *reterr)
{
    (void)printf("< %s %.*s (%.*s)\n", what, THOLE_FMT(queue), THOLE_FMT(ns));
    return command_world_ends(reterr);
}

thole_status __wrap_topology_queue_limit(struct connection *connection, const char *ns, thole_slice queue,
                                         uint64_t *ret, thole_error *reterr)
{
    (void)connection;
    *ret = thole_slice_equal(queue, THOLE_STR("gpu")) ? 10 : 0;
    return played_queue_asked("limit?", queue, thole_slice_from(ns), reterr);
}

thole_status __wrap_topology_queue_lease(struct connection *connection, const char *ns, thole_slice queue,
                                         uint64_t *ret_lease_ms, uint64_t *ret_delivered, thole_error *reterr)
{
    (void)connection;
    *ret_lease_ms = thole_slice_equal(queue, THOLE_STR("mistyped")) ? 0 : 30000;
    *ret_delivered = 0;
    return played_queue_asked("lease?", queue, thole_slice_from(ns), reterr);
}

thole_status __wrap_queue_wish_setting(struct connection *connection, const char *ns,
                                       const struct queue_wish *wish, thole_error *reterr)
{
    (void)connection;
    bool const lease = wish->kind == QUEUE_WISH_LEASE;
    (void)printf("< %llu%s", (unsigned long long)wish->number, lease ? " ms: " : ": ");
    return played_queue_asked(lease ? "lease" : "limit", wish->queue, thole_slice_from(ns), reterr);
}
