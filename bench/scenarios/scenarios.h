/* The scenarios: what each puts on a stand, and which figures it gives. See docs/benchmarks.md. */
#ifndef THOLE_BENCH_SCENARIOS_H
#define THOLE_BENCH_SCENARIOS_H
#include "counters.h"
#include "figures.h"
#include "load.h"

struct options {
    unsigned runs, milliseconds, slots, instances; /* instances: of S9 */
    const char *json, *only;
    bool durability[DURABILITIES];
    bool short_run, write_docs;
};

struct bench {
    struct options options;
    struct {
        char nats[32], postgres[64];
    } versions;
    enum durability durability;
    struct stand stand;
    struct figures figures;
    double peak; /* of the levels of the scenario under way: workflows/s */
};

/* A figure of the run under way. */
bool bench_note(struct bench *bench, const char *scenario, const char *at, const char *name, double value);
/* Is it asked for? */
bool bench_wants(const struct bench *bench, const char *scenario);
/* New servers, an engine and a worker. */
bool bench_open(struct bench *bench);

/* ---- levels.c: S1, S2, S3, S5, S10 and the floor ---- */
bool levels_run(struct bench *bench);
/* All of these instances have completed in the projection, and none of their activities and timers is left.
 * Waits for the projection. */
bool levels_completed(struct stand *stand, const char *prefix, uint64_t expected);

/* ---- starts.c: S11 ---- */
bool starts_run(struct bench *bench);

/* ---- scenarios_gate.c ---- */
enum { SCENARIOS_OVER_LIMIT = 3 };
/* 0, or SCENARIOS_OVER_LIMIT with a line to @p out for each ratio to the floor that is above its limit. */
int scenarios_gate(const struct figures *figures, FILE *out);

/* ---- report_text.c, report_json.c, report_docs.c, report_picture.c ---- */
void report_text(const struct bench *bench);
/* Lines on @p out for the targets that are missed; how many. */
size_t report_missed(const struct bench *bench, FILE *out);
bool report_json(const struct bench *bench, const char *path);
/* The table in docs/benchmarks.md and the picture in docs/benchmarks/. */
bool report_docs(const struct bench *bench);
bool report_picture(const struct bench *bench, const char *path);
void report_cpu(char *ret, size_t cap);
long report_cores(void);
/* "2,340", "3.14": three digits that count. */
const char *report_number(double value, char ret[32]);
#endif
