/*
 * How a worker says its last word: it listens for signals that mean a crash, and for exit()
 * (fatal_signals.h), writes a struct last_word into the shared page, wakes the witness, and waits until it
 * has stored it or is gone, at most two seconds (as process 1 of a container the worker takes the witness
 * with it).
 */
#ifndef THOLE_DYING_H
#define THOLE_DYING_H
#include "last_word.h"

enum { DYING_WAIT_MS = 2000 };

struct thole_activity;

/* From now until dying_uninstall(); @p page and @p witness, a socket, are borrowed for so long. The witness
 * closes its end when it has stored the word. From one thread, before others are started. */
void dying_install(struct last_word_page *page, int witness);
/* Nothing is said any more. */
void dying_uninstall(void);

/* It has said its last word: what it holds has been given up in its name. Any thread. */
bool dying_is(void);

/* This thread runs the handler of @p act from now on; NULL: none. Costs one store. */
void dying_runs(const struct thole_activity *act);
#endif
