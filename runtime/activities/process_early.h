/*
 * Processes that are forked before this one has threads or connections: the forkserver, and the crash
 * reporter of a worker. Their common set-up.
 */
#ifndef THOLE_PROCESS_EARLY_H
#define THOLE_PROCESS_EARLY_H
#include <stddef.h>

/* ---- before the fork ---- */
/* Threads besides this one; 0 also when that is not known. */
int process_other_threads(void);
/* A program may have been started without stdin, stdout or stderr: opens /dev/null there, so that no other
 * descriptor gets their numbers. */
void process_open_standard_files(void);

/* ---- in the child ---- */
/* A group and a name (at most 15 bytes) of its own, no descriptors but @p keep; reads nothing from stdin, and
 * writes to stderr only; signals have their default actions, but those of terminals and supervisors are
 * ignored: they are meant for the worker, which stops gracefully and ends this process. None is blocked. */
void process_settle(const char *name, const int *keep, size_t n);
/* Of the descriptors above 2. */
void process_close_all_but(const int *keep, size_t n);
#endif
