/*
 * The waiting time of a tenant beside a neighbour that takes all it can get: `noisy_neighbour --help`,
 * docs/benchmarks.md. The tenant runs one workflow after the other, of one activity, alone and then beside
 * each neighbour, with servers and programs of its own for each pair; the two are compared. Exit codes: 0; 1:
 * could not measure, or a tenant waited longer than --ratio allows; 2: usage; 77: a server is not installed.
 */
#include "bench_program.h"
#include "stand.h"
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLES_MAX = 200000, WAIT_MS = 60 * 1000, THREADS = 64, ID_BYTES = 64, ARGUMENTS_MAX = 12 };

struct options {
    unsigned milliseconds, partitions;
    double ratio, slack_ms;
    const char *only, *arguments[ARGUMENTS_MAX];
};

/* ---- neighbours: each is a process of its own, which ends when it is killed ---- */

struct neighbour {
    thole_client *client;
    atomic_uint_fast64_t next;
};

static thole_slice id_numbered(char id[ID_BYTES], const char *prefix, uint64_t number)
{
    (void)snprintf(id, ID_BYTES, "%s-%" PRIu64, prefix, number);
    return thole_slice_from(id);
}

static bool instance_start(thole_client *client, const char *prefix, uint64_t number,
                           const char *orchestration, const char *input)
{
    char id[ID_BYTES];
    thole_error error = {.status = THOLE_OK};
    return thole_client_start(client, id_numbered(id, prefix, number), thole_slice_from(orchestration),
                              thole_slice_from(input), NULL, &error) == THOLE_OK ||
           error.status == THOLE_LIMIT || bench_fail("a neighbour's start", error.text);
}

/* Each start is answered before its thread makes the next one. */
static void *start_main(void *arg)
{
    struct neighbour *const neighbour = arg;
    for (;;)
        (void)instance_start(neighbour->client, "flood", atomic_fetch_add(&neighbour->next, 1), "start", "x");
    return NULL;
}

static void *signal_main(void *arg)
{
    struct neighbour *const neighbour = arg;
    char id[ID_BYTES];
    for (;;) {
        uint64_t const n = atomic_fetch_add(&neighbour->next, 1);
        if (thole_client_signal(neighbour->client, id_numbered(id, "event", n % THREADS), THOLE_STR("other"),
                                THOLE_STR("x"), (thole_slice){NULL, 0}, NULL, NULL) != THOLE_OK)
            bench_nap_us(1000);
    }
    return NULL;
}

static void in_threads(struct neighbour *neighbour, unsigned n, void *(*main_of)(void *))
{
    pthread_t thread;
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&thread, NULL, main_of, neighbour) != 0)
            (void)bench_fail("a neighbour", "has no thread");
    for (;;)
        (void)pause();
}

static thole_status next_start(void *arg, thole_start_item *item, thole_error *reterr)
{
    static char id[ID_BYTES];
    struct neighbour *const neighbour = arg;
    (void)reterr;
    item->instance = id_numbered(id, "many", atomic_fetch_add(&neighbour->next, 1));
    item->orchestration = THOLE_STR("start");
    item->input = THOLE_STR("x");
    return THOLE_OK;
}

static thole_status no_answer(void *arg, uint64_t token, thole_slice instance, const thole_error *error)
{
    (void)arg, (void)token, (void)instance, (void)error;
    return THOLE_OK;
}

static void flood_starts(struct neighbour *neighbour)
{
    in_threads(neighbour, 4 * THREADS, start_main);
}

static void flood_many(struct neighbour *neighbour)
{
    while (thole_client_start_many(neighbour->client, next_start, no_answer, neighbour, NULL) == THOLE_OK)
        continue;
}

static void flood_events(struct neighbour *neighbour)
{
    for (unsigned i = 0; i < THREADS; i++)
        (void)instance_start(neighbour->client, "event", i, "event", "x");
    in_threads(neighbour, THREADS, signal_main);
}

static void flood_loops(struct neighbour *neighbour)
{
    for (unsigned i = 0; i < THREADS; i++)
        (void)instance_start(neighbour->client, "loop", i, "loop", "1000000000");
    for (;;)
        (void)pause();
}

static void flood_forks(struct neighbour *neighbour)
{
    (void)instance_start(neighbour->client, "bomb", 0, "forks", "x");
    for (;;)
        (void)pause();
}

static void flood_naps(struct neighbour *neighbour)
{
    for (unsigned i = 0; i < 8; i++)
        (void)instance_start(neighbour->client, "naps", i, "naps", "5000");
    for (;;)
        (void)pause();
}

static const struct flood {
    const char *name, *what;
    void (*run)(struct neighbour *neighbour);
} floods[] = {
    {"nobody", "nothing: what the measurement itself varies by", NULL},
    {"starts", "256 threads, each a start after the other", flood_starts},
    {"many", "thole_client_start_many() without end", flood_many},
    {"events", "64 threads, each an event after the other, which nobody awaits", flood_events},
    {"loops", "64 instances that continue as new without end", flood_loops},
    {"forks", "an orchestration that starts two children of itself", flood_forks},
    {"naps", "40,000 activities of 10 ms in the tenant's queue", flood_naps},
};

static const struct flood *flood_of(const char *name)
{
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++)
        if (strcmp(floods[i].name, name) == 0)
            return &floods[i];
    return NULL;
}

static int neighbour_main(const char *name)
{
    struct neighbour neighbour = {.client = NULL};
    const struct flood *const flood = flood_of(name);
    if (flood == NULL || flood->run == NULL || !stand_client(&neighbour.client))
        return 1;
    flood->run(&neighbour);
    return 0;
}

static bool neighbour_start(const struct flood *flood, pid_t *ret)
{
    char name[ID_BYTES];
    char *const argv[] = {(char[]){"bench"}, (char[]){"neighbour"}, name, NULL};
    (void)snprintf(name, sizeof name, "%s", flood->name);
    *ret = 0;
    if (flood->run == NULL)
        return true;
    *ret = fork();
    if (*ret == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execv(bench_self(), argv);
        _exit(127);
    }
    return *ret > 0 || bench_fail("a neighbour", "cannot be started");
}

static void neighbour_end(pid_t pid)
{
    if (pid <= 0)
        return;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* ---- the tenant ---- */

static uint64_t samples[SAMPLES_MAX];

static bool tenant_run(thole_client *client, uint64_t number)
{
    char id[ID_BYTES];
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_error error = {.status = THOLE_OK};
    if (thole_client_run(client, id_numbered(id, "tenant", number), THOLE_STR("one"), THOLE_STR("x"), WAIT_MS,
                         &outcome, &error) != THOLE_OK)
        return bench_fail("the tenant", error.text);
    bool const good = outcome.status == THOLE_INSTANCE_COMPLETED;
    thole_outcome_release(&outcome);
    return good || bench_fail("the tenant", "its workflow did not complete");
}

static bool tenant_measure(thole_client *client, unsigned milliseconds, uint64_t *number, struct spread *ret)
{
    uint64_t const end_us = bench_now_us() + (uint64_t)milliseconds * 1000;
    size_t n = 0;
    while (bench_now_us() < end_us && n < SAMPLES_MAX) {
        uint64_t const begun_us = bench_now_us();
        if (!tenant_run(client, (*number)++))
            return false;
        samples[n++] = bench_now_us() - begun_us;
        bench_nap_us(2000);
    }
    *ret = bench_spread(samples, n);
    return true;
}

/* ---- a pair ---- */

struct pair {
    struct spread alone, beside;
    uint64_t rows;
    unsigned engine_mib;
};

static unsigned memory_mib(pid_t pid)
{
    char line[128];
    unsigned long kib = 0;
    (void)snprintf(line, sizeof line, "ps -o rss= --pid %ld --ppid %ld | awk '{s += $1} END {print s}'",
                   (long)pid, (long)pid);
    FILE *const from = popen(line, "r");
    if (from == NULL || fscanf(from, "%lu", &kib) != 1)
        kib = 0;
    if (from != NULL)
        (void)pclose(from);
    return (unsigned)(kib / 1024);
}

static bool pair_measure(const struct options *options, struct stand *stand, const struct flood *flood,
                         struct pair *ret)
{
    thole_client *client = NULL;
    pid_t neighbour = 0;
    uint64_t number = 0;
    bool good = stand_start_engine(stand, 0, options->arguments) && stand_start_worker(stand, 16) &&
                stand_client(&client) &&
                tenant_measure(client, options->milliseconds / 4, &number, &ret->alone) &&
                tenant_measure(client, options->milliseconds, &number, &ret->alone) &&
                neighbour_start(flood, &neighbour);
    bench_nap_us(2000 * 1000);
    good = good && tenant_measure(client, options->milliseconds, &number, &ret->beside) &&
           stand_ask_number(stand, "SELECT count(*) FROM thole_default.instances", &ret->rows);
    ret->engine_mib = good ? memory_mib(stand->engines[0]) : 0;
    neighbour_end(neighbour);
    thole_client_close(client);
    return good;
}

static bool pair_allowed(const struct options *options, const struct pair *pair)
{
    return options->ratio == 0 ||
           pair->beside.p50 <= options->ratio * pair->alone.p50 + options->slack_ms * 1000;
}

static bool pair_run(const struct options *options, const struct flood *flood, bool *ret_missing)
{
    struct stand stand;
    struct pair pair = {.rows = 0};
    if (!stand_open(&stand, &(struct stand_options){.sync_always = false})) {
        *ret_missing = stand.missing;
        return false;
    }
    bool good = pair_measure(options, &stand, flood, &pair);
    stand_close(&stand);
    if (!good)
        return false;
    good = pair_allowed(options, &pair);
    (void)printf("%-8s %8.1f %8.1f %8.1f %8.1f %6.1f %6.1f %9" PRIu64 " %8u %6.1f%s\n", flood->name,
                 pair.alone.p50 / 1e3, pair.alone.p99 / 1e3, pair.beside.p50 / 1e3, pair.beside.p99 / 1e3,
                 pair.beside.p50 / pair.alone.p50, pair.beside.p99 / pair.alone.p99, pair.rows,
                 pair.engine_mib, bench_load_average(), good ? "" : "  more than --ratio allows");
    (void)fflush(stdout);
    return good;
}

static int run_all(const struct options *options)
{
    bool good = true, missing = false;
    (void)printf("%-8s %17s %17s %13s %9s %8s %6s\n%-8s %8s %8s %8s %8s %6s %6s %9s %8s\n", "", "alone, ms",
                 "beside, ms", "ratio", "instances", "engine", "load", "beside", "p50", "p99", "p50", "p99",
                 "p50", "p99", "", "MiB");
    for (size_t i = 0; i < sizeof floods / sizeof floods[0] && !missing; i++)
        if (options->only == NULL || strcmp(options->only, floods[i].name) == 0)
            good = pair_run(options, &floods[i], &missing) && good;
    return missing ? BENCH_SKIPPED : !good;
}

static int noisy_neighbour_print_usage(FILE *to, int code)
{
    (void)fprintf(
        to,
        "usage: noisy_neighbour [--ms N] [--only NEIGHBOUR] [--ratio N] [--slack MS] [-- ENGINE OPTIONS]\n"
        "  --ms N            for how long the tenant is measured, alone and beside each (10000)\n"
        "  --only NEIGHBOUR  one of those below\n"
        "  --ratio N         exit code 1 when the tenant's median is longer beside it than N times\n"
        "                    alone and --slack milliseconds (0: it may be)\n"
        "  --slack MS        (10)\n"
        "neighbours:\n");
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++)
        (void)fprintf(to, "  %-8s %s\n", floods[i].name, floods[i].what);
    return code;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"ms", 1, NULL, 'm'},    {"only", 1, NULL, 'o'},
                                          {"ratio", 1, NULL, 'r'}, {"slack", 1, NULL, 's'},
                                          {"help", 0, NULL, 'h'},  {NULL, 0, NULL, 0}};
    struct options options = {.milliseconds = 10000, .slack_ms = 10};
    int code;
    if (program_role(argc, argv, &code))
        return code;
    if (argc == 3 && strcmp(argv[1], "neighbour") == 0)
        return neighbour_main(argv[2]);
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (option) {
        case 'm': options.milliseconds = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'o': options.only = optarg; break;
        case 'r': options.ratio = strtod(optarg, NULL); break;
        case 's': options.slack_ms = strtod(optarg, NULL); break;
        case 'h': return noisy_neighbour_print_usage(stdout, 0);
        default: return noisy_neighbour_print_usage(stderr, 2);
        }
    if (options.milliseconds == 0 || (options.only != NULL && flood_of(options.only) == NULL) ||
        argc - optind >= ARGUMENTS_MAX)
        return noisy_neighbour_print_usage(stderr, 2);
    for (int i = optind; i < argc; i++)
        options.arguments[i - optind] = argv[i];
    return run_all(&options);
}
