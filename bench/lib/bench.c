#include "bench.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const char *program_name(void)
{
    const char *const path = bench_self(), *const slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

bool bench_fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_name(), what, why);
    return false;
}

bool bench_fail_at(const char *what, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return bench_fail(what, text);
}

const char *bench_self(void)
{
    static char path[BENCH_PATH_BYTES];
    if (path[0] == '\0') {
        ssize_t const len = readlink("/proc/self/exe", path, sizeof path - 1);
        path[len > 0 ? len : 0] = '\0';
    }
    return path;
}

void bench_raise_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

uint64_t bench_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t bench_wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void bench_nap_us(uint64_t us)
{
    bench_until_us(bench_now_us() + us);
}

void bench_until_us(uint64_t us)
{
    struct timespec const at = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

double bench_load_average(void)
{
    double load[1] = {0};
    return getloadavg(load, 1) == 1 ? load[0] : 0;
}

/* ---- percentiles ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The smallest sample that so many of 1,000 are not above. */
static double at_mille(const uint64_t *sorted, size_t n, size_t mille)
{
    size_t const rank = (n * mille + 999) / 1000;
    return (double)sorted[rank == 0 ? 0 : rank - 1];
}

struct spread bench_spread(uint64_t *samples, size_t n)
{
    if (n == 0)
        return (struct spread){.n = 0};
    qsort(samples, n, sizeof *samples, by_value);
    return (struct spread){.n = n,
                           .p50 = at_mille(samples, n, 500),
                           .p90 = at_mille(samples, n, 900),
                           .p99 = at_mille(samples, n, 990),
                           .p999 = at_mille(samples, n, 999),
                           .max = (double)samples[n - 1]};
}
