/* The tables of docs/benchmarks.md, between two marks. */
#include "scenarios.h"
#include "thole/program.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE "docs/benchmarks.md"
#define BEGIN_MARK "<!-- scenarios: scripts/bench scenarios --write-docs -->\n"
#define END_MARK "<!-- end of scenarios -->\n"

enum { PAGE_BYTES_MAX = 1024 * 1024 };

/* ---- tables ---- */

static void range_text(FILE *out, const struct figure *figure)
{
    struct range const range = figure_range(figure);
    char median[32], least[32], most[32];
    (void)fprintf(out, "%s", report_number(range.median, median));
    if (figure->runs > 1)
        (void)fprintf(out, " (%s to %s)", report_number(range.least, least), report_number(range.most, most));
}

static void target_row(FILE *out, const struct bench *bench, const struct target *target)
{
    static const char *const words[] = {
        [VERDICT_MET] = "met", [VERDICT_MISSED] = "**missed**", [VERDICT_UNKNOWN] = "not measured"};
    double limit, by;
    char text[32];
    enum verdict const verdict = target_check(&bench->figures, target, &limit, &by);
    const struct figure *const figure =
        figures_find(&bench->figures, target->durability, target->scenario, target->at, target->name);
    (void)fprintf(out, "| %s | %s | ", target->scenario, target->text);
    if (verdict != VERDICT_UNKNOWN)
        (void)fprintf(out, "%s %s", target->at_least ? "≥" : "≤", report_number(limit, text));
    (void)fprintf(out, " | ");
    if (figure != NULL)
        range_text(out, figure);
    (void)fprintf(out, " | %s", words[verdict]);
    if (verdict == VERDICT_MISSED && limit > 0)
        (void)fprintf(out, " by %s %%", report_number(by * 100, text));
    (void)fprintf(out, " |\n");
}

static void targets_table(FILE *out, const struct bench *bench)
{
    (void)fprintf(out, "| | what | target | measured: median (range) | |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < targets_len; i++)
        target_row(out, bench, &targets[i]);
}

static void cell(FILE *out, const struct bench *bench, const struct figure *of, const char *name)
{
    const struct figure *const one =
        figures_find(&bench->figures, of->durability, of->scenario, of->at, name);
    (void)fprintf(out, " | ");
    if (one != NULL)
        range_text(out, one);
}

static void loads_table(FILE *out, const struct bench *bench)
{
    static const char *const names[] = {"per_s",  "p50_ms",      "p99_ms",      "p999_ms",
                                        "cpu_us", "messages_in", "transactions"};
    (void)fprintf(
        out, "\n| | in flight | durability | workflows/s | p50, ms | p99, ms | p99.9, ms | CPU of one, µs |"
             " messages into NATS | transactions that write |\n|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < bench->figures.len; i++) {
        const struct figure *const one = &bench->figures.list[i];
        if (strcmp(one->name, "cpu_us") != 0)
            continue;
        (void)fprintf(out, "| %s | %s | %s", one->scenario, one->at, durability_names[one->durability]);
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            cell(out, bench, one, names[k]);
        (void)fprintf(out, " |\n");
    }
}

static void loads_of_machine(FILE *out, const struct bench *bench)
{
    double least = 1e9, most = 0;
    char text[2][32];
    for (size_t i = 0; i < bench->figures.len; i++) {
        const struct figure *const one = &bench->figures.list[i];
        if (strcmp(one->name, "machine_load") != 0)
            continue;
        struct range const range = figure_range(one);
        least = range.least < least ? range.least : least;
        most = range.most > most ? range.most : most;
    }
    if (most > 0)
        (void)fprintf(out, " The machine's load during the runs, their own included: %s to %s.",
                      report_number(least, text[0]), report_number(most, text[1]));
}

static void write_block(FILE *out, const struct bench *bench)
{
    char day[32], cpu[128];
    time_t const now = time(NULL);
    struct tm parts;
    report_cpu(cpu, sizeof cpu);
    (void)strftime(day, sizeof day, "%Y-%m-%d", gmtime_r(&now, &parts));
    (void)fprintf(
        out,
        BEGIN_MARK
        "Measured on %s: %ld cores (%s), thole %s, nats-server %s, Postgres %s; %u run%s, %u ms of each load,"
        " `--slots %u`.",
        day, report_cores(), cpu, thole_version(), bench->versions.nats, bench->versions.postgres,
        bench->options.runs, bench->options.runs == 1 ? "" : "s", bench->options.milliseconds,
        bench->options.slots);
    loads_of_machine(out, bench);
    (void)fprintf(out, "\n\n");
    targets_table(out, bench);
    loads_table(out, bench);
    (void)fprintf(out, "\n![Throughput and latency over the number of workflows in flight]"
                       "(benchmarks/scenarios.svg)\n" END_MARK);
}

/* ---- the page ---- */

static char *read_page(void)
{
    FILE *const in = fopen(PAGE, "re");
    char *const text = in == NULL ? NULL : malloc(PAGE_BYTES_MAX);
    size_t const len = text == NULL ? 0 : fread(text, 1, PAGE_BYTES_MAX - 1, in);
    if (text != NULL)
        text[len] = '\0';
    if (in != NULL)
        (void)fclose(in);
    return text;
}

static bool replace_block(const struct bench *bench, const char *page)
{
    const char *const begin = strstr(page, BEGIN_MARK);
    const char *const end = begin == NULL ? NULL : strstr(begin, END_MARK);
    if (end == NULL)
        return bench_fail(PAGE, "it does not have the two marks between which the tables stand");
    FILE *const out = fopen(PAGE ".new", "we");
    if (out == NULL)
        return bench_fail(PAGE ".new", "cannot be written");
    (void)fwrite(page, 1, (size_t)(begin - page), out);
    write_block(out, bench);
    (void)fputs(end + strlen(END_MARK), out);
    bool const good = ferror(out) == 0;
    return fclose(out) == 0 && good && rename(PAGE ".new", PAGE) == 0 ? true
                                                                      : bench_fail(PAGE, "cannot be written");
}

bool report_docs(const struct bench *bench)
{
    char *const page = read_page();
    if (page == NULL)
        return bench_fail(PAGE, "cannot be read: run this in the top folder");
    bool const good = replace_block(bench, page) && report_picture(bench, "docs/benchmarks/scenarios.svg");
    free(page);
    return good;
}
