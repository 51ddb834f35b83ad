/*
 * Measured values, by durability, scenario, case ("in flight 64", "open loop") and figure ("p50_ms"), with a
 * value for each run; and the targets that some of them have.
 */
#ifndef THOLE_BENCH_FIGURES_H
#define THOLE_BENCH_FIGURES_H
#include <stdbool.h>
#include <stddef.h>

enum { FIGURES_MAX = 2048, RUNS_MAX = 9, FIGURE_NAME_BYTES = 32 };

enum durability { DURABILITY_DEFAULT, DURABILITY_ALWAYS, DURABILITIES };
extern const char *const durability_names[DURABILITIES];

struct figure {
    enum durability durability;
    char scenario[FIGURE_NAME_BYTES], at[FIGURE_NAME_BYTES], name[FIGURE_NAME_BYTES];
    double values[RUNS_MAX];
    size_t runs;
};

struct figures {
    struct figure list[FIGURES_MAX];
    size_t len;
};

struct range {
    double median, least, most;
};

/* One more run's value. False with a message: there is no room. */
bool figures_add(struct figures *figures, enum durability durability, const char *scenario, const char *at,
                 const char *name, double value);
const struct figure *figures_find(const struct figures *figures, enum durability durability,
                                  const char *scenario, const char *at, const char *name);
struct range figure_range(const struct figure *figure);

struct target {
    const char *scenario, *at, *name;
    bool at_least;
    double limit;
    const char
        *floor; /* the limit is so many times this scenario's figure of the same name at the case "1" */
    enum durability durability;
    const char *text; /* for people */
};
extern const struct target targets[];
extern const size_t targets_len;

enum verdict { VERDICT_MET, VERDICT_MISSED, VERDICT_UNKNOWN };
/* Of the median. *ret_limit: the limit in the figure's unit; *ret_by: how far beyond it, as a share of it.
 * UNKNOWN: not measured. */
enum verdict target_check(const struct figures *figures, const struct target *target, double *ret_limit,
                          double *ret_by);
#endif
