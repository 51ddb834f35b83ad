/*
 * S9: many instances that wait for an event which does not come. What they cost in memory, whether others
 * start as fast as without them, and how soon an engine that is started again makes progress.
 */
#include "scenarios.h"
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PROBE = 100000, PROBE_SHORT = 1000, SETTLE_US = 3 * 1000000, DEPTH_MAX = 4 };

/* ---- memory of a process and its children ---- */

static bool read_number(const char *path, const char *key, uint64_t *ret)
{
    char line[256];
    bool found = false;
    FILE *const in = fopen(path, "re");
    while (in != NULL && !found && fgets(line, sizeof line, in) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) {
            *ret = strtoull(line + strlen(key), NULL, 10);
            found = true;
        }
    if (in != NULL)
        (void)fclose(in);
    return found;
}

static bool is_of(pid_t pid, pid_t root)
{
    for (unsigned depth = 0; depth < DEPTH_MAX && pid > 1; depth++) {
        char path[64];
        uint64_t parent = 0;
        if (pid == root)
            return true;
        (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
        if (!read_number(path, "PPid:", &parent))
            return false;
        pid = (pid_t)parent;
    }
    return false;
}

/* Megabytes. What processes share counts once: Pss. */
static double memory_mb(pid_t root)
{
    uint64_t sum_kb = 0;
    DIR *const all = opendir("/proc");
    if (all == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(all)) != NULL;) {
        char path[64];
        uint64_t kb = 0;
        pid_t const pid =
            isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        if (pid == 0 || !is_of(pid, root))
            continue;
        (void)snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", (long)pid);
        if (read_number(path, "Pss:", &kb))
            sum_kb += kb;
    }
    (void)closedir(all);
    return (double)sum_kb * 1024 / 1e6;
}

static bool note_memory(struct bench *bench, const char *at)
{
    const struct stand *const stand = &bench->stand;
    double const engine = memory_mb(stand->engines[0]), nats = memory_mb(stand->nats.pid),
                 postgres = memory_mb(stand->postgres.pid);
    if (engine <= 0 || nats <= 0 || postgres <= 0)
        return bench_fail_at(
            "S9", "the memory of a process cannot be read: engine %.0f MB, nats-server %.0f, Postgres %.0f",
            engine, nats, postgres);
    return bench_note(bench, "S9", at, "engine_mb", engine) && bench_note(bench, "S9", at, "nats_mb", nats) &&
           bench_note(bench, "S9", at, "postgres_mb", postgres);
}

/* ---- the scenario ---- */

/* Starts, until the last of them waits for its event. */
static bool start_all(struct bench *bench, thole_client *client, const char *prefix, uint64_t count,
                      double *ret_per_s)
{
    double ignored;
    uint64_t const begin_us = bench_now_us();
    if (!starts_make(client, "event", "x", prefix, count, &ignored) ||
        !starts_reached(&bench->stand, prefix, STARTS_RUNNING, count))
        return false;
    *ret_per_s = (double)count * 1e6 / (double)(bench_now_us() - begin_us);
    return true;
}

/* Counts and their costs; without the client, which is this program. */
static bool probe(struct bench *bench, thole_client *client, const char *prefix, const char *at,
                  uint64_t count, double *ret_per_s)
{
    static struct sample before, after;
    if (!levels_sample_processes(&bench->stand, &before) ||
        !start_all(bench, client, prefix, count, ret_per_s) ||
        !levels_sample_processes(&bench->stand, &after))
        return false;
    sample_subtract(&after, &before);
    return bench_note(bench, "S9", at, "starts_per_s", *ret_per_s) &&
           levels_note_roles(bench, "S9", at, &after, (double)count);
}

static bool restart(struct bench *bench, thole_client *client)
{
    struct stand *const stand = &bench->stand;
    stand_kill9(&stand->engines[0]);
    uint64_t const begin_us = bench_now_us();
    return stand_start_engine(stand, 0, NULL) && bench_one(client, "after-restart", "start") &&
           bench_note(bench, "S9", "idle", "restart_s", (double)(bench_now_us() - begin_us) / 1e6);
}

/* Those that waited before the engine was killed take their events afterwards. */
static bool wake_one(thole_client *client, const char *id)
{
    thole_error error = {.status = THOLE_OK};
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_slice const instance = thole_slice_from(id);
    bool const good = thole_client_signal(client, instance, THOLE_STR("go"), THOLE_STR("woken"),
                                          THOLE_STR(""), NULL, &error) == THOLE_OK &&
                      thole_client_wait(client, instance, 60000, &outcome, &error) == THOLE_OK &&
                      thole_slice_equal(outcome.output, THOLE_STR("woken"));
    thole_outcome_release(&outcome);
    return good ? true : bench_fail(id, error.text);
}

static bool run_idle(struct bench *bench, thole_client *client)
{
    double before, ignored, after;
    uint64_t const half = bench->options.instances / 2, most = bench->options.short_run ? PROBE_SHORT : PROBE,
                   count = most < half ? most : half, rest = bench->options.instances - count;
    if (!note_memory(bench, "none") || !probe(bench, client, "probe-a", "none", count, &before))
        return false;
    fprintf(stderr, "scenarios: S9, %" PRIu64 " more …\n", rest);
    if (!start_all(bench, client, "asleep-", rest, &ignored))
        return false;
    bench_nap_us(SETTLE_US);
    return bench_note(bench, "S9", "idle", "instances", (double)bench->options.instances) &&
           note_memory(bench, "idle") && probe(bench, client, "probe-b", "idle", count, &after) &&
           bench_note(bench, "S9", "idle", "start_ratio", after / before) && restart(bench, client) &&
           wake_one(client, "asleep-0") &&
           bench_note(bench, "S9", "idle", "machine_load", bench_load_average());
}

bool idle_run(struct bench *bench)
{
    thole_client *client = NULL;
    if (!bench_wants(bench, "S9"))
        return true;
    fprintf(stderr, "scenarios: S9, none …\n");
    bool const good = bench_open(bench) && stand_client(&client) && run_idle(bench, client);
    thole_client_close(client);
    bench_close(bench);
    return good;
}
