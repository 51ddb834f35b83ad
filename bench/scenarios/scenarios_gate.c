/* The limits of the short form: what a workflow costs at 64 in flight, beside the floor of the same run. */
#include "scenarios.h"

/* Measured with -O1: CPU 1.9 to 2.5, messages 0.88 to 1.05; without, on a busy machine, CPU 3.1 to 3.5. */
static const struct {
    const char *scenario, *floor, *figure;
    double most;
} limits[] = {
    {"S1", "floor-1", "cpu_us", 4.5},
    {"S2", "floor-5", "cpu_us", 4.5},
    {"S1", "floor-1", "messages_in", 1.3},
    {"S2", "floor-5", "messages_in", 1.2},
};

int scenarios_gate(const struct figures *figures, FILE *out)
{
    int code = 0;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const struct figure *const one =
            figures_find(figures, DURABILITY_DEFAULT, limits[i].scenario, "64", limits[i].figure);
        const struct figure *const floor =
            figures_find(figures, DURABILITY_DEFAULT, limits[i].floor, "64", limits[i].figure);
        if (one == NULL || floor == NULL)
            continue;
        double const ratio = figure_range(one).median / figure_range(floor).median;
        if (ratio <= limits[i].most)
            continue;
        code = SCENARIOS_OVER_LIMIT;
        (void)fprintf(
            out,
            "scenarios: %s at 64 in flight: %s is %.2f times that of the bare loop (%s), and %.2f is the "
            "limit: run `scripts/bench ledger` with and without your change to see whose it is; mend it, or "
            "raise the limit in bench/scenarios/scenarios_gate.c and say there what was measured\n",
            limits[i].scenario, limits[i].figure, ratio, limits[i].floor, limits[i].most);
    }
    return code;
}
