/*
 * How a worker says its last word: handlers of the signals that mean a crash, and one of exit(). They are
 * installed only where nobody else has: what a program, its libraries or a sanitizer has set stays. Core
 * dumps and exit statuses are what they would be without.
 *
 * What they do: write a struct last_word into the shared page, wake the witness, and wait until it has stored
 * it or is gone, at most two seconds (as process 1 of a container the worker takes the witness with it). Then
 * the signal does what it does.
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

/* A thread that runs handlers: a stack for the signal handler, as what overflows leaves none. NULL: it has
 * one already, or none is needed, or there is no memory. */
void *dying_thread_begin(void);
void dying_thread_end(void *stack);
/* This thread runs the handler of @p act from now on; NULL: none. Costs one store. */
void dying_runs(const struct thole_activity *act);
#endif
