/* The scenarios: what each puts on a stand, and which figures it gives. See docs/benchmarks.md. */
#ifndef THOLE_BENCH_SCENARIOS_H
#define THOLE_BENCH_SCENARIOS_H
#include "counters.h"
#include "figures.h"
#include "load.h"

enum { GROWTH_MAX = 8, LEVELS_MAX = 8 };

struct options {
    unsigned runs, milliseconds, slots, instances; /* instances: of S9 */
    unsigned growth[GROWTH_MAX];                   /* instances; 0 ends the list */
    unsigned in_flight[LEVELS_MAX];                /* these levels of the loads alone; none: all */
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
    bool open; /* the stand */
    struct figures figures;
    double peak; /* of the levels of the scenario under way: workflows/s */
};

/* A figure of the run under way. */
bool bench_note(struct bench *bench, const char *scenario, const char *at, const char *name, double value);
/* Is it asked for? */
bool bench_wants(const struct bench *bench, const char *scenario);
/* New servers, an engine and a worker; they serve. In a short run those that are open. */
bool bench_open(struct bench *bench);
/* The end of a scenario: closes the stand, but not in a short run. */
void bench_close(struct bench *bench);
/* Closes the stand in any case. */
void bench_end(struct bench *bench);
/* A new stand with some engines, which have more arguments (NULL-terminated; NULL: none), and so many slots.
 */
bool bench_open_with(struct bench *bench, size_t engines, const char *const *arguments, unsigned slots);
/* A workflow of this kind from start to end. False with a message: it did not complete. */
bool bench_one(thole_client *client, const char *id, const char *kind);

/* ---- levels.c: S1, S2, S3, S5, S10 and the floor ---- */
bool levels_run(struct bench *bench);
/* One load on the open stand: its figures are noted at @p at. */
bool levels_measure(struct bench *bench, const char *scenario, const struct load *load, const char *at);
/* All of these instances have completed in the projection, and none of their activities and timers is left.
 * Waits for the projection. */
bool levels_completed(struct stand *stand, const char *prefix, uint64_t expected);
/* Whose the CPU time is: of each of n. */
bool levels_note_roles(struct bench *bench, const char *scenario, const char *at, const struct sample *cost,
                       double n);
/* The processes alone. */
bool levels_sample_processes(struct stand *stand, struct sample *ret);

/* ---- starts.c: S11 ---- */
bool starts_run(struct bench *bench);
#define STARTS_COMPLETED "status = 4"
#define STARTS_RUNNING "status = 1"
/* Durable starts of PREFIX0, PREFIX1, … */
bool starts_make(thole_client *client, const char *kind, const char *input, const char *prefix,
                 uint64_t count, double *ret_seconds);
/* Waits until so many of them are in the projection with this condition, and no more. */
bool starts_reached(struct stand *stand, const char *prefix, const char *condition, uint64_t count);

/* ---- due_timers.c: S4; token_delay.c: S6; replay.c: S7; kill.c: S8; idle.c: S9; wake.c: S12; growth.c
 * ---- */
bool timers_run(struct bench *bench);
bool cancels_run(struct bench *bench);
bool replay_run(struct bench *bench);
bool kill_run(struct bench *bench);
bool idle_run(struct bench *bench);
bool wake_run(struct bench *bench);
bool growth_run(struct bench *bench);

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
