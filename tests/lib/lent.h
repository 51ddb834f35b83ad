/* The interface of lent.c for tests of one machine. */
#ifndef THOLE_LENT_H
#define THOLE_LENT_H
#include <stdbool.h>

/* This thread is inside of a machine's input, and not in lent.c's own work there. */
bool lent_machine_runs(void);
#endif
