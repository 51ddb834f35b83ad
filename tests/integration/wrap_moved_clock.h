/*
 * The monotonic clock of everything in the test's own process, its workers too: it goes as the machine's
 * does, and on command it goes on by more. What a worker does after minutes is then seen at once, and how
 * late a busy machine is does not matter. The clocks of the servers, and of programs, stay as they are.
 */
#ifndef THOLE_WRAP_MOVED_CLOCK_H
#define THOLE_WRAP_MOVED_CLOCK_H
#include <stdint.h>

/* So much time passes, at once. Workers that wait for it look within some 20 ms. */
void moved_clock_pass(uint64_t ms);
#endif
