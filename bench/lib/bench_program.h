/* The program under test: its engine and its worker are processes of a benchmark's own program. */
#ifndef THOLE_BENCH_PROGRAM_H
#define THOLE_BENCH_PROGRAM_H
#include <stdbool.h>

enum {
    PROGRAM_CHAIN = 5,
    PROGRAM_FAN = 100,
    PROGRAM_STRESS = 5,
    PROGRAM_STRESS_MS = 10,
    PROGRAM_TIMER_MS = 5000
};

/*
 * Roles engine and worker. Each orchestration returns its input:
 *   start   at once
 *   one     after an activity that returns its input, and is declared quick
 *   chain   after five of them, each with the result of the one before
 *   fan     after 100 at once, whose results are compared
 *   stress  after five at once, of 10 ms each
 *   timer   after a timer of 5 s (an input of the form "MS:" gives another time)
 *   hold    is cancelled: its activity runs until then, and notes when its token fired (tokens.h)
 *   loop    continues as new as often as its input says, then waits for the event "go" with the next number
 *   forks   after two children of itself, which do the same: a fork bomb
 *   naps    after as many activities of 10 ms at once as its input says
 *   event   returns the data of the event "go" instead
 */
int program_main(int argc, char **argv);
/* Of workers that are started from here on no activity is declared quick: all run on threads. */
void program_on_threads(void);
/* Runs the role that argv[1] names: engine, worker, replay, client (load.h). False: it is none of them. */
bool program_role(int argc, char **argv, int *ret_code);
#endif
