/* Throughput and median latency over the number of workflows in flight, as SVG; both axes are logarithmic. */
#include "scenarios.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PANEL_WIDTH = 360, PANEL_HEIGHT = 240, LEFT = 60, TOP = 40, GAP = 70, DECADES_MAX = 8 };

struct panel {
    const char *title, *figure;
    double x;      /* of its left edge */
    int low, high; /* decades of the vertical axis */
};

static const struct line {
    const char *scenario, *text, *colour;
} lines[] = {{"S1", "S1: one activity", "#1b6ca8"},
             {"S2", "S2: chain of 5", "#c8553d"},
             {"S3", "S3: fan-out of 100", "#4a7c59"}};

static const unsigned levels[] = {1, 4, 16, 64, 256, 1024};

static const struct figure *point(const struct bench *bench, const char *scenario, unsigned level,
                                  const char *name)
{
    char at[16];
    (void)snprintf(at, sizeof at, "%u", level);
    return figures_find(&bench->figures, DURABILITY_DEFAULT, scenario, at, name);
}

static void find_decades(const struct bench *bench, struct panel *panel)
{
    double least = 1e9, most = 1e-9;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        for (size_t k = 0; k < sizeof levels / sizeof levels[0]; k++) {
            const struct figure *const one = point(bench, lines[i].scenario, levels[k], panel->figure);
            if (one == NULL || figure_range(one).median <= 0)
                continue;
            least = fmin(least, figure_range(one).median);
            most = fmax(most, figure_range(one).median);
        }
    panel->low = (int)floor(log10(least));
    panel->high = (int)ceil(log10(most));
    if (panel->high <= panel->low || panel->high - panel->low > DECADES_MAX)
        panel->high = panel->low + 1;
}

static double x_of(const struct panel *panel, unsigned level)
{
    return panel->x + PANEL_WIDTH * log2(level) / 10;
}

static double y_of(const struct panel *panel, double value)
{
    return TOP + PANEL_HEIGHT * (1 - (log10(value) - panel->low) / (panel->high - panel->low));
}

static void axes(FILE *out, const struct panel *panel)
{
    (void)fprintf(out, "<text x=\"%.0f\" y=\"%d\" font-weight=\"bold\">%s</text>\n", panel->x, TOP - 15,
                  panel->title);
    for (int decade = panel->low; decade <= panel->high; decade++) {
        double const y = y_of(panel, pow(10, decade));
        (void)fprintf(out,
                      "<line x1=\"%.0f\" y1=\"%.1f\" x2=\"%.0f\" y2=\"%.1f\" stroke=\"#ccc\"/>"
                      "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                      panel->x, y, panel->x + PANEL_WIDTH, y, panel->x - 6, y + 4, pow(10, decade));
    }
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        (void)fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%u</text>\n",
                      x_of(panel, levels[i]), TOP + PANEL_HEIGHT + 18, levels[i]);
    (void)fprintf(out, "<text x=\"%.0f\" y=\"%d\" text-anchor=\"middle\">in flight</text>\n",
                  panel->x + PANEL_WIDTH / 2.0, TOP + PANEL_HEIGHT + 36);
}

static void curve(FILE *out, const struct bench *bench, const struct panel *panel, const struct line *line)
{
    (void)fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", line->colour);
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        const struct figure *const one = point(bench, line->scenario, levels[i], panel->figure);
        if (one != NULL && figure_range(one).median > 0)
            (void)fprintf(out, "%.1f,%.1f ", x_of(panel, levels[i]), y_of(panel, figure_range(one).median));
    }
    (void)fprintf(out, "\"/>\n");
}

static void legend(FILE *out)
{
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        (void)fprintf(out,
                      "<rect x=\"%zu\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>"
                      "<text x=\"%zu\" y=\"%d\">%s</text>\n",
                      LEFT + i * 200, TOP + PANEL_HEIGHT + 52, lines[i].colour, LEFT + 18 + i * 200,
                      TOP + PANEL_HEIGHT + 62, lines[i].text);
}

static void draw(FILE *out, const struct bench *bench)
{
    struct panel panels[] = {{"workflows/s", "per_s", LEFT, 0, 1},
                             {"p50, ms", "p50_ms", LEFT + PANEL_WIDTH + GAP, 0, 1}};
    int const width = LEFT + 2 * PANEL_WIDTH + GAP + 30, height = TOP + PANEL_HEIGHT + 80;
    (void)fprintf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\""
                  " font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                  width, height, width, height);
    for (size_t i = 0; i < sizeof panels / sizeof panels[0]; i++) {
        find_decades(bench, &panels[i]);
        axes(out, &panels[i]);
        for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++)
            curve(out, bench, &panels[i], &lines[k]);
    }
    legend(out);
    (void)fprintf(out, "</svg>\n");
}

bool report_picture(const struct bench *bench, const char *path)
{
    (void)mkdir("docs/benchmarks", 0777);
    FILE *const out = fopen(path, "we");
    if (out == NULL)
        return bench_fail(path, "cannot be written");
    draw(out, bench);
    bool const good = ferror(out) == 0;
    return fclose(out) == 0 && good ? true : bench_fail(path, "cannot be written");
}
