/*
 * Signals that mean a crash, and exit(): lets a part of the program report before the process ends. Handlers
 * are installed only for signals without one: handlers of the program, its libraries or a sanitizer stay.
 * Core dumps and exit statuses do not change.
 */
#ifndef THOLE_FATAL_SIGNALS_H
#define THOLE_FATAL_SIGNALS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fatal {
    int number;    /* the signal; 0: exit() was called */
    int exit_code; /* of exit() */
    bool fault;    /* raised by what the code did, at this address */
    uint64_t address;
    const void *context; /* a ucontext_t; NULL: exit() */
};
/* On the thread that crashed, perhaps on its stack for signals: only what is async-signal-safe. When the last
 * listener has returned, the signal has its default action. */
typedef void fatal_fn(const struct fatal *fatal);

enum { FATAL_LISTENERS_MAX = 4 };
/* Until fatal_unlisten(); called in the order of listening. From one thread, before others are started. */
void fatal_listen(fatal_fn *fn);
void fatal_unlisten(fatal_fn *fn);

/* A thread that runs what may crash: a stack for the signal handler, as what overflows leaves none. NULL: it
 * has one already, or no part of the program wants it, or there is no memory. */
void *fatal_thread_begin(void);
void fatal_thread_end(void *stack);
#endif
