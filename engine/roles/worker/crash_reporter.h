/*
 * The crash reporter of a worker: a process of its own that sees the worker die, and writes to the worker's
 * rows in Postgres what is known of it, so that the next claims know: its crash report (worker_crash.h). It
 * is forked before the worker has threads or connections, sleeps for as long as the worker lives, and has no
 * connection of its own until then. It ends with the worker, or seconds after it.
 */
#ifndef THOLE_CRASH_REPORTER_H
#define THOLE_CRASH_REPORTER_H
#include "options.h"

struct crash_reporter;
/* Before any thread or connection; also installs what writes the report (dying.h). THOLE_UNSUPPORTED: there
 * is none, because the program has threads, or the system lacks something. The worker can do without. The
 * crash reporter borrows texts of @p options for ever. */
THOLE_NODISCARD thole_status crash_reporter_start(const struct host_options *options,
                                                  struct crash_reporter **ret, thole_error *reterr);
/* Whose rows they are: before the first claim. NULL-safe. */
void crash_reporter_name(struct crash_reporter *reporter, const char *incarnation);
/* Its socket, for poll(2): it hangs up when the crash reporter is gone. -1 for NULL. */
int crash_reporter_socket(const struct crash_reporter *reporter);
/* It hung up, and not because it has stored the report. */
bool crash_reporter_is_lost(const struct crash_reporter *reporter);
/* The worker holds nothing any more: the crash reporter ends, and writes nothing. NULL-safe. */
void crash_reporter_stop(struct crash_reporter *reporter);
#endif
