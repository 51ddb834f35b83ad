/*
 * The crash reporter of a worker: a process that waits for the worker's death and writes its crash report
 * (worker_crash.h) into the worker's rows in Postgres, for the next claims. It is forked before the worker
 * has threads or connections, sleeps while the worker lives, and connects only then. It ends with the worker,
 * or seconds after it.
 */
#ifndef THOLE_CRASH_REPORTER_H
#define THOLE_CRASH_REPORTER_H
#include "options.h"

struct crash_reporter;
/* Before any thread or connection; also installs what writes the report (dying.h). THOLE_UNSUPPORTED: no
 * crash reporter, because the program has threads, or the system lacks something. The worker works without
 * it. The crash reporter borrows texts of @p options for ever. */
THOLE_NODISCARD thole_status crash_reporter_start(const struct host_options *options,
                                                  struct crash_reporter **ret, thole_error *reterr);
/* Sets the worker's incarnation, which rows name; before the first claim. NULL-safe. */
void crash_reporter_name(struct crash_reporter *reporter, const char *incarnation);
/* A socket for poll(2), which hangs up when the crash reporter has ended. -1 for NULL. */
int crash_reporter_socket(const struct crash_reporter *reporter);
/* Whether it has ended without having stored a report. */
bool crash_reporter_is_lost(const struct crash_reporter *reporter);
/* The worker holds no claims any more: ends the crash reporter, which writes nothing. NULL-safe. */
void crash_reporter_stop(struct crash_reporter *reporter);
#endif
