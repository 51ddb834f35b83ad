/*
 * The supervisor of an engine: the process that the user started. Before it has any thread or connection, it
 * forks the process that serves. It passes signals on to that process, stores its crash report
 * (crash_page.h), and starts it again. When the engine stops, the supervisor ends the same way: with its exit
 * code, or by its signal. Killing the supervisor kills both.
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
 * Returns in each process that serves; never in the supervisor. THOLE_UNSUPPORTED: no supervisor, because the
 * program has threads, or the system lacks something; the engine works without it. The supervisor borrows
 * texts of @p options for ever.
 */
THOLE_NODISCARD thole_status supervise(const struct host_options *options, struct supervised *ret,
                                       thole_error *reterr);
/* thole_main() is about to return. NULL-safe for page. */
void supervised_returns(const struct supervised *self);
#endif
