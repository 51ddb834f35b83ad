/*
 * The supervisor of an engine: the process that was started. It forks the process that serves before there is
 * any thread or connection, passes signals on to it, stores what it says when it crashes (crash_page.h), and
 * starts it again. When the engine stops, the supervisor ends as it did: with its exit code, or of its
 * signal. Killing the supervisor kills both.
 */
#ifndef THOLE_SUPERVISOR_H
#define THOLE_SUPERVISOR_H
#include "host_options.h"

struct crash_page;
struct supervised {
    struct crash_page *page; /* NULL: this process has no supervisor */
    int socket;              /* to the supervisor; -1: there is none */
};

/*
 * Returns in the process that serves, and again in each that follows; never in the supervisor.
 * THOLE_UNSUPPORTED: there is none, because the program has threads, or the system lacks something; the
 * engine can do without. The supervisor borrows texts of @p options for ever.
 */
THOLE_NODISCARD thole_status supervise(const struct host_options *options, struct supervised *ret,
                                       thole_error *reterr);
/* thole_main() is about to return. NULL-safe for page. */
void supervised_returns(const struct supervised *self);
#endif
