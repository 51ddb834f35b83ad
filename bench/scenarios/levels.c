/* Loads at several numbers of workflows in flight, and the floor. */
#include "scenarios.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SETTLE_US = 500 * 1000,
    SETTLE_SHORT_US = 200 * 1000,
    PROJECTED_MS = 20000,
    FLOOR_BATCH = 64,
    SHORT_LEVEL_MAX = 64
};

struct loaded { /* a scenario at some levels */
    const char *scenario, *kind;
    unsigned in_flight[LEVELS_MAX]; /* 0 ends the list */
    bool open_loop;                 /* also at half the peak */
};

static const struct loaded loads[] = {
    {"floor-1", "floor-1", {1, FLOOR_BATCH}, false},
    {"S1", "one", {1, 16, 64, 256, 1024}, true},
    {"floor-5", "floor-5", {1, FLOOR_BATCH}, false},
    {"S2", "chain", {1, 16, 64, 256, 1024}, true},
    {"S3", "fan", {1, 4, 16, 64}, true},
    {"S5", "event", {1, 16, 64}, false},
    {"S10", "stress", {20}, false},
};

/* ---- nothing is lost ---- */

bool levels_completed(struct stand *stand, const char *prefix, uint64_t expected)
{
    char completed[256], left[384];
    uint64_t n = 0, rest = 1;
    uint64_t const end_us = bench_now_us() + PROJECTED_MS * UINT64_C(1000);
    (void)snprintf(completed, sizeof completed,
                   "SELECT count(*) FROM thole_default.instances WHERE status = 4 AND instance LIKE '%s%%'",
                   prefix);
    (void)snprintf(
        left, sizeof left,
        "SELECT (SELECT count(*) FROM thole_default.worker_queue WHERE instance >= '%s' AND instance < '%s~')"
        " + (SELECT count(*) FROM thole_default.timers WHERE instance >= '%s' AND instance < '%s~')",
        prefix, prefix, prefix, prefix);
    do {
        if (!stand_ask_number(stand, completed, &n) || !stand_ask_number(stand, left, &rest))
            return false;
        if (n == expected && rest == 0)
            return true;
        bench_nap_us(50000);
    } while (bench_now_us() < end_us);
    return bench_fail_at(prefix,
                         "%" PRIu64 " instances have completed in the projection, not %" PRIu64 "; %" PRIu64
                         " activities and timers are left",
                         n, expected, rest);
}

/* ---- one level ---- */

static bool sample(struct stand *stand, struct sample *ret)
{
    memset(ret, 0, sizeof *ret);
    return processes_read(stand, ret) && nats_read(stand, ret) && postgres_read(stand, ret);
}

bool levels_sample_processes(struct stand *stand, struct sample *ret)
{
    *ret = (struct sample){.threads_len = 0};
    return processes_read(stand, ret);
}

bool levels_note_roles(struct bench *bench, const char *scenario, const char *at, const struct sample *cost,
                       double n)
{
    static const char *const names[ROLES] = {"cpu_client_us", "cpu_engine_us",    "cpu_worker_us",
                                             "cpu_nats_us",   "cpu_pg_engine_us", "cpu_pg_worker_us",
                                             "cpu_pg_rest_us"};
    for (size_t role = 0; role < ROLES; role++)
        if (!bench_note(bench, scenario, at, names[role], (double)cost->roles[role].cpu_ns / 1000 / n))
            return false;
    return true;
}

static bool note_load(struct bench *bench, const char *scenario, const char *at,
                      const struct load_result *result, const struct sample *cost)
{
    double const n = (double)result->done;
    struct {
        const char *name;
        double value;
    } const figures[] = {
        {"per_s", n * 1e6 / (double)result->wall_us},
        {"p50_ms", result->us.p50 / 1000},
        {"p90_ms", result->us.p90 / 1000},
        {"p99_ms", result->us.p99 / 1000},
        {"p999_ms", result->us.p999 / 1000},
        {"max_ms", result->us.max / 1000},
        {"cpu_us", (double)sample_cpu_ns(cost) / 1000 / n},
        {"messages_in", (double)cost->nats.in_messages / n},
        {"transactions", (double)cost->postgres.writing / n},
        {"done", n},
        {"machine_load", bench_load_average()},
    };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        if (!bench_note(bench, scenario, at, figures[i].name, figures[i].value))
            return false;
    if (!levels_note_roles(bench, scenario, at, cost, n))
        return false;
    return result->done > 0 ? true : bench_fail(scenario, "no workflow ended within the time");
}

static bool measure(struct bench *bench, struct load_client *client, const char *scenario, const char *at,
                    struct load_result *ret)
{
    static struct sample before, after;
    struct stand *const stand = &bench->stand;
    uint64_t const settle_us = bench->options.short_run ? SETTLE_SHORT_US : SETTLE_US;
    if (!load_ready(client))
        return false;
    bench_nap_us(settle_us);
    if (!sample(stand, &before) || !load_run(client, ret))
        return false;
    bench_nap_us(settle_us);
    if (!sample(stand, &after))
        return false;
    sample_subtract(&after, &before);
    return note_load(bench, scenario, at, ret, &after);
}

bool levels_measure(struct bench *bench, const char *scenario, const struct load *load, const char *at)
{
    struct load_client client;
    struct load_result result = {.done = 0};
    char prefix[64];
    fprintf(stderr, "scenarios: %s, %s: %s %u in flight …\n", scenario, at,
            load->rate > 0 ? "at most" : "always", load->in_flight);
    bool good = load_start(&bench->stand, load, &client) && measure(bench, &client, scenario, at, &result);
    (void)snprintf(prefix, sizeof prefix, "%s-m", client.prefix);
    load_stop(&bench->stand, &client);
    if (good && strncmp(load->kind, "floor", 5) != 0)
        good = levels_completed(&bench->stand, prefix, result.done);
    double const rate = (double)result.done * 1e6 / (double)(result.wall_us > 0 ? result.wall_us : 1);
    if (rate > bench->peak)
        bench->peak = rate;
    return good;
}

/* At half the peak, in time as the calls are due; the threads are enough for twice the latency at the peak.
 */
static bool run_open_loop(struct bench *bench, const struct loaded *loaded)
{
    struct load const load = {.kind = loaded->kind,
                              .in_flight = bench->options.short_run ? 256 : 1024,
                              .warm_up = bench->options.short_run ? 64 : 1024,
                              .milliseconds = bench->options.milliseconds,
                              .rate = bench->peak / 2};
    return bench_note(bench, loaded->scenario, "open loop", "rate", load.rate) &&
           levels_measure(bench, loaded->scenario, &load, "open loop");
}

/* The ends of the range that the short form has. */
static bool is_short(unsigned level)
{
    return level == 1 || level == 20 || level == SHORT_LEVEL_MAX;
}

static bool is_wanted_level(const struct options *options, unsigned level)
{
    const unsigned *wish = options->in_flight;
    if (options->short_run && !is_short(level))
        return false;
    while (*wish != level && *wish > 0)
        wish++;
    return *wish == level || options->in_flight[0] == 0;
}

static bool run_loaded(struct bench *bench, const struct loaded *loaded)
{
    bool good = true;
    bench->peak = 0;
    for (const unsigned *level = loaded->in_flight; good && *level > 0; level++) {
        char at[16];
        bool const floor = strncmp(loaded->kind, "floor", 5) == 0; /* warms up in rounds */
        struct load const load = {.kind = loaded->kind,
                                  .in_flight = *level,
                                  .warm_up = floor ? 30 : 30 + 2 * *level,
                                  .milliseconds = bench->options.milliseconds};
        if (!is_wanted_level(&bench->options, *level))
            continue;
        (void)snprintf(at, sizeof at, "%u", *level);
        good = levels_measure(bench, loaded->scenario, &load, at);
    }
    bool const open = loaded->open_loop && bench->options.in_flight[0] == 0 &&
                      !(bench->options.short_run && strcmp(loaded->scenario, "S3") == 0);
    return good && open ? run_open_loop(bench, loaded) : good;
}

/* The floor is measured in the same run as the scenario that is compared with it. */
static bool is_wanted(const struct bench *bench, const struct loaded *loaded)
{
    if (bench->options.in_flight[0] != 0 && strncmp(loaded->kind, "floor", 5) == 0)
        return false;
    if (strcmp(loaded->scenario, "floor-1") == 0)
        return bench_wants(bench, "S1");
    if (strcmp(loaded->scenario, "floor-5") == 0)
        return bench_wants(bench, "S2");
    return bench_wants(bench, loaded->scenario);
}

bool levels_run(struct bench *bench)
{
    bool good = true;
    for (size_t i = 0; good && i < sizeof loads / sizeof loads[0]; i++) {
        if (!is_wanted(bench, &loads[i]))
            continue;
        good = bench_open(bench) && run_loaded(bench, &loads[i]);
    }
    bench_close(bench);
    return good;
}
