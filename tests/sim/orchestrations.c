#include "orchestrations.h"
#include <string.h>

enum { FAN_MAX = 40 };

/* So that a turn which schedules many does not fit into one record. */
#define LONG                                                                                                 \
    "an order that goes on and on, with a line for each thing, and a line for each price, and a line for "   \
    "whoever has to sign, and another one for whoever has to be told that it was signed, and when"

/* One after the other; each takes what the last one gave. */
static thole_status sequence(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice value = input;
    for (int i = 0; i < 4; i++)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), value), &value));
    *ret_output = value;
    return THOLE_OK;
}

/* As many at once as the input has letters; all of them are awaited. */
static thole_status fan(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[FAN_MAX];
    size_t const n = input.len < FAN_MAX ? input.len : FAN_MAX;
    for (size_t i = 0; i < n; i++)
        tasks[i] = thole_call(ctx, THOLE_STR("work"),
                              thole_format(ctx, "part %zu of %s", i, n > 12 ? LONG : "an order"));
    THOLE_TRY(thole_await_all(ctx, tasks, n, NULL));
    *ret_output = thole_format(ctx, "%zu parts", n);
    return THOLE_OK;
}

/* An activity against a timer; the loser is cancelled. Twice, then a timer alone. */
static thole_status race(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t winner, won = 0;
    for (int i = 0; i < 2; i++) {
        thole_task const charge = thole_call(ctx, THOLE_STR("slow"), input);
        thole_task const limit = thole_timer(ctx, 800);
        THOLE_TRY(thole_await_any(ctx, (thole_task[]){charge, limit}, 2, &winner));
        won += winner == 0;
    }
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 50), NULL));
    *ret_output = thole_format(ctx, "%zu", won);
    return THOLE_OK;
}

/* Cancellable: what was done is undone, in a handler that is not cancelled itself. */
static thole_status saga(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    thole_status status = thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), NULL);
    if (status == THOLE_OK)
        status = thole_await(ctx, thole_timer(ctx, 1500), NULL);
    if (status == THOLE_OK)
        status = thole_await(ctx, thole_call(ctx, THOLE_STR("stubborn"), input), NULL);
    if (status == THOLE_CANCELLED &&
        thole_await(ctx, thole_call(ctx, THOLE_STR("undo"), input), NULL) != THOLE_OK)
        return thole_throw(ctx, "could not be undone");
    return status;
}

/* An activity fails often; the orchestration then fails in its own words. */
static thole_status fails(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const task = thole_call(ctx, THOLE_STR("flaky"), input);
    thole_task const other = thole_call(ctx, THOLE_STR("slow"), input); /* often outstanding at the end */
    thole_status const status = thole_await(ctx, task, ret_output);
    if (status == THOLE_APP)
        return thole_throw(ctx, "the activity said: %.*s", THOLE_FMT(thole_task_error(ctx, task)));
    if (status == THOLE_OK && thole_now_ms(ctx) % 2 == 0)
        thole_cancel(ctx, other, THOLE_STR("not needed"));
    return status;
}

/* The first of three counts, the others go on; more timers than anything else. */
static thole_status mixed(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t first;
    thole_task tasks[6];
    tasks[0] = thole_timer(ctx, 20);
    tasks[1] = thole_call(ctx, THOLE_STR("work"), input);
    tasks[2] = thole_call(ctx, THOLE_STR("slow"), input);
    tasks[3] = thole_timer(ctx, 3000);
    THOLE_TRY(thole_await_first(ctx, tasks, 4, &first));
    tasks[4] = thole_timer(ctx, 0);
    tasks[5] = thole_call(ctx, THOLE_STR("flaky"), input);
    thole_status const status = thole_await_all(ctx, tasks, 6, NULL);
    *ret_output = thole_format(ctx, "%zu %s", first, thole_status_name(status));
    return status == THOLE_APP ? THOLE_OK : status;
}

/* Timers and nothing else, near and far, some of them cancelled. */
static thole_status ticks(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint64_t const began_ms = thole_now_ms(ctx);
    for (size_t i = 0; i < 8; i++) {
        size_t winner;
        uint64_t const step_ms = 7 + (input.len * 131 + i * 97) % 400;
        thole_task const tasks[] = {thole_timer(ctx, step_ms), thole_timer(ctx, step_ms * (1 + i % 3)),
                                    thole_timer(ctx, 5 * step_ms)};
        THOLE_TRY(thole_await_any(ctx, tasks, 3, &winner));
        if (winner == 2)
            return thole_throw(ctx, "a later timer fired first");
    }
    *ret_output = thole_format(ctx, "%s", thole_now_ms(ctx) > began_ms ? "later" : "at once");
    return THOLE_OK;
}

const thole_orchestration_entry ORCHESTRATIONS[ORCHESTRATIONS_LEN] = {
    {"sequence", sequence}, {"fan", fan},     {"race", race},   {"saga", saga},
    {"fails", fails},       {"mixed", mixed}, {"ticks", ticks}, {"late", sequence},
};

thole_orchestration_fn *orchestration_code(thole_slice name)
{
    for (size_t i = 0; i < ORCHESTRATIONS_LEN; i++)
        if (thole_slice_equal(name, thole_slice_from(ORCHESTRATIONS[i].name)))
            return ORCHESTRATIONS[i].run;
    return NULL;
}

struct activity_run activity_run(struct world *w, thole_slice name)
{
    struct activity_run run = {.duration_ms = between(w, 0, 60), .returns_after_ms = between(w, 0, 200)};
    if (thole_slice_equal(name, THOLE_STR("slow"))) {
        run.duration_ms = between(w, 300, 2500);
    } else if (thole_slice_equal(name, THOLE_STR("stubborn"))) {
        run.duration_ms = rnd(w, 3) == 0 ? between(w, LEASE_MS, 3 * LEASE_MS) : between(w, 100, 2500);
        run.returns_after_ms = rnd(w, 2) == 0 ? UINT64_MAX : between(w, 0, 4000);
    } else if (thole_slice_equal(name, THOLE_STR("flaky"))) {
        run.status = rnd(w, 2) == 0 ? THOLE_APP : THOLE_OK;
    }
    if (w->faults && rnd(w, 40) == 0)
        run.duration_ms += between(w, 500, 3 * LEASE_MS);
    return run;
}
