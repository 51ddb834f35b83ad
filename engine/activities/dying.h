/*
 * How a worker writes its crash report: it listens for signals that mean a crash, and for exit()
 * (fatal_signals.h), writes a struct worker_crash into the shared page, wakes its crash reporter, and waits
 * until it has stored it or is gone, at most two seconds (as process 1 of a container the worker takes the
 * crash reporter with it).
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

/* It has written its crash report: what it holds has been given up in its name. Any thread. */
bool dying_is(void);

/* This thread runs the handler of @p act from now on; NULL: none. Cheap. */
void dying_runs(const struct thole_activity *act);
#endif
