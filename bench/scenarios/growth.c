/* Does a workflow cost the same when many instances are in the streams, and when several engines share the
 * work? */
#include "scenarios.h"
#include <inttypes.h>

enum { IN_FLIGHT = 64, IN_FLIGHT_ENGINES = 256 };

/* Ended instances, until there are so many in all. */
static bool fill(struct bench *bench, thole_client *client, uint64_t from, uint64_t to)
{
    char prefix[32];
    double ignored;
    (void)snprintf(prefix, sizeof prefix, "fill%" PRIu64 "-", to);
    fprintf(stderr, "scenarios: growth, filling up to %" PRIu64 " instances …\n", to);
    return starts_make(client, "start", "x", prefix, to - from, &ignored) &&
           starts_reached(&bench->stand, prefix, STARTS_COMPLETED, to - from);
}

static bool measure(struct bench *bench, const char *scenario, unsigned in_flight, unsigned n)
{
    char at[16];
    struct load const load = {.kind = "chain",
                              .in_flight = in_flight,
                              .warm_up = 2 * in_flight,
                              .milliseconds = bench->options.milliseconds};
    (void)snprintf(at, sizeof at, "%u", n);
    return levels_measure(bench, scenario, &load, at);
}

static bool run_instances(struct bench *bench)
{
    thole_client *client = NULL;
    bool good = bench_open(bench) && stand_client(&client);
    uint64_t there = 0;
    for (const unsigned *n = bench->options.growth; good && *n > 0; n++) {
        good = fill(bench, client, there, *n) && measure(bench, "growth", IN_FLIGHT, *n);
        there = *n;
    }
    thole_client_close(client);
    bench_end(bench);
    return good;
}

static bool run_engines(struct bench *bench)
{
    static const unsigned counts[] = {1, 2, 4};
    bool good = true;
    for (size_t i = 0; good && i < sizeof counts / sizeof counts[0]; i++) {
        good = bench_open_with(bench, counts[i], NULL, bench->options.slots) &&
               measure(bench, "engines", IN_FLIGHT_ENGINES, counts[i]);
        bench_end(bench);
    }
    return good;
}

/* The cost of each, relative to the first of the list. */
static bool note_ratios(struct bench *bench)
{
    char at[16], first_at[16];
    (void)snprintf(first_at, sizeof first_at, "%u", bench->options.growth[0]);
    const struct figure *const first =
        figures_find(&bench->figures, bench->durability, "growth", first_at, "cpu_us");
    for (const unsigned *n = bench->options.growth; *n > 0; n++) {
        (void)snprintf(at, sizeof at, "%u", *n);
        const struct figure *const one =
            figures_find(&bench->figures, bench->durability, "growth", at, "cpu_us");
        if (one == NULL || first == NULL ||
            !bench_note(bench, "growth", at, "cpu_ratio",
                        figure_range(one).median / figure_range(first).median))
            return false;
        if (n[1] == 0 && !bench_note(bench, "growth", "largest", "cpu_ratio",
                                     figure_range(one).median / figure_range(first).median))
            return false;
    }
    const struct figure *const one =
        figures_find(&bench->figures, bench->durability, "engines", "1", "per_s");
    const struct figure *const four =
        figures_find(&bench->figures, bench->durability, "engines", "4", "per_s");
    return one != NULL && four != NULL &&
           bench_note(bench, "engines", "4", "rate_ratio",
                      figure_range(four).median / figure_range(one).median);
}

bool growth_run(struct bench *bench)
{
    if (bench->options.growth[0] == 0 || !bench_wants(bench, "growth"))
        return true;
    bench->durability = DURABILITY_DEFAULT;
    for (unsigned run = 0; run < bench->options.runs; run++)
        if (!run_instances(bench) || !run_engines(bench))
            return false;
    return note_ratios(bench);
}
