/* Common parts of the benchmarks: messages, clocks, percentiles. */
#ifndef THOLE_BENCH_H
#define THOLE_BENCH_H
#include "thole/types.h"

enum { BENCH_PATH_BYTES = 512, BENCH_SKIPPED = 77 };

/* "PROGRAM: what: why" on stderr; returns false. */
bool bench_fail(const char *what, const char *why);
/* Like bench_fail(), with a text made from a format. */
bool bench_fail_at(const char *what, const char *fmt, ...) THOLE_PRINTF(2, 3);
/* Path of this program, which starts itself in other roles. */
const char *bench_self(void);
/* As many files as the system allows: threads' counters, sockets. */
void bench_raise_files(void);

uint64_t bench_now_us(void);      /* monotonic */
uint64_t bench_wall_ns(void);     /* since 1970: the clock that the server's time stamps come from */
void bench_nap_us(uint64_t us);   /* goes on after a signal */
void bench_until_us(uint64_t us); /* of bench_now_us() */
double bench_load_average(void);  /* of the machine, 1 minute */

/* ---- percentiles: all samples are kept and sorted ---- */

struct spread {
    size_t n;
    double p50, p90, p99, p999, max; /* in the samples' unit */
};
/* Sorts. @p n 0: all zero. */
struct spread bench_spread(uint64_t *samples, size_t n);
#endif
