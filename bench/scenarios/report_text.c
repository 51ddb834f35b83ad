/* The report on the terminal. */
#include "scenarios.h"
#include <string.h>

const char *report_number(double value, char ret[32])
{
    double const size = value < 0 ? -value : value;
    if (size >= 999.5 && size < 1e9) {
        unsigned const n = (unsigned)(size + 0.5);
        if (n >= 1000000)
            (void)snprintf(ret, 32, "%s%u,%03u,%03u", value < 0 ? "-" : "", n / 1000000, n / 1000 % 1000,
                           n % 1000);
        else
            (void)snprintf(ret, 32, "%s%u,%03u", value < 0 ? "-" : "", n / 1000, n % 1000);
    } else {
        (void)snprintf(ret, 32, "%.*f", size == 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2, value);
    }
    return ret;
}

void report_text(const struct bench *bench)
{
    const struct figures *const figures = &bench->figures;
    const struct figure *before = NULL;
    for (size_t i = 0; i < figures->len; i++) {
        const struct figure *const one = &figures->list[i];
        struct range const range = figure_range(one);
        char median[32], least[32], most[32];
        if (before == NULL || before->durability != one->durability ||
            strcmp(before->scenario, one->scenario) != 0 || strcmp(before->at, one->at) != 0)
            printf("%s%s, %s (durability %s, %zu runs): median, range", before == NULL ? "" : "\n",
                   one->scenario, one->at, durability_names[one->durability], one->runs);
        printf("\n  %-14s %10s   %s to %s", one->name, report_number(range.median, median),
               report_number(range.least, least), report_number(range.most, most));
        before = one;
    }
    printf("\n\n");
    (void)fflush(stdout);
}

size_t report_missed(const struct bench *bench, FILE *out)
{
    size_t missed = 0, met = 0;
    for (size_t i = 0; i < targets_len; i++) {
        const struct target *const target = &targets[i];
        double limit, by;
        char measured[32], wanted[32];
        enum verdict const verdict = target_check(&bench->figures, target, &limit, &by);
        met += verdict == VERDICT_MET;
        if (verdict != VERDICT_MISSED)
            continue;
        missed++;
        const struct figure *const figure =
            figures_find(&bench->figures, target->durability, target->scenario, target->at, target->name);
        (void)fprintf(out, "missed: %s, %s: %s, the target is %s %s (%.0f %% beyond it)\n", target->scenario,
                      target->text, report_number(figure_range(figure).median, measured),
                      target->at_least ? "at least" : "at most", report_number(limit, wanted), by * 100);
    }
    (void)fprintf(out, "%zu targets met, %zu missed, %zu not measured\n", met, missed,
                  targets_len - met - missed);
    return missed;
}
