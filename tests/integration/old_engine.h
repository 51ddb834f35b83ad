/* An engine of a version before, as the others see it: it has a heartbeat and answers for it, and opens
 * nothing. */
#ifndef THOLE_OLD_ENGINE_H
#define THOLE_OLD_ENGINE_H
#include "message.h"
#include "presence.h"

/* Joins namespace default as node "old", with the contents of @p heartbeat. Ended by presence_close(). */
struct presence *old_engine_join(struct connection *connection, struct heartbeat heartbeat);
#endif
