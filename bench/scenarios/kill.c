/*
 * S8: an engine is killed (SIGKILL) at full load, another one takes over. How long until every partition that
 * it had makes progress again, and did each workflow happen exactly once, by its history?
 */
#include "bench_program.h"
#include "histories.h"
#include "scenarios.h"
#include <inttypes.h>
#include <stdlib.h>

enum {
    IN_FLIGHT = 256,
    KILL_AFTER_MS = 3000,
    KILL_AFTER_SHORT_MS = 1000,
    SINCE_MS = 20000,
    SINCE_SHORT_MS = 3000
};

struct counted { /* events of a workflow's history */
    unsigned char started, scheduled, completed, ended;
};

struct killed {
    const char *prefix;
    struct counted *workflows;
    uint64_t count, at_ns;
    uint64_t epoch_before[HISTORIES_PARTITIONS_MAX];
    uint64_t first_ns[HISTORIES_PARTITIONS_MAX]; /* the first turn of a later epoch, after at_ns */
};

static void add(unsigned char *count)
{
    if (*count < 255)
        ++*count;
}

static void count_events(struct counted *counted, const struct turn *turn)
{
    for (size_t i = 0; i < turn->events_len; i++)
        switch (turn->events[i].kind) {
        case EVENT_STARTED: add(&counted->started); break;
        case EVENT_ACTIVITY_SCHEDULED: add(&counted->scheduled); break;
        case EVENT_ACTIVITY_COMPLETED: add(&counted->completed); break;
        case EVENT_COMPLETED: add(&counted->ended); break;
        default: break;
        }
}

static void on_record(void *arg, uint32_t partition, uint64_t stored_ns, const struct record *record)
{
    struct killed *const killed = arg;
    uint64_t i;
    if (record->kind != RECORD_TURN)
        return;
    if (stored_ns <= killed->at_ns)
        killed->epoch_before[partition] = record->epoch;
    else if (record->epoch > killed->epoch_before[partition] && killed->first_ns[partition] == 0)
        killed->first_ns[partition] = stored_ns;
    if (histories_number(record->turn.instance, killed->prefix, &i) && i < killed->count)
        count_events(&killed->workflows[i], &record->turn);
}

static uint64_t count_wrong(const struct killed *killed)
{
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < killed->count; i++) {
        const struct counted *const one = &killed->workflows[i];
        wrong += one->started != 1 || one->scheduled != PROGRAM_CHAIN || one->completed != PROGRAM_CHAIN ||
                 one->ended != 1;
    }
    return wrong;
}

static bool note_killed(struct bench *bench, const char *at, const struct killed *killed)
{
    double first_s = 1e9, all_s = 0;
    for (size_t p = 0; p < HISTORIES_PARTITIONS_MAX; p++) {
        if (killed->first_ns[p] == 0)
            continue;
        double const s = (double)(killed->first_ns[p] - killed->at_ns) / 1e9;
        first_s = s < first_s ? s : first_s;
        all_s = s > all_s ? s : all_s;
    }
    if (all_s <= 0)
        return bench_fail("S8", "no partition has got another owner");
    uint64_t const wrong = count_wrong(killed);
    if (!bench_note(bench, "S8", at, "first_s", first_s) || !bench_note(bench, "S8", at, "all_s", all_s) ||
        !bench_note(bench, "S8", at, "workflows", (double)killed->count) ||
        !bench_note(bench, "S8", at, "wrong", (double)wrong) ||
        !bench_note(bench, "S8", at, "machine_load", bench_load_average()))
        return false;
    return wrong == 0
               ? true
               : bench_fail_at("S8", "%" PRIu64 " of %" PRIu64 " workflows did not happen exactly once",
                               wrong, killed->count);
}

static bool read_killed(struct bench *bench, const char *at, const char *prefix, uint64_t count,
                        uint64_t at_ns)
{
    struct histories histories;
    struct killed killed = {.prefix = prefix, .count = count, .at_ns = at_ns};
    killed.workflows = calloc(count, sizeof *killed.workflows);
    bool const good = killed.workflows != NULL && histories_open(&histories) &&
                      histories_read(&histories, on_record, &killed) && note_killed(bench, at, &killed);
    histories_close(&histories);
    free(killed.workflows);
    return good;
}

static bool load_and_kill(struct bench *bench, struct load_client *client, struct load_result *ret,
                          uint64_t *ret_ns)
{
    unsigned const after_ms = bench->options.short_run ? KILL_AFTER_SHORT_MS : KILL_AFTER_MS;
    if (!load_ready(client) || !load_go(client))
        return false;
    bench_nap_us(after_ms * UINT64_C(1000));
    *ret_ns = bench_wall_ns();
    stand_kill9(&bench->stand.engines[0]);
    return load_result(client, ret);
}

static bool run_kill(struct bench *bench, const char *at, const char *const *arguments)
{
    struct load_client client = {.to = NULL};
    struct load_result result;
    char prefix[64];
    uint64_t at_ns = 0;
    unsigned const milliseconds =
        bench->options.short_run ? KILL_AFTER_SHORT_MS + SINCE_SHORT_MS : KILL_AFTER_MS + SINCE_MS;
    struct load const load = {
        .kind = "chain", .in_flight = IN_FLIGHT, .warm_up = IN_FLIGHT, .milliseconds = milliseconds};
    fprintf(stderr, "scenarios: S8, %s …\n", at);
    bool good = bench_open_with(bench, 2, arguments, bench->options.slots) &&
                load_start(&bench->stand, &load, &client) && load_and_kill(bench, &client, &result, &at_ns);
    (void)snprintf(prefix, sizeof prefix, "%s-m", client.prefix);
    load_stop(&bench->stand, &client);
    good = good && levels_completed(&bench->stand, prefix, result.done) &&
           read_killed(bench, at, prefix, result.done, at_ns);
    bench_end(bench);
    return good;
}

bool kill_run(struct bench *bench)
{
    static const char *const quick[] = {"--node-ttl=1s", NULL};
    if (!bench_wants(bench, "S8"))
        return true;
    return run_kill(bench, "node-ttl 1s", quick) &&
           (bench->options.short_run || run_kill(bench, "defaults", NULL));
}
