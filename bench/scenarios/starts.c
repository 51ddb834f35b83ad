/* S11: durable starts from one process, which does not wait for any of them. */
#include "scenarios.h"
#include <inttypes.h>

enum { STARTS = 100000, STARTS_SHORT = 2000, STALLED_US = 60 * 1000000, POLL_US = 50 * 1000 };

struct starts {
    const char *kind, *input, *prefix;
    uint64_t next, count, stored;
    char id[64];
};

static thole_status give(void *arg, thole_start_item *ret_item, thole_error *reterr)
{
    struct starts *const starts = arg;
    (void)reterr;
    if (starts->next == starts->count)
        return THOLE_NOT_FOUND;
    (void)snprintf(starts->id, sizeof starts->id, "%s%" PRIu64, starts->prefix, starts->next);
    ret_item->instance = thole_slice_from(starts->id);
    ret_item->orchestration = thole_slice_from(starts->kind);
    ret_item->input = thole_slice_from(starts->input);
    ret_item->token = starts->next++;
    return THOLE_OK;
}

static thole_status on_answer(void *arg, uint64_t token, thole_slice instance, const thole_error *error)
{
    struct starts *const starts = arg;
    (void)token, (void)instance;
    starts->stored += error->status == THOLE_OK;
    return error->status;
}

bool starts_make(thole_client *client, const char *kind, const char *input, const char *prefix,
                 uint64_t count, double *ret_seconds)
{
    thole_error error = {.status = THOLE_OK};
    struct starts starts = {.kind = kind, .input = input, .prefix = prefix, .count = count};
    uint64_t const begin_us = bench_now_us();
    thole_status const status = thole_client_start_many(client, give, on_answer, &starts, &error);
    *ret_seconds = (double)(bench_now_us() - begin_us) / 1e6;
    return status == THOLE_OK && starts.stored == count
               ? true
               : bench_fail_at(prefix, "%" PRIu64 " of %" PRIu64 " starts are stored: %s", starts.stored,
                               count, error.text);
}

bool starts_reached(struct stand *stand, const char *prefix, const char *condition, uint64_t count)
{
    char statement[256];
    uint64_t n = 0, before = 0, moved_us = bench_now_us();
    (void)snprintf(
        statement, sizeof statement,
        "SELECT count(*) FROM thole_default.instances WHERE instance >= '%s' AND instance < '%s~' AND %s",
        prefix, prefix, condition);
    for (;; bench_nap_us(POLL_US)) {
        if (!stand_ask_number(stand, statement, &n))
            return false;
        if (n >= count)
            return n == count ? true : bench_fail_at(prefix, "%" PRIu64 " instances, not %" PRIu64, n, count);
        if (n != before)
            moved_us = bench_now_us();
        before = n;
        if (bench_now_us() > moved_us + STALLED_US)
            return bench_fail_at(prefix,
                                 "%" PRIu64 " of %" PRIu64 " instances have %s, and no more for a minute", n,
                                 count, condition);
    }
}

static bool start_all(struct bench *bench, thole_client *client, const char *prefix, const char *at)
{
    uint64_t const count = bench->options.short_run ? STARTS_SHORT : STARTS;
    double seconds;
    fprintf(stderr, "scenarios: S11, %s …\n", at);
    return starts_make(client, "start", "x", prefix, count, &seconds) &&
           bench_note(bench, "S11", at, "per_s", (double)count / seconds) &&
           bench_note(bench, "S11", at, "machine_load", bench_load_average());
}

/* Each start was taken, once: a second one of an id is refused. */
static bool all_taken(struct bench *bench, const char *prefix)
{
    uint64_t const count = bench->options.short_run ? STARTS_SHORT : STARTS;
    return starts_reached(&bench->stand, prefix, STARTS_COMPLETED, count) &&
           levels_completed(&bench->stand, prefix, count);
}

static bool run_all(struct bench *bench, thole_client *client)
{
    struct stand *const stand = &bench->stand;
    if (!start_all(bench, client, "eager-m", "engine") || !all_taken(bench, "eager-m"))
        return false;
    stand_stop(&stand->engines[0]);
    return start_all(bench, client, "early-m", "no engine") && stand_start_engine(stand, 0, NULL) &&
           all_taken(bench, "early-m");
}

bool starts_run(struct bench *bench)
{
    thole_client *client = NULL;
    if (!bench_wants(bench, "S11"))
        return true;
    bool const good = bench_open(bench) && stand_client(&client) && run_all(bench, client);
    thole_client_close(client);
    bench_close(bench);
    return good;
}
