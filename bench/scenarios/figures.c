#include "figures.h"
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const durability_names[DURABILITIES] = {"default", "always"};

const struct figure *figures_find(const struct figures *figures, enum durability durability,
                                  const char *scenario, const char *at, const char *name)
{
    for (size_t i = 0; i < figures->len; i++) {
        const struct figure *const one = &figures->list[i];
        if (one->durability == durability && strcmp(one->scenario, scenario) == 0 &&
            strcmp(one->at, at) == 0 && strcmp(one->name, name) == 0)
            return one;
    }
    return NULL;
}

static struct figure *make_figure(struct figures *figures, enum durability durability, const char *scenario,
                                  const char *at, const char *name)
{
    if (figures->len == FIGURES_MAX)
        return NULL;
    struct figure *const one = &figures->list[figures->len++];
    *one = (struct figure){.durability = durability};
    (void)snprintf(one->scenario, sizeof one->scenario, "%s", scenario);
    (void)snprintf(one->at, sizeof one->at, "%s", at);
    (void)snprintf(one->name, sizeof one->name, "%s", name);
    return one;
}

bool figures_add(struct figures *figures, enum durability durability, const char *scenario, const char *at,
                 const char *name, double value)
{
    const struct figure *const known = figures_find(figures, durability, scenario, at, name);
    struct figure *const one = known != NULL ? &figures->list[known - figures->list]
                                             : make_figure(figures, durability, scenario, at, name);
    if (one == NULL || one->runs == RUNS_MAX)
        return bench_fail_at(scenario, "no room for %s at %s", name, at);
    one->values[one->runs++] = value;
    return true;
}

static int by_value(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

struct range figure_range(const struct figure *figure)
{
    double sorted[RUNS_MAX];
    size_t const n = figure->runs;
    memcpy(sorted, figure->values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return (struct range){
        .median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2, .least = sorted[0], .most = sorted[n - 1]};
}

/* ---- targets ---- */

#define AT_MOST(s, a, n, l, t)                                                                               \
    {                                                                                                        \
        .scenario = s, .at = a, .name = n, .limit = l, .text = t                                             \
    }
#define AT_LEAST(s, a, n, l, t)                                                                              \
    {                                                                                                        \
        .scenario = s, .at = a, .name = n, .limit = l, .at_least = true, .text = t                           \
    }
#define TIMES_FLOOR(s, l, f, t)                                                                              \
    {                                                                                                        \
        .scenario = s, .at = "1", .name = "p50_ms", .limit = l, .floor = f, .text = t                        \
    }

/* Two shared cores; the default durability unless said otherwise. */
const struct target targets[] = {
    TIMES_FLOOR("S1", 1.3, "floor-1", "one activity, 1 in flight: p50 within 1.3 times the floor"),
    AT_LEAST("S1", "256", "per_s", 5000, "one activity, 256 in flight: workflows/s"),
    TIMES_FLOOR("S2", 1.3, "floor-5", "chain of 5, 1 in flight: p50 within 1.3 times the floor"),
    AT_LEAST("S2", "64", "per_s", 1000, "chain of 5, 64 in flight: workflows/s"),
    AT_LEAST("S2", "256", "per_s", 2000, "chain of 5, 256 in flight: workflows/s"),
    {.scenario = "S2",
     .at = "256",
     .name = "per_s",
     .at_least = true,
     .limit = 500,
     .durability = DURABILITY_ALWAYS,
     .text = "chain of 5, 256 in flight, everything synced: workflows/s"},
    AT_MOST("S3", "1", "p50_ms", 12, "fan-out of 100, 1 in flight: p50"),
    AT_LEAST("S3", "16", "per_s", 100, "fan-out of 100, 16 in flight: workflows/s"),
    AT_MOST("S4", "10000", "p99_ms", 50, "10,000 timers of 5 s: p99 of the lateness"),
    AT_MOST("S4", "10000", "missing", 0, "10,000 timers of 5 s: that did not fire once"),
    AT_MOST("S5", "1", "p50_ms", 1, "external event, 1 in flight: p50 of the round trip"),
    AT_MOST("S6", "loaded", "p50_ms", 2, "cancellation under S2's load: p50 from the commit to the token"),
    AT_MOST("S6", "loaded", "p99_ms", 10, "cancellation under S2's load: p99"),
    AT_MOST("S6", "idle", "p50_ms", 1, "cancellation, nothing else running: p50"),
    AT_MOST("S6", "idle", "p99_ms", 5, "cancellation, nothing else running: p99"),
    AT_LEAST("S7", "stream", "events_per_s", 150000, "cold replay from the stream: events/s"),
    AT_LEAST("S7", "core", "events_per_s", 1000000, "replay in the core: events/s"),
    AT_MOST("S8", "defaults", "all_s", 15,
            "engine killed at full load: seconds until all its partitions progress"),
    AT_MOST("S8", "node-ttl 1s", "all_s", 3, "the same with --node-ttl 1s"),
    AT_MOST("S8", "defaults", "wrong", 0, "engine killed at full load: workflows lost, doubled or wrong"),
    AT_MOST("S8", "node-ttl 1s", "wrong", 0, "the same with --node-ttl 1s"),
    AT_MOST("S9", "idle", "engine_mb", 300, "1,000,000 idle instances: the engine's memory, MB"),
    AT_LEAST("S9", "idle", "start_ratio", 0.9,
             "1,000,000 idle instances: starts/s, as a share of those with none"),
    AT_MOST("S9", "idle", "restart_s", 10, "1,000,000 idle instances: restart to the first progress, s"),
    AT_LEAST("S10", "20", "per_s", 900, "5 x 10 ms fanned out, 20 in flight: workflows/s"),
    AT_LEAST("S11", "no engine", "per_s", 20000,
             "durable starts from one process, no engine running: starts/s"),
    AT_LEAST("S11", "engine", "per_s", 20000, "the same beside a running engine"),
    AT_LEAST("S12", "2 activities", "per_s", 1500,
             "woken up from the stream, 2 activities each: workflows/s"),
    AT_MOST("growth", "largest", "cpu_ratio", 1.1,
            "CPU of a workflow with the most instances, beside the fewest"),
    AT_LEAST("engines", "4", "rate_ratio", 0.95, "workflows/s of four engines, beside those of one"),
};
const size_t targets_len = sizeof targets / sizeof targets[0];

enum verdict target_check(const struct figures *figures, const struct target *target, double *ret_limit,
                          double *ret_by)
{
    const struct figure *const figure =
        figures_find(figures, target->durability, target->scenario, target->at, target->name);
    double limit = target->limit;
    *ret_limit = *ret_by = 0;
    if (figure == NULL)
        return VERDICT_UNKNOWN;
    if (target->floor != NULL) {
        const struct figure *const floor =
            figures_find(figures, target->durability, target->floor, "1", target->name);
        if (floor == NULL)
            return VERDICT_UNKNOWN;
        limit *= figure_range(floor).median;
    }
    double const median = figure_range(figure).median;
    bool const met = target->at_least ? median >= limit : median <= limit;
    *ret_limit = limit;
    if (limit > 0)
        *ret_by = target->at_least ? (limit - median) / limit : (median - limit) / limit;
    return met ? VERDICT_MET : VERDICT_MISSED;
}
