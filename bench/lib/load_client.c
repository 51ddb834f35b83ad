/* The client process: a thread for each workflow in flight. */
#include "load.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WAIT_MS = 120000,
    THREADS_MAX_OF_CLIENT = 4096,
    STACK_BYTES = 256 * 1024,
    SAMPLES_MAX = 4000000,
    LISTENING_US = 2000, /* a waiter listens by then */
};

struct phase {
    char letter; /* 'w'arm-up or 'm'easured */
    size_t limit;
    uint64_t begin_us, end_us; /* of bench_now_us(); no workflow begins after the end */
    double rate;
};

struct loader {
    thole_client *client;
    const char *kind, *prefix;
    struct phase phase;
    atomic_size_t next, done;
    atomic_bool failed;
    pthread_barrier_t begin, end;
    uint64_t *latency_us;
};

/* ---- one workflow ---- */

static bool check(struct loader *loader, const char *id, thole_slice expected, thole_status status,
                  thole_outcome *outcome, const thole_error *error)
{
    bool const good = status == THOLE_OK && outcome->status == THOLE_INSTANCE_COMPLETED &&
                      thole_slice_equal(outcome->output, expected);
    if (!good && !atomic_exchange(&loader->failed, true))
        (void)bench_fail_at("client",
                            "%s should have completed with \"%.*s\": it is %s with \"%.*s\" (%s %s)", id,
                            THOLE_FMT(expected), thole_instance_status_name(outcome->status),
                            THOLE_FMT(outcome->output), thole_status_name(status), error->text);
    if (status == THOLE_OK)
        thole_outcome_release(outcome);
    return good;
}

struct waiter {
    thole_client *client;
    thole_slice id;
    thole_status status;
    thole_outcome outcome;
    thole_error error;
    uint64_t at_us;
};

static void *wait_for_end(void *arg)
{
    struct waiter *const waiter = arg;
    waiter->status = thole_client_wait(waiter->client, waiter->id, WAIT_MS, &waiter->outcome, &waiter->error);
    waiter->at_us = bench_now_us();
    return NULL;
}

/* An instance that waits for an event: from the call that raises it until another thread, which waits for the
 * instance, has its result. Starting the instance does not count. */
static bool run_event(struct loader *loader, const char *id, thole_slice input, uint64_t *begin_us,
                      uint64_t *end_us)
{
    pthread_t thread;
    struct waiter waiter = {.client = loader->client, .id = thole_slice_from(id)};
    thole_error error = {.status = THOLE_OK};
    if (thole_client_start(loader->client, waiter.id, THOLE_STR("event"), THOLE_STR("x"), NULL, &error) !=
            THOLE_OK ||
        pthread_create(&thread, NULL, wait_for_end, &waiter) != 0)
        return bench_fail(id, error.text);
    bench_nap_us(LISTENING_US);
    *begin_us = bench_now_us();
    thole_status const status =
        thole_client_signal(loader->client, waiter.id, THOLE_STR("go"), input, THOLE_STR(""), NULL, &error);
    if (status != THOLE_OK)
        (void)bench_fail(id, error.text);
    (void)pthread_join(thread, NULL);
    *end_us = waiter.at_us;
    return check(loader, id, input, waiter.status, &waiter.outcome, &waiter.error) && status == THOLE_OK;
}

static bool run_workflow(struct loader *loader, const char *id, thole_slice input, uint64_t *begin_us,
                         uint64_t *end_us)
{
    thole_error error = {.status = THOLE_OK};
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    *begin_us = bench_now_us();
    thole_status const status =
        thole_client_run(loader->client, thole_slice_from(id), thole_slice_from(loader->kind), input, WAIT_MS,
                         &outcome, &error);
    *end_us = bench_now_us();
    return check(loader, id, input, status, &outcome, &error);
}

static bool run_one(struct loader *loader, size_t number)
{
    char id[96], input[32];
    uint64_t begin_us = 0, end_us = 0;
    (void)snprintf(id, sizeof id, "%s-%c%zu", loader->prefix, loader->phase.letter, number);
    (void)snprintf(input, sizeof input, "%zu", number);
    bool const event = strcmp(loader->kind, "event") == 0;
    if (!(event ? run_event : run_workflow)(loader, id, thole_slice_from(input), &begin_us, &end_us)) {
        atomic_store(&loader->failed, true);
        return false;
    }
    if (loader->phase.rate > 0) /* when it should have begun */
        begin_us = loader->phase.begin_us + (uint64_t)((double)number * 1e6 / loader->phase.rate);
    loader->latency_us[number] = end_us > begin_us ? end_us - begin_us : 0;
    atomic_fetch_add(&loader->done, 1);
    return true;
}

/* ---- the threads ---- */

/* Numbers below the limit are taken in order, and each is run: those that are done have no gap. */
static bool take_number(struct loader *loader, size_t *ret)
{
    const struct phase *const phase = &loader->phase;
    if (atomic_load(&loader->failed))
        return false;
    if (phase->rate <= 0) {
        if (bench_now_us() >= phase->end_us)
            return false;
        *ret = atomic_fetch_add(&loader->next, 1);
        return *ret < phase->limit;
    }
    *ret = atomic_fetch_add(&loader->next, 1);
    uint64_t const due_us = phase->begin_us + (uint64_t)((double)*ret * 1e6 / phase->rate);
    if (*ret >= phase->limit || due_us >= phase->end_us)
        return false;
    bench_until_us(due_us);
    return true;
}

static void *load_thread(void *arg)
{
    struct loader *const loader = arg;
    for (unsigned phase = 0; phase < 2; phase++) { /* the warm-up, then what is measured */
        (void)pthread_barrier_wait(&loader->begin);
        for (size_t number; take_number(loader, &number) && run_one(loader, number);)
            continue;
        (void)pthread_barrier_wait(&loader->end);
    }
    for (;;) /* the counters of threads that end are gone: they stay until the process ends */
        pause();
    return NULL;
}

static bool run_phase(struct loader *loader, const struct phase *phase)
{
    loader->phase = *phase;
    loader->phase.begin_us = bench_now_us();
    loader->phase.end_us = phase->end_us == 0 ? UINT64_MAX : loader->phase.begin_us + phase->end_us;
    atomic_store(&loader->next, 0);
    atomic_store(&loader->done, 0);
    (void)pthread_barrier_wait(&loader->begin);
    (void)pthread_barrier_wait(&loader->end);
    return !atomic_load(&loader->failed);
}

static bool start_threads(struct loader *loader, size_t n)
{
    pthread_attr_t attr;
    pthread_t thread;
    bool ok = pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, STACK_BYTES) == 0 &&
              pthread_barrier_init(&loader->begin, NULL, (unsigned)n + 1) == 0 &&
              pthread_barrier_init(&loader->end, NULL, (unsigned)n + 1) == 0;
    for (size_t i = 0; ok && i < n; i++)
        ok = pthread_create(&thread, &attr, load_thread, loader) == 0;
    return ok;
}

/* ---- the process ---- */

/* Says a line, and waits for one. */
static bool wait_for_go(const char *text)
{
    char line[16];
    printf("%s\n", text);
    return fflush(stdout) == 0 && fgets(line, sizeof line, stdin) != NULL;
}

static bool report(struct loader *loader, uint64_t wall_us)
{
    char text[256];
    size_t const done = atomic_load(&loader->done);
    struct spread const us = bench_spread(loader->latency_us, done);
    (void)snprintf(text, sizeof text, "done %zu %" PRIu64 " %.0f %.0f %.0f %.0f %.0f", done, wall_us, us.p50,
                   us.p90, us.p99, us.p999, us.max);
    return wait_for_go(text);
}

static int measure(struct loader *loader, size_t warm_up, const struct phase *measured)
{
    struct phase const warming = {.letter = 'w', .limit = warm_up};
    if (!run_phase(loader, &warming) || !wait_for_go("ready"))
        return 1;
    uint64_t const begin_us = bench_now_us();
    if (!run_phase(loader, measured))
        return 1;
    return report(loader, bench_now_us() - begin_us) ? 0 : 1;
}

/* client KIND PREFIX IN_FLIGHT WARM_UP COUNT MILLISECONDS RATE. Says "ready"; at "go" does it; says "done"
 * with the result. */
int load_main(int argc, char **argv)
{
    static struct loader loader;
    if (argc != 9)
        return 2;
    size_t const threads = strtoul(argv[4], NULL, 10), warm_up = strtoul(argv[5], NULL, 10),
                 count = strtoul(argv[6], NULL, 10);
    struct phase const measured = {.letter = 'm',
                                   .limit = count == 0 || count > SAMPLES_MAX ? SAMPLES_MAX : count,
                                   .end_us = strtoul(argv[7], NULL, 10) * UINT64_C(1000),
                                   .rate = strtod(argv[8], NULL)};
    loader.kind = argv[2];
    loader.prefix = argv[3];
    size_t const samples = measured.limit > warm_up ? measured.limit : warm_up;
    if (threads == 0 || threads > THREADS_MAX_OF_CLIENT || samples > SAMPLES_MAX ||
        (count == 0 && measured.end_us == 0))
        return 2;
    loader.latency_us = calloc(samples, sizeof *loader.latency_us);
    if (loader.latency_us == NULL)
        return 2;
    if (!stand_client(&loader.client))
        return 1;
    if (!start_threads(&loader, threads))
        return bench_fail_at("client", "the system gives no %zu threads", threads), 1;
    return measure(&loader, warm_up, &measured);
}
