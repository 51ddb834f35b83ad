/*
 * S12: instances that wait for an event and are not in the engine's memory, as it was killed since. Each gets
 * its event: how many take it in a second, and what one costs nats-server and the engine.
 */
#include "scenarios.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 64, SETTLE_US = 500 * 1000, SETTLED_US = 60 * 1000000, ID_BYTES = 64, WAIT_MS = 10000 };

struct history { /* the past of the instances when they wait */
    const char *activities, *prefix, *at;
    unsigned instances, instances_short;
};

static const struct history histories[] = {
    {"2", "nap-short-m", "2 activities", 20000, 500},
    {"30", "nap-long-m", "30 activities", 2000, 100},
};

/* ---- they fall asleep ---- */

static bool no_activity_left(struct stand *stand, const char *prefix)
{
    char statement[256];
    uint64_t left = 1;
    uint64_t const end_us = bench_now_us() + SETTLED_US;
    (void)snprintf(
        statement, sizeof statement,
        "SELECT count(*) FROM thole_default.worker_queue WHERE instance >= '%s' AND instance < '%s~'", prefix,
        prefix);
    while (bench_now_us() < end_us) {
        if (!stand_ask_number(stand, statement, &left))
            return false;
        if (left == 0)
            return true;
        bench_nap_us(SETTLE_US);
    }
    return bench_fail_at(prefix, "%" PRIu64 " activities have not ended", left);
}

/* Such instances, which wait for their event, and an engine that has none of them in memory. */
static bool lay_down(struct bench *bench, thole_client *client, const struct history *history, uint64_t count)
{
    struct stand *const stand = &bench->stand;
    char first[ID_BYTES];
    double ignored;
    (void)snprintf(first, sizeof first, "before-%s", history->prefix);
    if (!starts_make(client, "sleeper", history->activities, history->prefix, count, &ignored) ||
        !starts_reached(stand, history->prefix, STARTS_RUNNING, count) ||
        !no_activity_left(stand, history->prefix))
        return false;
    bench_nap_us(SETTLE_US); /* the last results become turns */
    stand_kill9(&stand->engines[0]);
    return stand_start_engine(stand, 0, NULL) && bench_one(client, first, "one");
}

/* ---- they are woken up ---- */

struct waking {
    thole_client *client;
    const char *prefix;
    uint64_t count;
    atomic_uint_fast64_t next;
    atomic_bool failed;
};

static void *send_events(void *arg)
{
    struct waking *const waking = arg;
    thole_error error = {.status = THOLE_OK};
    for (uint64_t i;
         !atomic_load(&waking->failed) && (i = atomic_fetch_add(&waking->next, 1)) < waking->count;) {
        char id[ID_BYTES];
        (void)snprintf(id, sizeof id, "%s%" PRIu64, waking->prefix, i);
        if (thole_client_signal(waking->client, thole_slice_from(id), THOLE_STR("go"), THOLE_STR("woken"),
                                THOLE_STR(""), NULL, &error) != THOLE_OK &&
            !atomic_exchange(&waking->failed, true))
            (void)bench_fail(id, error.text);
    }
    return NULL;
}

static bool send_all(thole_client *client, const char *prefix, uint64_t count)
{
    pthread_t threads[THREADS];
    struct waking waking = {.client = client, .prefix = prefix, .count = count};
    size_t n = 0;
    while (n < THREADS && pthread_create(&threads[n], NULL, send_events, &waking) == 0)
        n++;
    for (size_t i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    return n > 0 && !atomic_load(&waking.failed);
}

/* All have completed, as the projection says; this one's output is looked at. */
static bool has_output(thole_client *client, const char *prefix)
{
    char id[ID_BYTES];
    thole_error error = {.status = THOLE_OK};
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    (void)snprintf(id, sizeof id, "%s0", prefix);
    bool const good =
        thole_client_wait(client, thole_slice_from(id), WAIT_MS, &outcome, &error) == THOLE_OK &&
        thole_slice_equal(outcome.output, THOLE_STR("woken"));
    thole_outcome_release(&outcome);
    return good ? true : bench_fail_at(id, "its output is not \"woken\" %s", error.text);
}

static bool wake_up(struct bench *bench, thole_client *client, const struct history *history, uint64_t count)
{
    static struct sample before, after;
    struct stand *const stand = &bench->stand;
    bench_nap_us(SETTLE_US);
    if (!levels_sample_processes(stand, &before))
        return false;
    uint64_t const begin_us = bench_now_us();
    if (!send_all(client, history->prefix, count) ||
        !starts_reached(stand, history->prefix, STARTS_COMPLETED, count))
        return false;
    double const seconds = (double)(bench_now_us() - begin_us) / 1e6;
    if (!levels_sample_processes(stand, &after) || !levels_completed(stand, history->prefix, count) ||
        !has_output(client, history->prefix))
        return false;
    sample_subtract(&after, &before);
    return bench_note(bench, "S12", history->at, "per_s", (double)count / seconds) &&
           bench_note(bench, "S12", history->at, "nats_us",
                      (double)after.roles[ROLE_NATS].cpu_ns / 1000 / (double)count) &&
           bench_note(bench, "S12", history->at, "engine_us",
                      (double)after.roles[ROLE_ENGINE].cpu_ns / 1000 / (double)count) &&
           bench_note(bench, "S12", history->at, "machine_load", bench_load_average());
}

static bool run_all(struct bench *bench, thole_client *client)
{
    for (size_t i = 0; i < sizeof histories / sizeof histories[0]; i++) {
        const struct history *const history = &histories[i];
        uint64_t const count = bench->options.short_run ? history->instances_short : history->instances;
        fprintf(stderr, "scenarios: S12, %s …\n", history->at);
        if (!lay_down(bench, client, history, count) || !wake_up(bench, client, history, count))
            return false;
    }
    return true;
}

bool wake_run(struct bench *bench)
{
    thole_client *client = NULL;
    if (!bench_wants(bench, "S12"))
        return true;
    bool const good = bench_open(bench) && stand_client(&client) && run_all(bench, client);
    thole_client_close(client);
    bench_close(bench);
    return good;
}
