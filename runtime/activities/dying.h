/*
 * Writes a worker's crash report: on a fatal signal or exit() (fatal_signals.h) it writes a struct
 * worker_crash into the shared page, wakes the crash reporter, and waits until that has stored it or has
 * ended, at most two seconds (as process 1 of a container the worker takes the crash reporter with it).
 */
#ifndef THOLE_DYING_H
#define THOLE_DYING_H
#include "worker_crash.h"

enum { DYING_WAIT_MS = 2000 };

struct thole_activity;

/* From now until dying_uninstall(); @p page and @p reporter, a socket, are borrowed for so long. The crash
 * reporter closes its end when it has stored the report. From one thread, before others are started. */
void dying_install(struct worker_crash_page *page, int reporter);
/* Nothing is written any more. */
void dying_uninstall(void);

/* Whether the crash report is written: the crash reporter handles the worker's claims from then on. Any
 * thread. */
bool dying_is(void);

/* Notes that this thread has a transaction open on that connection to Postgres, and runs handlers meanwhile.
 * The crash report may go into rows that the transaction has locked, and the server holds the locks as long
 * as the connection exists: when the thread crashes, the connection is shut down first. -1: none. From one
 * thread. */
void dying_holds(int socket);

/* This thread runs the handler of @p act from now on; NULL: none. Cheap. */
void dying_runs(const struct thole_activity *act);
#endif
