/*
 * The scenarios of docs/benchmarks.md on private servers: see `scenarios --help`. Exit codes: 0; 1: a
 * scenario failed; 2: usage; 3: --short found a ratio above its limit; 77: a server is not installed.
 */
#include "scenarios.h"
#include "bench_program.h"
#include "floor.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_MS = 300, LEVEL_MS = 5000, IDLE = 1000000, IDLE_SHORT = 2000, ONE_MS = 60000 };

bool bench_note(struct bench *bench, const char *scenario, const char *at, const char *name, double value)
{
    return figures_add(&bench->figures, bench->durability, scenario, at, name, value);
}

/* Whether the list has the scenario's whole name. */
bool bench_wants(const struct bench *bench, const char *scenario)
{
    size_t const len = strlen(scenario);
    const char *at = bench->options.only;
    if (at == NULL)
        return true;
    for (; (at = strstr(at, scenario)) != NULL; at++)
        if ((at == bench->options.only || at[-1] == ',') && (at[len] == '\0' || at[len] == ','))
            return true;
    return false;
}

static bool note_versions(struct bench *bench)
{
    PGresult *const result = stand_ask(&bench->stand, "SHOW server_version");
    if (result == NULL)
        return false;
    (void)snprintf(bench->versions.postgres, sizeof bench->versions.postgres, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    return nats_version(&bench->stand, bench->versions.nats, sizeof bench->versions.nats);
}

bool bench_one(thole_client *client, const char *id, const char *kind)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_error error = {.status = THOLE_OK};
    bool const good = thole_client_run(client, thole_slice_from(id), thole_slice_from(kind), THOLE_STR("x"),
                                       ONE_MS, &outcome, &error) == THOLE_OK &&
                      outcome.status == THOLE_INSTANCE_COMPLETED;
    thole_outcome_release(&outcome);
    return good ? true : bench_fail(id, error.text);
}

/* A workflow from end to end: all roles serve. */
static bool run_first(void)
{
    thole_client *client = NULL;
    bool const good = stand_client(&client) && bench_one(client, "first", "one");
    thole_client_close(client);
    return good;
}

bool bench_open_with(struct bench *bench, size_t engines, const char *const *arguments, unsigned slots)
{
    bench_end(bench);
    bench->open = true;
    struct stand_options const options = {.sync_always = bench->durability == DURABILITY_ALWAYS};
    bool good = stand_open(&bench->stand, &options) && note_versions(bench);
    for (size_t i = 0; good && i < engines; i++)
        good = stand_start_engine(&bench->stand, i, arguments);
    return good && stand_start_worker(&bench->stand, slots) && run_first();
}

bool bench_open(struct bench *bench)
{
    return bench->open || bench_open_with(bench, 1, NULL, bench->options.slots);
}

void bench_close(struct bench *bench)
{
    if (!bench->options.short_run)
        bench_end(bench);
}

void bench_end(struct bench *bench)
{
    if (bench->open)
        stand_close(&bench->stand);
    bench->open = false;
}

/* With everything synced only the loads: the others' targets are for the default durability. */
static bool run_once(struct bench *bench)
{
    if (!levels_run(bench) || !starts_run(bench))
        return false;
    return bench->durability == DURABILITY_ALWAYS ||
           (timers_run(bench) && cancels_run(bench) && idle_run(bench) && wake_run(bench) &&
            replay_run(bench) && kill_run(bench));
}

static bool run_all(struct bench *bench)
{
    for (int durability = 0; durability < DURABILITIES; durability++)
        for (unsigned run = 0; bench->options.durability[durability] && run < bench->options.runs; run++) {
            bench->durability = (enum durability)durability;
            fprintf(stderr, "scenarios: run %u of %u, durability %s\n", run + 1, bench->options.runs,
                    durability_names[durability]);
            bool const good = run_once(bench);
            bench_end(bench);
            if (!good)
                return false;
        }
    return true;
}

static int run(struct bench *bench)
{
    if (!run_all(bench) || !growth_run(bench))
        return bench->stand.missing ? BENCH_SKIPPED : 1;
    if (bench->figures.len == 0) {
        (void)bench_fail("--only",
                         "there is no such scenario: S1 to S12, separated by commas; growth needs --growth");
        return 2;
    }
    report_text(bench);
    (void)report_missed(bench, stdout);
    if (bench->options.json != NULL && !report_json(bench, bench->options.json))
        return 1;
    if (bench->options.write_docs && !report_docs(bench))
        return 1;
    return bench->options.short_run ? scenarios_gate(&bench->figures, stderr) : 0;
}

/* ---- options ---- */

static int usage(FILE *out, int code)
{
    (void)fprintf(
        out, "usage: scenarios [OPTION]...\n"
             "Throughput and latency of workflows, timers, events, cancellation, recovery; private servers.\n"
             "  --only S1,S5       these scenarios (all)\n"
             "  --runs N           of each, 1 to 9 (3): median and range are shown\n"
             "  --milliseconds N   of each load (5000)\n"
             "  --in-flight 1,64   these numbers of workflows in flight alone; no floor, no open loop\n"
             "  --durability D     default, always (everything is synced before it is acknowledged), both\n"
             "                     (default)\n"
             "  --slots N          of the worker (256)\n"
             "  --threads          no activity is declared quick: they run on threads of the worker\n"
             "  --instances N      of S9 (1000000)\n"
             "  --growth A,B,C     also: what a workflow costs with so many instances in the streams, and "
             "what 1, 2\n"
             "                     and 4 engines do; alone with --only growth\n"
             "  --json FILE        all figures of all runs, with machine and versions\n"
             "  --write-docs       the table in docs/benchmarks.md and the picture beside it\n"
             "  --short            for CI: 0.3 s of each load, at most 64 in flight, one run, and the\n"
             "                     regression gate: ratios to the floor of the same run\n");
    return code;
}

static bool parse_number(const char *text, unsigned least, unsigned most, unsigned *ret)
{
    char *end;
    unsigned long const n = strtoul(text, &end, 10);
    *ret = (unsigned)n;
    return end != text && *end == '\0' && n >= least && n <= most;
}

static bool parse_durability(struct options *options, const char *text)
{
    bool const both = strcmp(text, "both") == 0;
    options->durability[DURABILITY_DEFAULT] = both || strcmp(text, "default") == 0;
    options->durability[DURABILITY_ALWAYS] = both || strcmp(text, "always") == 0;
    return options->durability[DURABILITY_DEFAULT] || options->durability[DURABILITY_ALWAYS];
}

/* Increasing numbers, followed by 0. */
static bool parse_numbers(char *text, unsigned *ret, size_t cap)
{
    size_t n = 0;
    for (char *rest = text, *one; (one = strsep(&rest, ",")) != NULL; n++)
        if (n == cap - 1 || !parse_number(one, 1, 10000000, &ret[n]) || (n > 0 && ret[n] <= ret[n - 1]))
            return false;
    ret[n] = 0;
    return n > 0;
}

static void be_short(struct options *options)
{
    options->short_run = true;
    options->runs = 1;
    options->milliseconds = SHORT_MS;
    options->instances = IDLE_SHORT;
}

static bool parse_option(struct options *options, int option)
{
    switch (option) {
    case 'o': options->only = optarg; return true;
    case 'r': return parse_number(optarg, 1, RUNS_MAX, &options->runs);
    case 'm': return parse_number(optarg, 1, 600000, &options->milliseconds);
    case 'd': return parse_durability(options, optarg);
    case 'l': return parse_number(optarg, 1, 4096, &options->slots);
    case 't': program_on_threads(); return true;
    case 'i': return parse_number(optarg, 100, 10000000, &options->instances);
    case 'g': return parse_numbers(optarg, options->growth, GROWTH_MAX);
    case 'f': return parse_numbers(optarg, options->in_flight, LEVELS_MAX);
    case 'j': options->json = optarg; return true;
    case 'w': options->write_docs = true; return true;
    case 'x': be_short(options); return true;
    default: return false;
    }
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"only", 1, NULL, 'o'},         {"runs", 1, NULL, 'r'},
                                          {"milliseconds", 1, NULL, 'm'}, {"durability", 1, NULL, 'd'},
                                          {"slots", 1, NULL, 'l'},        {"threads", 0, NULL, 't'},
                                          {"instances", 1, NULL, 'i'},    {"growth", 1, NULL, 'g'},
                                          {"in-flight", 1, NULL, 'f'},    {"json", 1, NULL, 'j'},
                                          {"write-docs", 0, NULL, 'w'},   {"short", 0, NULL, 'x'},
                                          {"help", 0, NULL, 'h'},         {NULL, 0, NULL, 0}};
    static struct bench bench = {.options = {.runs = 3,
                                             .milliseconds = LEVEL_MS,
                                             .slots = 256,
                                             .instances = IDLE,
                                             .durability = {[DURABILITY_DEFAULT] = true}}};
    int code;
    if (floor_is(argc, argv))
        return floor_main(argc, argv);
    if (program_role(argc, argv, &code))
        return code;
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (option == 'h')
            return usage(stdout, 0);
        if (!parse_option(&bench.options, option))
            return usage(stderr, 2);
    }
    if (optind != argc)
        return usage(stderr, 2);
    bench_raise_files();
    return run(&bench);
}
