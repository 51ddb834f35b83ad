/* S11: durable starts from one process, which does not wait for any of them. */
#include "scenarios.h"
#include <inttypes.h>

enum { STARTS = 100000, STARTS_SHORT = 2000, COMPLETED_US = 300 * 1000000 };

struct starts {
    const char *prefix;
    uint64_t next, count, stored;
    char id[64];
};

static thole_status give(void *arg, thole_start_item *ret_item, thole_error *reterr)
{
    struct starts *const starts = arg;
    (void)reterr;
    if (starts->next == starts->count)
        return THOLE_NOT_FOUND;
    (void)snprintf(starts->id, sizeof starts->id, "%s-m%" PRIu64, starts->prefix, starts->next);
    ret_item->instance = thole_slice_from(starts->id);
    ret_item->orchestration = THOLE_STR("start");
    ret_item->input = THOLE_STR("x");
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

static bool start_all(struct bench *bench, thole_client *client, const char *prefix, const char *at)
{
    thole_error error = {.status = THOLE_OK};
    struct starts starts = {.prefix = prefix, .count = bench->options.short_run ? STARTS_SHORT : STARTS};
    fprintf(stderr, "scenarios: S11, %s …\n", at);
    uint64_t const begin_us = bench_now_us();
    thole_status const status = thole_client_start_many(client, give, on_answer, &starts, &error);
    double const seconds = (double)(bench_now_us() - begin_us) / 1e6;
    if (status != THOLE_OK || starts.stored != starts.count)
        return bench_fail_at("S11", "%" PRIu64 " of %" PRIu64 " starts are stored: %s", starts.stored,
                             starts.count, error.text);
    return bench_note(bench, "S11", at, "per_s", (double)starts.count / seconds) &&
           bench_note(bench, "S11", at, "machine_load", bench_load_average());
}

/* Each start was taken exactly once: a second one would have another row's id, or be refused. */
static bool all_taken(struct bench *bench, const char *prefix)
{
    char statement[160];
    uint64_t const count = bench->options.short_run ? STARTS_SHORT : STARTS,
                   end_us = bench_now_us() + COMPLETED_US;
    uint64_t n = 0;
    (void)snprintf(statement, sizeof statement,
                   "SELECT count(*) FROM thole_default.instances WHERE status = 4 AND instance LIKE '%s%%'",
                   prefix);
    while (n < count) {
        if (bench_now_us() > end_us)
            return bench_fail_at("S11", "%" PRIu64 " of %" PRIu64 " instances have completed", n, count);
        if (!stand_ask_number(&bench->stand, statement, &n))
            return false;
        bench_nap_us(100000);
    }
    return levels_completed(&bench->stand, prefix, count);
}

static bool run_all(struct bench *bench, thole_client *client)
{
    struct stand *const stand = &bench->stand;
    if (!start_all(bench, client, "eager", "engine") || !all_taken(bench, "eager-m"))
        return false;
    stand_stop(&stand->engines[0]);
    return start_all(bench, client, "early", "no engine") && stand_start_engine(stand, 0, NULL) &&
           all_taken(bench, "early-m");
}

bool starts_run(struct bench *bench)
{
    thole_client *client = NULL;
    if (!bench_wants(bench, "S11"))
        return true;
    bool const good = bench_open(bench) && stand_client(&client) && run_all(bench, client);
    thole_client_close(client);
    stand_close(&bench->stand);
    return good;
}
