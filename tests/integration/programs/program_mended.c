/* Another build of program_crashes, in which nothing crashes. */
#define MENDED
#include "program_crashes.c"
