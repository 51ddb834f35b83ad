/* Determines which nodes are alive (live_nodes.h) and which partitions each owns (shares.h): sends and
 * receives heartbeats, asks and answers, sends OWN and DISOWN to the shards. A thread.
 */
#ifndef THOLE_MEMBERSHIP_H
#define THOLE_MEMBERSHIP_H
#include "thole/types.h"

struct engine_host;
struct membership;
struct membership *membership_create(struct engine_host *engine);
THOLE_NODISCARD thole_status membership_run(struct membership *membership, thole_error *reterr);
/* Stops sending OWN and DISOWN (the shards are about to close everything) and joins the thread. */
void membership_quiet(struct membership *membership);
/* Removes the heartbeat after the shards have closed; joins. NULL-safe. */
void membership_stop(struct membership *membership);
/* A partition's live instances need other orchestrations. Any thread. */
void membership_needs_changed(struct membership *membership);
/* The own clock is wrong: this engine leaves, as if it stopped; or right again. Any thread; NULL-safe. */
void membership_clock_changed(struct membership *membership);
/* @p node has opened the partition, or tries to. Any thread. */
void membership_opened(struct membership *membership, uint32_t p, thole_slice node);
#endif
