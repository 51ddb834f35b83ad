/* The node registry: KV bucket THOLE_<ns>_NODES. Liveness is judged by the watcher's own clock. */
#ifndef THOLE_NODES_H
#define THOLE_NODES_H
#include "requests.h"

/* node: [A-Za-z0-9_-]{1,64}. Blocking; THOLE_OK only when the server has stored it. */
THOLE_NODISCARD thole_status nodes_put(struct connection *connection, const char *ns, thole_slice node,
                                       thole_slice heartbeat, thole_error *reterr);
/* Removes the node: watchers see it at once. */
THOLE_NODISCARD thole_status nodes_delete(struct connection *connection, const char *ns, thole_slice node,
                                          thole_error *reterr);
/* heartbeat empty: the node has left. Called on the connection's reading thread; first, and again after a
 * reconnect, for all current entries: stored_ns, by the server's clock, tells the age of an entry relative to
 * others. */
typedef void nodes_fn(void *arg, thole_slice node, thole_slice heartbeat, uint64_t stored_ns);
struct nodes_watch;
THOLE_NODISCARD thole_status nodes_watch_open(struct connection *connection, const char *ns, nodes_fn *each,
                                              void *arg, struct nodes_watch **ret, thole_error *reterr);
void nodes_watch_close(struct nodes_watch *watch); /* NULL-safe */
#endif
