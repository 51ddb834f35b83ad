/*
 * CPU time and counts of one activity and of one start: see `ledger --help` and docs/benchmarks.md. Starts
 * servers of its own, an engine, a worker and a client as processes, puts a fixed number of workflows on
 * them, and compares all counters before and after. Exit codes: 0; 1: could not measure; 2: usage; 3: the
 * gate.
 */
#include "ledger.h"
#include "bench_program.h"
#include "load.h"
#include "server_process.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IN_FLIGHT_MAX = 8,
    MEASUREMENTS_MAX = 2 * IN_FLIGHT_MAX,
    COUNTED_SHARE = 3,     /* a counted run is a third as long */
    SETTLE_MS = 500,       /* effects of the last answer are over, and servers have counted them */
    STATISTICS_MS = 11000, /* an idle backend passes its counts on within 10 s */
};

struct options {
    unsigned workflows, starts, warm_up, slots, in_flight[IN_FLIGHT_MAX];
    size_t in_flight_len;
    const char *json, *only;
    unsigned profile_port;
    bool counts, tables, gate, sync_always;
};

static bool start_programs(struct stand *stand, const struct options *options)
{
    return stand_start_engine(stand, 0, NULL) && stand_start_worker(stand, options->slots);
}

/* ---- measuring ---- */

static bool take(struct stand *stand, struct sample *ret)
{
    memset(ret, 0, sizeof *ret);
    if (stand->counted)
        allocations_read(ret);
    return processes_read(stand, ret) && nats_read(stand, ret) && postgres_read(stand, ret);
}

/* From "go" to the last answer, and what follows it. */
static bool run_load(struct stand *stand, struct load_client *client, struct measurement *ret)
{
    uint64_t syscalls[ROLES] = {0};
    struct load_result result;
    ret->has_syscalls = stand->counted && syscalls_begin(stand);
    if (!load_run(client, &result))
        return false;
    ret->wall_us = result.wall_us;
    ret->p50_us = (uint64_t)result.us.p50;
    ret->p99_us = (uint64_t)result.us.p99;
    process_pause_ms(SETTLE_MS);
    if (ret->has_syscalls)
        syscalls_end(syscalls);
    if (!take(stand, &ret->cost))
        return false;
    for (int role = 0; role < ROLES; role++)
        ret->cost.roles[role].syscalls = syscalls[role];
    return true;
}

static bool read_tables(struct stand *stand, struct sample *ret)
{
    process_pause_ms(STATISTICS_MS);
    return postgres_read_tables(stand, ret);
}

static bool measure_with(struct stand *stand, const struct options *options, struct load_client *client,
                         struct measurement *ret)
{
    static struct sample before;
    struct postgres_counts tables = {.tables_len = 0};
    bool const statements = stand->counted && stand->has_statements;
    ret->has_tables = options->tables && !stand->counted;
    if (!load_ready(client))
        return false;
    if (ret->has_tables && !read_tables(stand, &before))
        return false;
    tables = before.postgres;
    process_pause_ms(SETTLE_MS);
    if ((statements && !statements_begin(stand)) || !take(stand, &before) || !run_load(stand, client, ret) ||
        (statements && !statements_read(stand, ret->statements, &ret->statements_len)) ||
        (ret->has_tables && !read_tables(stand, &ret->cost)))
        return false;
    before.postgres.committed = tables.committed;
    before.postgres.tables_len = tables.tables_len;
    memcpy(before.postgres.tables, tables.tables, sizeof tables.tables);
    sample_subtract(&ret->cost, &before);
    return true;
}

static bool measure(struct stand *stand, const struct options *options, struct measurement *ret)
{
    struct load_client client = {.to = NULL};
    struct load const load = {.kind = ret->scenario.kind,
                              .in_flight = ret->scenario.in_flight,
                              .warm_up = ret->scenario.warm_up,
                              .count = ret->scenario.workflows};
    ret->load = bench_load_average();
    fprintf(stderr, "ledger: %s, %u in flight%s …\n", ret->scenario.kind, ret->scenario.in_flight,
            stand->counted ? ", everything counted" : "");
    bool const good = load_start(stand, &load, &client) && measure_with(stand, options, &client, ret);
    load_stop(stand, &client);
    return good;
}

/* All scenarios with one engine and one worker. */
static bool measure_all(struct stand *stand, const struct options *options, struct measurement *list,
                        size_t len)
{
    bool good = start_programs(stand, options);
    for (size_t i = 0; good && i < len; i++)
        good = measure(stand, options, &list[i]);
    stand_stop_programs(stand);
    return good;
}

static size_t list_scenarios(const struct options *options, unsigned share, struct measurement *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < options->in_flight_len; i++)
        if (options->workflows / share > 0)
            ret[n++].scenario = (struct scenario){.kind = "chain",
                                                  .in_flight = options->in_flight[i],
                                                  .warm_up = options->warm_up,
                                                  .workflows = options->workflows / share,
                                                  .units = 5};
    for (size_t i = options->in_flight_len; i > 0 && options->starts / share > 0; i = 0)
        ret[n++].scenario = (struct scenario){.kind = "start",
                                              .in_flight = options->in_flight[i - 1],
                                              .warm_up = options->warm_up,
                                              .workflows = options->starts / share,
                                              .units = 1};
    return n;
}

static int run(const struct options *options)
{
    static struct measurement plain[MEASUREMENTS_MAX], counted[MEASUREMENTS_MAX];
    static struct stand stand;
    size_t const n = list_scenarios(options, 1, plain);
    size_t const counted_n = options->counts ? list_scenarios(options, COUNTED_SHARE, counted) : 0;
    struct stand_options const asked = {
        .sync_always = options->sync_always, .statements = true, .profile_port = options->profile_port};
    bool good = stand_open(&stand, &asked) && measure_all(&stand, options, plain, n);
    stand.counted = true;
    good = good && (counted_n == 0 || measure_all(&stand, options, counted, counted_n));
    stand_close(&stand);
    if (!good)
        return stand.missing ? BENCH_SKIPPED : 1;
    bool const both = counted_n == n;
    for (size_t i = 0; i < n; i++)
        ledger_report_text(&plain[i], both ? &counted[i] : NULL);
    if (options->json != NULL && !ledger_report_json(options->json, plain, both ? counted : NULL, n))
        return 1;
    return options->gate ? ledger_gate(&plain[0], stderr) : 0;
}

/* ---- options ---- */

static int usage(FILE *out, int code)
{
    fprintf(
        out,
        "usage: ledger [OPTION]...\n"
        "What an activity and a start cost, by process: CPU time, context switches, messages, transactions.\n"
        "  --workflows N    chains of 5 activities in each run (3000); 0: none\n"
        "  --starts N       starts of an orchestration that ends at once (10000); 0: none\n"
        "  --warm-up N      workflows before each run (500)\n"
        "  --in-flight A,B  how many at a time (64,256); starts: the last of them\n"
        "  --slots N        of the worker (256)\n"
        "  --threads        no activity is declared quick: they run on threads of the worker\n"
        "  --json FILE      all counts, as JSON\n"
        "  --no-counts      without the second runs, in which system calls, allocations and statements are "
        "counted\n"
        "  --no-tables      without rows of each table, which Postgres tells 10 s later\n"
        "  --sync-always    both servers write to the disk before they acknowledge\n"
        "  --nats-profile P nats-server serves its profile on this port\n"
        "  --gate           exit with 3 when the first run passes a limit on counts\n"
        "  --short          for CI: --workflows 600 --starts 600 --warm-up 200 --in-flight 64 --no-counts\n"
        "                   --no-tables --gate\n");
    return code;
}

static bool parse_list(struct options *options, char *text)
{
    options->in_flight_len = 0;
    for (char *rest = text, *one; (one = strsep(&rest, ",")) != NULL;) {
        unsigned long const n = strtoul(one, NULL, 10);
        if (n == 0 || n > 4096 || options->in_flight_len == IN_FLIGHT_MAX)
            return false;
        options->in_flight[options->in_flight_len++] = (unsigned)n;
    }
    return options->in_flight_len > 0;
}

static bool parse_number(const char *text, unsigned *ret)
{
    char *end;
    unsigned long const n = strtoul(text, &end, 10);
    *ret = (unsigned)n;
    return end != text && *end == '\0' && n <= 100000000;
}

static void be_short(struct options *options)
{
    options->workflows = options->starts = 600;
    options->warm_up = 200;
    options->in_flight[0] = 64;
    options->in_flight_len = 1;
    options->counts = options->tables = false;
    options->gate = true;
}

static bool parse_option(struct options *options, int option)
{
    switch (option) {
    case 'w': return parse_number(optarg, &options->workflows);
    case 's': return parse_number(optarg, &options->starts);
    case 'u': return parse_number(optarg, &options->warm_up);
    case 'l': return parse_number(optarg, &options->slots);
    case 'd': program_on_threads(); return true;
    case 'p': return parse_number(optarg, &options->profile_port) && options->profile_port < 65536;
    case 'i': return parse_list(options, optarg);
    case 'j': options->json = optarg; return true;
    case 'c': options->counts = false; return true;
    case 't': options->tables = false; return true;
    case 'a': options->sync_always = true; return true;
    case 'g': options->gate = true; return true;
    case 'x': be_short(options); return true;
    default: return false;
    }
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"workflows", 1, NULL, 'w'},   {"starts", 1, NULL, 's'},    {"warm-up", 1, NULL, 'u'},
        {"in-flight", 1, NULL, 'i'},   {"slots", 1, NULL, 'l'},     {"json", 1, NULL, 'j'},
        {"threads", 0, NULL, 'd'},     {"no-counts", 0, NULL, 'c'}, {"no-tables", 0, NULL, 't'},
        {"sync-always", 0, NULL, 'a'}, {"gate", 0, NULL, 'g'},      {"nats-profile", 1, NULL, 'p'},
        {"short", 0, NULL, 'x'},       {"help", 0, NULL, 'h'},      {NULL, 0, NULL, 0}};
    struct options options = {.workflows = 3000,
                              .starts = 10000,
                              .warm_up = 500,
                              .slots = 256,
                              .in_flight = {64, 256},
                              .in_flight_len = 2,
                              .counts = true,
                              .tables = true};
    int code;
    if (program_role(argc, argv, &code))
        return code;
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (option == 'h')
            return usage(stdout, 0);
        if (!parse_option(&options, option))
            return usage(stderr, 2);
    }
    if (options.gate && options.workflows == 0) {
        fprintf(stderr, "ledger: the limits of --gate are those of an activity: it needs --workflows\n");
        return 2;
    }
    if (optind != argc)
        return usage(stderr, 2);
    bench_raise_files(); /* a counter of system calls for each thread */
    return run(&options);
}
