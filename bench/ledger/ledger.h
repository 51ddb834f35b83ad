/*
 * The cost of one activity, or one start: CPU time by process and thread, with the counts that explain it.
 * Counters are read twice, before and after a fixed number of workflows; nothing here samples. See
 * docs/benchmarks.md.
 */
#ifndef THOLE_LEDGER_H
#define THOLE_LEDGER_H
#include "counters.h"
#include <stdio.h>

/* A load: so many workflows of a kind, so many of them in flight. */
struct scenario {
    const char *kind; /* the orchestration: "chain" or "start" */
    unsigned in_flight;
    unsigned warm_up, workflows;
    unsigned units; /* of each workflow: 5 activities, or 1 start */
};

struct measurement {
    struct scenario scenario;
    double load; /* of the machine, before; 1 minute */
    uint64_t wall_us, p50_us, p99_us;
    struct sample cost; /* increase of the counters */
    struct statement_counts statements[STATEMENTS_MAX];
    size_t statements_len;
    bool has_tables, has_syscalls;
};

static inline double units(const struct measurement *m)
{
    return (double)m->scenario.workflows * m->scenario.units;
}

static inline double per(uint64_t n, const struct measurement *m) /* unit */
{
    return (double)n / units(m);
}

/* ---- ledger_gate.c ---- */
enum { LEDGER_OVER_LIMIT = 3 };
/* The program's exit code: 0, or LEDGER_OVER_LIMIT with a line to @p out for each limit that is passed. */
int ledger_gate(const struct measurement *chain, FILE *out);

/* ---- ledger_report.c ---- */
/* @p counted (NULL: none): the same scenario with everything counted, from which come system calls,
 * allocations and statements. */
void ledger_report_text(const struct measurement *plain, const struct measurement *counted);
bool ledger_report_json(const char *path, const struct measurement *plain, const struct measurement *counted,
                        size_t len);

#endif
