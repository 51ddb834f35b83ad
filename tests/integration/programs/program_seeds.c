/*
 * The orchestrations of the tests with actors.h: each calls activities on the queue that its input names. As
 * a worker of its own, for tests that freeze and kill processes, it runs the same activities; they end when a
 * file $SEEDS_DIR/INSTANCE.ATTEMPT or INSTANCE.all exists, and log their steps to $SEEDS_DIR/runs: "INSTANCE
 * attempt N begins", "INSTANCE attempt N ends, token KIND".
 */
#include "remote_worker.h"
#include "thole/program.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- orchestrations ---- */

static thole_task call(thole_ctx *ctx, thole_slice activity, thole_slice queue)
{
    thole_call_options const options = {.size = sizeof options, .queue = queue};
    return thole_call_with(ctx, activity, THOLE_STR(""), &options);
}

static thole_status polite(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, call(ctx, THOLE_STR("polite"), input), ret_output);
}

static thole_status rude(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, call(ctx, THOLE_STR("rude"), input), ret_output);
}

static thole_status echo(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, call(ctx, THOLE_STR("echo"), input), ret_output);
}

/* Ends as the event "end" says, while its activity is still open. The next execution has none. */
static thole_status leaves(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice how;
    if (input.len > 0)
        (void)call(ctx, THOLE_STR("polite"), input);
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("end")), &how));
    if (thole_slice_equal(how, THOLE_STR("fail")))
        return thole_throw(ctx, "as told");
    if (thole_slice_equal(how, THOLE_STR("continue")))
        return thole_continue_as_new(ctx, THOLE_STR(""), 0);
    *ret_output = THOLE_STR("left");
    return THOLE_OK;
}

/* Of three activities (events 2, 3, 4) the first two are cancelled when "cancel" comes. */
static thole_status some(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[3];
    for (size_t i = 0; i < 3; i++)
        tasks[i] = call(ctx, THOLE_STR("polite"), input);
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("cancel")), NULL));
    thole_cancel(ctx, tasks[0], THOLE_STR("not wanted"));
    thole_cancel(ctx, tasks[1], THOLE_STR("not wanted"));
    return thole_await(ctx, tasks[2], ret_output);
}

/* The activity is scheduled and cancelled before anybody hears of it. */
static thole_status never(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_cancel(ctx, call(ctx, THOLE_STR("polite"), input), THOLE_STR("second thoughts"));
    return thole_await(ctx, call(ctx, THOLE_STR("echo"), input), ret_output);
}

/* Told of a cancellation, it goes on until "go" comes. */
static thole_status stays(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_status const status = thole_await(ctx, call(ctx, THOLE_STR("rude"), input), ret_output);
    if (status == THOLE_CANCELLED)
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL));
    return status;
}

static thole_status join(thole_ctx *ctx, thole_task *tasks, size_t n, thole_slice *ret_output)
{
    thole_slice *const results = thole_alloc(ctx, n * sizeof *results);
    if (results == NULL)
        return THOLE_LIMIT;
    THOLE_TRY(thole_await_all(ctx, tasks, n, results));
    for (size_t i = 0; i < n; i++)
        *ret_output =
            thole_format(ctx, "%.*s%s%.*s", THOLE_FMT(*ret_output), i > 0 ? ", " : "", THOLE_FMT(results[i]));
    return THOLE_OK;
}

/* Three branches at the same time. */
static thole_status fork_join(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[3];
    for (size_t i = 0; i < 3; i++)
        tasks[i] = call(ctx, THOLE_STR("polite"), input);
    return join(ctx, tasks, 3, ret_output);
}

/* The first two mind their tokens, the third does not. */
static thole_status together(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[3];
    for (size_t i = 0; i < 3; i++)
        tasks[i] = call(ctx, i < 2 ? THOLE_STR("polite") : THOLE_STR("rude"), input);
    return join(ctx, tasks, 3, ret_output);
}

/* A first try that fails, a second that lasts; given up when "stop" comes. @p first_delay_ms: in between. */
static thole_status retried(thole_ctx *ctx, thole_slice queue, uint64_t first_delay_ms,
                            thole_slice *ret_output)
{
    size_t winner;
    thole_call_options const options = {
        .size = sizeof options, .queue = queue, .retry = {.tries_max = 3, .first_delay_ms = first_delay_ms}};
    thole_task const tasks[] = {thole_call_with(ctx, THOLE_STR("fails_once"), THOLE_STR(""), &options),
                                thole_event(ctx, THOLE_STR("stop"))};
    THOLE_TRY(thole_await_any(ctx, tasks, 2, &winner));
    *ret_output = winner == 0 ? THOLE_STR("ended") : THOLE_STR("stopped");
    return THOLE_OK;
}

static thole_status retried_soon(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return retried(ctx, input, 50, ret_output);
}

static thole_status retried_late(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return retried(ctx, input, 600000, ret_output);
}

static thole_status spawns(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, call(ctx, THOLE_STR("spawns"), input), ret_output);
}

static thole_status forgets(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, call(ctx, THOLE_STR("forgets"), input), ret_output);
}

/* A try has three seconds. */
static thole_status limited(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options, .queue = input, .try_timeout_ms = 3000};
    thole_status const status =
        thole_await(ctx, thole_call_with(ctx, THOLE_STR("polite"), THOLE_STR(""), &options), ret_output);
    if (status == THOLE_TIMEOUT)
        *ret_output = THOLE_STR("timed out");
    return status == THOLE_TIMEOUT ? THOLE_OK : status;
}

/* Three steps, one after the other; the second waits for the test's word. */
static thole_status steps(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, call(ctx, THOLE_STR("echo"), input), NULL));
    THOLE_TRY(thole_await(ctx, call(ctx, THOLE_STR("polite"), input), ret_output));
    return thole_await(ctx, call(ctx, THOLE_STR("echo"), input), NULL);
}

/* ---- activities of a worker process ---- */

static void note(const thole_activity *act, const char *what)
{
    char path[256], line[512];
    const char *dir = getenv("SEEDS_DIR");
    snprintf(path, sizeof path, "%s/runs", dir == NULL ? "." : dir);
    int const len = snprintf(line, sizeof line, "%.*s attempt %u %s\n",
                             THOLE_FMT(thole_activity_instance(act)), thole_activity_attempt(act), what);
    int const fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    ssize_t const n = write(fd, line, (size_t)len); /* one write: lines of several processes do not mix */
    (void)n;
    close(fd);
}

static bool is_released(const thole_activity *act)
{
    char path[256];
    const char *dir = getenv("SEEDS_DIR");
    int const len = snprintf(path, sizeof path, "%s/%.*s.", dir == NULL ? "." : dir,
                             THOLE_FMT(thole_activity_instance(act)));
    snprintf(path + len, sizeof path - (size_t)len, "%u", thole_activity_attempt(act));
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path + len, sizeof path - (size_t)len, "all");
    return access(path, F_OK) == 0;
}

static thole_status run(thole_activity *act, bool minds, thole_slice *ret_output)
{
    char what[64];
    note(act, "begins");
    while (!is_released(act) && !(minds && thole_activity_cancelled(act)))
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    snprintf(what, sizeof what, "ends, token %s",
             thole_activity_cancelled(act) ? thole_cancel_kind_name(thole_activity_cancel_kind(act))
                                           : "none");
    note(act, what);
    *ret_output = thole_activity_format(act, "attempt %u", thole_activity_attempt(act));
    return minds && thole_activity_cancelled(act) ? THOLE_CANCELLED : THOLE_OK;
}

static thole_status run_polite(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    return run(act, true, ret_output);
}

static thole_status run_rude(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    return run(act, false, ret_output);
}

static thole_status run_echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    note(act, "echoes");
    *ret_output = input;
    return THOLE_OK;
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {
        {"polite", polite, 0},
        {"rude", rude, 0},
        {"echo", echo, 0},
        {"leaves", leaves, 0},
        {"some", some, 0},
        {"never", never, 0},
        {"stays", stays, 0},
        {"fork_join", fork_join, 0},
        {"together", together, 0},
        {"retried_soon", retried_soon, 0},
        {"retried_late", retried_late, 0},
        {"spawns", spawns, 0},
        {"forgets", forgets, 0},
        {"limited", limited, 0},
        {"steps", steps, 0},
    };
    static const thole_activity_entry activities[] = {
        {"polite", run_polite}, {"rude", run_rude}, {"echo", run_echo}};
    thole_program const program = {.size = sizeof program,
                                   .name = "seeds",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = sizeof orchestrations / sizeof orchestrations[0],
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    return remote_or_main(argc, argv, &program);
}
