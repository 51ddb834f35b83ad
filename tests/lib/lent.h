/*
 * What is lent to the machines is taken back: the unit tests, the simulation, the golden tests and those of
 * the examples are linked so that calls of partition_input(), worker_input(), instance_turn() and
 * instance_replay() come to lent.c (the linker's --wrap). It hands them a copy of their input and overwrites
 * it when the input is no longer theirs by the contract. Whoever kept a borrowed slice then holds other
 * bytes, and with AddressSanitizer freed ones.
 */
#ifndef THOLE_LENT_H
#define THOLE_LENT_H
#include <stdbool.h>

/* For a test that stands in for malloc(): what is allocated now is lent.c's, not a machine's. */
bool lent_is_busy(void);
#endif
