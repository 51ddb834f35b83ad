/*
 * A job that runs at each full hour, for years: every round is an execution of its own, so that the history
 * stays short. Data for the next round is in the state; events that no wait has taken are kept automatically.
 *
 *   thole dev -- build/release/examples/periodic run
 *   thole start rates --id rates --input 3600000
 *   thole signal rates stop
 *
 * Input: milliseconds from round to round.
 */
#include <inttypes.h>
#include <thole/program.h>

enum { FAILURES_MAX = 3 };

static uint64_t number(thole_slice text)
{
    uint64_t n = 0;
    return thole_slice_u64(text, &n) == THOLE_OK ? n : 0;
}

static uint64_t recall(thole_ctx *ctx, thole_slice key)
{
    thole_slice value;
    return thole_state_get(ctx, key, &value) == THOLE_OK ? number(value) : 0;
}

static void note(thole_ctx *ctx, thole_slice key, uint64_t n)
{
    thole_state_set(ctx, key, thole_format(ctx, "%" PRIu64, n));
}

/* Sleeps until the next multiple of the interval: a round that took long does not shift the later ones. */
static thole_status sleep_or_stop(thole_ctx *ctx, uint64_t interval_ms, bool *ret_stop)
{
    size_t winner;
    thole_task const stop = thole_event(ctx, THOLE_STR("stop"));
    thole_task const next = thole_timer(ctx, interval_ms - thole_now_ms(ctx) % interval_ms);
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){stop, next}, 2, &winner));
    *ret_stop = winner == 0;
    return THOLE_OK;
}

static thole_status rates(thole_ctx *ctx, thole_slice interval, thole_slice *ret_output)
{
    static const thole_call_options options = {
        .size = sizeof options,
        .total_timeout_ms = 10 * 60 * 1000,
        .retry = {.tries_max = 4, .first_delay_ms = 5000, .factor = 3}};
    thole_slice rate;
    bool stop;
    if (number(interval) == 0)
        return thole_throw(ctx, "the input is not a number of milliseconds");
    THOLE_TRY(sleep_or_stop(ctx, number(interval), &stop));
    if (stop) {
        *ret_output = thole_format(ctx, "%" PRIu64 " rounds", recall(ctx, THOLE_STR("rounds")));
        return THOLE_OK;
    }
    thole_status const status =
        thole_await(ctx, thole_call_with(ctx, THOLE_STR("fetch"), THOLE_STR("EUR/USD"), &options), &rate);
    if (status == THOLE_CANCELLED)
        return status;
    uint64_t const failures = status == THOLE_OK ? 0 : recall(ctx, THOLE_STR("failures")) + 1;
    if (failures > FAILURES_MAX)
        return thole_throw(ctx, "%" PRIu64 " rounds in a row have failed", failures);
    note(ctx, THOLE_STR("failures"), failures);
    note(ctx, THOLE_STR("rounds"), recall(ctx, THOLE_STR("rounds")) + 1);
    if (status == THOLE_OK)
        thole_set_status(ctx, rate);
    return thole_continue_as_new(ctx, interval, THOLE_VERSION_SAME);
}

static thole_status fetch(thole_activity *act, thole_slice pair, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "%.*s 1.0%u", THOLE_FMT(pair),
                                        (unsigned)(thole_activity_execution(act) % 10)); /* a rate, say */
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {{.name = "rates", .run = rates}};
static const thole_activity_entry activities[] = {{.name = "fetch", .run = fetch}};
static const thole_program program = {.size = sizeof program,
                                      .name = "periodic",
                                      THOLE_ORCHESTRATIONS_OF(orchestrations),
                                      THOLE_ACTIVITIES_OF(activities)};

int main(int argc, char **argv)
{
    return thole_main(argc, argv, &program);
}
