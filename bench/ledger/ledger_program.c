/* The program under test, and the load that a client process puts on it. */
#include "ledger.h"
#include "thole/client.h"
#include "thole/program.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    CHAIN = 5,
    WAIT_MS = 120000,
    SET_UP_MS = 60000,
    THREADS_OF_CLIENT_MAX = 4096,
    STACK_BYTES = 256 * 1024
};

/* ---- the program ---- */

static thole_status chain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    for (unsigned i = 0; i < CHAIN; i++)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("nothing"), input), NULL));
    return THOLE_OK;
}

static thole_status at_once(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)input, (void)ret_output;
    return THOLE_OK;
}

static thole_status nothing(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_OK;
}

int ledger_serve(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {{.name = "chain", .run = chain},
                                                               {.name = "start", .run = at_once}};
    static const thole_activity_entry activities[] = {{.name = "nothing", .run = nothing}};
    static const thole_program program = {.size = sizeof program,
                                          .name = "ledger",
                                          .orchestrations = orchestrations,
                                          .orchestrations_len = 2,
                                          .activities = activities,
                                          .activities_len = 1};
    return thole_main(argc, argv, &program);
}

/* ---- the load ---- */

struct load {
    thole_client *client;
    const char *kind, *prefix;
    char phase;   /* 'w'arm-up or 'm'easured */
    size_t limit; /* workflows of the phase under way */
    atomic_size_t next;
    atomic_bool failed;
    pthread_barrier_t begin, end;
    uint64_t *latency_us;
};

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void run_one(struct load *load, size_t number)
{
    char id[96];
    thole_error error = {.status = THOLE_OK};
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    (void)snprintf(id, sizeof id, "%s-%c%zu", load->prefix, load->phase, number);
    uint64_t const begin = now_us();
    thole_status const status =
        thole_client_run(load->client, thole_slice_from(id), thole_slice_from(load->kind), THOLE_STR("x"),
                         WAIT_MS, &outcome, &error);
    load->latency_us[number] = now_us() - begin;
    if (status != THOLE_OK || outcome.status != THOLE_INSTANCE_COMPLETED) {
        if (!atomic_exchange(&load->failed, true))
            fprintf(stderr, "ledger: %s did not complete: %s\n", id, error.text);
    }
    thole_outcome_release(&outcome);
}

static void *loader(void *arg)
{
    struct load *const load = arg;
    for (unsigned phase = 0; phase < 2; phase++) { /* the warm-up, then what is measured */
        (void)pthread_barrier_wait(&load->begin);
        for (size_t i; !atomic_load(&load->failed) && (i = atomic_fetch_add(&load->next, 1)) < load->limit;)
            run_one(load, i);
        (void)pthread_barrier_wait(&load->end);
    }
    for (;;) /* the counters of threads that end are gone: they stay until the process ends */
        pause();
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Says that it is ready, and waits for a line. */
static bool wait_for_go(const char *word)
{
    char line[16];
    printf("%s\n", word);
    return fflush(stdout) == 0 && fgets(line, sizeof line, stdin) != NULL;
}

static bool run_phase(struct load *load, char phase, size_t limit)
{
    load->phase = phase;
    load->limit = limit;
    atomic_store(&load->next, 0);
    (void)pthread_barrier_wait(&load->begin);
    (void)pthread_barrier_wait(&load->end);
    return !atomic_load(&load->failed);
}

/* The namespace is there once the engine has set it up. */
static thole_status open_client(thole_client **ret, thole_error *reterr)
{
    uint64_t const end = now_us() + SET_UP_MS * UINT64_C(1000);
    thole_status status;
    while ((status = thole_client_open(NULL, ret, reterr)) != THOLE_OK && now_us() < end)
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000000L}, NULL);
    return status;
}

static bool start_threads(struct load *load, size_t n)
{
    pthread_attr_t attr;
    pthread_t thread;
    bool ok = pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, STACK_BYTES) == 0 &&
              pthread_barrier_init(&load->begin, NULL, (unsigned)n + 1) == 0 &&
              pthread_barrier_init(&load->end, NULL, (unsigned)n + 1) == 0;
    for (size_t i = 0; ok && i < n; i++)
        ok = pthread_create(&thread, &attr, loader, load) == 0;
    return ok;
}

/* client KIND PREFIX IN_FLIGHT WARM_UP COUNT. Says "ready"; at "go" does it; says "done WALL P50 P99" in µs.
 */
int ledger_load(int argc, char **argv)
{
    static struct load load;
    thole_error error = {.status = THOLE_OK};
    if (argc != 7)
        return 2;
    size_t const threads = strtoul(argv[4], NULL, 10), warm_up = strtoul(argv[5], NULL, 10),
                 n = strtoul(argv[6], NULL, 10);
    load.kind = argv[2];
    load.prefix = argv[3];
    load.latency_us = calloc((n > warm_up ? n : warm_up) + 1, sizeof *load.latency_us);
    if (threads == 0 || threads > THREADS_OF_CLIENT_MAX || n == 0 || load.latency_us == NULL)
        return 2;
    if (open_client(&load.client, &error) != THOLE_OK)
        return fprintf(stderr, "ledger: client: %s\n", error.text), 1;
    if (!start_threads(&load, threads))
        return fprintf(stderr, "ledger: the system gives no %zu threads\n", threads), 1;
    if (!run_phase(&load, 'w', warm_up) || !wait_for_go("ready"))
        return 1;
    uint64_t const begin = now_us();
    if (!run_phase(&load, 'm', n))
        return 1;
    uint64_t const wall = now_us() - begin;
    qsort(load.latency_us, n, sizeof *load.latency_us, by_value);
    char text[128];
    (void)snprintf(text, sizeof text, "done %" PRIu64 " %" PRIu64 " %" PRIu64, wall, load.latency_us[n / 2],
                   load.latency_us[n * 99 / 100]);
    return wait_for_go(text) ? 0 : 1;
}
