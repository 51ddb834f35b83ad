/* Common parts of the tests of the examples. Each includes the source of one example, under `#define main
 * example_main`. */
#ifndef THOLE_EXAMPLE_KIT_H
#define THOLE_EXAMPLE_KIT_H
#include "thole/testing.h"
#include "thole_cunit.h"

int example_main(int argc, char **argv);

void example_slice(const char *what, thole_slice got, const char *want);
/* The history is that of the file NAME.history beside the tests. With THOLE_GOLDEN=write it is written
 * instead. */
void example_history(thole_test_env *env, thole_slice instance, const char *name);

/* Starts and runs something to its end; may check things that hold with crashes too. */
typedef void example_play_fn(thole_test_env *env);
/* A crash at each point of the play: the instance ends the same, with the same history. */
void example_crashes(const thole_program *program, example_play_fn *play, thole_slice instance);
#endif
