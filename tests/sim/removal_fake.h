/* The removal of a history, as an engine's host carries it out: the machine (removing.h) asks, the log
 * answers, with places that are wrong now and then; in the midst of it the host, the server or the connection
 * may go. */
#ifndef THOLE_REMOVAL_FAKE_H
#define THOLE_REMOVAL_FAKE_H
#include "log_fake.h"

/* False: it was cut off. Once it is done, all that was to go has gone. */
bool removal_execute(struct world *w, struct log_stream *log, size_t instance,
                     const struct out_remove_history *asked);
#endif
