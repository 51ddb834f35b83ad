/*
 * When the tokens of cancelled activities fire: handlers note it in memory that all processes of a benchmark
 * share. The file's path is in the environment, $THOLE_BENCH_TOKENS.
 */
#ifndef THOLE_BENCH_TOKENS_H
#define THOLE_BENCH_TOKENS_H
#include "bench.h"
#include <stdatomic.h>

enum { TOKENS_MAX = 16384 };

struct tokens {
    atomic_uint started, fired;
    atomic_uint_least64_t at_ns[TOKENS_MAX]; /* since 1970 */
};

/* Makes the file in this folder, all zero, and sets the environment. NULL with a message. */
struct tokens *tokens_make(const char *dir);
/* The file that the environment names; NULL: none. */
struct tokens *tokens_find(void);
#endif
