/* Views that stay: drawn again when an instance begins or ends, and from time to time. */
#ifndef THOLE_LIVE_H
#define THOLE_LIVE_H
#include "command.h"

/* Draws once. Anything but THOLE_OK ends the view. */
typedef thole_status live_draw_fn(void *arg, thole_error *reterr);

/*
 * Draws until stdout is gone, drawing fails, or the process is interrupted. Between two times pass at least
 * 200 ms, and at most @p every_ms. On a terminal each is drawn over the one before, and an outage of the
 * servers is shown and waited for; elsewhere it ends the view.
 */
int live_run(const struct cli *cli, thole_client *client, uint64_t every_ms, live_draw_fn *draw, void *arg);
#endif
