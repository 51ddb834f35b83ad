/* S4: many timers that are due at about the same time: how late is each recorded in its history? */
#include "histories.h"
#include "scenarios.h"
#include <inttypes.h>
#include <stdlib.h>

enum { TIMERS = 10000, TIMERS_SHORT = 500 };
#define PREFIX "timer-"

struct timers {
    uint64_t *due_ms, *late_us;
    unsigned *fired;
    uint64_t count;
};

static void on_record(void *arg, uint32_t partition, uint64_t stored_ns, const struct record *record)
{
    struct timers *const timers = arg;
    uint64_t i;
    (void)partition;
    if (record->kind != RECORD_TURN || !histories_number(record->turn.instance, PREFIX, &i) ||
        i >= timers->count)
        return;
    for (size_t k = 0; k < record->turn.events_len; k++) {
        const struct event *const event = &record->turn.events[k];
        if (event->kind == EVENT_TIMER_CREATED)
            timers->due_ms[i] = event->due_ms;
        if (event->kind != EVENT_TIMER_FIRED)
            continue;
        timers->fired[i]++;
        timers->late_us[i] = stored_ns / 1000 - timers->due_ms[i] * 1000;
    }
}

static bool note_timers(struct bench *bench, struct timers *timers)
{
    char at[24];
    uint64_t missing = 0, early = 0;
    (void)snprintf(at, sizeof at, "%" PRIu64, timers->count);
    for (uint64_t i = 0; i < timers->count; i++) {
        missing += timers->fired[i] != 1;
        early += (int64_t)timers->late_us[i] < 0;
    }
    struct spread const us = bench_spread(timers->late_us, timers->count);
    if (missing > 0 || early > 0)
        return bench_fail_at(
            "S4", "%" PRIu64 " of %" PRIu64 " timers did not fire exactly once, %" PRIu64 " too early",
            missing, timers->count, early);
    return bench_note(bench, "S4", at, "p50_ms", us.p50 / 1000) &&
           bench_note(bench, "S4", at, "p99_ms", us.p99 / 1000) &&
           bench_note(bench, "S4", at, "max_ms", us.max / 1000) &&
           bench_note(bench, "S4", at, "missing", (double)missing) &&
           bench_note(bench, "S4", at, "machine_load", bench_load_average());
}

static bool read_timers(struct bench *bench, uint64_t count)
{
    struct histories histories;
    struct timers timers = {.due_ms = calloc(count, sizeof *timers.due_ms),
                            .late_us = calloc(count, sizeof *timers.late_us),
                            .fired = calloc(count, sizeof *timers.fired),
                            .count = count};
    bool const good = timers.due_ms != NULL && timers.late_us != NULL && timers.fired != NULL &&
                      histories_open(&histories) && histories_read(&histories, on_record, &timers) &&
                      note_timers(bench, &timers);
    histories_close(&histories);
    free(timers.due_ms);
    free(timers.late_us);
    free(timers.fired);
    return good;
}

bool timers_run(struct bench *bench)
{
    thole_client *client = NULL;
    double seconds;
    uint64_t const count = bench->options.short_run ? TIMERS_SHORT : TIMERS;
    if (!bench_wants(bench, "S4"))
        return true;
    fprintf(stderr, "scenarios: S4, %" PRIu64 " timers …\n", count);
    bool const good =
        bench_open(bench) && stand_client(&client) &&
        starts_make(client, "timer", bench->options.short_run ? "1000:" : "x", PREFIX, count, &seconds) &&
        starts_reached(&bench->stand, PREFIX, STARTS_COMPLETED, count) &&
        levels_completed(&bench->stand, PREFIX, count) && read_timers(bench, count);
    thole_client_close(client);
    bench_close(bench);
    return good;
}
