/*
 * S6: from the commit of a cancellation, by the time at which the server stored its record, to the token that
 * fires in the handler: with nothing else to do, and under S2's load.
 */
#include "histories.h"
#include "scenarios.h"
#include "tokens.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    CANCELS = 500,
    CANCELS_SHORT = 40,
    IN_FLIGHT = 256,
    WAIT_US = 60 * 1000000,
    POLL_US = 200,
    SETTLE_US = 500000
};

struct cancels {
    struct tokens *tokens;
    struct histories histories;
    const char *prefix;
    uint64_t count;
    uint64_t *committed_ns;
};

static bool wait_for(atomic_uint *count, uint64_t least, const char *what)
{
    uint64_t const end_us = bench_now_us() + WAIT_US;
    while (atomic_load(count) < least) {
        if (bench_now_us() > end_us)
            return bench_fail_at("S6", "%u of %" PRIu64 " %s", atomic_load(count), least, what);
        bench_nap_us(POLL_US);
    }
    return true;
}

static void on_record(void *arg, uint32_t partition, uint64_t stored_ns, const struct record *record)
{
    struct cancels *const cancels = arg;
    uint64_t i;
    (void)partition;
    if (record->kind != RECORD_TURN || !histories_number(record->turn.instance, cancels->prefix, &i) ||
        i >= cancels->count)
        return;
    for (size_t k = 0; k < record->turn.events_len; k++)
        if (record->turn.events[k].kind == EVENT_ACTIVITY_CANCELLED)
            cancels->committed_ns[i] = stored_ns;
}

static bool note_tokens(struct bench *bench, const char *at, struct cancels *cancels)
{
    uint64_t us[TOKENS_MAX];
    for (uint64_t i = 0; i < cancels->count; i++) {
        uint64_t const fired_ns = atomic_load(&cancels->tokens->at_ns[i]), from_ns = cancels->committed_ns[i];
        if (from_ns == 0 || fired_ns == 0)
            return bench_fail_at(
                "S6", "%s%" PRIu64 " has no cancellation in its history, or its token did not fire",
                cancels->prefix, i);
        us[i] = fired_ns > from_ns ? (fired_ns - from_ns) / 1000 : 0;
    }
    struct spread const spread = bench_spread(us, cancels->count);
    return bench_note(bench, "S6", at, "p50_ms", spread.p50 / 1000) &&
           bench_note(bench, "S6", at, "p99_ms", spread.p99 / 1000) &&
           bench_note(bench, "S6", at, "max_ms", spread.max / 1000) &&
           bench_note(bench, "S6", at, "machine_load", bench_load_average());
}

static bool cancel_one(thole_client *client, const struct cancels *cancels, uint64_t i)
{
    char id[64];
    thole_error error = {.status = THOLE_OK};
    (void)snprintf(id, sizeof id, "%s%" PRIu64, cancels->prefix, i);
    return thole_client_cancel(client, thole_slice_from(id), THOLE_STR("bench"), &error) == THOLE_OK
               ? true
               : bench_fail(id, error.text);
}

/* One after the other, as fast as tokens fire; those that are cancelled after @p until_us do not count. */
static bool cancel_all(thole_client *client, struct cancels *cancels, uint64_t until_us)
{
    uint64_t counted = 0;
    for (uint64_t i = 0; i < cancels->count; i++) {
        if (!cancel_one(client, cancels, i) || !wait_for(&cancels->tokens->fired, i + 1, "tokens fired"))
            return false;
        if (bench_now_us() < until_us)
            counted = i + 1;
    }
    cancels->count = counted;
    return counted > 0 ? true : bench_fail("S6", "the load ended before the first token fired");
}

/* The activities run before the load begins. */
static bool hold_all(thole_client *client, struct cancels *cancels)
{
    double seconds;
    atomic_store(&cancels->tokens->started, 0);
    atomic_store(&cancels->tokens->fired, 0);
    return starts_make(client, "hold", "x", cancels->prefix, cancels->count, &seconds) &&
           wait_for(&cancels->tokens->started, cancels->count, "handlers run") &&
           histories_skip(&cancels->histories);
}

static bool note_all(struct bench *bench, const char *at, struct cancels *cancels)
{
    return histories_read(&cancels->histories, on_record, cancels) && note_tokens(bench, at, cancels);
}

static bool run_idle(struct bench *bench, thole_client *client, struct cancels *cancels)
{
    fprintf(stderr, "scenarios: S6, idle …\n");
    if (!hold_all(client, cancels))
        return false;
    bench_nap_us(SETTLE_US);
    return cancel_all(client, cancels, UINT64_MAX) && note_all(bench, "idle", cancels);
}

static bool run_loaded(struct bench *bench, thole_client *client, struct cancels *cancels)
{
    struct load_client load = {.to = NULL};
    struct load_result result;
    bool const brief = bench->options.short_run;
    struct load const chain = {.kind = "chain",
                               .in_flight = brief ? 64 : IN_FLIGHT,
                               .warm_up = IN_FLIGHT,
                               .milliseconds = brief ? 2000 : 2 * bench->options.milliseconds};
    fprintf(stderr, "scenarios: S6, loaded …\n");
    bool good = hold_all(client, cancels) && load_start(&bench->stand, &chain, &load) && load_ready(&load) &&
                load_go(&load);
    good = good && cancel_all(client, cancels, bench_now_us() + chain.milliseconds * UINT64_C(1000)) &&
           load_result(&load, &result) && note_all(bench, "loaded", cancels);
    load_stop(&bench->stand, &load);
    return good;
}

static bool run_both(struct bench *bench, thole_client *client)
{
    uint64_t const count = bench->options.short_run ? CANCELS_SHORT : CANCELS;
    struct cancels cancels = {.tokens = tokens_find(), .count = count, .prefix = "idle-"};
    cancels.committed_ns = calloc(count, sizeof *cancels.committed_ns);
    bool good = cancels.tokens != NULL && cancels.committed_ns != NULL &&
                histories_open(&cancels.histories) && run_idle(bench, client, &cancels);
    if (good) {
        memset(cancels.committed_ns, 0, count * sizeof *cancels.committed_ns);
        cancels.count = count;
        cancels.prefix = "loaded-";
        good = run_loaded(bench, client, &cancels);
    }
    histories_close(&cancels.histories);
    free(cancels.committed_ns);
    return good;
}

bool cancels_run(struct bench *bench)
{
    thole_client *client = NULL;
    if (!bench_wants(bench, "S6"))
        return true;
    bool const good = bench_open_with(bench, 1, NULL, bench->options.slots + CANCELS) &&
                      stand_client(&client) && run_both(bench, client);
    thole_client_close(client);
    bench_close(bench);
    return good;
}
